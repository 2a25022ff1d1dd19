package untrusted

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

const (
	secrets = `\b(?:passwords?|passphrases?|passcodes?|credentials?|pins?|iban|card numbers?|cvv|secrets?|seed phrases?|api keys?|log-?ins?|one-time codes?|security codes?)\b`
	// machine is who is spoken to. The bare "assistant" may be a person, so only
	// what no person is told counts after it.
	machine = `(?:ai (?:systems?|models?|assistants?)|ais?|llms?|chat ?bots?|language models?|automatic readers?)`
)

// command is a shape of text that speaks to the assistant and not to the reader.
// A document is data: such a sentence is never followed, and never quoted
// either, since a reader would take it for the assistant's own words.
type command struct {
	words []string // one of them stands in it, in lower case; looked for first, which is quick
	shape *regexp.Regexp
}

func shape(words, pattern string) command {
	return command{strings.Split(words, "|"), regexp.MustCompile(`(?i)` + pattern)}
}

const secretWords = "password|passphrase|passcode|credential|pin|iban|card number|cvv|secret|seed phrase|api key|login|log-in|code"

var commands = []command{
	shape("ignore|disregard|forget|override|bypass", `\b(?:ignore|disregard|forget|override|bypass)\b[^.!?\n]{0,40}\b(?:instruction|prompt|guideline|directive|system message|(?:your|the|previous|prior|above) (?:rule|message|guideline)s? ?(?:above|before)?|your rule)s?\b`),
	shape("ignore|disregard|forget", `\b(?:ignore|disregard|forget)\b (?:everything|all|anything) (?:above|before|else)\b`),
	shape("assistant|chatbot|language model|llm|ai|bot", `\b(?:you are|you're|act as|pretend to be|from now on,? you(?: are| act as)?)(?: now)? (?:an?|the|my|our)\b (?:[\w',-]+ ){0,4}?(?:assistant|chatbot|language model|llm|ai|bot)(?:\W*$|[,.!?:;]|\s(?:who|that|which|with|and|without)\b)`),
	shape("you are now", `\byou are now\b[^.!?\n]{0,20}\b(?:dan|jailbroken|unrestricted|developer mode)\b`),
	shape("assistant|ai|llm|chatbot|language model|bot", `\b(?:note|message|instructions?|attention)\b[^.!?\n]{0,15}\b(?:assistant|ai|llm|chatbot|language model|bot)s?\b[^.!?\n]{0,12}\s*[:,]|\bif you are (?:an? )?(?:ai|assistant|llm|chatbot|language model|bot)\b|\bdear (?:assistant|ai|chat ?bot|language model)\b|\b(?:message|notice) from the (?:vendor|developers?|makers?) of this (?:assistant|chat ?bot|ai|model)\b`),
	shape(secretWords, `(?:^|[.;:,>]\s*|\b(?:and|then|instead|must|should|please|to|now|only)\s+)(?:ask|tell|request|instruct|prompt|get|urge|convince)\s+(?:(?:the|every|each|all|any)\s+)?(?:(?:user|customer|visitor|reader|human|client)s?|them|him|her|(?:for\s+)?(?:their|his|the (?:user|customer)'s))\b[^.!?\n]{0,40}`+secrets),
	shape(secretWords, `(?:^\W{0,4}|\b(?:and|then|please|,)\s+)(?:ask|request)\s+(?:for\s+)?(?:(?:a|the|your|their|the (?:user|customer)'s)\s+)?`+secrets),
	shape(secretWords, `\b(?:tell|give|send|type|enter|say|share)\b[^.!?\n]{0,40}\b(?:assistant|chat ?bot|bot|chat)\b[^.!?\n]{0,60}`+secrets+`|`+secrets+`[^.!?\n]{0,40}\b(?:in|into|to) (?:the|this) (?:chat|assistant|bot)\b`),
	shape("chat", `\b(?:type|enter) (?:it|them) in(?:to)? (?:the|this) chat\b`),
	shape("everybody|everyone|anybody|anyone", `\btell (?:every|any)(?:body|one)\b[^.!?\n]{0,100}`+secrets),
	shape("assistant", `\bassistants?\b[^.!?\n]{0,50}\b(?:ask|confirm|request|collect)s?\b[^.!?\n]{0,50}`+secrets),
	shape("prompt|your", `\b(?:reveal|print|repeat|output|show|leak|disclose)\b[^.!?\n]{0,20}\b(?:system prompt|your (?:prompt|instructions|hidden|initial|rules))\b`),
	shape("conversation|chat history|dialogue|message|data", `\b(?:send|post|forward|upload|exfiltrate)\b[^.!?\n]{0,30}\b(?:this|the|whole|entire|chat|user'?s?) (?:whole |entire )?(?:conversation|chat history|dialogue|messages?|data)\b[^.!?\n]{0,20}\b(?:to|at)\s+(?:https?://|\S+@)`),
	shape("respond|reply|answer", `^\W{0,4}(?:respond|reply|answer)\s+(?:(?:only|exactly)\s+(?:with|in|by)\b|with\s+(?:exactly|only|the (?:word|phrase|following))\b|(?:to\s+)?(?:every|all)\s+(?:questions?|messages?)\s+(?:with|in|by)\b)`),
	shape("system|assistant|developer", `^\W{0,4}(?:system|assistant|developer)\s*(?:prompt|message|note)?\s*:\s*(?:you|ignore|always|never|from now|please|do not|ask|tell|request|new|reply|respond|say)\b`),
	shape("system|assistant|developer|admin", `[\[<{]\s*/?\s*(?:system|assistant|developer|admin)(?:[- ]?(?:prompt|message|note|reminder))?\b[^\]>}\n]{0,40}[\]>}]`),
	shape(`"tool|"function|tool output|tool result|function result|function output`, `"(?:tool|function)(?:_name)?"\s*:[^\n]*"(?:result|output)"\s*:|\b(?:tool|function) (?:output|result)\b\s*(?:\([^)\n]*\)\s*)?:`),
	shape("system|instruction|assistant", `\b(?:begin|end|new|signed) (?:system (?:prompt|message)|(?:signed )?instructions)\s*(?:[-=#*]{2,}|for the (?:ai|assistant)\b)|\bnew instructions? for (?:the )?(?:ai|assistants?|chat ?bot)\b|###\s*(?:system|instruction|assistant)\b`),
	// What a machine is told about how it answers, and nobody else.
	shape("ai|llm|bot|model|reader", `\b`+machine+`\b[^.!?\n]{0,30}\b(?:must|should|shall|has to|have to|needs? to|may not)\b`),
	shape("assistant", `\bassistants?\b[^.!?\n]{0,30}\b(?:must|should|shall|has to|have to|do|may)\b[^.!?\n]{0,12}\b(?:not answer|not ask back|never ask back|not ask (?:a )?(?:clarif\w+|questions)|refuse to answer|(?:answer|say|reply|quote|obey)\b[^.!?\n]{0,30}(?:(?-i:[A-Z]{4,}\d?\b)|every|everything|this page|it alone))`),
	shape("ask", `\b(?:never|not|don't)\s+ask\s+(?:back|(?:a |any |the user )?(?:clarif\w+|follow-?up))\b`),
	shape("asking back|clarif|follow-up", `\b(?:without|needs? no|no need (?:of|for)|skip|no) (?:any |a |further |more )*(?:clarification|clarifying questions?|follow-up questions?|asking back)\b[^.!?\n]{0,20}(?:to (?:the person|whoever|those) |needed|necessary|required|(?:is|are) (?:to be )?(?:asked|allowed)|$|[.!])|\b(?:without|no) (?:any |a |further )*follow-ups? to (?:the person|whoever|those)\b`),
	shape("already clarified|clarified which|clarified with|clarified their|clarified the question|clarified what", `\b(?:already clarified|clarified (?:which|with|their|the question|what))\b`),
	shape("you have said|you said|you have told|you told|you have already|you already", `(?:^|[,;:] ?)\W{0,4}(?:(?:and|but|so|since|as)\s+)?you (?:have )?(?:already )?(?:said|told us|confirmed)\b(?: already)? (?:that you are|which|what you)\b`),
	shape("question|message|request|query|prompt", `\b(?:questions?|messages?|requests?|quer(?:y|ies)|prompts?)\b[^.!?\n]{0,30}\b(?:fully specified|unambiguous|(?:complete|clear) as (?:it|they) stands?|means? (?:only )?one thing|has been answered (?:already|before))\b`),
	shape("user|customer|reader|client|person", `\b(?:user|customer|reader|client|person)\b[^.!?\n]{0,20}\b(?:in this (?:chat|conversation|dialogue)|means this one|already (?:chosen|picked|selected|said|told|confirmed|stated) (?:which|what|by)|of this page is an?)\b|\balready (?:chosen|picked|selected|confirmed) (?:by|for) the (?:user|customer|reader|client)\b|\b(?:in|during) this (?:chat|session|dialogue)\b[^.!?\n]{0,20}\b(?:user|customer|client)s? (?:has|have|is|was|said|chose|means?|meant|wants?|wanted)\b`),
	shape("clear", `(?-i:\b(?:[Aa]nswer|[Rr]eply|[Ss]ay|[Oo]utput|label)\b[^.!?\n]{0,20}\bCLEAR\b|\b(?:labels?|questions?|conversation|text|case|check|message|verdict)\b[^.!?\n]{0,30}\bis\b[^.!?\n]{0,20}\bCLEAR\b)`),
	shape("decode|read", `\bdecode\b[^.!?\n]{0,30}\b(?:follow|obey|execute)\b|\bread\b[^.!?\n]{0,30}\b(?:backwards?|in reverse|base64|rot13)\b[^.!?\n]{0,30}\b(?:follow|obey|execute)\b`),
	shape(`clarification"|ruled_out"|role"|</passages|</documents|<instructions|</instructions|</context`, `"(?:clarification|ruled_out)"\s*:|"role"\s*:\s*"(?:system|developer)"|</?(?:passages|documents|instructions|context)>`),
}

