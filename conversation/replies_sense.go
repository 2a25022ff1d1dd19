package conversation

import (
	"slices"
	"strings"
)

// allWords say that every option is meant, and askWords may stand beside them:
// "tell me for both", "compare them all".
var (
	allWords = wordSet("both all each every everything beide beides alle alles jede jedes jeden deux tous toutes chaque chacun tout ambos ambas dos todos todas todo cada दोनों दोनो सभी सब तीनों हर")
	allZh    = []string{"两 个 都", "两 种 都", "都 要", "都 说", "都 告", "都 想", "都 讲", "都 介", "都 列", "都 给", "都 看", "全 部", "全 都", "所 有", "每 个", "每 种", "分 别"}
	askWords = wordSet("things sachen choses cosas tell give show list compare explain know see hear interested interesting be would nice great good best helpful useful list numbers number answers answer prices price figures details info information cases case options option versions variants separately respectively times time possible ideally preferably side sag sage sagen zeig zeigen nenn nennen nenne waeren waere gut schoen super interessieren interessiert angaben antworten varianten faelle preise auflisten vergleiche " +
		"dis dites donne donnez montre montrez seraient serait bien cas interessent compare comparez prix infos " +
		"dime digame di muestra dame deme compara precios casos datos ambas opciones haha hahaha lol 呗 呀 嘛 讲 能 不 说 告 诉 列 介 绍 一 下 想 知 道 两 种 我 给 了 吧 情 况 बताओ बताइए बता दो दीजिए दे जानकारी दोनो चाहिए के लिए बारे में")
	bothWords = wordSet("both beide ambos ambas दोनों")
	fewOf     = wordSet("two three four deux trois zwei drei vier dos tres 两 三 四 तीन")
)

// allInside knows "tell me for both": a word that means all options, and nothing
// else but a request.
func (f *folder) allInside(p part) (reading, bool) {
	n := len(f.opts)
	if n < 2 || len(p.words) > 10 {
		return reading{}, false
	}
	ws := forms(p.words)
	for i, w := range ws {
		switch {
		case w == "不" && i > 0 && i+1 < len(ws) && ws[i-1] == ws[i+1]: // "能不能"
		case failsNot[w] || negations[w] || w == "dont",
			w == "all" && i > 0 && (ws[i-1] == "at" || ws[i-1] == "after"), // "I didn't show up at all"
			w == "all" && i+2 < len(ws) && ws[i+1] == "the" && hours[ws[i+2]]+map[string]float64{"time": 1, "way": 1}[ws[i+2]] > 0,
			w == "all" && i+1 < len(ws) && (ws[i+1] == "day" || ws[i+1] == "night" || ws[i+1] == "along" || ws[i+1] == "over"):
			return reading{}, false
		}
	}
	if len(ws) == 2 && (n == 2 && bothWords[ws[0]] || ws[0] == "all" || ws[0] == "alle") { // "both days"
		if got, tie := f.match(p.words[1:]); len(got) == 0 || tie {
			return reading{act: actAll, rule: "all"}, true
		}
	}
	text := " " + strings.Join(ws, " ") + " "
	if len(ws) == 2 && bothWords[ws[1]] && n == 2 && strings.Contains(" "+key(f.reply)+" ", " about ") || len(ws) <= 5 && len(ws) > 2 && ws[1] == "about" && slices.ContainsFunc(ws, func(w string) bool { return bothWords[w] }) && n == 2 {
		return reading{act: actAll, rule: "all"}, true // "how about moving both?"
	}
	for i, w := range ws { // "三个灯都在闪"
		if cardinalOf(w) == n && n > 1 && fewOf[w] && i+1 < len(ws) && (ws[i+1] == "个" || ws[i+1] == "种") && slices.Contains(ws[i+1:], "都") && !p.asks {
			return reading{act: actAll, rule: "all"}, true
		}
	}
	is := slices.ContainsFunc(ws, func(w string) bool { return allWords[w] && !(w == "deux" || w == "dos" || w == "tout") }) ||
		strings.Contains(text, " les deux ") || strings.Contains(text, " los dos ") || strings.Contains(text, " las dos ")
	for _, z := range allZh {
		is = is || strings.Contains(text, " "+z+" ")
	}
	if !is {
		return reading{}, false
	}
	for _, w := range p.words {
		if allWords[w.plain] || askWords[w.plain] || fewOf[w.plain] || stopWords()[w.plain] || lexicon().fillers[w.plain] {
			continue
		}
		if foreign, known := f.foreign([]word{w}); len(foreign) > 0 || known == 0 {
			return reading{}, false
		}
		if got, tie := f.match([]word{w}); len(got) > 0 && !tie && len(got) < n {
			return reading{}, false
		}
	}
	return reading{act: actAll, rule: "all"}, true
}

