package conversation

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// act is what one part of a reply does.
type act int

const (
	actFiller  act = iota // nothing: politeness, hesitation
	actDetail             // tells something in the user's own words
	actChoose             // chooses options
	actExclude            // rules options out
	actBetween            // leaves two options open
	actSelect             // names a place in the list that is not there
	actAll
	actNone
	actYes
	actNo
	actDontKnow
	actJustAnswer
	actExplain
	actCancel
	actQuestion // asks something else
)

// part is a piece of a reply between two marks of punctuation.
type part struct {
	words  []word
	text   string // the reply that the words stand in
	asks   bool   // a question mark follows
	marked bool   // written as a place in a list: "#2", "2.", "B)"
}

func (p part) String() string {
	if len(p.words) == 0 {
		return ""
	}
	return p.text[p.words[0].start:p.words[len(p.words)-1].end]
}

func (p part) with(ws []word) part { p.words = ws; return p }

// reading is what a part was found to do.
type reading struct {
	act     act
	options []int
	extra   part // what was said besides, to be kept as a detail
	rule    string
	weak    bool // a choice by one word among others
	unsure  bool // a statement that may be about something else: the Matcher tells
}

// parts splits the reply at punctuation and before words such as "but".
func (f *folder) parts() []part {
	l := lexicon()
	ws := words(f.reply)
	var ps []part
	from := 0
	end := func(to int, gap string) {
		if to > from {
			p := part{words: ws[from:to], text: f.reply, asks: strings.ContainsAny(gap, "?？")}
			if to-from == 1 || to-from == 2 && numberWords[ws[from].plain] {
				w := ws[to-1]
				after := strings.TrimSpace(f.reply[w.end:min(len(f.reply), w.end+1)])
				before := f.reply[max(0, ws[from].start-1):ws[from].start]
				p.marked = before == "#" || before == "(" || after == ")" || after == "."
			}
			ps = append(ps, p)
			from = to
		}
	}
	for i := range ws {
		if i > 0 {
			gap := f.reply[ws[i-1].end:ws[i].start]
			if gap == "." || gap == " ." || gap == ". " && numberWords[ws[i-1].plain] && isNumber(ws[i].plain) {
				continue // "rooktail.com", "no. 3"
			}
			if strings.ContainsAny(gap, ",;.!?…—–:/|()，。；：！？、।（）") || strings.Contains(gap, " - ") {
				end(i, gap)
			} else {
				if ws[i].plain == "not" && !beforeNot[ws[i-1].plain] && len(f.opts) > 0 {
					end(i, gap) // "vans not minibuses"
					continue
				}
				if inlineNo[ws[i].plain] && i+1 < len(ws) && len(f.opts) > 1 {
					if left, _ := f.match(ws[from:i]); len(left) > 0 {
						if right, _ := f.match(ws[i+1:]); len(right) > 0 {
							end(i, gap) // "Friday no Saturday night"
							continue
						}
					}
				}
				if butOf[ws[i-1].plain] || orWords[ws[i-1].plain] {
					continue // "anything but the office", "two or maybe three"
				}
				if ws[i].plain == "so" && i+1 < len(ws) && len(ws)-i <= 6 {
					is, tie := f.match(ws[i+1:])
					if _, ok := l.whole[strings.Join(forms(ws[i+1:]), " ")]; ok || len(is) == 1 && !tie { // "... so all of them"
						end(i, gap)
						continue
					}
				}
				for n := 1; n <= 3 && i+n < len(ws); n++ {
					if l.splits[strings.Join(forms(ws[i:i+n]), " ")] {
						end(i, gap)
						break
					}
				}
			}
		}
	}
	if len(ws) > 0 {
		end(len(ws), f.reply[ws[len(ws)-1].end:])
	}
	return ps
}

var inlineNo = wordSet("no nope nah nein nee non nan wait")

// corrections begin a part that takes back the choice before it.
var corrections = [][]string{{"scratch", "that"}, {"no"}, {"nope"}, {"nah"}, {"nein"}, {"nee"}, {"non"}, {"nan"}, {"wait"}, {"i", "mean"}, {"i", "meant"}, {"sorry"}, {"rather"}, {"or", "rather"}, {"make", "that"}, {"ich", "meine"}, {"ich", "meinte"}, {"quatsch"}, {"aeh"}, {"je", "veux", "dire"}, {"enfin"}, {"plutot"}, {"pardon"}, {"digo"}, {"quiero", "decir"}, {"perdon"}, {"mejor"}, {"不", "对"}, {"不", "是"}, {"错", "了"}, {"नहीं"}, {"nahi"}, {"matlab"}, {"मतलब"}}