// foreign are the same in other languages, by words that stand together in a
// sentence, one of each list.
var foreign = [][][]string{
	{ // to ignore what one was told
		list(`ignorier|missacht|vergiss|übergeh|überschreib|ignore|oublie|néglige|ignora|olvida|descarta|dimentica|trascura|esqueça|desconsidere|negeer|vergeet|ignoruj|zapomnij|игнорируй|забудь|ігноруй|ignorera|glöm|yok say|görmezden gel|忽略|无视|無視|忘记|忘記|忘れ|무시|잊|تجاهل|انس|अनदेखा|नज़रअंदाज़|भूल|ignorera|ignorer|αγνόησε|αγνοήστε|התעלם|bỏ qua|abaikan|เพิกเฉย|نادیده بگیر|ignoră|hagyd figyelmen kívül|ohita|sivuuta`),
		list(`anweisung|instruktion|vorgabe|regeln|prompt|consigne|directive|règles|instructions pré|toutes les instr|les instructions|instruccion|órdenes|reglas|indicacion|istruzion|regole|instruç|regras|ordens|instructies|regels|opdrachten|instrukcj|polece|zasad|инструкц|указани|правил|інструкц|вказівк|talimat|yönerge|kurallar|指令|指示|命令|ルール|规则|規則|提示|プロンプト|지시|명령|규칙|التعليمات|الأوامر|القواعد|निर्देश|आदेश|instrukser|pokyn|οδηγίες|εντολές|הוראות|hướng dẫn|chỉ dẫn|instruksi|perintah|คำสั่ง|دستورالعمل|instrucțiun|utasítás|ohje`),
	},
	{ // to say nothing but what follows
		list(`antworte nur|antworte ausschließlich|antworte nur noch|réponds uniquement|réponds seulement|responde solamente|responde sólo|responde solo|responde únicamente|rispondi solo|rispondi soltanto|responda apenas|responda somente|zeg alleen|antwoord alleen|odpowiedz tylko|отвечай только|відповідай лише|只回答|だけ答え`),
	},
	{ // to be somebody else
		list(`du bist jetzt ein|du bist nun ein|du bist ab sofort|tu es maintenant un|ahora eres un|ora sei un|agora você é|je bent nu een|jesteś teraz|ты теперь|ти тепер|你现在是|あなたは今から`),
	},
	{ // to ask back no more
		list(`asistente: nunca|assistente: mai|assistente: nunca|asystent: nigdy|ассистент: никогда`),
	},
	{ // to ask the user for a secret
		list(`frag|bitte|verlang|demande|pregunt|pide|pida|solicit|chied|peça|pergunte|vraag|poproś|zapytaj|спроси|попроси|запроси|запитай|iste|sor|索要|询问|要求|尋ね|聞い|물어|요청|اطلب|اسأل|पूछ|मांग`),
		list(`nutzer|benutzer|anwender|kunden|utilisateur|client|usuario|cliente|utente|usuário|gebruiker|klant|użytkownik|пользовател|користувач|kullanıcı|用户|用戶|ユーザー|사용자|المستخدم|उपयोगकर्ता`),
		list(`passwor|kennwort| pin|kreditkarte|kartennummer|mot de passe|numéro de carte|numéro de sa carte|contraseña|clave|tarjeta|parola|senha|cartão|wachtwoord|hasł|numer karty|парол|номер карты|şifre|密码|密碼|パスワード|비밀번호|كلمة المرور|كلمة السر|पासवर्ड`),
	},
}

