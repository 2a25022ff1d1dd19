package conversation

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// How a whole question or request begins, by language. What follows decides
// whether it is one about something else.
var (
	asksFirst = wordSet("what whats whens wheres how hows why who whos which whose " +
		"was wie wann wo wohin woher wer wem wen warum wieso weshalb wozu welche welcher welches welchen wieviel wieviele " +
		"quel quelle quels quelles quand comment pourquoi combien qui quoi " +
		"cual cuales cuanto cuanta cuantos cuantas adonde")
	asksIfMarked = wordSet("when where que ou como cuando donde quien quienes por hay puedo pueden puede tienen tiene se es hacen aceptan debo necesito on il je peut faut " +
		"gibts brauche brauch muss darf kann kostet")
	asksVerb = wordSet("is are was were do does did can could will would should may have has am shall isnt arent dont doesnt cant didnt wont " +
		"ist sind gibt habt haben hat kann koennen koennt muss muessen darf duerfen soll sollen braucht brauche kostet bekomme bekommt wird werden gilt geht macht nimmt nehmen")
	asksSubject = wordSet("u ya i you we they he she it there the my your this that these those a an our any anyone somebody people all " +
		"ich man es sie er wir ihr die der das mein meine meinen du den eine ein euch bei")
	requests = wordSet("diganme decidme speak talk tell show explain list help find send book reset cancel storniert schickt change connect transfer call translate write remind describe compare open check track order reserve delete remove update add create " +
		"sag sagen zeig zeigen erklaer erklaeren erklaere hilf helfen schick schicken storniere stornieren buche " +
		"dis dites montre montrez explique expliquez aide aidez envoie envoyez annule annulez " +
		"dime digame muestra muestrame explica explicame ayuda ayudame envia cancela")
	requestObject = wordSet("einfach alles bitte como wie comment me my us our the a an this that all him her how mir uns sie meine meinen mein die den das moi nous le la les mon ma mes el los mi mis un una")
	asksPhrases   = []string{"anyone know", "anybody know", "y a du", "y a des", "y a une", "y a un", "y a de", "il y a", "est ce que", "qu est ce", "y a t il", "peut on", "puis je", "avez vous", "pouvez vous", "faut il", "est il", "c est quoi", "dois je", "ai je",
		"por que", "se puede", "hay que", "i want to know", "need to know", "want to know", "by when", "until when", "till when", "since when", "from when", "up to what", "bis wann", "ab wann", "seit wann", "a partir de quand", "jusqu a quand", "hasta cuando", "desde cuando", "id like to know", "i would like to know", "i wonder", "do you know", "can you tell me", "could you tell me", "i want to ask", "let me ask", "question about", "i have a question", "i have a problem", "i need help", "help with", "wuesste gern", "ich wollte fragen", "ich moechte wissen", "ich habe eine frage", "je voudrais savoir", "j aimerais savoir", "quisiera saber", "me gustaria saber", "quiero saber"}
	asksZh = []string{"什 么", "怎 么", "怎 样", "如 何", "哪 里", "哪 儿", "哪 个", "谁", "为 什", "多 少", "几 点", "几 天", "几 号", "多 久", "多 远", "吗", "能 不 能", "可 不 可", "有 没 有", "请 问", "告 诉 我", "帮 我"}
	asksHi = wordSet("kya kaise kab kahan kahaan kaun kyun kyon kitna kitni kitne bataiye क्या कैसे कब कहां कौन कौनसा क्यों कितना कितनी कितने किसे किसको बताइए बताओ बताएं दिखाइए")

	// asksInside are the questions that stand behind a statement, without a
	// mark: "it is slow how can I speed it up".
	asksInside = []string{"how can i", "how do i", "how to", "how much", "how many", "how long", "what is the", "whats the", "what do i", "what does", "what time", "when is", "when will", "when do", "when does", "where is", "does the", "does my", "do i", "do we", "is there", "are there", "can he", "can she", "can they", "can we", "could i", "would i", "will i", "must i", "where do i", "where can i", "can i", "can you", "do i need", "wie kann ich", "wie viel", "kann ich", "comment je", "est ce que", "como puedo", "cuanto cuesta"}

	// bareQuestions ask about what was said just before: "I want rid of it. How?"
	bareQuestions = []string{"how", "when", "where", "how much", "how many", "how long", "and how", "and when", "how much is it", "how much is that", "what now", "price", "wie", "wann", "wo", "wie viel", "wie lange", "combien", "quand", "cuanto", "cuando", "多 少", "多 少 钱", "कब", "कितना", "कितने"}

	// troubles are how a complaint about something else sounds.
	troubles = []string{"doesnt work", "does not work", "isnt working", "not working", "wont work", "stopped working", "is broken", "has crashed", "crashed", "froze", "is frozen", "is stuck", "is leaking", "is jammed", "is blocked", "is flooded", "wurde abgelehnt", "ist abgestuerzt", "est en panne", "est casse", "se rompio", "esta roto", "cant log in", "cannot log in", "cant login", "cant connect", "wont open", "wont start", "wont load", "was declined", "been declined", "was stolen", "got stolen", "didnt arrive", "has not arrived", "hasnt arrived", "never arrived", "funktioniert nicht", "geht nicht", "ist kaputt", "ne marche pas", "ne fonctionne pas", "no funciona", "不 能 用", "坏 了", "打 不 开", "काम नहीं कर"}
)

