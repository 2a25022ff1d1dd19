package conversation

import (
	"strings"
	"sync"
)

// smalltalk is what people say that asks for nothing from the sources, and what
// to say to it: in each language a greeting, thanks, a goodbye, a question about
// the assistant, and an acknowledgement.
var smalltalk = []struct {
	kind  talk
	said  string
	reply string
}{
	{greets, "hi|hello|hey|hi there|hello there|hey there|good morning|good afternoon|good evening|good day|morning|evening|greetings|howdy|hiya|yo|hi all|hello everyone|hi bot|hello bot|hey bot|how are you|how are you doing|hows it going|how do you do|whats up|hello how are you|hi how are you|nice to meet you|are you there|anybody there|anyone there|is anyone there|hello again|hi again", "Hello! What would you like to know?"},
	{thanks, "thanks|thank you|thank you very much|thanks a lot|many thanks|thx|ty|cheers|much appreciated|great thanks|ok thanks|okay thanks|perfect thanks|perfect thank you|great thank you|thanks so much|thank you so much|thanks for your help|thank you for your help|thanks for the help|thanks that helped|that helped|that helps|that was helpful|very helpful thanks|very helpful thank you|thanks thats all|thats all thanks|that is all thank you|thats all|brilliant thanks|awesome thanks|cool thanks|got it thanks|understood thanks|appreciate it|i appreciate it|ta|good bot|well done|great job|nice one|super thanks|lovely thanks|lovely thank you|thats great thanks", "You're welcome."},
	{parts, "bye|goodbye|bye bye|good bye|see you|see you later|see ya|cya|good night|have a nice day|have a good day|have a great day|take care|thanks bye|thank you bye|thank you goodbye|ok bye|farewell|later|talk to you later|ttyl|have a good weekend|have a nice weekend|thanks and goodbye|bye thanks", "Goodbye!"},
	{asksWho, "who are you|what are you|what can you do|what do you do|what can i ask you|what can i ask|how can you help me|how can you help|what can you help me with|what can you help with|what are you able to do|are you a bot|are you a robot|are you human|are you a human|are you a person|are you a real person|am i talking to a bot|am i talking to a human|am i talking to a person|whats your name|what is your name|do you have a name|what do you know|what do you know about|introduce yourself|how do you work|how does this work|help|are you an ai|is this a bot", "I am an assistant that answers from the documents I was given, and says where each answer stands. If your question could mean several things, I ask first. What would you like to know?"},
	{acknowledges, "ok|okay|ok ok|all right|alright|right|i see|got it|understood|makes sense|great|perfect|cool|nice|good|fine|good to know|ah ok|oh ok|ok great|ok good|ok cool|ok perfect|that makes sense|interesting|ok got it|sounds good|noted|wow|excellent|awesome", "All right. Is there anything else you would like to know?"},
	{greets, "hallo|hi|guten tag|guten morgen|guten abend|moin|moin moin|servus|gruess gott|gruezi|gruess dich|hallo zusammen|hey|na|wie geht es dir|wie geht es ihnen|wie gehts|wie gehts dir|hallo wie geht es dir|hallo wie gehts|schoenen guten tag|guten tag zusammen|tach|mahlzeit", "Hallo! Was möchten Sie wissen?"},
	{thanks, "danke|danke schoen|dankeschoen|vielen dank|besten dank|herzlichen dank|danke sehr|danke dir|danke ihnen|tausend dank|super danke|ok danke|alles klar danke|perfekt danke|danke das wars|danke fuer die hilfe|vielen dank fuer die hilfe|vielen dank fuer ihre hilfe|danke fuer deine hilfe|prima danke|das hat geholfen|das hilft mir|danke das hilft|klasse danke|merci vielmal", "Gern geschehen."},
	{parts, "tschuess|tschuss|auf wiedersehen|ciao|bis bald|bis spaeter|bis dann|schoenen tag noch|einen schoenen tag noch|gute nacht|auf wiederhoeren|machs gut|schoenes wochenende|schoenen feierabend|danke tschuess|wiedersehen", "Auf Wiedersehen!"},
	{asksWho, "wer bist du|wer sind sie|was bist du|was kannst du|was koennen sie|was kann ich dich fragen|was kann ich fragen|was kann ich sie fragen|wie kannst du mir helfen|wie koennen sie mir helfen|wobei kannst du helfen|wobei koennen sie helfen|bist du ein bot|bist du ein roboter|bist du ein mensch|sind sie ein mensch|sind sie ein bot|wie heisst du|wie heissen sie|hilfe|was weisst du|wie funktionierst du|wie funktioniert das hier|stell dich vor", "Ich bin ein Assistent, der aus den hinterlegten Dokumenten antwortet und sagt, wo die Antwort steht. Wenn eine Frage mehreres heißen kann, frage ich zuerst nach. Was möchten Sie wissen?"},
	{acknowledges, "alles klar|verstanden|gut|sehr gut|prima|super|aha|ach so|ok verstanden|gut zu wissen|in ordnung|klar|passt|toll|ah ok|interessant|perfekt|klasse", "Alles klar. Möchten Sie noch etwas wissen?"},
	{greets, "bonjour|salut|bonsoir|coucou|bonjour a tous|bonne journee a vous aussi|ca va|comment ca va|comment allez vous|comment vas tu|salut ca va|bonjour comment allez vous|bonjour ca va|allo|hello", "Bonjour ! Que souhaitez-vous savoir ?"},
	{thanks, "merci|merci beaucoup|merci bien|merci a vous|merci a toi|un grand merci|mille mercis|ok merci|parfait merci|super merci|tres bien merci|merci pour votre aide|merci pour ton aide|merci de votre aide|c est parfait merci|d accord merci|merci c est tout|c est tout merci|genial merci", "Je vous en prie."},
	{parts, "au revoir|a bientot|a plus|a plus tard|bonne journee|bonne soiree|bonne nuit|adieu|a demain|bon week end|bye|ciao|merci au revoir|merci et au revoir|a la prochaine", "Au revoir !"},
	{asksWho, "qui es tu|qui etes vous|tu es qui|vous etes qui|que peux tu faire|que pouvez vous faire|que sais tu faire|que savez vous faire|qu est ce que tu peux faire|qu est ce que vous pouvez faire|comment peux tu m aider|comment pouvez vous m aider|tu peux faire quoi|es tu un robot|etes vous un robot|tu es un robot|es tu humain|etes vous humain|comment tu t appelles|comment t appelles tu|comment vous appelez vous|aide|comment ca marche|que puis je demander|que puis je te demander|que puis je vous demander", "Je suis un assistant qui répond d'après les documents fournis et indique d'où vient chaque réponse. Si une question peut avoir plusieurs sens, je demande d'abord. Que souhaitez-vous savoir ?"},
	{acknowledges, "d accord|compris|tres bien|parfait|bien|je vois|ok compris|bon|entendu|super|genial|ca marche|je comprends|c est note|interessant", "Très bien. Souhaitez-vous savoir autre chose ?"},
	{greets, "hola|buenos dias|buenas tardes|buenas noches|buenas|buen dia|que tal|hola que tal|como estas|como esta|hola como estas|hola como esta|hola buenas|hola buenos dias|hola buenas tardes|saludos|hey|hay alguien|hay alguien ahi|oye", "¡Hola! ¿Qué desea saber?"},
	{thanks, "gracias|muchas gracias|mil gracias|muchisimas gracias|gracias por la ayuda|gracias por su ayuda|gracias por tu ayuda|ok gracias|vale gracias|perfecto gracias|genial gracias|muy amable|muy amable gracias|gracias eso es todo|eso es todo gracias|eso es todo|estupendo gracias|muy bien gracias", "De nada."},
	{parts, "adios|hasta luego|hasta pronto|hasta manana|chao|chau|nos vemos|que tenga buen dia|que tengas buen dia|buen fin de semana|gracias adios|gracias hasta luego|hasta la vista|cuidate|bye", "¡Hasta luego!"},
	{asksWho, "quien eres|quien es usted|que eres|que puedes hacer|que puede hacer|que sabes hacer|que sabe hacer|como me puedes ayudar|como puedes ayudarme|como puede ayudarme|en que puedes ayudarme|en que me puedes ayudar|en que puede ayudarme|eres un bot|eres un robot|es usted un robot|eres humano|eres una persona|como te llamas|cual es tu nombre|ayuda|como funciona esto|como funcionas|que puedo preguntar|que te puedo preguntar|que puedo preguntarte", "Soy un asistente que responde a partir de los documentos que tengo e indica dónde está cada respuesta. Si una pregunta puede significar varias cosas, pregunto primero. ¿Qué desea saber?"},
	{acknowledges, "vale|de acuerdo|entendido|muy bien|perfecto|bien|ya veo|claro|ok entendido|estupendo|genial|comprendo|entiendo|ya|bueno es saberlo|interesante", "De acuerdo. ¿Desea saber algo más?"},
	{greets, "你好|您好|你好啊|大家好|早上好|早安|下午好|晚上好|嗨|哈喽|哈罗|在吗|你在吗|有人吗|早|你好吗|最近怎么样|你好你好|hi 你好", "您好！请问您想了解什么？"},
	{thanks, "谢谢|谢谢你|谢谢您|多谢|非常感谢|十分感谢|太感谢了|好的谢谢|好谢谢|谢谢啦|谢了|感谢|谢谢帮忙|谢谢你的帮助|谢谢您的帮助|明白了谢谢|知道了谢谢|没有了谢谢|辛苦了|太好了谢谢|麻烦你了", "不客气。"},
	{parts, "再见|拜拜|拜|回见|回头见|晚安|明天见|下次见|祝你愉快|谢谢再见|好的再见|再会|先这样|就这样吧再见", "再见！"},
	{asksWho, "你是谁|您是谁|你是什么|你能做什么|你能干什么|你会什么|你会做什么|你能帮我做什么|你能帮我什么|您能帮我什么|你可以做什么|你有什么功能|我能问你什么|我可以问什么|我能问什么|你是机器人吗|你是人吗|你是真人吗|你叫什么|你叫什么名字|你是人工智能吗|帮助|怎么用|介绍一下你自己|自我介绍一下", "我是一个助手，根据已有的文档回答问题，并注明答案的出处。如果问题可能有几种意思，我会先问清楚。请问您想了解什么？"},
	{acknowledges, "好|好的|好吧|明白|明白了|知道了|了解|了解了|懂了|嗯|嗯嗯|行|可以|原来如此|好的明白了|收到", "好的。您还想了解什么吗？"},
	{greets, "नमस्ते|नमस्कार|हैलो|हेलो|हाय|प्रणाम|राम राम|सुप्रभात|शुभ प्रभात|शुभ संध्या|कैसे हो|कैसे हैं आप|आप कैसे हैं|क्या हाल है|नमस्ते आप कैसे हैं|नमस्ते जी|कोई है|सत श्री अकाल|आदाब", "नमस्ते! आप क्या जानना चाहेंगे?"},
	{thanks, "धन्यवाद|शुक्रिया|बहुत धन्यवाद|बहुत बहुत धन्यवाद|बहुत शुक्रिया|बहुत बहुत शुक्रिया|आपका धन्यवाद|आपका बहुत धन्यवाद|ठीक है धन्यवाद|थैंक्यू|थैंक यू|मदद के लिए धन्यवाद|आपकी मदद के लिए धन्यवाद|समझ गया धन्यवाद|समझ गई धन्यवाद|अच्छा धन्यवाद|मेहरबानी|बस इतना ही धन्यवाद", "आपका स्वागत है।"},
	{parts, "अलविदा|फिर मिलेंगे|बाय|बाय बाय|शुभ रात्रि|शुभरात्रि|आपका दिन शुभ हो|चलता हूं|चलती हूं|धन्यवाद अलविदा|टाटा|कल मिलते हैं", "फिर मिलेंगे!"},
	{asksWho, "आप कौन हैं|आप कौन हो|तुम कौन हो|तू कौन है|आप क्या कर सकते हैं|आप क्या क्या कर सकते हैं|तुम क्या कर सकते हो|आप मेरी क्या मदद कर सकते हैं|आप मेरी मदद कैसे कर सकते हैं|मैं आपसे क्या पूछ सकता हूं|मैं क्या पूछ सकता हूं|मैं क्या पूछ सकती हूं|क्या आप रोबोट हैं|क्या आप इंसान हैं|क्या तुम रोबोट हो|आपका नाम क्या है|तुम्हारा नाम क्या है|मदद|यह कैसे काम करता है|अपना परिचय दीजिए", "मैं एक सहायक हूँ जो दिए गए दस्तावेज़ों से जवाब देता है और बताता है कि जवाब कहाँ लिखा है। अगर सवाल के कई मतलब हो सकते हैं, तो मैं पहले पूछता हूँ। आप क्या जानना चाहेंगे?"},
	{acknowledges, "ठीक है|ठीक|अच्छा|समझ गया|समझ गई|बढ़िया|जी|अच्छा ठीक है|ओके|समझा|समझी|बहुत अच्छा|सही है", "ठीक है। क्या आप कुछ और जानना चाहेंगे?"},
}