// unasked are orders to ask nothing, in other languages.
var unasked = list(`keine rückfrage|rückfrage ist nicht nötig|rückfragen sind nicht nötig|ne pose pas de question|ne posez pas de question|no hagas más preguntas|no hagas preguntas|non fare domande|não faça perguntas|stel geen vragen|nie zadawaj pytań|не задавай вопросов|не задавайте вопросов|не став запитань|soru sorma|不要再提问|不要提问|不要追问|质问しないで|質問しないで|질문하지 마|لا تسأل المستخدم|सवाल मत पूछ`)

func list(words string) []string { return strings.Split(words, "|") }

// Secrets gives the words of a text that name what nobody is asked for in a chat:
// a password, a card's number, in several languages.
func Secrets(text string) []string { return secret.FindAllString(Visible(text), -1) }

var secret = regexp.MustCompile(`(?i)\b(?:passwords?|passphrases?|passcodes?|credentials?|card numbers?|cvv|iban|seed phrases?|api keys?|(?:your|the) pins?|one-time codes?|security codes?)\b` +
	`|passwort|kennwort|kartennummer|mot de passe|numéro de (?:la |votre )?carte|contraseña|senha|wachtwoord|hasł[oa]|парол|şifre|密码|密碼|パスワード|비밀번호|كلمة المرور|كلمة السر|पासवर्ड`)