// losses are how one says that something is gone.
var losses = []string{"forgot my", "forgotten my", "passwort vergessen", "oublie mon mot", "olvide mi", "olvide la contrasena", "密 码 忘", "忘 了 密 码", "i lost", "ive lost", "i have lost", "was stolen", "got stolen", "stole my", "been stolen", "verloren", "gestohlen", "geklaut", "j ai perdu", "on m a vole", "perdi mi", "he perdido", "me robaron", "me han robado", "丢 了", "被 偷", "弄 丢", "खो गया", "खो गई", "चोरी हो"}

// loses says whether a text says that something is gone, where the dialogue does
// not speak of that.
func (f *folder) loses(text string) bool {
	about := " " + key(f.p.Question+" "+f.p.Text) + " "
	for _, l := range losses {
		if strings.Contains(text, " "+l+" ") {
			for _, w := range content(strings.Fields(l)) {
				if strings.Contains(about, w[:min(len(w), 4)]) {
					return false
				}
			}
			return !strings.Contains(about, "theft") && !strings.Contains(about, "diebstahl") && !strings.Contains(about, "robo ") && !strings.Contains(about, " vol ")
		}
	}
	return false
}

// asides begin a remark about something else.
var asides = [][]string{{"by", "the", "way"}, {"btw"}, {"uebrigens"}, {"ausserdem"}, {"au", "fait"}, {"por", "cierto"}, {"对", "了"}, {"वैसे"}, {"vaise"}, {"waise"}}

// aside says whether a part is announced as being about something else.
func (f *folder) aside(p part) bool {
	all := plains(f.reply)
	return slices.ContainsFunc(asides, func(a []string) bool {
		return len(all) > len(a)+1 && slices.Equal(all[:len(a)], a)
	})
}

// connects begin a question that goes on from the last.
var connects = wordSet("and und et y और")

// leadIn are the words before a question that do not change that it is one.
var leadIn = wordSet("mejor lieber plutot rather and also but actually hey hi hello ok okay so now oh well btw wait please excuse sorry first quick und aber hallo ach moment uebrigens sag mal entschuldigung et mais bonjour au fait dites alors y pero hola oye bueno cierto 那 另 外 对 了 वैसे और अच्छा लेकिन")

