package conversation

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// ordinals are the words that name a place in a list: 1 for the first, -1 for
// the last, -2 for the one before.
var ordinals = func() map[string]int {
	m := map[string]int{}
	for n, list := range map[int]string{
		1:  "first 1st former 1ere 1er erste erster ersten erstes erstere ersteres ersterer premier premiere primero primera primer पहला पहली पहले पहिला pehla pehli pehle pahla pahli upper",
		2:  "second 2nd latter 2eme 2nde 2de zweite zweiter zweiten zweites zweiteres zweiterer letztere letzteres letzterer deuxieme second seconde segundo segunda दूसरा दूसरी दूसरे doosra doosri dusra dusri dusre",
		3:  "third 3rd 3eme dritte dritter dritten drittes troisieme tercero tercera tercer teesra teesri tisra tisri तीसरा तीसरी तीसरे",
		4:  "fourth 4th 4eme vierte vierter vierten viertes quatrieme cuarto cuarta चौथा चौथी चौथे",
		5:  "fifth 5th 5eme fuenfte fuenfter fuenften fuenftes cinquieme quinto quinta पांचवा पांचवां पांचवी पांचवीं पांचवें",
		6:  "sixth 6th sechste sechsten sixieme sexto sexta छठा छठी",
		7:  "seventh 7th siebte siebten septieme septimo septima सातवां",
		8:  "eighth 8th achte achten huitieme octavo octava आठवां",
		-2: "penultimate vorletzte vorletzter vorletzten vorletztes avantdernier penultimo penultima",
		-1: "last bottom final letzte letzter letzten letztes dernier derniere ultimo ultima akhiri aakhri aakhiri आखिरी अंतिम आखरी",
	} {
		for w := range strings.FieldsSeq(list) {
			m[plain(w)] = n
		}
	}
	return m
}()

// cardinals are the numbers written as words.
var cardinals = func() map[string]int {
	m := map[string]int{}
	for n, list := range map[int]string{
		1: "one eins un une uno una एक 一", 2: "two zwei beiden deux dos दो 二 两", 3: "three drei trois tres तीन 三",
		4: "four vier quatre cuatro चार 四", 5: "five fuenf cinq cinco पांच 五", 6: "six sechs seis छह छः 六", 7: "seven sieben sept siete सात 七", 8: "eight acht huit ocho आठ 八",
	} {
		for w := range strings.FieldsSeq(list) {
			m[plain(w)] = n
		}
	}
	return m
}()

// moreNumbers are the numbers above those in words, for amounts and ages.
var moreNumbers = func() map[string]float64 {
	m := map[string]float64{}
	for n, list := range map[float64]string{
		9: "nine neun neuf nueve", 10: "ten zehn dix diez दस 十", 11: "eleven elf onze once", 12: "twelve zwoelf douze doce", 13: "thirteen dreizehn treize trece",
		14: "fourteen vierzehn quatorze catorce", 15: "fifteen fuenfzehn quinze quince", 16: "sixteen sechzehn seize dieciseis", 17: "seventeen siebzehn diecisiete",
		18: "eighteen achtzehn dieciocho", 19: "nineteen neunzehn diecinueve", 20: "twenty zwanzig vingt veinte", 30: "thirty dreissig trente treinta",
		40: "forty vierzig quarante cuarenta", 50: "fifty fuenfzig cinquante cincuenta", 60: "sixty sechzig soixante sesenta", 70: "seventy siebzig setenta", 80: "eighty achtzig ochenta",
		90: "ninety neunzig noventa", 100: "hundred hundert cent cien", 1000: "thousand tausend mille mil",
	} {
		for w := range strings.FieldsSeq(list) {
			m[plain(w)] = n
		}
	}
	return m
}()

// besideSelector are the words that may stand beside a selector: "option 2",
// "the second one please", "la segunda opción".
var besideSelector = wordSet("your my something like either you mentioned listed named said there gave show the a one ones opt maybe perhaps vielleicht option options number no nr num choice item answer point variant version alternative reading please of them those these two three four on in list from is letter buchstabe lettre letra das der die den dem option variante nummer moeglichkeit punkt frage le la les l option numero choix reponse celui celle el los las opcion opciones numero alternativa respuesta punto vez 第 个 项 种 选 选项 条 那 这 的 号 吧 是 了 位 wala wali wale vala vali नंबर विकल्प वाला वाली वाले ऑप्शन नम्बर को का की")

