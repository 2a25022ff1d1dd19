package generation

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// stop holds English words that carry no content of their own.
var stop = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`a an the and or but if so than then that this these those it its it's he she they them their
		his her him i i'm i've i'd me my mine we us our you your yours is are was were be been being am do does did doing done
		have has had having can could may might must shall should will would won't don't doesn't didn't can't isn't aren't
		of in on at to for from by with about into onto over under as per via out up down off again there here just also too
		very really not no nor any some all each every both either such only own same other another what which who whom whose
		when where why how much many long often far there's what's who's how's where's when's please thanks thank hi hello hey
		ok okay need want know tell get got give let say said one does anyone someone something anything like still yet ever
		now even because while during after before between within without until im ive whats hows ur u pls plz`) {
		m[w] = true
	}
	return m
}()

// words gives the words of s in lower case, in order. Scripts without spaces
// give overlapping pairs of runes.
func words(s string) []string {
	var out []string
	var prev rune
	start := -1
	end := func(i int) {
		if start >= 0 {
			out = append(out, strings.Trim(strings.ToLower(s[start:i]), ".'’-_/"))
			start = -1
		}
	}
	for i, r := range s {
		switch {
		case spaceless(r):
			end(i)
			if prev != 0 {
				out = append(out, string([]rune{prev, r}))
			}
			prev = r
			continue
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			if start < 0 {
				start = i
			}
		case start >= 0 && (r == '.' || r == '-' || r == '_' || r == '\'' || r == '’' || r == '/') && joins(s[:i], s[i+utf8.RuneLen(r):], r):
		default:
			end(i)
		}
		prev = 0
	}
	end(len(s))
	return out
}

// joins says whether a mark between two pieces belongs to one word: 2.4.1,
// ERR-5172, don't; but not "end.Next" or "and/or".
func joins(before, after string, mark rune) bool {
	a, _ := utf8.DecodeLastRuneInString(before)
	b, _ := utf8.DecodeRuneInString(after)
	if !unicode.IsLetter(b) && !unicode.IsDigit(b) {
		return false
	}
	switch mark {
	case '\'', '’', '_':
		return true
	case '-':
		return unicode.IsDigit(a) || unicode.IsDigit(b)
	}
	return unicode.IsDigit(a) && unicode.IsDigit(b)
}

func spaceless(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// stem cuts the commonest English endings, so that "charges", "charged" and
// "charging" meet. It need not give words, and leaves what holds a digit alone.
func stem(w string) string {
	if len(w) < 4 || strings.ContainsAny(w, "0123456789") {
		return w
	}
	w = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(w, "'s"), "’s"), "'")
	for _, e := range []struct{ end, put string }{
		{"ies", "y"}, {"ied", "y"}, {"sses", "ss"}, {"ations", ""}, {"ation", ""}, {"ions", ""}, {"ion", ""}, {"ments", ""}, {"ment", ""},
		{"ings", ""}, {"ing", ""}, {"edly", ""}, {"ed", ""}, {"ers", ""}, {"er", ""}, {"ly", ""}, {"es", ""}, {"s", ""}, {"e", ""}, {"al", ""},
	} {
		if base, ok := strings.CutSuffix(w, e.end); ok && len(base)+len(e.put) >= 3 && !(e.end == "s" && strings.HasSuffix(base, "s")) {
			w = base + e.put
			break
		}
	}
	if n := len(w); n > 3 && w[n-1] == w[n-2] && w[n-1] != 's' && w[n-1] != 'l' {
		w = w[:n-1]
	}
	return strings.TrimSuffix(w, "e")
}

// content gives the stems of the words that carry content, each once.
func content(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range words(s) {
		if w != "" && !stop[w] {
			m[stem(w)] = true
		}
	}
	return m
}

// want is what kind of answer a question asks for.
type want uint8

const (
	wantAny want = iota
	wantMoney
	wantAmount
	wantDuration
	wantTime
	wantPlace
	wantPerson
	wantVerdict // yes or no, under which conditions
	wantSteps
	wantReason
)

var wants = []struct {
	want want
	re   *regexp.Regexp
}{
	{wantSteps, regexp.MustCompile(`(?i)\bhow (?:do|can|should|would|to|does one)\b|\bsteps?\b|\bprocedure\b|\binstructions for\b`)},
	{wantDuration, regexp.MustCompile(`(?i)\bhow (?:long|soon|quick(?:ly)?|fast|many (?:days|weeks|months|years|hours|minutes))\b|\bduration\b`)},
	{wantMoney, regexp.MustCompile(`(?i)\bhow much (?:does|do|is|are|will|would|to|for|it|money|can i claim|they|i|we|you)\b|\b(?:price|cost|costs|fee|fees|charge|pay|rate|tariff|fare|deposit|fine|penalty|cheaper|refund)\b`)},
	{wantTime, regexp.MustCompile(`(?i)\bwhen\b|\bwhat (?:time|date|day|year)\b|\b(?:which|wich) (?:day|date|month|year)\b|\bdeadline\b|\bopening hours\b|\bopen (?:on|at|until|till)\b|\b(?:until|till|by) when\b|\bhow often\b`)},
	{wantAmount, regexp.MustCompile(`(?i)\bhow (?:many|much|far|big|heavy|high|deep|hot|old|large|wide|tall|strong|warm|cold|thick)\b|\bwhat(?:'s| is)? (?:the )?(?:max\w*|min\w*|limit|pressure|temperature|size|weight|number|percentage|share|capacity|amount|dose|age|speed)\b|\b(?:max|min|limit|percent|dose|dosage|capacity)\b`)},
	{wantPlace, regexp.MustCompile(`(?i)\bwhere\b|\bwhich (?:room|desk|office|gate|floor|building|address|menu|page)\b|\baddress\b`)},
	{wantPerson, regexp.MustCompile(`(?i)\bwho\b|\bwhom\b|\bwhose\b`)},
	{wantReason, regexp.MustCompile(`(?i)\bwhy\b|\bhow come\b|\breason\b`)},
	{wantVerdict, regexp.MustCompile(`(?i)(?:^|[,.;:!?]\s*|\b(?:and|but|so)\s+)(?:can|could|may|must|do|does|did|is|are|was|were|will|would|should|shall|has|have|am)\b|\b(?:allowed|possible|ok|okay|permitted|required|need to|included|right\?)`)},
}