// asksWhole says whether a part has the form of a whole question or request,
// whatever it is about.
func asksWhole(p part, lang string) bool {
	ws := forms(p.words)
	text := " " + strings.Join(ws, " ") + " "
	for _, a := range asksPhrases {
		if strings.Contains(text, " "+a+" ") {
			return true
		}
	}
	for i := 1; i+1 < len(ws); i++ { // "会不会"
		if (ws[i] == "不" || ws[i] == "没") && ws[i-1] == ws[i+1] {
			return true
		}
	}
	if first := p.words[0]; len(ws) >= 3 {
		for _, w := range []string{"dónde", "cómo", "cuándo", "quién", "cuánto", "cuántos", "cuántas", "qué"} {
			if strings.EqualFold(p.text[first.start:first.end], w) {
				return true // the accent makes it a question
			}
		}
	}
	if lang == "zh" || strings.ContainsFunc(p.String(), isHan) {
		for _, a := range asksZh {
			if strings.Contains(text, a) {
				return true
			}
		}
	}
	if slices.ContainsFunc(ws, func(w string) bool { return asksHi[w] }) {
		return true
	}
	for len(ws) > 0 && leadIn[ws[0]] {
		ws = ws[1:]
	}
	if strings.HasPrefix(strings.Join(ws, " "), "by the way ") {
		ws = ws[3:]
	}
	if len(ws) < 2 {
		return false
	}
	first, second := ws[0], ws[1]
	switch {
	case (first == "gibts" || first == "habts") && len(ws) >= 3:
		return true
	case fronted[first] && frontedAsks[second] && len(ws) >= 3: // "by what date"
		return true
	case first == "what" && (second == "i" || second == "we") && !p.asks:
		return false // "what I meant is"
	case (first == "who" || first == "which" || first == "qui" || first == "was" || first == "wer") && len(ws) < 3:
		return p.asks && first != "which"
	case first == "was" && asksSubject[second] && lang == "en": // "was it", "was the"
		return p.asks
	case asksFirst[first]:
		return true
	case (first == "when" || first == "where") && asksVerb[second]:
		return true
	case asksIfMarked[first]:
		if p.asks {
			return true
		}
	}
	for _, end := range []string{" or not ", " ou pas ", " ou non ", " oder nicht ", " o no ", " या नहीं ", " ya nahi "} {
		if strings.HasSuffix(text, end) && len(ws) >= 4 {
			return true
		}
	}
	if asksVerb[first] && (asksSubject[second] || p.asks) && len(ws) >= 3 {
		return true
	}
	if (first == "are" || first == "is") && len(ws) >= 5 && !pronouns[second] && second != "for" {
		return true
	}
	if (first == "does" || first == "did" || (first == "can" || first == "will") && second != "be") && len(ws) >= 4 {
		return true
	}
	if len(ws) >= 3 && hindiGive[ws[len(ws)-1]] && slices.ContainsFunc(ws, func(w string) bool { return hindiMarks[w] }) &&
		slices.ContainsFunc(ws, func(w string) bool { return !askWords[w] && !stopWords()[w] && !allWords[w] }) {
		return true // "customer care ka number do"
	}
	return requests[first] && requestObject[second] && len(ws) >= 3
}

var hindiMarks = wordSet("ka ki ke ko hai mein mera meri apna का की के को है में मेरा मेरी")
var hindiGive = wordSet("do dijiye dedo batao bataiye दो दीजिए बताओ बताइए बताएं भेजो भेजिए")

// fronted are the prepositions that can stand before a question word.
var fronted = wordSet("by on in at from to until till for with of under up since before after ab bis an auf zu seit mit von um a de en para con desde hasta por pour depuis jusqu avec")
var frontedAsks = wordSet("what which how whose whom wann welchem welcher welchen welches wieviel quel quelle quels quelles combien quand que cual cuando cuanto cuantos quien qui")

func isHan(r rune) bool { return r >= 0x4E00 && r <= 0x9FFF || r >= 0x3400 && r <= 0x4DBF }