// allButs are how all options but the one that follows are chosen.
var allButs = func() [][]string {
	var ps [][]string
	for p := range strings.SplitSeq("all but|all except|all except for|everything but|everything except|everything except for|every one but|every one except|all of them but|all of them except|alle ausser|alles ausser|alle bis auf|alles bis auf|tous sauf|toutes sauf|tout sauf|todos menos|todas menos|todos excepto|todas excepto|todo menos|除 了", "|") {
		ps = append(ps, plains(p))
	}
	slices.SortFunc(ps, func(a, b []string) int { return len(b) - len(a) })
	return ps
}()

// allBut knows "all except the basic one": the rest is chosen.
func (f *folder) allBut(p part) (reading, bool) {
	if len(f.opts) < 2 {
		return reading{}, false
	}
	ws := forms(p.words)
	for i, w := range ws { // Hindi puts it behind
		if i > 0 && (w == plain("छोड़कर") || w == plain("अलावा") || w == plain("सिवा") || w == "chhodkar" || w == "alawa") && slices.ContainsFunc(ws[i+1:], func(w string) bool {
			return allWords[w] || w == "बाकी" || w == "baaki" || w == "dono" || w == "sab"
		}) {
			if r, ok := f.byText(p.with(p.words[:i])); ok && r.act == actChoose && len(r.options) < len(f.opts) {
				left := slices.DeleteFunc(upTo(len(f.opts)), func(i int) bool { return slices.Contains(r.options, i) })
				return reading{act: actChoose, options: left, rule: "all but"}, true
			}
		}
	}
	for _, core := range []part{p, stripAll(p, lexicon().frames)} {
		ws := forms(core.words)
		for _, b := range allButs {
			if len(ws) <= len(b) || !slices.Equal(ws[:len(b)], b) {
				continue
			}
			rest := stripAll(core.with(core.words[len(b):]), lexicon().fillers)
			if w := len(rest.words); b[0] == "除" && w > 2 && rest.words[w-1].plain == "都" {
				rest = rest.with(rest.words[:w-1])
			}
			r, ok := f.byPlace(rest)
			if !ok {
				r, ok = f.byText(rest)
			}
			if !ok || r.act != actChoose {
				continue
			}
			left := slices.DeleteFunc(upTo(len(f.opts)), func(i int) bool { return slices.Contains(r.options, i) })
			if len(left) == 0 {
				continue
			}
			return reading{act: actChoose, options: left, rule: "all but"}, true
		}
	}
	return reading{}, false
}

// withouts rule out the option that has what follows: "the one without steam".
var withouts = wordSet("without ohne sans sin बिना")

// without knows an option by what it lacks.
func (f *folder) without(p part) (reading, bool) {
	if len(f.opts) < 2 {
		return reading{}, false
	}
	for i, w := range p.words {
		lacks := withouts[w.plain] || i == 0 && w.start == 0 && (w.plain == "no" || w.plain == "kein" || w.plain == "keine" || w.plain == "pas")
		rest := p.words[i+1:]
		if lacks && i > 0 && len(rest) == 0 && f.lang == "hi" {
			rest = p.words[:i]
		}
		if !lacks || len(rest) == 0 || len(rest) > 4 {
			continue
		}
		got, tie := f.match(rest)
		if len(got) != 1 || tie || f.opts[got[0]].negative() {
			continue
		}
		if !withouts[w.plain] && covers(content(forms(rest)), f.opts[got[0]].content) {
			continue // "no the van": a correction
		}
		if foreign, _ := f.foreign(rest); len(foreign) > 0 {
			continue
		}
		if before, _ := f.match(p.words[:i]); len(before) == 1 && before[0] != got[0] {
			return reading{act: actChoose, options: before, rule: "without"}, true
		} else if len(before) == 1 {
			return reading{}, false // "the 500 without steam": there is no such
		}
		return reading{act: actExclude, options: got, rule: "without"}, true
	}
	return reading{}, false
}