// about matches questions about such text, which may be answered with it.
var about = regexp.MustCompile(`(?i)prompt injection|jailbreak|system prompt|\bignore (?:previous|prior|your|all)\b[^.!?]{0,20}\binstructions?\b|chat template|\[INST\]|<\|`)

// AboutCommands reports whether a question is about text that speaks to
// assistants, so that it may be answered with it.
func AboutCommands(question string) bool { return about.MatchString(question) }

var (
	// negated matches what forbids the request instead of making it.
	negated = regexp.MustCompile(`(?i)\b(?:never|not|don't|doesn't|won't|cannot|can't|no one|nobody|mustn't)\b[^.!?\n]{0,30}$`)
	// denied matches the same in other languages, anywhere in the sentence.
	denied = regexp.MustCompile(`(?i)(?:^|\P{L})(?:nie|niemals|nicht|kein\p{L}*|jamais|ne|pas|nunca|no|não|mai|non|nooit|niet|nigdy|никогда|не|ніколи|asla)(?:\P{L}|$)|不要|不会|切勿|ません|않|لا |नहीं`)
)

// Commands reports whether a sentence tries to give orders to the assistant.
// Letters that look like others, and words that are spelled out with spaces or
// hidden characters, are read as a person reads them.
func Commands(sentence string) bool {
	s := Visible(sentence)
	if HasMarks(s) || matches(s) {
		return true
	}
	f := folded(s)
	return f != s && matches(f)
}