// asksAnew says whether a part asks something else: it has the form of a whole
// question or request, and it is about something that neither the pending
// question nor its clarification speaks of.
func (f *folder) asksAnew(p part) bool {
	foreign, known := f.foreign(slices.DeleteFunc(slices.Clone(p.words), func(w word) bool { return wishWords[w.plain] }))
	n := len(foreign)
	if n > 0 && isHan([]rune(foreign[0])[0]) {
		n = (n + 1) / 2 // two characters make a word
	}
	ws := forms(p.words)
	for len(ws) > 0 && leadIn[ws[0]] {
		ws = ws[1:]
	}
	if n == 0 { // "when does it go up?" asks, and not about the options
		return known == 0 && len(ws) >= 3 && !confirms(ws) && !slices.ContainsFunc(ws, isNumber) && !f.asksAbout(p) && asksWhole(p, f.lang)
	}
	if len(ws) > 2 && confirms(ws) {
		return false // "is it the pro plan?"
	}
	if len(ws) > 1 && len(ws) <= 6 && ws[1] == "about" && (known > 0 || slices.ContainsFunc(ws, func(w string) bool { return isNumber(w) || cardinals[w] > 1 })) {
		return false // "what about the night tour?", "what about two nights?"
	}
	if len(ws) > 2 && ws[0] == "what" && ws[1] == "if" && known > 0 {
		return false // "what if I say both?"
	}
	if asksWhole(p, f.lang) {
		return !f.asksAbout(p)
	}
	if len(f.opts) > 0 && wishes(ws) && !f.nameOption(p.words) {
		return true // "I want to cancel my order"
	}
	open := len(f.opts) == 0
	text := " " + strings.Join(ws, " ") + " "
	if !open && f.loses(text) {
		return true
	}
	if !open && known == 0 && n > 0 && f.aside(p) {
		return true // "by the way I need a new mouse"
	}
	if !open && p.asks && n >= 2 && n > known && len(ws) >= 3 && !fragmentFirst[ws[0]] {
		if is, _ := f.match(p.words); len(is) == 0 {
			return true // "next train to Leeds?"
		}
	}
	if !open && p.asks && known == 0 && len(ws) <= 3 && connects[p.words[0].plain] && len(words(f.reply)) == len(p.words) {
		return true // "and cats?"
	}
	if known == 0 && n >= 2 {
		for _, a := range asksInside {
			if strings.Contains(text, " "+a+" ") {
				return true
			}
		}
	}
	if !open && known == 0 && fails(ws) {
		return true
	}
	if !open && known == 0 {
		for _, t := range troubles {
			if strings.Contains(text, t) {
				return true
			}
		}
	}
	if p.asks && known == 0 && n >= 2 && len(ws) >= 2 && !(fragmentFirst[ws[0]] && len(ws) <= 5) {
		return !open || len(ws) >= 4
	}
	return false
}

// wishFirst begin a statement of what somebody wants to do, and wishVerbs are
// what one does at a counter.
var (
	wishFirst = wordSet("i id we wed ich wir je j nous on quiero quisiera necesito queremos me 我 我们 मुझे मैं हमें")
	wishWords = wordSet("want need like wanted would have must moechte moechten will wollen muss muessen wuerde voudrais veux voudrions souhaite dois aimerais quiero quisiera necesito queremos gustaria tengo 想 要 需 चाहिए चाहता चाहती चाहते करना करवाना")
	wishVerbs = wordSet("open close block unblock reset cancel change connect transfer call translate write compare check track order reserve delete remove update report speak talk complain apply register renew extend upgrade downgrade return exchange replace repair book buy sell rent download print send reschedule postpone unsubscribe subscribe login activate deactivate appeal " +
		"aendern oeffnen eroeffnen sperren stornieren kuendigen sprechen reden melden verschieben umbuchen beschweren beantragen verlaengern umtauschen zurueckgeben buchen bestellen kaufen verkaufen mieten wechseln abmelden anmelden bezahlen " +
		"poner hacer presentar saber changer modifier ouvrir fermer bloquer annuler parler signaler plaindre demander renouveler prolonger echanger rendre reserver commander acheter vendre louer resilier payer " +
		"cambiar modificar abrir cerrar bloquear cancelar hablar denunciar quejarme solicitar renovar prolongar devolver reservar comprar vender alquilar pagar")
	wishZh = []string{"投 诉", "取 消", "退 款", "退 货", "换 货", "办 理", "开 通", "修 改", "更 改", "查 询", "联 系", "转 账", "挂 失", "预 约", "申 请", "注 销", "续 费", "续 租", "报 修", "转 人 工", "找 人 工", "改 地 址", "投 訴", "充 值", "订 购", "退 订", "维 修"}
	wishHi = wordSet("बदलना बदलनी बदलवाना शिकायत रद्द बात करनी बंद करवाना खोलना बुक")
)

var hindiWish = wordSet("है हैं था थी चाहिए चाहता चाहती चाहते")

// wishes says whether words state what somebody wants to do: "I want to cancel
// my order".
func wishes(ws []string) bool {
	for len(ws) > 0 && leadIn[ws[0]] {
		ws = ws[1:]
	}
	for i, w := range ws[:max(0, len(ws)-1)] { // "नया मीटर लगवाना है"
		if (strings.HasSuffix(w, "ना") || strings.HasSuffix(w, "नी")) && i > 0 && utf8.RuneCountInString(w) > 3 && hindiWish[ws[i+1]] {
			return true
		}
	}
	if len(ws) < 3 || !wishFirst[ws[0]] {
		return false
	}
	text := " " + strings.Join(ws, " ") + " "
	for _, z := range wishZh {
		if strings.Contains(text, " "+z+" ") {
			return true
		}
	}
	if !slices.ContainsFunc(ws[:min(3, len(ws))], func(w string) bool { return wishWords[w] }) && !slices.ContainsFunc(ws, func(w string) bool { return wishHi[w] }) {
		return false
	}
	for i, w := range ws[1:] {
		if wishVerbs[w] || requests[w] {
			if ws[0] == "i" || ws[0] == "id" || ws[0] == "we" || ws[0] == "wed" {
				return ws[i] == "to"
			}
			return true
		}
		if wishHi[w] {
			return true
		}
	}
	return false
}