// takesBack says whether a part is nothing but a correction: "the 1, I mean, the
// 3".
func takesBack(p part) bool {
	ws := forms(p.words)
	if slices.ContainsFunc(corrections, func(c []string) bool { return slices.Equal(ws, c) }) {
		return true
	}
	for _, w := range ws { // "no no"
		if !slices.ContainsFunc(corrections, func(c []string) bool { return len(c) == 1 && c[0] == w }) {
			return false
		}
	}
	return len(ws) > 0
}

// byLetter knows "L I think" where the plans are S, M and L.
func (f *folder) byLetter(p part) (reading, bool) {
	if len(f.letters) == 0 || len(p.words) > 6 {
		return reading{}, false
	}
	found := -1
	for _, w := range p.words {
		if !f.letters[w.plain] {
			continue
		}
		got, tie := f.match([]word{w})
		if len(got) != 1 || tie || found >= 0 && found != got[0] {
			return reading{}, false
		}
		found = got[0]
	}
	if foreign, _ := f.foreign(stripAll(p, lexicon().fillers).words); found < 0 || len(foreign) > 1 {
		return reading{}, false
	}
	return reading{act: actChoose, options: []int{found}, rule: "text"}, true
}

// corrects says whether a part begins as a correction of what was said before.
func (f *folder) corrects(p part) bool {
	ws := forms(p.words)
	for len(ws) > 0 && (ws[0] == "oh" || ws[0] == "ah" || ws[0] == "er" || ws[0] == "uh") {
		ws = ws[1:]
	}
	for _, c := range corrections {
		if len(ws) > len(c) && slices.Equal(ws[:len(c)], c) {
			return true
		}
	}
	return false
}

// yesOrNo says whether the clarification is a question for yes or no that names
// none of its options: "Have you learnt Italian before?"
func (f *folder) yesOrNo() bool {
	ws := words(f.p.Text)
	if len(ws) == 0 || len(f.opts) < 2 || !asksVerb[ws[0].plain] || slices.ContainsFunc(ws, func(w word) bool { return orWords[w.plain] }) {
		return false
	}
	is, _ := f.match(ws)
	return len(is) == 0
}

// beforeNot are the words to which a "not" belongs.
var beforeNot = wordSet("rather am is are was were do does did can could will would should must have has had im its were if or why but and so really probably maybe certainly definitely that this it i")

var butOf = wordSet("last anything all everything nothing any")

// read finds what one part does: the first rule that fits.
func (f *folder) read(p part) reading {
	if i := f.exact(p.String()); i >= 0 {
		return reading{act: actChoose, options: []int{i}, rule: "text"}
	}
	if r, ok := f.byLetter(p); ok {
		return r
	}
	l := lexicon()
	if r, ok := f.requested(p); ok {
		return r
	}
	core := p
	for {
		if r, ok := f.phrase(core); ok {
			return r
		}
		shorter := strip(core, l.fillers)
		if len(shorter.words) == len(core.words) {
			break
		}
		core = shorter
		if len(core.words) == 0 {
			return reading{act: actFiller}
		}
		if i := f.exact(core.String()); i >= 0 {
			return reading{act: actChoose, options: []int{i}, rule: "text"}
		}
	}
	if r, ok := f.prefixed(p, core); ok {
		return r
	}
	if text := " " + key(p.String()) + " "; len(f.opts) > 0 && (strings.Contains(text, " none of these ") || strings.Contains(text, " none of those ") || strings.Contains(text, " none of the above ")) {
		if foreign, _ := f.foreign(p.words); len(foreign) == 0 {
			return reading{act: actNone, rule: "phrase"}
		}
	}
	if r, ok := f.suffixed(core); ok {
		return r
	}
	if r, ok := f.proposes(p); ok {
		return r
	}
	if r, ok := f.meaning(p); ok {
		return r
	}
	if r, ok := f.asksForMeaning(p); ok {
		return r
	}
	if f.asksWhichOption(p) {
		return reading{act: actExplain, rule: "explain"}
	}
	if r, ok := f.allBut(p); ok {
		return r
	}
	if r, ok := f.without(p); ok {
		return r
	}
	if r, ok := f.negative(p); ok {
		return r
	}
	if r, ok := f.negated(p); ok {
		return r
	}
	if w := core.words[0].plain; len(core.words) > 1 && (yesBefore[w] || noBefore[w]) {
		r := f.read(core.with(core.words[1:])) // "yes the van", "no the van"
		if yes, no := f.affirmed(); r.act == actDetail && len(f.opts) == 2 && yes >= 0 && no >= 0 && len(core.words) <= 6 {
			r.act = actYes // "yes loads"
			if noBefore[w] {
				r.act = actNo
			}
			return r
		}
		if yesBefore[w] && r.act != actFiller || r.act == actChoose || r.act == actBetween || r.act == actNone || r.act == actCancel {
			return r
		}
	}
	if single := core.String(); single != "a" || len(p.words) == 1 { // "it's a" is no option A
		if r, ok := f.byPlace(core); ok {
			return r
		}
	}
	if r, ok := f.allOf(core); ok {
		return r
	}
	if r, ok := f.allInside(core); ok {
		return r
	}
	if r, ok := f.byComparison(core); ok {
		return r
	}
	if f.asksForPlace(p) {
		return reading{act: actExplain, rule: "explain"}
	}
	if f.asksAnew(p) {
		return reading{act: actQuestion, extra: p, rule: "question", unsure: !p.asks && !asksWhole(p, f.lang)}
	}
	if f.asksAbout(p) {
		got, _ := f.match(p.words)
		return reading{act: actExplain, options: got, rule: "explain"}
	}
	if r, ok := f.byText(core); ok && r.act != actBetween {
		return r
	} else if within, in := f.byRange(p); in {
		return within
	} else if ok {
		return r
	}
	if r, ok := f.byContrast(core); ok {
		return r
	}
	d := stripAll(p, l.frames)
	if len(d.words) == 0 {
		return reading{act: actFiller}
	}
	return reading{act: actDetail, extra: d, rule: "detail"}
}