func matches(s string) bool {
	low := strings.ToLower(s)
	for _, c := range commands {
		if !holdsOne(low, c.words) {
			continue
		}
		if m := c.shape.FindStringIndex(s); m != nil && !negated.MatchString(s[:m[0]]) {
			return true
		}
	}
	if holdsOne(low, unasked) {
		return true
	}
	for _, lists := range foreign {
		if !slices.ContainsFunc(lists, func(words []string) bool { return !holdsOne(low, words) }) {
			return !denied.MatchString(low)
		}
	}
	return false
}

func holdsOne(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// folded writes a text in plain letters and words, as it is meant to be read.
func folded(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) {
		s = strings.Map(func(r rune) rune {
			switch {
			case unicode.Is(unicode.Mn, r), clinging(r):
				return -1
			case r >= '🇦' && r <= '🇿': // the letters that flags are written with
				return 'a' + r - '🇦'
			case r >= '🅐' && r <= '🅩', r >= '🅰' && r <= '🆉': // white on black
				return 'a' + (r-'🅐')%32
			case likeLatin[r] != 0:
				return likeLatin[r]
			}
			return r
		}, norm.NFKD.String(s))
	}
	s = unspelled(s)
	if strings.Contains(s, "_") || strings.ContainsFunc(s, unicode.IsUpper) {
		s = strings.ReplaceAll(camel.ReplaceAllString(s, "$1 $2"), "_", " ")
	}
	var out strings.Builder
	at := 0
	for start, end := range words(s) {
		if meant := unscrambled(s[start:end]); meant != "" {
			out.WriteString(s[at:start])
			out.WriteString(meant)
			at = end
		}
	}
	if at == 0 {
		return s
	}
	return out.String() + s[at:]
}

// camel matches where a word begins inside of another: "harmlessIgnore".
var camel = regexp.MustCompile(`([a-z])([A-Z])`)

// unspelled joins words that are written letter by letter, with one kind of mark
// between the letters.
func unspelled(s string) string {
	alone, before := 0, 0 // letters without another beside them, and the letters just before
	for _, r := range s + " " {
		if unicode.IsLetter(r) {
			before++
			continue
		}
		if before == 1 {
			alone++
		}
		before = 0
	}
	if alone < 4 {
		return s
	}
	for _, m := range spelled {
		if strings.Count(s, m.between) >= 3 {
			s = m.word.ReplaceAllStringFunc(s, func(word string) string { return strings.ReplaceAll(word, m.between, "") })
		}
	}
	return s
}

// spelling is what stands between the letters of a word, and such words.
type spelling struct {
	between string
	word    *regexp.Regexp
}

var spelled = func() (out []spelling) {
	for _, between := range []string{" ", ".", "-", "·", "•", "*", "|", "/", "_"} {
		out = append(out, spelling{between, regexp.MustCompile(`\b\p{L}(?:` + regexp.QuoteMeta(between) + `\p{L}\b){3,}`)})
	}
	return out
}()

// words yields where the words of ASCII letters are, with the digits and signs
// that pass for letters.
func words(s string) func(yield func(start, end int) bool) {
	in := func(c byte) bool {
		return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '@' || c == '$'
	}
	return func(yield func(start, end int) bool) {
		for i := 0; i < len(s); i++ {
			start := i
			for i < len(s) && in(s[i]) {
				i++
			}
			if i > start && !yield(start, i) {
				return
			}
		}
	}
}

// unscrambled gives the trigger that a word stands for whose inner letters have
// changed places or have digits in their stead ("ignroe", "pa55w0rd"), or "".
func unscrambled(word string) string {
	if len(word) < 6 || len(word) > len("instructions") {
		return ""
	}
	var b [len("instructions")]byte
	letters := b[:copy(b[:], word)]
	for i, c := range letters {
		if at := strings.IndexByte("013457@$", c); at >= 0 {
			c = "oieastas"[at]
		}
		letters[i] = c | 0x20
	}
	if slices.Sort(letters[1 : len(letters)-1]); triggers[string(letters)] == word {
		return ""
	}
	return triggers[string(letters)]
}