// nameOption says whether words name an option whole, or the verb of the pending
// question.
func (f *folder) nameOption(ws []word) bool {
	for _, w := range ws {
		if wishVerbs[w.plain] || requests[w.plain] {
			if _, known := f.foreign([]word{w}); known > 0 {
				return true
			}
		}
	}
	said := content(forms(ws))
	return slices.ContainsFunc(f.opts, func(o optionWords) bool { return covers(said, o.content) })
}

// foreignSubject says whether a reply is a statement about some other thing:
// "the heating is broken".
func (f *folder) foreignSubject(ws []word) bool {
	if len(f.opts) == 0 || len(ws) < 4 {
		return false
	}
	switch ws[0].plain {
	case "the", "my", "our", "there":
	default:
		return false
	}
	if _, known := f.foreign(ws); known > 0 {
		return false
	}
	for i, w := range ws[1:min(5, len(ws))] {
		switch w.plain {
		case "is", "are", "was", "has", "have", "were", "doesnt", "isnt", "wont", "keeps", "arent", "hasnt", "didnt", "does", "went", "got":
			return i > 0 || ws[0].plain == "there"
		}
	}
	return false
}

// fragmentFirst begins a detail that is put as a question: "the one for
// students?"
var fragmentFirst = wordSet("the a an my our your for in on at with from or and of by to as this that these those maybe only der die das den fuer im in am mit von oder und ein eine mein le la les l un une pour dans avec de ou et celui celle el la los las un una para en con de o y 的 那 这")

// confirms says whether words ask "is it X?", which answers rather than asks.
func confirms(ws []string) bool {
	switch ws[0] {
	case "is", "was", "are", "were", "would", "isnt", "arent":
		if !slices.Contains([]string{"it", "that", "this", "they", "those", "these"}, ws[1]) {
			return false
		}
		return slices.Contains([]string{"the", "a", "an", "my", "your", "our", "for", "from", "in", "on", "with", "be", "one", "about", "under", "called", "not"}, ws[2])
	case "ist", "war", "sind", "waere":
		return slices.Contains([]string{"es", "das", "dies", "die"}, ws[1]) && slices.Contains([]string{"der", "die", "das", "ein", "eine", "fuer", "im", "mit", "von", "den"}, ws[2])
	case "do", "did", "does":
		return ws[1] == "you" && ws[2] == "mean"
	case "meinst", "meinen":
		return true
	case "c", "est":
		return slices.Contains([]string{"le", "la", "l", "un", "une", "les", "ce", "c"}, ws[2])
	case "es":
		return slices.Contains([]string{"el", "la", "un", "una", "los", "las"}, ws[1])
	}
	return false
}

// refersBack says whether a question is about what was said just before it:
// "does that change anything?"
func (f *folder) refersBack(p part) bool {
	if foreign, known := f.foreign(words(f.reply)); known == 0 && len(foreign) > 2 {
		return false
	}
	ws := forms(p.words)
	for len(ws) > 0 && leadIn[ws[0]] {
		ws = ws[1:]
	}
	return len(ws) > 1 && len(ws) <= 6 && asksVerb[ws[0]] && (ws[1] == "that" || ws[1] == "it" || ws[1] == "this" || ws[1] == "das" || ws[1] == "es")
}

// seeks are how a question begins by which somebody wants to find out what to
// reply.
var seeks = []string{"how can i see", "how do i see", "where can i see", "where do i see", "where do i find", "where can i find", "how do i find", "how can i find", "how can i check", "how do i check", "how can i know", "how do i know", "how would i know", "how can i tell", "how do i tell", "where is the", "wheres the", "where does it say", "wo finde ich", "wo sehe ich", "wo steht", "wie finde ich", "wie sehe ich", "ou trouver", "ou est ce que je trouve", "ou je trouve", "comment savoir", "comment voir", "donde veo", "donde encuentro", "donde puedo ver", "como se", "como puedo saber"}