// A yes or no before a choice, without a comma.
var (
	yesBefore = wordSet("yes yeah yep yup ja jo oui ouais si हां जी")
	noBefore  = wordSet("nan nee no nope nah nein non")
)

// phrase knows a part that is a set phrase as a whole.
func (f *folder) phrase(p part) (reading, bool) {
	ws := forms(p.words)
	for i, w := range ws {
		if strings.HasSuffix(w, "egal") && len(w) < 14 {
			ws[i] = "egal" // "piepegal"
		}
	}
	a, ok := lexicon().whole[strings.Join(ws, " ")]
	for _, idle := range []map[string]bool{courtesies, particles} {
		if ok {
			break
		}
		ws = slices.DeleteFunc(ws, func(w string) bool { return idle[w] })
		a, ok = lexicon().whole[strings.Join(ws, " ")]
	}
	if !ok {
		return reading{}, false
	}
	switch a {
	case actYes, actNo:
		if p.asks && len(words(f.reply)) > len(p.words) {
			return reading{act: actFiller}, true // "it is in the price, no?"
		}
	case actExplain:
		if len(p.words) == 1 && len(words(f.reply)) > 3 {
			return reading{}, false // "What now?" is not "what?"
		}
	default:
		// "standard" is an option's word before it is "whatever you think".
		if got, tie := f.match(p.words); len(got) == 1 && !tie {
			return reading{act: actChoose, options: got, rule: "text"}, true
		}
	}
	return reading{act: a, rule: "phrase"}, true
}

// courtesies and particles are words that a set phrase may have or lack.
var courtesies = wordSet("please pls plz thanks bitte danke merci svp stp gracias porfa 请 谢谢 कृपया")

var particles = wordSet("यार भाई yaar bhai dude bro man tbh imo lol haha moi 啊 呀 呢 嘛 哦 啦 呗 even absolutely totally completely literally total voellig ganz echt wirklich komplett carrement totalement completement totalmente really just honestly actually simply doch mal halt eben denn ja jetzt bitte einfach vraiment simplement franchement realmente simplemente sinceramente")

// prefixed knows a part by how it begins.
func (f *folder) prefixed(p, core part) (reading, bool) {
	for _, try := range []part{p, strip(p, lexicon().frames), core} {
		ws := forms(try.words)
		for _, pre := range lexicon().prefixes {
			if len(pre.words) >= len(ws) || !slices.Equal(ws[:len(pre.words)], pre.words) {
				continue
			}
			rest := try.with(try.words[len(pre.words):])
			switch pre.act {
			case actExplain:
				foreign, known := f.foreign(rest.words)
				if len(foreign) >= 2 && known == 0 {
					return reading{}, false
				}
				got, _ := f.match(rest.words)
				return reading{act: actExplain, options: got, rule: "explain"}, true
			case actCancel:
				if got, _ := f.match(rest.words); len(got) > 0 || rest.asks && asksWhole(rest, f.lang) {
					return reading{}, false
				}
			case actNone:
				if foreign, _ := f.foreign(rest.words); len(foreign) > 1 {
					return reading{}, false
				}
			case actJustAnswer:
				core := strip(rest, lexicon().fillers)
				if r, ok := f.byPlace(core); ok && r.act == actChoose {
					return r, true
				}
				if r, ok := f.byText(core); ok {
					return r, true
				}
				if r, ok := f.phrase(core); ok && r.act == actAll {
					return r, true
				}
			}
			return reading{act: pre.act, rule: "phrase"}, true
		}
	}
	return reading{}, false
}