// Words of time by which one choice replaces another: "I used to have Basic, now
// it's Pro".
var (
	nowWords    = wordSet("now currently today nowadays jetzt inzwischen mittlerweile heute aktuell maintenant desormais aujourd actuellement ahora actualmente hoy 现 अब अभी")
	beforeWords = wordSet("was were had before previously formerly earlier ago used war hatte frueher vorher zuvor damals avant etais avais auparavant antes era tenia 以 前 之 过 पहले था थी")
	moveWords   = wordSet("switched upgraded changed moved moving switching upgrading changing downgraded went wechsle wechseln ziehe demenage converted gewechselt umgestiegen gewechsel passe change changee cambie cambiado pase 改 换 转 升 बदला बदली बदल")
	toWords     = wordSet("to into zu zum zur auf nach a au aux 到 成 为 में")
)

// nowSaid gives the option that a reply says holds now, where it names another
// that held before, or -1.
func (f *folder) nowSaid() int {
	ws := words(f.reply)
	if len(f.opts) < 2 || len(ws) > 40 {
		return -1
	}
	move := slices.ContainsFunc(ws, func(w word) bool { return moveWords[w.plain] })
	now := slices.IndexFunc(ws, func(w word) bool { return nowWords[w.plain] })
	before := slices.IndexFunc(ws, func(w word) bool { return beforeWords[w.plain] })
	if !move && (now < 0 || before < 0) {
		return -1
	}
	// the stretches of the reply, by the words at which one ends and the next begins
	one := func(ws []word) int {
		if got, tie := f.match(ws); len(got) == 1 && !tie {
			return got[0]
		}
		return -1
	}
	if move {
		to := -1
		for i, w := range ws {
			if toWords[w.plain] && i+1 < len(ws) {
				if o := one(ws[i+1 : min(len(ws), i+5)]); o >= 0 {
					to = o
				}
			}
		}
		return to
	}
	if now < before {
		return one(ws[:before])
	}
	return one(ws[now:])
}

// meaningWords are those of a question for the meaning of something.
var meaningWords = wordSet("matlab unter mean means meaning meant versteht verstehen even like include includes included contain contains cover covers exactly called counts count considered difference differences stand stands define definition describe heisst bedeutet bedeuten bedeutung genau zaehlt gilt enthaelt beinhaltet unterschied umfasst " +
	"veut dire signifie signification difference exactement comprend inclut compte " +
	"significa significado quiere decir diferencia exactamente incluye cuenta " +
	"意 思 区 别 叫 包 括 包 含 算 指 मतलब अर्थ अंतर फर्क होता होती शामिल")

// asksForMeaning knows a question in which nothing stands but options of the
// clarification, or the words that gloss them, and words for meaning: "can you
// tell me what Comfort Plus includes?"
func (f *folder) asksForMeaning(p part) (reading, bool) {
	if len(f.opts) == 0 || !asksWhole(p, f.lang) && !p.asks {
		return reading{}, false
	}
	var rest []word
	means := false
	for _, w := range p.words {
		if meaningWords[w.plain] {
			means = true
			continue
		}
		if asksFirst[w.plain] || stopWords()[w.plain] || askWords[w.plain] {
			continue
		}
		rest = append(rest, w)
	}
	if !means || len(rest) == 0 || len(rest) > 6 {
		return reading{}, false
	}
	if foreign, _ := f.foreign(rest); len(foreign) > 0 {
		return reading{}, false
	}
	for _, w := range content(forms(rest)) {
		if f.inQuestion(w) && !slices.ContainsFunc(f.opts, func(o optionWords) bool { return o.has(w) }) {
			return reading{}, false
		}
	}
	got, _ := f.match(rest)
	return reading{act: actExplain, options: got, rule: "explain"}, true
}