// identity are the words for what tells one thing from another.
var identity = wordSet("model version number type date day kind serial name sticker information info designation label plate release code modell nummer typ modele numero type modelo tipo options choices types models versions")

// asksAbout says whether a part asks about the clarification: it has the form of
// a question, and nothing in it is foreign.
func (f *folder) asksAbout(p part) bool {
	ws := forms(p.words)
	for len(ws) > 0 && leadIn[ws[0]] {
		ws = ws[1:]
	}
	if comparesOptions(ws) {
		return true
	}
	if len(ws) > 1 && ws[1] == "about" {
		return false // "what about the van?"
	}
	text := strings.Join(ws, " ") + " "
	for _, s := range seeks {
		if n := len(strings.Fields(s)); strings.HasPrefix(text, s+" ") {
			foreign, _ := f.foreign(p.words[len(p.words)-len(ws)+n:])
			return !slices.ContainsFunc(foreign, func(w string) bool { return !identity[w] })
		}
	}
	foreign, _ := f.foreign(p.words)
	foreign = slices.DeleteFunc(foreign, func(w string) bool { return identity[w] })
	if len(foreign) > 0 {
		return false
	}
	if len(ws) < 2 || confirms(append(slices.Clone(ws), "", "")) {
		return false
	}
	switch ws[0] {
	case "哪":
		return true
	case "what", "which", "welche", "welches", "welcher", "quel", "quelle", "quels", "quelles", "cual", "cuales", "que", "was":
		if ws[0] == "was" && f.lang != "de" {
			return false
		}
		if len(ws) > 2 && asksVerb[ws[1]] && (ws[2] == "i" || ws[2] == "we" || ws[2] == "that" || ws[2] == "he" || ws[2] == "she" || ws[2] == "ich" || ws[2] == "wir") {
			return false // "what do I do?"
		}
		if !p.asks && ws[0] != "which" && ws[0] != "what" {
			return false
		}
		if len(ws) <= 3 { // "what app?"
			return p.asks && len(content(ws)) > 0
		}
		if got, tie := f.match(p.words); len(got) == 1 && !tie {
			return false // "what is it for the van?"
		}
		return true
	}
	return false
}

// comparesOptions knows "which is cheaper?", "which one do I need?"
func comparesOptions(ws []string) bool {
	if len(ws) == 2 && (ws[0] == "whats" || ws[0] == "which" || ws[0] == "was") && isComparison(ws[1]) {
		return true // "what's cheaper"
	}
	if len(ws) == 3 && (ws[0] == "what" || ws[0] == "was" || ws[0] == "which" || ws[0] == "welches" || ws[0] == "welche") && isComparison(ws[2]) {
		return true
	}
	return len(ws) > 2 && len(ws) <= 5 && ws[0] == "which" && (ws[1] == "is" || ws[1] == "one" || ws[1] == "of")
}

func isComparison(w string) bool {
	return slices.ContainsFunc(comparisons, func(c comparison) bool {
		return slices.ContainsFunc(strings.Fields(c.words), func(x string) bool { return plain(x) == w })
	})
}

// asksBare says whether a part is a mere "how?" or "when?", in a reply that
// speaks of something else.
func (f *folder) asksBare(p part) bool {
	foreign, known := f.foreign(words(f.reply))
	return known == 0 && len(foreign) > 0 && slices.Contains(bareQuestions, strings.Join(forms(p.words), " "))
}

// says counts the content words of a part.
func (f *folder) says(p part) int { return len(content(forms(p.words))) }

var (
	failsNot  = wordSet("wont doesnt cant cannot isnt not stopped keeps didnt")
	failsVerb = wordSet("open start load connect work charge turn boot print sync close lock play update install respond ring open opening starting loading connecting working charging printing syncing playing responding crashing failing accepted accepting recognized recognised loaded found detected delivered sent shown displayed showing moving heating cooling drying")
)

// fails says whether words complain that something does not work.
func fails(ws []string) bool {
	for i, w := range ws[:max(0, len(ws)-1)] {
		if i > 0 && failsNot[w] && failsVerb[ws[i+1]] {
			return true
		}
	}
	return false
}