// meaning knows "what is X?" where X is of the clarification itself.
func (f *folder) meaning(p part) (reading, bool) {
	ws := forms(strip(p, lexicon().frames).words)
	if len(ws) < 2 {
		return reading{}, false
	}
	text := " " + strings.Join(ws, " ") + " "
	if f.lang == "fr" {
		text = " " + strings.Join(forms(p.words), " ") + " " // "c'est quoi" is no frame
	}
	form := false
	for _, pre := range []string{"what is ", "whats ", "what are ", "what does ", "what do ", "what counts as ", "which is ", "which one is ", "which of ", "which one ", "was ist ", "was sind ", "was heisst ", "was bedeutet ", "was bedeuten ", "c est quoi ", "qu est ce que c est ", "qu est ce qu ", "que veut dire ", "que signifie ", "que es ", "que son ", "que significa ", "que quiere decir ", "welche ist ", "welches ist "} {
		form = form || strings.HasPrefix(text, " "+pre)
	}
	for _, in := range []string{"是 什 么", "什 么 意 思", "什 么 是", "什 么 叫", " का मतलब", " क्या है", " क्या होता", " क्या होती", " veut dire quoi"} {
		form = form || strings.Contains(text, in)
	}
	if !form {
		return reading{}, false
	}
	var rest []word
	for _, w := range p.words {
		switch w.plain {
		case "exactly", "mean", "means", "called", "genau", "exactement", "exactamente", "意", "思", "मतलब", "counts", "bedeutet", "heisst", "veut", "dire", "significa", "signifie":
		default:
			rest = append(rest, w)
		}
	}
	foreign, _ := f.foreign(rest)
	if len(foreign) > 0 {
		return reading{}, false
	}
	got, _ := f.match(rest)
	about := len(got) > 0
	for _, u := range f.p.Unclear {
		for _, w := range content(plains(u)) {
			about = about || slices.Contains(forms(rest), w)
		}
	}
	if !about && len(f.opts) > 0 {
		for _, w := range content(forms(rest)) {
			about = about || !f.inQuestion(w)
		}
	}
	if !about {
		return reading{}, false
	}
	return reading{act: actExplain, options: got, rule: "explain"}, true
}

// negations are the words by which an option says that something is not so.
var negations = wordSet("not no without non never none un nicht kein keine keinen ohne nie pas sans jamais aucun sin ninguno nunca 不 没 无 非 नहीं बिना")

func (o optionWords) negative() bool {
	return slices.ContainsFunc(strings.Fields(o.key), func(w string) bool { return negations[w] })
}

// negative knows "I'm not a member", where "not a member" is an option.
func (f *folder) negative(p part) (reading, bool) {
	said := " " + strings.Join(forms(p.words), " ") + " "
	for i, o := range f.opts {
		key := strings.Fields(o.key)
		for j := 1; j < len(key); j++ {
			if negations[key[j-1]] && strings.Contains(said, " "+key[j-1]+" "+key[j]+" ") {
				return reading{act: actChoose, options: []int{i}, rule: "text"}, true
			}
		}
	}
	return reading{}, false
}

// affirmed gives the option that "yes" means, and the one that "no" means, or -1.
func (f *folder) affirmed() (yes, no int) {
	switch len(f.opts) {
	case 1:
		return 0, -1
	case 2:
		if a, b := f.opts[0].negative(), f.opts[1].negative(); a != b {
			if a {
				return 1, 0
			}
			return 0, 1
		}
		ws := words(f.p.Text)
		if slices.ContainsFunc(ws, func(w word) bool { return orWords[w.plain] }) {
			return -1, -1
		}
		if got, tie := f.match(ws); len(got) == 1 && !tie { // "Was it opened?"
			return got[0], 1 - got[0]
		}
	}
	return -1, -1
}

// negated knows "not the first one", "all but the van".
func (f *folder) negated(p part) (reading, bool) {
	if len(f.opts) == 0 {
		return reading{}, false
	}
	l := lexicon()
	if p.asks && asksNot[p.words[0].plain] {
		return reading{}, false // "isn't the youth account closed at 18?"
	}
	var rest part
	for _, core := range []part{p, stripAll(p, l.frames)} {
		ws := forms(core.words)
		for _, n := range l.negation {
			if len(ws) > len(n) && slices.Equal(ws[:len(n)], n) {
				rest = core.with(core.words[len(n):])
				break
			}
			if f.lang == "hi" && len(ws) > len(n) && slices.Equal(ws[len(ws)-len(n):], n) {
				rest = core.with(core.words[:len(ws)-len(n)])
				break
			}
		}
		if len(rest.words) > 0 {
			break
		}
	}
	if len(rest.words) == 0 {
		return reading{}, false
	}
	rest = strip(rest, l.fillers)
	if len(rest.words) == 0 {
		return reading{}, false
	}
	r, ok := f.byPlace(rest)
	if !ok {
		r, ok = f.byText(rest)
	}
	if !ok || r.act != actChoose && r.act != actBetween || r.act == actBetween && len(r.options) == len(f.opts) {
		return reading{}, false
	}
	if p.asks && len(f.parts()) == 1 { // "c'est pas l'écho ?"
		return reading{act: actChoose, options: r.options, rule: "proposal"}, true
	}
	return reading{act: actExclude, options: r.options, rule: "negation"}, true
}