// matters are the words of a question whether, or why, it matters.
var matters = wordSet("matter matters important relevant ask asking know need relevance difference affect affects wichtig rolle fragen fragst wissen unterschied wichtig change changer important importe importa importante cambia pregunta preguntas 重 要 关 系 问 जरूरी फर्क पूछ farak fark padta")

// ofThese point to the options.
var ofThese = []string{"第 几 个", "第 几 种", "which of those", "which of these", "which of them", "which of the two", "which of the three", "which one is it", "which one is that", "which one would", "which one do i", "which one should i", "which one am i", "which one does", "which is it for", "which one applies", "which applies", "welches davon", "welche davon", "was davon", "lequel des deux", "laquelle des deux", "cual de los dos", "cual de las dos", "which one still", "which one has", "which ones have", "which one comes", "which one includes", "which one costs", "哪 个 是", "哪 个 有", "哪 个 更", "哪 种 更", "属 于 哪", "算 哪", "是 哪 个", "是 哪 种"}

// measures are how one finds out what to reply.
var measures = wordSet("miro veo compruebo reviso averiguo vois verifie savoir sehe pruefe finde merke weigh measure count check tell know find see figure recognize recognise identify")

var (
	whichWords   = wordSet("which welche welcher welches lequel laquelle lesquels lesquelles cual cuales 哪 कौन कौनसा kaun")
	superlatives = wordSet("mieux besser bessere better worst schlechteste most least best plus moins meilleur meilleure mas menos mejor 最 सबसे sabse ueblichste haeufigste beste am common usual popular")
)

// asksForPlace knows a question for what to reply: "Spain belongs to which of
// those?", "why does the building matter?"
func (f *folder) asksForPlace(p part) bool {
	if len(f.opts) == 0 {
		return false
	}
	ws := forms(p.words)
	for len(ws) > 0 && leadIn[ws[0]] {
		ws = ws[1:]
	}
	if len(ws) < 2 {
		return false
	}
	text := " " + strings.Join(ws, " ") + " "
	foreign, _ := f.foreign(p.words)
	foreign = slices.DeleteFunc(foreign, func(w string) bool {
		return matters[w] || whichWords[w] || superlatives[w] || cardinals[w] > 0
	})
	if p.asks && len(foreign) <= 3 && slices.ContainsFunc(ws, func(w string) bool { return whichWords[w] }) &&
		(slices.ContainsFunc(ws, isComparison) || slices.ContainsFunc(ws, func(w string) bool { return superlatives[w] })) {
		return true // "laquelle est la plus courante ?"
	}
	if p.asks && f.arguesOption(p, ws) {
		return true
	}
	most := 2
	if len(foreign) > 0 && isHan([]rune(foreign[0])[0]) {
		most = 5
	}
	if len(foreign) <= most {
		for _, o := range ofThese {
			if strings.Contains(text, " "+o+" ") {
				return true
			}
		}
	}
	if strings.ContainsFunc(p.String(), isHan) && len(foreign) == 0 && slices.ContainsFunc(ws, func(w string) bool { return w == "系" || w == "要" }) && (strings.Contains(text, " 关 系 ") || strings.Contains(text, " 重 要 ")) {
		return true
	}
	if (ws[0] == "how" || ws[0] == "wie" || ws[0] == "comment" || ws[0] == "como") && len(ws) <= 6 && len(foreign) <= 1 && slices.ContainsFunc(ws, func(w string) bool { return measures[w] }) {
		return true // "how would I weigh it"
	}
	switch ws[0] {
	case "why", "warum", "wieso", "weshalb", "pourquoi", "does", "is", "ist", "spielt", "macht", "c", "est", "ca", "importa", "es", "为", "क्यों":
	default:
		return false
	}
	if ws[0] != "why" && ws[0] != "warum" && ws[0] != "wieso" && ws[0] != "weshalb" && ws[0] != "pourquoi" && ws[0] != "为" && ws[0] != "क्यों" && !p.asks {
		return false
	}
	return len(foreign) == 0 && slices.ContainsFunc(ws, func(w string) bool { return matters[w] })
}

