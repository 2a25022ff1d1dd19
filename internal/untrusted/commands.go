package untrusted

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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
	shape("system|instruction|assistant", `\b(?:begin|end|new|signed) (?:system (?:prompt|message)|(?:signed )?instructions)\s*(?:[-=#*]{2,}|for the (?:ai|assistant)\b)|\bnew instructions? for (?:the )?(?:ai|assistants?|chat ?bot)\b|###\s*(?:system|instruction|assistant)\b`),
	// What a machine is told about how it answers, and nobody else.
	shape("ai|llm|bot|model|reader", `\b`+machine+`\b[^.!?\n]{0,30}\b(?:must|should|shall|has to|have to|needs? to|may not)\b`),
	shape("assistant", `\bassistants?\b[^.!?\n]{0,30}\b(?:must|should|shall|has to|have to|do|may)\b[^.!?\n]{0,12}\b(?:not answer|not ask back|never ask back|not ask (?:a )?(?:clarif\w+|questions)|refuse to answer|(?:answer|say|reply|quote|obey)\b[^.!?\n]{0,30}(?:(?-i:[A-Z]{4,}\d?\b)|every|everything|this page|it alone))`),
	shape("ask", `\b(?:never|not|don't)\s+ask\s+(?:back|(?:a |any |the user )?(?:clarif\w+|follow-?up))\b`),
	shape("clear", `(?-i:\b(?:[Aa]nswer|[Rr]eply|[Ss]ay|is|[Oo]utput|label)\b[^.!?\n]{0,20}\bCLEAR\b)`),
	shape("decode|read", `\b(?:decode|read)\b[^.!?\n]{0,30}\b(?:follow|obey|execute)\b`),
	shape(`clarification"|ruled_out"|role"|</passages|</documents|<instructions|</instructions|</context`, `"(?:clarification|ruled_out)"\s*:|"role"\s*:\s*"(?:system|developer)"|</?(?:passages|documents|instructions|context)>`),
}

// foreign are the same in other languages, by words that stand together in a
// sentence, one of each list.
var foreign = [][][]string{
	{ // to ignore what one was told
		list(`ignorier|missacht|vergiss|übergeh|überschreib|ignore|oublie|néglige|ignora|olvida|descarta|dimentica|trascura|esqueça|desconsidere|negeer|vergeet|ignoruj|zapomnij|игнорируй|забудь|ігноруй|ignorera|glöm|yok say|görmezden gel|忽略|无视|無視|忘记|忘記|忘れ|무시|잊|تجاهل|انس|अनदेखा|नज़रअंदाज़|भूल`),
		list(`anweisung|instruktion|vorgabe|regeln|prompt|consigne|directive|règles|instructions pré|toutes les instr|les instructions|instruccion|órdenes|reglas|indicacion|istruzion|regole|instruç|regras|ordens|instructies|regels|opdrachten|instrukcj|polece|zasad|инструкц|указани|правил|інструкц|вказівк|talimat|yönerge|kurallar|指令|指示|命令|ルール|规则|規則|提示|プロンプト|지시|명령|규칙|التعليمات|الأوامر|القواعد|निर्देश|आदेश`),
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

// spelled matches a word that is written letter by letter.
var spelled = regexp.MustCompile(`(?:^|\s)\p{L}(?: \p{L}\b){3,}`)

// folded writes a text in plain letters, as it looks.
func folded(s string) string {
	ascii := !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
	if !ascii {
		s = strings.Map(func(r rune) rune {
			switch {
			case unicode.Is(unicode.Mn, r), r == '\u200c', r == '\u200d':
				return -1
			case likeLatin[r] != 0:
				return likeLatin[r]
			}
			return r
		}, norm.NFKD.String(s))
	}
	return unspelled(s)
}

// unspelled joins words that are written letter by letter.
func unspelled(s string) string {
	single := 0 // letters with one space between
	for word := range strings.FieldsSeq(s) {
		if single++; len(word) > utf8.UTFMax || utf8.RuneCountInString(word) > 1 {
			single = 0
		}
		if single == 4 {
			return spelled.ReplaceAllStringFunc(s, func(word string) string {
				return " " + strings.ReplaceAll(strings.TrimSpace(word), " ", "")
			})
		}
	}
	return s
}

// likeLatin are letters of other alphabets that look like Latin ones.
var likeLatin = func() map[rune]rune {
	m := map[rune]rune{}
	other := []rune("аеорсхуіѕјһԁɡкмтнвАЕОРСХУІЅЈКМТНВαεορνικτυωσχΑΕΟΡΝΙΚΤΥΧΒΗΜΖ")
	latin := []rune("aeopcxyisjhdgkmthbAEOPCXYISJKMTHBaeopviktuwsxAEOPNIKTYXBHMZ")
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

func misleads(s string) bool { return Commands(s) || Demands(s) }

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