var asksNot = wordSet("isnt arent wasnt werent dont doesnt didnt wont cant couldnt shouldnt")

// byPlace knows "the second one", "b", "1 and 3".
func (f *folder) byPlace(p part) (reading, bool) {
	ws := forms(p.words)
	n := len(f.opts)
	if len(ws) == 1 && !p.marked && n > 0 { // "14" to ranges of ages
		if v, ok := numeral(ws[0]); ok && v > float64(n) {
			if r, ok := f.byRange(p); ok {
				return r, true
			}
		}
	}
	if len(ws) == 1 && n > 2 && cardinals[ws[0]] == n && !isNumber(ws[0]) { // "les trois"
		for article := range pluralArticle {
			if strings.Contains(" "+key(f.reply)+" ", " "+article+" "+ws[0]+" ") {
				return reading{act: actAll, rule: "all"}, true
			}
		}
	}
	if !p.marked && n > 0 { // a number that is an option's own is text: "10 days"
		for i, w := range ws {
			if isNumber(w) && f.hasNumber(w) && !f.allHaveNumber(w) && (i == 0 || !numberWords[ws[i-1]]) {
				return reading{}, false
			}
		}
	}
	if !p.marked && slices.ContainsFunc(ws, func(w string) bool { return f.letters[w] }) {
		return reading{}, false // "plan B" is no second place
	}
	s, ok := selectByPlace(ws, n, p.marked)
	if !ok {
		return reading{}, false
	}
	in := slices.DeleteFunc(s.places, func(i int) bool { return i < 0 || i >= n })
	if n == 0 {
		if len(ws) == 1 && isNumber(ws[0]) || !slices.ContainsFunc(ws, func(w string) bool { return ordinals[w] != 0 }) {
			return reading{}, false // a bare number is a detail
		}
		return reading{act: actSelect, rule: "ordinal"}, true
	}
	switch {
	case len(in) == 0:
		if len(ws) == 1 && isPlace(ws[0]) && !p.marked && len(ws[0]) > 1 {
			return reading{}, false // "12" to three options: a detail; "4": none of them
		}
		return reading{act: actSelect, rule: "ordinal"}, true
	case s.or && len(in) > 1:
		return reading{act: actBetween, options: in, rule: "ordinal"}, true
	}
	return reading{act: actChoose, options: in, rule: "ordinal"}, true
}

// hasNumber says whether an option's text holds that number.
func (f *folder) hasNumber(w string) bool {
	return slices.ContainsFunc(f.opts, func(o optionWords) bool { return o.hasNumber(w) })
}

// allHaveNumber tells of a number that stands in every option and so tells none
// apart: "2" to "City 2 or Cargo 2" is the second.
func (f *folder) allHaveNumber(w string) bool {
	return !slices.ContainsFunc(f.opts, func(o optionWords) bool { return !o.hasNumber(w) })
}

func (o optionWords) hasNumber(w string) bool {
	return slices.ContainsFunc(slices.Concat(strings.Fields(o.key), o.gloss), func(x string) bool { return isNumber(x) && likeness(w, x) > 0 })
}

// byText knows an option by words of its text. What stands beside them is kept.
func (f *folder) byText(p part) (reading, bool) {
	if len(f.opts) == 0 || len(p.words) == 0 {
		return reading{}, false
	}
	if r, ok := f.listed(p); ok {
		return r, true
	}
	if slices.ContainsFunc(p.words, func(w word) bool { return bothWords[w.plain] || w.plain == "dos" || w.plain == "deux" }) {
		rest := slices.DeleteFunc(slices.Clone(p.words), func(w word) bool { return bothWords[w.plain] || cardinals[w.plain] == 2 })
		if got, _ := f.match(rest); len(got) == 2 && len(f.opts) > 2 {
			return reading{act: actChoose, options: got, rule: "text"}, true // "los dos cálculos"
		}
	}
	got, tie := f.match(p.words)
	foreign, _ := f.foreign(p.words)
	if i := f.byGloss(p.words); i >= 0 && len(got) == 0 && len(foreign) <= 1 {
		return reading{act: actChoose, options: []int{i}, extra: f.besideGloss(p, i), rule: "text", weak: len(foreign) > 0}, true
	}
	if len(got) == 0 && len(foreign) == 0 && f.onlyCommon(p.words) {
		got, tie = upTo(len(f.opts)), true // "the e-bike", and all of them are
	}
	if len(got) == 0 || f.byChance(p.words, f.opts[got[0]]) {
		return reading{}, false
	}
	if tie {
		return reading{act: actBetween, options: got, extra: p, rule: "text"}, true
	}
	weak := (len(foreign) > 0 || len(p.words) > 3) && !covers(content(forms(p.words)), f.opts[got[0]].content)
	return reading{act: actChoose, options: got, extra: f.beside(p, got[0]), rule: "text", weak: weak}, true
}