// triggers are words by which a command is told, by their letters, the inner ones
// in order.
var triggers = func() map[string]string {
	m := map[string]string{}
	for w := range strings.FieldsSeq("ignore disregard forget override bypass previous instruction instructions prompt guideline guidelines directive directives assistant assistants chatbot system password passwords passphrase credential secret reveal developer") {
		letters := []byte(w)
		slices.Sort(letters[1 : len(letters)-1])
		m[string(letters)] = w
	}
	return m
}()

// likeLatin are letters of other alphabets that look like Latin ones.
var likeLatin = func() map[rune]rune {
	m := map[rune]rune{}
	other := []rune("аеорсхуіѕјһԁɡкмтнвАЕОРСХУІЅЈКМТНВαεορνικτυωσχΑΕΟΡΝΙΚΤΥΧΒΗΜΖոօսհցքяᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ")
	latin := []rune("aeopcxyisjhdgkmthbAEOPCXYISJKMTHBaeopviktuwsxAEOPNIKTYXBHMZnouhgprabcdefghijklmnoprstuvwyz")
	for i, r := range other {
		m[r] = latin[i]
	}
	return m
}()

// WithoutCommands gives a text without the sentences that speak to the
// assistant. It is the text itself if there are none.
func WithoutCommands(text string) string {
	var kept strings.Builder
	at, end, cut := 0, 0, false
	for line := range strings.Lines(text) {
		for from, to := range Sentences(line) {
			s := line[from:to]
			end += len(s)
			if !Commands(strings.TrimSpace(s)) {
				continue
			}
			cut = true
			kept.WriteString(text[at : end-len(s)])
			if strings.HasSuffix(s, "\n") {
				kept.WriteByte('\n')
			}
			at = end
		}
	}
	if !cut {
		return text
	}
	kept.WriteString(text[at:])
	return kept.String()
}

// demands match a name that would have the assistant ask for a secret, if it
// were offered as a choice.
var demands = regexp.MustCompile(`(?i)\b(?:tell|give|send|type|enter|say|share|what is|what's)\b.*` + secrets)

// Demands reports whether a name, offered as a choice, would ask for a secret.
func Demands(name string) bool { return demands.MatchString(folded(Visible(name))) }

// clause matches where a heading falls into parts that can be left out.
var clause = regexp.MustCompile(`\s*(?:[:;,(.!?{\[<"]| [-–—|/] )\s*`)

// Heading gives headings, joined by " > ", without what in them speaks to the
// assistant or asks for a secret: they tell passages apart and name what can be
// chosen.
func Heading(s string) string {
	s = WithoutMarks(Visible(s))
	if !misleads(s) {
		return s
	}
	var kept []string
	for part := range strings.SplitSeq(s, " > ") {
		if part = honest(part); part != "" {
			kept = append(kept, part)
		}
	}
	if s = strings.Join(kept, " > "); misleads(s) {
		return ""
	}
	return s
}

func misleads(s string) bool { return Commands(s) || Demands(s) || steers.MatchString(s) }

// steers matches a heading that says which choice is the user's, or which one is
// to be taken.
var steers = regexp.MustCompile(`(?i)\b(?:users?|customers?|readers?|clients?) (?:means?|meant|wants?|chose|has chosen|picked|prefers?) th(?:is|at)(?: one)?\s*(?:$|[^\s\w])|\bthe assistant (?:must|should|shall|has to|have to) (?:take|pick|choose|give|say)\b`)

// honest gives the longest start of a heading that does not mislead.
func honest(heading string) string {
	if !misleads(heading) {
		return heading
	}
	for _, m := range slices.Backward(clause.FindAllStringIndex(heading, -1)) {
		start := heading[:m[0]]
		if i := strings.LastIndexAny(start, "({[<"); i >= 0 && !strings.ContainsAny(start[i:], ")}]>") {
			start = start[:i]
		}
		if start = strings.TrimSpace(start); start != "" && !misleads(start) {
			return start
		}
	}
	return ""
}
