package conversation

import "strings"

// phrase names one of the few sentences that this package says itself.
type phrase int

const (
	sayCancel phrase = iota
	sayAgain
	sayFewer     // how many options there are
	sayWhich     // the options
	sayOptions   // the options
	sayOpen      // the clarification
	sayOpenWords // the unclear words, the clarification
	sayNot
	sayAnd
	sayOr
)

var sayings = map[string][]string{
	"en": {
		"All right, I'll leave that question.",
		"I could not make out an answer.",
		"There are only %d to choose from.",
		"Which one do you mean: %s?",
		"The answer differs between these: %s. Which one applies to you? If you don't know, say so, and I'll answer with an assumption.",
		"I can't tell yet what exactly you are asking about. %s",
		"I can't tell what “%s” refers to. %s",
		"not:", "and", "or",
	},
	"de": {
		"In Ordnung, ich lasse die Frage fallen.",
		"Das habe ich nicht verstanden.",
		"Es stehen nur %d zur Wahl.",
		"Was davon ist gemeint: %s?",
		"Die Antwort ist hier verschieden: %s. Was trifft zu? Wenn Sie es nicht wissen, sagen Sie es; dann antworte ich mit einer Annahme.",
		"Mir ist noch nicht klar, worum genau es geht. %s",
		"Mir ist nicht klar, worauf sich „%s“ bezieht. %s",
		"nicht:", "und", "oder",
	},
	"fr": {
		"D'accord, je laisse cette question.",
		"Je n'ai pas compris votre réponse.",
		"Il n'y en a que %d au choix.",
		"Lequel voulez-vous dire : %s ?",
		"La réponse n'est pas la même pour chaque cas : %s. Lequel est le vôtre ? Si vous ne savez pas, dites-le et je répondrai avec une hypothèse.",
		"Je ne sais pas encore de quoi il s'agit exactement. %s",
		"Je ne sais pas à quoi « %s » se rapporte. %s",
		"pas :", "et", "ou",
	},
	"es": {
		"De acuerdo, dejo esa pregunta.",
		"No he entendido la respuesta.",
		"Solo hay %d para elegir.",
		"¿A cuál se refiere: %s?",
		"La respuesta no es la misma en cada caso: %s. ¿Cuál es el suyo? Si no lo sabe, dígalo y responderé con una suposición.",
		"Todavía no sé a qué se refiere exactamente. %s",
		"No sé a qué se refiere «%s». %s",
		"no:", "y", "o",
	},
	"zh": {
		"好的，这个问题就先不管了。",
		"我没有看懂您的回复。",
		"只有%d个选项。",
		"您指的是哪一个：%s？",
		"下面几种情况答案不同：%s。您是哪一种？如果不确定，请直接说，我会按假设来回答。",
		"我还不清楚您具体问的是什么。%s",
		"我不清楚“%s”指的是什么。%s",
		"不是：", "和", "还是",
	},
	"hi": {
		"ठीक है, मैं यह सवाल छोड़ देता हूँ।",
		"मैं आपका जवाब समझ नहीं पाया।",
		"चुनने के लिए केवल %d विकल्प हैं।",
		"आपका मतलब किससे है: %s?",
		"इनके लिए जवाब अलग-अलग है: %s। आप पर कौन सा लागू होता है? अगर पता नहीं है, तो बता दें, मैं एक अनुमान के साथ जवाब दूँगा।",
		"मुझे अभी साफ़ नहीं है कि आप ठीक-ठीक क्या पूछ रहे हैं। %s",
		"मुझे साफ़ नहीं है कि “%s” से आपका क्या मतलब है। %s",
		"नहीं:", "और", "या",
	},
}

func say(lang string, p phrase) string { return sayings[lang][p] }

// join lists texts as a sentence does: "a, b and c".
func join(lang string, texts []string, and bool) string {
	word := sayOr
	if and {
		word = sayAnd
	}
	sep, last := ", ", " "+say(lang, word)+" "
	if lang == "zh" {
		sep, last = "、", say(lang, word)
	}
	if n := len(texts); n > 1 {
		return strings.Join(texts[:n-1], sep) + last + texts[n-1]
	}
	return strings.Join(texts, "")
}