// byChance says whether so much else is said that a word of the option is there
// by chance: "I've done 13 nights with Orlane Hotels" is not "hut nights".
func (f *folder) byChance(ws []word, o optionWords) bool {
	foreign, hits := 0, 0
	for i, w := range ws {
		switch {
		case o.has(w.plain), slices.ContainsFunc(f.byDigits([]string{w.plain}), func(int) bool { return true }), i > 0 && o.hasJoined(ws[i-1].plain+w.plain):
			hits++
		default:
			x, _ := f.foreign(ws[i : i+1])
			foreign += len(x)
		}
	}
	most := 2 * hits
	if covers(content(forms(ws)), o.content) {
		most += 2
	}
	return foreign > max(most, 1)
}

// allOf knows "both endings", where what follows is no option's own.
func (f *folder) allOf(p part) (reading, bool) {
	ws := forms(p.words)
	for n := 1; n <= 3 && n < len(ws); n++ {
		if lexicon().whole[strings.Join(ws[:n], " ")] != actAll {
			continue
		}
		rest := p.words[n:]
		foreign, known := f.foreign(rest)
		if got, _ := f.match(rest); len(foreign) == 0 && known > 0 && len(got) == 0 {
			return reading{act: actAll, rule: "all"}, true
		}
	}
	return reading{}, false
}

// contrast are the small words by which options may differ, and what may stand
// beside them.
var contrast = wordSet("in out up to under over above below within before after with without inside outside on off still it that")

// byContrast knows an option by its preposition: "up to", "still in it".
func (f *folder) byContrast(p part) (reading, bool) {
	for _, w := range p.words {
		if !contrast[w.plain] {
			return reading{}, false
		}
	}
	if len(f.opts) < 2 {
		return reading{}, false
	}
	if i := f.bySmallWords(p.words, upTo(len(f.opts))); i >= 0 {
		return reading{act: actChoose, options: []int{i}, rule: "text"}, true
	}
	return reading{}, false
}

// onlyCommon says whether ws names nothing but what all options have in common.
func (f *folder) onlyCommon(ws []word) bool {
	c := content(forms(ws))
	for _, w := range c {
		found := false
		for o := range f.common {
			found = found || likeness(w, o) >= 0.7
		}
		if !found {
			return false
		}
	}
	return len(c) > 0
}

// listed knows "the compact and the van": each side names one option.
func (f *folder) listed(p part) (reading, bool) {
	var got []int
	or, from, sides := false, 0, 0
	side := func(to int) bool {
		ws := strip(p.with(p.words[from:to]), lexicon().fillers).words
		if len(ws) == 0 {
			return true
		}
		sides++
		is, tie := f.match(ws)
		if i := f.exact(p.with(ws).String()); i >= 0 {
			is, tie = []int{i}, false
		}
		if len(is) != 1 || tie {
			return false
		}
		if !slices.Contains(got, is[0]) {
			got = append(got, is[0])
		}
		return true
	}
	for i, w := range p.words {
		if listWords[w.plain] || orWords[w.plain] {
			or = or || orWords[w.plain]
			if !side(i) {
				return reading{}, false
			}
			from = i + 1
		}
	}
	if from == 0 || !side(len(p.words)) || sides < 2 || len(got) < 2 {
		return reading{}, false
	}
	if or {
		return reading{act: actBetween, options: got, rule: "text"}, true
	}
	return reading{act: actChoose, options: got, rule: "text"}, true
}

