package conversation

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/askback/askback/internal/edit"
)

// word is one word of a text: its plain form, by which words are compared, and
// where it stands. A Chinese or Japanese character is a word of its own.
type word struct {
	plain      string
	start, end int // bytes of the text
}

// words splits text into words. Case, accents and width do not count in their
// plain form; a number keeps its decimals and a time its colon.
func words(text string) []word {
	var ws []word
	start := -1
	flush := func(end int) {
		if start < 0 {
			return
		}
		if p := plain(text[start:end]); p != "" {
			ws = append(ws, word{p, start, end})
		}
		start = -1
	}
	for i, r := range text {
		switch {
		case unicode.Is(unicode.Han, r):
			flush(i)
			ws = append(ws, word{string(r), i, i + utf8.RuneLen(r)})
		case isWordRune(r):
			if start < 0 {
				start = i
			}
		case isApostrophe(r) && start >= 0:
			if elided(text[start:i]) { // "l'option" is two words, "don't" is one
				flush(i)
			}
		case r == '&' || r == '+' && start < 0:
			flush(i)
			ws = append(ws, word{"&", i, i + 1})
		case r == '+' && !isDigit(text, i-1) && !isLetterAt(text, i+1): // "Comfort+"
			flush(i)
			ws = append(ws, word{"plus", i, i + 1})
		case (r == '.' || r == ',' || r == ':') && start >= 0 && isDigit(text, i-1) && isDigit(text, i+1):
		default:
			flush(i)
		}
	}
	flush(len(text))
	return ws
}

func isWordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r) && r != 0xFE0F && r != 0x20E3 || unicode.Is(unicode.Mc, r)
}

func isApostrophe(r rune) bool { return r == '\'' || r == '’' || r == '‘' || r == 'ʼ' }

func isLetterAt(s string, i int) bool {
	if i >= len(s) {
		return false
	}
	r, _ := utf8.DecodeRuneInString(s[i:])
	return unicode.IsLetter(r)
}

func isDigit(s string, i int) bool { return i >= 0 && i < len(s) && s[i] >= '0' && s[i] <= '9' }

// elided says whether s stands before an apostrophe as a word of its own, as in
// French. English "I'm" is one word.
func elided(s string) bool {
	switch strings.ToLower(s) {
	case "l", "d", "c", "j", "n", "s", "m", "t", "qu", "jusqu", "lorsqu", "puisqu":
		return true
	}
	return false
}

var umlauts = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue")

