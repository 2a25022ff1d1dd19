package conversation

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Words that say nothing about what a text is about, by language: articles,
// pronouns, prepositions, auxiliaries, question words, politeness. A word that
// names things in another of the languages is left out ("plus", "die" as a verb
// is rarer than as an article).
var stopTable = map[string]string{
	"en": "a an the this that these those it its itself i im ive id ill me my mine we us our ours you your yours youre he him his she her hers they them their theirs one ones and or but if so as of in on at to for from by with without about into onto over than then there here is isnt are arent was were be been being am do does did doesnt dont didnt have has had havent hasnt will would wouldnt can cant could couldnt shall should may might must what whats which who whom whose when where wheres why how hows much many yes no not please thanks & thank just also too only very really some any all both each every other another such get got go going want need like mean meant say said tell know think guess ok okay well oh hi hello hey sorry up out off again still now lets whatever either neither option choice answer question kind sort type thing things actually by let something anything take choose pick use using see give",
	"de": "der die das den dem des ein eine einen einem einer eines und oder aber wenn so als von in im an am zu zum zur fuer fur aus bei mit ohne per ueber auf um nach vor es ist sind war waren sein bin bist hat haben habe hatte wird werden wurde kann koennen koennte soll sollte muss muessen darf will wollen ich mich mir mein meine meinen meinem meiner du dich dir dein deine er sie ihn ihm ihr ihre wir uns unser unsere was welche welcher welches wer wen wem wann wo wohin warum wieso wie viel viele ja nein nicht kein keine bitte danke auch nur sehr doch mal noch schon denn dann da dort hier dieser diese dieses jener gibt geht meine meinen meint glaube denke moechte option frage man sich",
	"fr": "le la les l un une des du de d et ou mais si a au aux en dans sur sous pour par avec sans ce cet cette ces c ca cela il elle on ils elles je j me m moi mon ma mes tu te t toi ton ta tes nous notre nos vous votre vos leur leurs se s son sa ses est sont etait etre suis ai as avez ont avoir fait faire peut peux puis pouvez dois doit faut qui que qu quoi quel quelle quels quelles quand ou pourquoi comment combien oui non pas ne n s y merci aussi tres alors donc bien option question veux voudrais",
	"es": "el la los las un una unos unas lo de del al a en y o u e pero si como que por para con sin sobre es son era ser soy esta estan estar hay ha he han tiene tengo tener puede puedo pueden debe debo este esta esto ese esa eso aquel yo me mi mis tu te ti su sus nos nuestro nuestra usted ustedes ellos ellas se le les cual cuales cuando donde quien cuanto cuanta cuantos cuantas si no muy tambien ya gracias favor opcion pregunta quiero quisiera",
	"zh": "的 了 是 在 我 你 您 他 她 它 们 这 那 个 和 与 或 也 就 都 吗 呢 吧 啊 么 什 怎 哪 谁 几 多 少 要 想 请 把 被 给 有 没 不 很 会 能 可 以 对 为 从 到 用 种 些 里 上 下 呀 嘛 得 地 着 过 问 说",
	"hi": "hai hain ka ki ke ko mein se wala wali wale vala vali tha thi liye mera meri mujhe main hum aap yeh ye woh wo bhi toh to aur ya का की के को में से पर ने है हैं था थी थे हो होता होती होते होगा होगी और या लेकिन यह ये वह वो वे इस उस इन उन मैं मुझे मेरा मेरी मेरे हम हमें हमारा हमारी आप आपका आपकी आपके तुम क्या कौन कौनसा कौनसी कब कहां क्यों कैसे कितना कितनी कितने किस नहीं हां जी ही भी तो कर करना करने करें किया रहा रही रहे सकता सकती सकते चाहिए लिए वाला वाली वाले बारे एक कृपया दिया दी दिए लिया ली लिए गया गई",
}

var stopWords = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for _, list := range stopTable {
		for w := range strings.FieldsSeq(list) {
			m[plain(w)] = true
		}
	}
	return m
})

// IsStopWord says whether a word, in one of the languages that this package
// knows, says nothing about what a text is about.
func IsStopWord(word string) bool { return stopWords()[plain(word)] }

// content gives the words of ws that say what the text is about.
func content(ws []string) []string {
	var c []string
	stop := stopWords()
	for _, w := range ws {
		if stop[w] {
			continue
		}
		if r, size := utf8.DecodeRuneInString(w); size == len(w) && r < 0x80 && unicode.IsLetter(r) {
			continue // a single letter
		}
		c = append(c, w)
	}
	return c
}

// language guesses the language of a dialogue: "en", "de", "fr", "es", "zh" or
// "hi". The first text counts before the second; English if neither tells.
func language(texts ...string) string {
	for _, t := range texts {
		han, nagari, latin := 0, 0, 0
		for _, r := range cut(t, readRunes) {
			switch {
			case unicode.Is(unicode.Han, r):
				han++
			case unicode.Is(unicode.Devanagari, r):
				nagari++
			case unicode.IsLetter(r):
				latin++
			}
		}
		switch {
		case han > 0 && han*4 >= latin:
			return "zh"
		case nagari > 0 && nagari*2 >= latin:
			return "hi"
		}
		count := map[string]int{}
		for _, w := range plains(cut(t, readRunes)) {
			for _, lang := range latinLanguages {
				if stopOf(lang)[w] {
					count[lang]++
				}
			}
		}
		best := ""
		for _, lang := range latinLanguages {
			if n := count[lang]; n > 0 && (best == "" || n > count[best]) {
				best = lang
			}
		}
		if best != "" {
			return best
		}
	}
	return "en"
}

var latinLanguages = []string{"en", "de", "fr", "es"}

var stopByLanguage = sync.OnceValue(func() map[string]map[string]bool {
	m := map[string]map[string]bool{}
	for lang, list := range stopTable {
		m[lang] = map[string]bool{}
		for w := range strings.FieldsSeq(list) {
			m[lang][plain(w)] = true
		}
	}
	return m
})

func stopOf(lang string) map[string]bool { return stopByLanguage()[lang] }