// asksWhichOption knows a question that weighs the options against each other:
// "is the UK EU or overseas?", "which of the two has steam?"
func (f *folder) asksWhichOption(p part) bool {
	if len(f.opts) < 2 || !p.asks && !asksWhole(p, f.lang) {
		return false
	}
	or := slices.IndexFunc(p.words, func(w word) bool { return orWords[w.plain] })
	if or <= 0 || or == len(p.words)-1 {
		return false
	}
	a, tieA := f.match(p.words[max(0, or-4):or])
	b, tieB := f.match(p.words[or+1 : min(len(p.words), or+5)])
	ws := forms(p.words)
	for len(ws) > 0 && leadIn[ws[0]] {
		ws = ws[1:]
	}
	return len(a) == 1 && len(b) == 1 && !tieA && !tieB && a[0] != b[0] && len(ws) > 3 && asksVerb[ws[0]] && !confirms(ws)
}

// suffixed knows a part that ends in not knowing: "it's on my husband's phone, so
// no idea", "the label came off so I don't know what it is".
func (f *folder) suffixed(p part) (reading, bool) {
	ws := forms(p.words)
	for i := 1; i < len(ws); i++ {
		if a, ok := lexicon().whole[strings.Join(ws[i:], " ")]; ok && a == actDontKnow && len(ws)-i >= 2 {
			return reading{act: actDontKnow, extra: stripAll(p.with(p.words[:i]), lexicon().frames), rule: "phrase"}, true
		}
		if len(ws)-i >= 3 && (ws[i] == "dont" || ws[i] == "no") && (ws[i+1] == "know" || ws[i+1] == "idea") && asksFirst[ws[i+2]] && (ws[i-1] == "i" || ws[i] == "no") {
			return reading{act: actDontKnow, rule: "phrase"}, true
		}
	}
	return reading{}, false
}

// sayWords are the verbs with which a choice is put as a question: "am I allowed
// to say the front?", "could it be Off?"
var sayWords = wordSet("say saying said pick choose select take answer put write tick click count counts counted allowed ok okay fine possible could would should might may be enough right correct correctly just simply only haha lol " +
	"sagen nehmen waehlen angeben schreiben ankreuzen einfach auch zaehlt gilt richtig gehen " +
	"dire choisir prendre mettre cocher compte juste simplement ca va " +
	"decir elegir poner marcar escoger vale cuenta simplemente solo " +
	"选 填 说 算 行 能 可 以 对 是 不 吗 吧 बोल बोलूं बोलूँ कह कहूं चुन चुनूं लिख सकता सकती सकते हूं हूँ bol bolun bolu boloon kah chun chunu likh sakta sakti hoon kya main क्या मैं")

// proposes knows a question that offers an option as the answer.
func (f *folder) proposes(p part) (reading, bool) {
	if len(f.opts) < 2 || !p.asks && !asksWhole(p, f.lang) || len(p.words) > 12 {
		return reading{}, false
	}
	ws := forms(p.words)
	for len(ws) > 0 && leadIn[ws[0]] {
		ws = ws[1:]
	}
	if len(ws) < 2 || (asksFirst[ws[0]] || ws[0] == "when" || ws[0] == "where") && !asksHi[ws[0]] {
		return reading{}, false
	}
	says := slices.ContainsFunc(p.words, func(w word) bool { return sayWords[w.plain] })
	if !says {
		return reading{}, false
	}
	rest := slices.DeleteFunc(slices.Clone(p.words), func(w word) bool {
		return !listWords[w.plain] && !orWords[w.plain] && (sayWords[w.plain] || stopWords()[w.plain] || asksHi[w.plain] || lexicon().fillers[w.plain]) && !slices.ContainsFunc(f.opts, func(o optionWords) bool { return slices.Contains(o.content, w.plain) })
	})
	if len(rest) == 0 {
		return reading{}, false
	}
	if foreign, _ := f.foreign(rest); len(foreign) > 0 {
		return reading{}, false
	}
	core := p.with(rest)
	if r, ok := f.listed(core); ok {
		return reading{act: actChoose, options: r.options, rule: "proposal"}, true
	}
	if got, tie := f.match(rest); len(got) == 1 && !tie {
		return reading{act: actChoose, options: got, rule: "proposal"}, true
	}
	if r, ok := f.byRange(core); ok && slices.ContainsFunc(rest, func(w word) bool { return isNumber(w.plain) }) {
		return reading{act: actChoose, options: r.options, extra: core, rule: "range"}, true
	}
	return reading{}, false
}