// plain gives the form by which words are compared.
func plain(s string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(umlauts.Replace(norm.NFKC.String(strings.ToLower(s)))) {
		switch {
		case r >= 0x300 && r <= 0x36F, isApostrophe(r), r == '\u200c', r == '\u200d', r == '़':
		case r == 'ß':
			b.WriteString("ss")
		case r == 'œ':
			b.WriteString("oe")
		case r == 'ँ':
			b.WriteRune('ं')
		default:
			if r >= '०' && r <= '९' {
				r = '0' + r - '०'
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}

// plains gives the plain forms of the words of a text.
func plains(text string) []string { return forms(words(text)) }

func forms(ws []word) []string {
	s := make([]string, len(ws))
	for i, w := range ws {
		s[i] = w.plain
	}
	return s
}

// key gives a text in the form by which whole texts are compared.
func key(text string) string { return strings.Join(plains(text), " ") }

// likeness of a plain word that was said to one that is meant: 1 the same, less for the same beginning or a
// slip of the finger, 0 for different words.
func likeness(a, b string) float64 {
	if a == b {
		return 1
	}
	if x := sameThing()[a]; x != "" && x == sameThing()[b] {
		return 0.9
	}
	if an, bn := isNagari(a), isNagari(b); an != bn {
		if !an {
			a, b = b, a
		}
		if x := consonants(romanize(a)); len(x) >= 3 && x == consonants(b) {
			return 0.8 // "tatkal" for "तत्काल"
		}
		return 0
	}
	if isNumeral(a) || isNumeral(b) {
		if sameYear(a, b) || sameYear(b, a) {
			return 0.8
		}
		if x, ok := numeral(a); ok {
			if y, ok := numeral(b); ok && x == y && unitOf(a) == unitOf(b) {
				return 0.95
			}
		}
		return 0
	}
	la, lb := utf8.RuneCountInString(a), utf8.RuneCountInString(b)
	said := la
	missing := la == 4 && lb == 5 && a[0] == b[0] // of the one said
	if la > lb {
		a, b, la, lb = b, a, lb, la
	}
	if la < 3 {
		return 0
	}
	if la >= 4 && la == said && lb >= la+3 && strings.HasSuffix(b, a) { // "Kurs" of "Sprachkurs"
		return 0.65
	}
	if la >= 4 && squeeze(a) == squeeze(b) { // "adhar", "Aadhaar"
		return 0.85
	}
	if strings.HasPrefix(b, a) {
		switch {
		case lb-la <= 2 && (la > 3 || endings[b[len(a):]] || strings.HasSuffix(a, b[len(a):])):
			return 0.9
		case la >= 3 && lb >= 6:
			return 0.8
		}
		return 0
	}
	if la >= 5 && stem(a) == stem(b) {
		return 0.85
	}
	if la < 5 {
		swap := la == lb && sameLetters(a, b)
		if la == 4 && (swap || missing) && edit.Distance([]rune(a), []rune(b), 1) <= 1 { // "basci", "geen"
			return 0.6
		}
		return 0
	}
	if hours[a] > 0 || hours[b] > 0 {
		return 0 // "mois" is no slip of "moins"
	}
	most := 1
	if la >= 9 {
		most = 2
	}
	if lb-la <= most && edit.Distance([]rune(a), []rune(b), most) <= most {
		return 0.7
	}
	if n := sharedStart(a, b); n >= 5 && 5*n >= 4*la { // "extend", "extension"
		return 0.7
	}
	return 0
}

// sameYear says whether short is the end of a year: "24" for "2024".
func sameYear(short, year string) bool {
	return len(short) == 2 && len(year) == 4 && isDigit(short, 0) && isDigit(short, 1) && (year[:2] == "19" || year[:2] == "20") && year[2:] == short
}

func isNagari(w string) bool {
	r, _ := utf8.DecodeRuneInString(w)
	return unicode.Is(unicode.Devanagari, r)
}

// nagari gives the Latin letters by which Hindi is typed without its script.
var nagari = map[rune]string{'क': "k", 'ख': "k", 'ग': "g", 'घ': "g", 'ङ': "n", 'च': "c", 'छ': "c", 'ज': "j", 'झ': "j", 'ञ': "n", 'ट': "t", 'ठ': "t", 'ड': "d", 'ढ': "d", 'ण': "n", 'त': "t", 'थ': "t", 'द': "d", 'ध': "d", 'न': "n", 'प': "p", 'फ': "f", 'ब': "b", 'भ': "b", 'म': "m", 'य': "y", 'र': "r", 'ल': "l", 'व': "v", 'श': "s", 'ष': "s", 'स': "s", 'ह': "h", 'ं': "n"}

func romanize(w string) string {
	var b strings.Builder
	for _, r := range w {
		b.WriteString(nagari[r])
	}
	return b.String()
}

var aspirates = strings.NewReplacer("ch", "c", "sh", "s", "kh", "k", "gh", "g", "th", "t", "dh", "d", "ph", "f", "bh", "b", "jh", "j", "w", "v", "z", "j", "q", "k", "ck", "k", "x", "ks", "c", "k")

// consonants is what is left of a word typed in Latin letters when vowels and
// breathed sounds are taken off: "tatkal" and "tatkaal" are "ttkl".
func consonants(w string) string {
	var b strings.Builder
	for _, r := range aspirates.Replace(w) {
		if r >= 'a' && r <= 'z' && !strings.ContainsRune("aeiou", r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// squeeze writes each letter of a run once.
func squeeze(w string) string {
	var b strings.Builder
	last := rune(-1)
	for _, r := range w {
		if r != last {
			b.WriteRune(r)
		}
		last = r
	}
	return b.String()
}

// sharedStart counts the characters with which both words begin.
func sharedStart(a, b string) int {
	n, y := 0, []rune(b)
	for _, r := range a {
		if n == len(y) || y[n] != r {
			break
		}
		n++
	}
	return n
}

// unitOf gives the letters behind the digits of a number: "am" of "2am".
func unitOf(w string) string {
	if cardinals[w] > 0 {
		return ""
	}
	switch u := strings.TrimLeft(strings.TrimPrefix(w, "v"), "0123456789.,:"); u {
	case "ten", "ter", "te", "tes", "th", "st", "nd", "rd", "er", "eme", "e", "o", "a":
		return "" // "the 15th"
	default:
		return u
	}
}

// isNumeral says whether a word is a number in digits, or a version ("v2").
func isNumeral(w string) bool {
	return isNumber(w) || len(w) > 1 && w[0] == 'v' && isNumber(w[1:])
}

// numeral gives the value of a number in digits or, above one, in words.
func numeral(w string) (float64, bool) {
	if n := cardinals[w]; n > 1 {
		return float64(n), true
	}
	if n := moreNumbers[w]; n > 0 {
		return n, true
	}
	return number(strings.TrimPrefix(w, "v"))
}

// alike are words that say the same of an option, in each of the languages:
// periods, and the few other pairs by which options are told apart again and
// again. A row is one meaning.
var alike = []string{
	"day days daily dayly tag tage taeglich tageweise jour jours journalier quotidien journee dia dias diario diaria 天 日 दिन दैनिक रोज",
	"week weeks weekly woche wochen woechentlich semaine semaines hebdomadaire semana semanas semanal 周 साप्ताहिक हफ्ता हफ्ते सप्ताह",
	"month months monthly monat monate monatlich monats mois mensuel mensuelle mensuels mes meses mensual mensuales 月 महीना महीने मासिक माह",
	"quarter quarters quarterly quartal quartale vierteljaehrlich trimestre trimestriel trimestrielle trimestral 季 तिमाही",
	"year years yearly annual annually jahr jahre jaehrlich jahres annee annees annuel annuelle annuels ano anos anual anuales 年 साल वार्षिक सालाना वर्ष",
	"evening night abend abends soir soiree noche tarde 晚 शाम रात",
	"hour hours hourly stunde stunden stuendlich heure heures horaire hora horas 时 घंटा घंटे",
	"online internet web website onlineshop linea ligne 网 ऑनलाइन वेबसाइट",
	"shop store instore branch laden geschaeft filiale magasin boutique tienda 店 दुकान",
	"employee staff employed angestellter angestellte mitarbeiter salarie salariee empleado empleada 员 कर्मचारी",
	"kid kids child children kind kinder enfant enfants nino ninos nina 孩 बच्चा बच्चे",
	"adult adults grownup erwachsen erwachsene erwachsener adulte adultes adulto adultos वयस्क",
	"phone mobile smartphone handy telephone movil celular 手 फोन मोबाइल",
	"bus autobus autocar omnibus coach",
	"petrol gasoline benzin essence gasolina पेट्रोल",
}

// broader gives, for a word, the words for what it is one of.
var broader = func() map[string][]string {
	m := map[string][]string{}
	for _, row := range []string{
		"weekday weekdays workday workdays wochentag wochentage werktag werktage werktags wochentags laborable laborables: monday tuesday wednesday thursday friday mon tue tues wed thu thurs fri montag dienstag mittwoch donnerstag freitag montags dienstags mittwochs donnerstags freitags lundi mardi mercredi jeudi vendredi lunes martes miercoles jueves viernes",
		"weekend weekends wochenende wochenenden fin finde: saturday sunday saturdays sundays sat sun samstag sonntag samstags sonntags samedi dimanche sabado domingo",
	} {
		kinds, words, _ := strings.Cut(row, ": ")
		for w := range strings.FieldsSeq(words) {
			m[w] = strings.Fields(kinds)
		}
	}
	return m
}()

// calendar are words of time that resemble each other more than anything else
// does, and say something different each.
var calendar = wordSet("monday tuesday wednesday thursday friday saturday sunday weekend weekday today tomorrow yesterday tonight morning evening january february march april may june july august september october november december week month year day days " +
	"montag dienstag mittwoch donnerstag freitag samstag sonntag wochenende heute morgen gestern januar februar maerz mai juni juli oktober dezember lundi mardi mercredi jeudi vendredi samedi dimanche demain hier lunes martes miercoles jueves viernes sabado domingo hoy manana ayer")

var sameThing = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	for _, row := range alike {
		ws := strings.Fields(row)
		for _, w := range ws {
			m[plain(w)] = ws[0]
		}
	}
	return m
})

// endings are those that leave a short word what it is: "van", "vans".
var endings = map[string]bool{"s": true, "es": true, "n": true, "en": true, "e": true, "er": true}

func sameLetters(a, b string) bool {
	for _, r := range a {
		if strings.Count(a, string(r)) != strings.Count(b, string(r)) {
			return false
		}
	}
	return true
}

// stem cuts the commonest endings; it only ever serves a comparison.
func stem(s string) string {
	for _, end := range []string{"ings", "ing", "ions", "ion", "ies", "ers", "er", "ed", "es", "en", "em", "e", "s", "y", "o", "a"} {
		if c, ok := strings.CutSuffix(s, end); ok && utf8.RuneCountInString(c) >= 4 {
			return c
		}
	}
	return s
}