var listWords = wordSet("aur bhi भी and nor noch ni & n plus both as well also und sowie auch et ainsi que y e tambien 和 跟 与 以及 也 及 और तथा एवं")
var orWords = wordSet("or oder ou o u 或 或者 还是 या")
var numberWords = wordSet("option opt answer number no nr num choice item point variante nummer moeglichkeit punkt numero choix opcion punto 第 选 选项 नंबर विकल्प ऑप्शन")

func wordSet(list string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		m[plain(w)] = true
		for _, p := range plains(w) {
			if utf8.RuneCountInString(w) > 1 && len(plains(w)) > 1 {
				m[p] = true // a word of several Chinese characters
			}
		}
	}
	return m
}

// selection is what a part of a reply selects by place.
type selection struct {
	places []int // from 0, in the order named; out of range if there is no such option
	or     bool  // "1 or 2"
}

// selectByPlace reads a part that does nothing but name places in the list. n
// is the number of options; marked says that the part is written as a place is.
func selectByPlace(ws []string, n int, marked bool) (selection, bool) {
	var s selection
	add := func(place int) {
		for _, p := range s.places {
			if p == place {
				return
			}
		}
		s.places = append(s.places, place)
	}
	place := func(ordinal int) int {
		if ordinal < 0 {
			return n + ordinal
		}
		return ordinal - 1
	}
	for i := 0; i < len(ws); i++ {
		w := ws[i]
		o, isOrdinal := ordinals[w]
		switch {
		case w == "第" && i+1 < len(ws) && cardinalOf(ws[i+1]) > 0:
			add(cardinalOf(ws[i+1]) - 1)
			i++
		case (w == "最" || w == "倒") && i+1 < len(ws) && (ws[i+1] == "后" || ws[i+1] == "後"): // 最后一个
			add(n - 1)
			i++
			if i+1 < len(ws) && ws[i+1] == "一" {
				i++
			}
		case w == "前" && i+1 < len(ws) && cardinalOf(ws[i+1]) > 1: // 前两个
			for p := range cardinalOf(ws[i+1]) {
				add(p)
			}
			i++
		case (w == "前" || w == "后" || w == "上" || w == "下") && i+1 < len(ws) && (ws[i+1] == "面" || ws[i+1] == "边") && n == 2: // 后面那个
			if w == "前" || w == "上" {
				add(0)
			} else {
				add(1)
			}
			i++
		case w == "前" && i+1 < len(ws) && ws[i+1] == "者": // 前者
			add(0)
			i++
		case w == "后" && i+1 < len(ws) && ws[i+1] == "者": // 后者
			add(1)
			i++
		case isOrdinal && i+1 < len(ws) && cardinalOf(ws[i+1]) > 1 && ws[i+1] != "deux" || firstFew(ws, i):
			count := cardinalOf(ws[i+1])
			if !isOrdinal { // "les deux premiers", "die zwei letzten"
				count, o = cardinalOf(w), ordinals[singular(ws[i+1])]
			}
			for p := range count {
				if o < 0 {
					add(n - count + p)
				} else {
					add(p)
				}
			}
			i++
		case isOrdinal && (w == "second" || w == "last") && i+1 < len(ws) && ws[i+1] == "last":
			add(n - 2)
			i++
		case isOrdinal && i+2 < len(ws) && w == "last" && ws[i+1] == "but" && ws[i+2] == "one":
			add(n - 2)
			i += 2
		case w == "倒" && i+3 < len(ws) && ws[i+1] == "数" && ws[i+2] == "第" && cardinalOf(ws[i+3]) > 0:
			add(n - cardinalOf(ws[i+3]))
			i += 3
		case isOrdinal && i+2 < len(ws) && (w == "second" || w == "next") && ws[i+1] == "to" && ws[i+2] == "last":
			add(n - 2)
			i += 2
		case isOrdinal:
			add(place(o))
		case ordinals[singular(w)] != 0:
			add(place(ordinals[singular(w)]))
		case w == "middle" || w == "mittlere" || w == "mittleren" || w == "medio" || w == "milieu" || w == "बीच":
			if n%2 == 0 {
				return s, false
			}
			add(n / 2)
		case w == "top":
			add(0)
		case (w == "ek" || w == "do" || w == "teen") && i+1 < len(ws) && (ws[i+1] == "no" || ws[i+1] == "number" || ws[i+1] == "nambar"):
			add(map[string]int{"ek": 0, "do": 1, "teen": 2}[w])
		case orWords[w] && len(s.places) > 0:
			s.or = true
		case len(w) == 1 && w[0] >= 'a' && w[0] <= 'z' && letterMeant(ws, i, n, marked):
			add(int(w[0] - 'a'))
		case len(w) > 2 && digitsByComma(w):
			for d := range strings.SplitSeq(w, ",") {
				add(int(d[0]-'0') - 1)
			}
		case isPlace(w):
			v, _ := strconv.Atoi(w)
			add(v - 1)
		case cardinals[w] == n && n > 2 && i > 0 && pluralArticle[ws[i-1]]:
			return s, false // "les trois"
		case cardinals[w] > 0 && !(w == "one" && len(s.places) > 0) && (len(ws) == 1 || i > 0 && numberWords[ws[i-1]] || onlyCardinals(ws)):
			add(cardinals[w] - 1)
		case listWords[w], besideSelector[w]:
		default:
			return s, false
		}
	}
	return s, len(s.places) > 0
}