// requestFrames begin a request to the assistant that holds a reply: "could you
// just tell me for any of them?"
var (
	requestModal = wordSet("could can would will might kannst koennen koenntest koennten peux pouvez pourrais pourriez puedes puede podria")
	requestYou   = wordSet("you u du sie tu vous usted")
	requestRest  = wordSet("please just maybe simply only me us it tell give show check checking look looking say answer telling giving mind for about do explain bitte einfach mir uns sagen zeigen geben fuer me nous dire donner juste pour simplement decirme decir dar solo para")
)

// requested knows a request that holds nothing but a reply.
func (f *folder) requested(p part) (reading, bool) {
	ws := forms(p.words)
	if len(ws) < 4 || len(ws) > 14 || !requestModal[ws[0]] || !requestYou[ws[1]] {
		return reading{}, false
	}
	i := 2
	for i < len(ws) && requestRest[ws[i]] {
		i++
	}
	rest := p.words[i:]
	for len(rest) > 2 && requestRest[rest[len(rest)-1].plain] { // "... Bitcoin for me"
		rest = rest[:len(rest)-1]
	}
	if i < 4 || len(rest) == 0 || len(rest) > 5 {
		return reading{}, false
	}
	core := p.with(rest)
	core.asks = false
	if r, ok := f.phrase(core); ok && (r.act == actAll || r.act == actJustAnswer) {
		return r, true
	}
	if foreign, _ := f.foreign(rest); len(foreign) > 0 {
		return reading{}, false
	}
	if r, ok := f.byPlace(core); ok {
		return r, true
	}
	if r, ok := f.byText(core); ok && r.act == actChoose {
		return r, true
	}
	return reading{}, false
}

// arguesOption knows a question whether something is one of the options, which is
// about the clarification: "does a puddle count?", "is 20 hours a week part time?",
// "isn't everyone on the new one?"
func (f *folder) arguesOption(p part, ws []string) bool {
	first := ws[0]
	if strings.HasPrefix(strings.Join(ws, " ")+" ", "you mean ") || strings.HasPrefix(strings.Join(ws, " ")+" ", "do you mean ") {
		return true
	}
	if len(ws) > 2 && confirms(ws) {
		return false // "is it the pro plan?"
	}
	if first != "is" && first != "are" && first != "does" && first != "do" && first != "would" && !asksNot[first] {
		return false
	}
	if slices.Contains(ws, "count") || slices.Contains(ws, "counts") || slices.Contains(ws, "considered") {
		return true
	}
	if o := slices.IndexFunc(ws, func(w string) bool { return orWords[w] }); o > 0 && o+1 < len(ws) {
		place := func(w string) bool { return ordinals[w] != 0 }
		return slices.ContainsFunc(ws[:o], place) && slices.ContainsFunc(ws[o:], place)
	}
	if first == "does" || first == "do" || first == "would" {
		return false
	}
	if asksNot[first] {
		is, tie := f.match(p.words)
		return len(is) == 1 && !tie && first != "dont" && first != "doesnt" && first != "cant"
	}
	// the option stands last: "is 20 hours a week part time?"
	for n := 1; n <= 4 && n < len(p.words)-1; n++ {
		tail := p.words[len(p.words)-n:]
		is, tie := f.match(tail)
		if len(is) == 1 && !tie && covers(content(forms(tail)), f.opts[is[0]].content) && !afterPreposition[p.words[len(p.words)-n-1].plain] {
			return true
		}
	}
	return false
}

var afterPreposition = wordSet("in on at to for from with by of about under during via per the my our your a an")