// talk is what small talk does.
type talk int

const (
	greets talk = iota
	thanks
	parts
	asksWho
	acknowledges
)

// smallSaid finds the entry of smalltalk by the plain form of what is said; what
// several languages say belongs to the first.
var smallSaid = sync.OnceValue(func() map[string]int {
	m := map[string]int{}
	for i, s := range smalltalk {
		for said := range strings.SplitSeq(s.said, "|") {
			if _, taken := m[key(said)]; !taken {
				m[key(said)] = i
			}
		}
	}
	return m
})

// Smalltalk answers a message that is nothing but a greeting, thanks, a goodbye
// or a question about the assistant itself, in English, German, French, Spanish,
// Chinese or Hindi, and in that language. A greeting or thanks with anything else
// is that other thing, and ok is false: nothing is stripped from a question.
func Smalltalk(text string) (reply string, ok bool) {
	if len(text) > 400 {
		return "", false
	}
	text = tidy(text)
	ws := forms(words(text))
	if len(ws) == 0 || len(ws) > 24 {
		return "", false
	}
	// The message must be made of such phrases: how[i] is the longest with which
	// the rest from word i can begin, and -1 if it cannot be small talk.
	table := smallSaid()
	how := make([]int, len(ws)+1)
	for i := len(ws) - 1; i >= 0; i-- {
		how[i] = -1
		for n := len(ws) - i; n > 0 && how[i] < 0; n-- {
			_, is := table[strings.Join(ws[i:i+n], " ")]
			if how[i+n] >= 0 && (is || n == 1 && i > 0 && besideSmalltalk[ws[i]]) {
				how[i] = n
			}
		}
	}
	// It is answered by the last of them that is more than a greeting or an
	// acknowledgement: "ok, thanks, bye".
	answer := -1
	for i := 0; i < len(ws); i += how[i] {
		if how[i] < 0 {
			return "", false
		}
		found, is := table[strings.Join(ws[i:i+how[i]], " ")]
		if !is {
			continue
		}
		small := smalltalk[found].kind == greets || smalltalk[found].kind == acknowledges
		if answer < 0 || !small || smalltalk[answer].kind == acknowledges {
			answer = found
		}
	}
	return smalltalk[answer].reply, true
}

// besideSmalltalk are the words that may follow a greeting or thanks.
var besideSmalltalk = wordSet("and again there everyone all sir madam bot assistant friend mate und nochmal zusammen et encore a tous y de nuevo 了 啊 呀 啦 जी और फिर")