// singular brings "premiers", "primeras" and the like to the form in the table.
func singular(w string) string {
	if c, ok := strings.CutSuffix(w, "s"); ok && ordinals[c] != 0 {
		return c
	}
	return w
}

func firstFew(ws []string, i int) bool {
	return cardinals[ws[i]] > 1 && i+1 < len(ws) && ordinals[singular(ws[i+1])] != 0
}

func onlyCardinals(ws []string) bool {
	for _, w := range ws {
		if cardinals[w] == 0 && !listWords[w] && !orWords[w] && w != "the" {
			return false
		}
	}
	return true
}

func cardinalOf(w string) int {
	if c := cardinals[w]; c > 0 {
		return c
	}
	if isPlace(w) {
		v, _ := strconv.Atoi(w)
		return v
	}
	return 0
}

// isPlace says whether w is a number that can be a place in a list.
func isPlace(w string) bool {
	if len(w) == 0 || len(w) > 2 {
		return false
	}
	v, err := strconv.Atoi(w)
	return err == nil && v >= 1 && v <= 20
}

// digitsByComma says whether w is "1,3" and the like.
func digitsByComma(w string) bool {
	for i := range len(w) {
		if digit := w[i] >= '1' && w[i] <= '9'; digit != (i%2 == 0) || !digit && w[i] != ',' {
			return false
		}
	}
	return len(w)%2 == 1
}

// letterMeant says whether a single letter names an option: it is within the
// list, and "a", "y", "e", "o" are no words here.
func letterMeant(ws []string, i, n int, marked bool) bool {
	if n > 0 && int(ws[i][0]-'a') >= n {
		return i > 0 && numberWords[ws[i-1]] // "option d" of three
	}
	switch ws[i] {
	case "a", "e", "o", "y", "i", "n", "l", "d", "u":
		if len(ws) == 1 || marked || i > 0 && numberWords[ws[i-1]] || i == 0 && len(ws) > 2 && (listWords[ws[1]] || orWords[ws[1]]) && len(ws[2]) == 1 {
			return true
		}
		return i == len(ws)-1 && i >= 2 && len(ws[i-2]) == 1 && (listWords[ws[i-1]] || orWords[ws[i-1]])
	}
	return true
}

var pluralArticle = wordSet("the les los las die alle all")

func isNumber(w string) bool { return w != "" && w[0] >= '0' && w[0] <= '9' }

// number reads the number at the beginning of a word: "4.2", "1,000", "10k".
func number(w string) (float64, bool) {
	end := 0
	for end < len(w) && (w[end] >= '0' && w[end] <= '9' || w[end] == '.' || w[end] == ',') {
		end++
	}
	s := w[:end]
	if i := strings.LastIndexByte(s, ','); i >= 0 && len(s)-i == 4 {
		s = strings.ReplaceAll(s, ",", "")
	} else {
		s = strings.ReplaceAll(s, ",", ".")
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil
}