// match gives the options whose words stand in ws: the one that fits best, or
// those that fit alike.
func (f *folder) match(ws []word) (is []int, tie bool) {
	if len(f.opts) == 0 || len(ws) == 0 {
		return nil, false
	}
	said := content(forms(ws))
	if len(f.letters) > 0 && len(ws) <= 8 {
		said = append(said, lettersOf(forms(ws), f.letters)...)
	}
	if len(said) == 0 {
		said = forms(ws) // an option may consist of small words alone
	}
	slices.Sort(said)
	said = slices.Compact(said)
	for _, w := range slices.Clone(said) {
		said = append(said, broader[w]...)
	}
	single := len(said)
	for i := range ws[:len(ws)-1] { // "sea view" is "Seaview"
		said = append(said, ws[i].plain+ws[i+1].plain)
	}
	score := make([]float64, len(f.opts))
	for n, s := range said {
		like := make([]float64, len(f.opts))
		top, all := 0.0, true
		for i, o := range f.opts {
			for _, w := range o.content {
				if n < single {
					like[i] = max(like[i], likeness(s, w))
				}
			}
			if utf8.RuneCountInString(s) > 3 && o.hasJoined(s) {
				like[i] = 1
			}
			top = max(top, like[i])
		}
		for _, l := range like {
			all = all && l == top
		}
		if top < 0.6 || all && len(f.opts) > 1 {
			continue
		}
		for i, l := range like {
			if l == top {
				score[i] += l
			}
		}
	}
	best := 0.0
	for _, s := range score {
		best = max(best, s)
	}
	if best == 0 {
		return f.byDigits(said[:single]), false
	}
	for i, s := range score {
		if s > best-0.05 {
			is = append(is, i)
		}
	}
	if len(is) > 1 { // small words may tell: "over 20 kg", "under 20 kg"
		if one := f.bySmallWords(ws, is); one >= 0 {
			return []int{one}, false
		}
	}
	if len(is) > 1 { // "full service" is said whole, "full service plus" is not
		if whole := slices.DeleteFunc(slices.Clone(is), func(i int) bool {
			return !covers(said, f.opts[i].content) || len(f.opts[i].content) < len(strings.Fields(f.opts[i].key)) && len(f.opts[i].content) == 1 && otherFirst[strings.Fields(f.opts[i].key)[0]]
		}); len(whole) == 1 {
			return whole, false
		}
	}
	return is, len(is) > 1
}

// otherFirst begin an option for the rest: "other damage" is not said by "damage".
var otherFirst = wordSet("other others another any andere anderer anderes sonstige autre autres otro otra otros 其 अन्य")

// byDigits gives the one option whose number stands within a longer code:
// "F500S" for "Ferro 500".
func (f *folder) byDigits(said []string) []int {
	found := -1
	for _, s := range said {
		from := strings.IndexFunc(s, unicode.IsDigit)
		if from <= 0 {
			continue
		}
		digits := s[from:]
		if to := strings.IndexFunc(digits, func(r rune) bool { return !unicode.IsDigit(r) }); to >= 0 {
			digits = digits[:to]
		}
		for i, o := range f.opts {
			if len(digits) >= 2 && slices.Contains(o.content, digits) {
				if found >= 0 && found != i {
					return nil
				}
				found = i
			}
		}
	}
	if found < 0 {
		return nil
	}
	return []int{found}
}

// bySmallWords gives the one option of is that shares most of all words with ws,
// prepositions included, or -1.
func (f *folder) bySmallWords(ws []word, is []int) int {
	best, most, tied := -1, 0, false
	for _, i := range is {
		n := 0
		for _, w := range strings.Fields(f.opts[i].key) {
			if w != "the" && w != "a" && w != "of" && slices.ContainsFunc(ws, func(s word) bool { return s.plain == w }) {
				n++
			}
		}
		switch {
		case n > most:
			best, most, tied = i, n, false
		case n == most:
			tied = true
		}
	}
	if tied {
		return -1
	}
	return best
}

// covers says whether all words of an option are said.
func covers(said, option []string) bool {
	for _, w := range option {
		if !slices.ContainsFunc(said, func(s string) bool { return likeness(s, w) >= 0.7 }) {
			return false
		}
	}
	return true
}

// beside gives what a part says besides naming option i: the words that follow
// the option's, or the whole part if more than one word before them is new.
func (f *folder) beside(p part, i int) part {
	frames := lexicon().frames
	last := -1
	for j, w := range p.words {
		if f.opts[i].has(w.plain) || j > 0 && f.opts[i].hasJoined(p.words[j-1].plain+w.plain) {
			last = j
		}
	}
	if last < 0 { // a kind of it: "Saturday" for "the weekend"
		if slices.ContainsFunc(p.words, func(w word) bool { return f.opts[i].hasJoined(w.plain) }) {
			return part{} // "sbahn"
		}
		return stripAll(p, frames)
	}
	if foreign, _ := f.foreign(p.words[:last]); len(foreign) >= 2 {
		return stripAll(p, frames)
	}
	rest := stripAll(p.with(p.words[last+1:]), frames)
	for len(rest.words) > 0 {
		if w := rest.words[0].plain; !listWords[w] && w != "one" && w != "ones" {
			break
		}
		rest = rest.with(rest.words[1:])
	}
	foreign, _ := f.foreign(rest.words)
	number := slices.ContainsFunc(rest.words, func(w word) bool { return isNumber(w.plain) })
	switch {
	case len(foreign) == 0 && !number:
		return part{}
	case len(rest.words) == 1 && number:
		return stripAll(p, frames) // "windows 11"
	}
	return rest
}