func wanted(question string) want {
	for _, w := range wants {
		if w.re.MatchString(question) {
			return w.want
		}
	}
	return wantAny
}

const number = `(?:\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|ninety|hundred|thousand|half|dozen|once|twice|double)\b)`

var gives = map[want]*regexp.Regexp{
	wantMoney:    regexp.MustCompile(`(?i)[$€£¥₹\d]|\bfree\b|\bno (?:charge|fee|cost|extra)|\bwithout charge\b`),
	wantAmount:   regexp.MustCompile(`(?i)` + number + `|\bno limit\b|\bnone\b|\bunlimited\b`),
	wantDuration: regexp.MustCompile(`(?i)` + number + `\D{0,25}\b(?:second|minute|min|hour|day|night|week|month|year|season|term)s?\b|\bovernight\b|\bsame day\b|\bimmediately\b|\bat once\b|\bfor (?:ever|life)\b|\b(?:a|an) (?:second|minute|hour|day|week|month|year|fortnight)\b`),
	wantTime:     regexp.MustCompile(`(?i)\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:january|february|march|april|may|june|july|august|september|october|november|december|spring|summer|autumn|winter|noon|midnight|morning|evening|night|weekend|today|tomorrow)\b|\d{1,2}[:.]\d{2}|\b\d{1,2} ?(?:am|pm|o'clock)\b|\b(?:1[5-9]|20)\d{2}\b|\b(?:before|after|within|until|from|every|as soon as)\b|` + number + `\D{0,15}\b(?:minute|hour|day|week|month|year)s?\b`),
	wantPlace:    regexp.MustCompile(`(?i)\b(?:at|in|on|behind|under|next to|beside|near|opposite|inside|to|through|via) (?:the |our |your |a )?\pL+|\bstreet\b|\broad\b|\bfloor\b|\broom\b|\bdesk\b`),
	wantPerson:   regexp.MustCompile(`\pL+ \p{Lu}\pL+|(?i)\b(?:manager|head|director|team|office|officer|department|owner|member|doctor|nurse|clerk|board|committee|staff|holder|author|anyone|everyone|nobody|only)\b`),
	wantVerdict:  regexp.MustCompile(`(?i)\b(?:may|must|can|cannot|can't|not|isn't|aren't|doesn't|don't|won't|only|never|no|always|unless|except|allowed|permitted|possible|free|included|required|provided|whether|also|nor|neither|any|every|without)\b`),
	wantSteps:    regexp.MustCompile(`(?i)(?:^|[,.;:]\s*|\b(?:then|and|first|next)\s+)(?:press|hold|open|close|click|choose|select|go|turn|remove|insert|enter|type|send|call|write|fill|use|set|put|take|pull|push|switch|unscrew|rinse|check|add|log|sign|tap|run|install|start|stop|wait|bring|apply|ask|book|return|print|scan|download|upload|save|delete|create|move|pour|mix|drain|clean|wipe|lift|slide|plug|unplug|restart|reset|hand|present|submit|attach|register|contact)\b|\bby (?:\pL+ing|post|e-?mail|phone)\b`),
	wantReason:   regexp.MustCompile(`(?i)\b(?:because|since|as|so that|in order|due to|reason|therefore|otherwise|to avoid|to prevent)\b`),
}

// spans matches numbers that are no amount of money.
var spans = regexp.MustCompile(`(?i)\d[\d.,]*(?:[ -]?(?:to|or|and|–|-)[ -]?\d[\d.,]*)?[ -]?(?:st|nd|rd|th|seconds?|minutes?|hours?|days?|weeks?|months?|years?|working|calendar|business|km|kg|cm|mm|metres?|miles?|litres?|am|pm|%|[ap]\.m\.)\b|\b\d{1,2}[:.]\d{2}\b|\b(?:19|20)\d{2}\b`)

// several matches questions that want more than one thing: an overview, a
// list, a comparison.
var several = regexp.MustCompile(`(?i)\b(?:compare|comparison|versus|vs|difference|differences|differ|overview|list|each|options|both|all (?:the|your|of)|which (?:\w+ ){0,2}(?:are|do) |what (?:\w+ ){0,3}(?:are there|do you (?:have|offer|sell))|summar\w+|by (?:type|country|class|plan|region)|respectively|either way|kinds? of|types of|portrait|rundown|breakdown by)\b`)