// besideGloss is the whole part, if something else than the gloss is said.
func (f *folder) besideGloss(p part, i int) part {
	for _, w := range content(forms(p.words)) {
		if !slices.ContainsFunc(f.opts[i].gloss, func(g string) bool { return likeness(w, g) >= 0.8 }) {
			return stripAll(p, lexicon().frames)
		}
	}
	return part{}
}

// has says whether the option's text has a word like w.
func (o optionWords) has(w string) bool {
	return slices.ContainsFunc(o.content, func(c string) bool { return likeness(w, c) >= 0.6 })
}

// hasJoined says whether the option's text has two words of a reply as one, or
// the same two.
func (o optionWords) hasJoined(w string) bool {
	return slices.Contains(o.joined, w) || slices.ContainsFunc(o.content, func(c string) bool { return c == w || c == w+"s" || c == w+"es" })
}

// foreign gives the content words of ws that neither the question nor its
// clarification holds, numbers aside, and how many it does hold.
func (f *folder) foreign(ws []word) (foreign []string, known int) {
	for _, w := range content(forms(ws)) {
		if isNumber(w) {
			continue
		}
		if slices.ContainsFunc(f.vocab, func(v string) bool { return likeness(w, v) >= 0.7 }) {
			known++
			continue
		}
		foreign = append(foreign, w)
	}
	return foreign, known
}

func (f *folder) inQuestion(w string) bool {
	return slices.ContainsFunc(plains(f.p.Question), func(v string) bool { return likeness(w, v) >= 0.7 })
}

// strip takes one of the longest set of words off each end.
func strip(p part, set map[string]bool) part {
	ws := p.words
	for n := min(6, len(ws)); n > 0; n-- {
		if set[strings.Join(forms(ws[:n]), " ")] {
			ws = ws[n:]
			return p.with(ws)
		}
	}
	for n := min(6, len(ws)); n > 0; n-- {
		if set[strings.Join(forms(ws[len(ws)-n:]), " ")] {
			return p.with(ws[:len(ws)-n])
		}
	}
	return p
}

// stripAll strips until nothing is left to strip.
func stripAll(p part, set map[string]bool) part {
	for {
		s := strip(p, set)
		if len(s.words) == len(p.words) {
			return p
		}
		p = s
	}
}

// redirect knows a reply that announces another question: "different
// question: ...".
func (f *folder) redirect() string {
	for _, p := range f.parts() {
		ws := forms(stripAll(p, lexicon().frames).words)
		for _, t := range lexicon().topics {
			if len(ws) >= len(t) && slices.Equal(ws[:len(t)], t) && len(words(f.reply)) > len(t)+1 {
				return "another topic"
			}
		}
	}
	return ""
}

// restated says whether the reply asks the pending question again, whole, with
// more in it.
func (f *folder) restated() bool {
	ws := words(f.reply)
	p := part{words: ws, text: f.reply, asks: strings.ContainsAny(f.reply, "?？")}
	asked, said := content(plains(f.p.Question)), content(forms(ws))
	if len(asked) == 0 || !p.asks && !asksFirst[ws[0].plain] || !asksWhole(p, f.lang) || requests[ws[0].plain] {
		return false
	}
	for _, a := range asked {
		if !slices.Contains(said, a) {
			return false
		}
	}
	if strings.ContainsFunc(f.p.Question, isHan) && len(asked) < 6 {
		text, before := " "+strings.Join(forms(ws), " ")+" ", " "+key(f.p.Question)+" "
		for _, q := range asksZh {
			if strings.Contains(before, q) && !strings.Contains(text, q) {
				return false
			}
		}
	}
	if len(asked) < 2 { // "When do I have to pay?" is not "Can I pay in instalments?"
		for _, w := range plains(f.p.Question) {
			if (asksFirst[w] || w == "when" || w == "where") && !slices.Contains(forms(ws), w) {
				return false
			}
		}
	}
	for _, s := range said {
		if !f.inQuestion(s) {
			return true
		}
	}
	return false
}

func (f *folder) restatement() Folded {
	r := Folded{Kind: ReplyDetail, Question: f.whole, Rule: "restated"}
	if got, tie := f.match(words(f.reply)); len(got) == 1 && !tie {
		r.Kind, r.Chosen = ReplyChoice, f.pick(got)
	}
	return r
}
