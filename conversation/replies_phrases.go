package conversation

import (
	"slices"
	"strings"
	"sync"
)

// The phrases by which replies are known, by what they do and by language
// (English, German, French, Spanish, Chinese, Hindi; a "|" between two). They
// are compared in the plain form of words, so case, accents and punctuation do
// not matter.
var phraseTable = map[act][]string{
	// Words around what is said. They are taken off both ends before a reply is
	// compared with anything.
	actFiller: {
		"well|and|but|answer|all good|so much|for your help|for the help|thank you so much|thanks so much|thanks for your help|thank you for your help|much appreciated|let me think|let me see|hold on|hang on|ok|okay|okey|uh|um|uhm|hm|hmm|so|please|pls|plz|sorry|oh|ah|ha|lol|hi|hello|hey|then|now|right|sure thing|alright|good|fine|great|cool|actually|just|maybe|perhaps|probably|possibly|i think|i thought|i believe|i guess|i suppose|i suspect|i would say|id say|lets say|say|i mean|i meant|i meant to say|i was thinking of|i was thinking about|i was talking about|im talking about|im asking about|i was asking about|i am asking about|it is|its|it was|it would be|that is|thats|that would be|thatd be|this is|these are|those are|they are|theyre|i want|i wanted|i need|i would like|id like|ill take|ill go with|i will take|i go with|i go for|ill go for|lets go with|lets take|go with|go for|take|give me|we have|we are on|we use|i have|ive got|i got|i am on|im on|i use|mine is|mines|ours is|it should be|should be|must be|it must be|definitely|certainly|obviously|of course|thanks|thank you|thx|ty|cheers|thank you very much|thanks a lot|kind regards|mate|sir|madam|in my case|if i remember right|if i remember correctly|if i recall|if i recall correctly|if memory serves|the answer is|my answer is|i choose|i pick|id pick|option please|for the|about the|about|how about|what about|the|that|as i said|like i said|as far as i know|afaik|if im not mistaken|im pretty sure|im sure|pretty sure|btw|the thing is|sort of|kind of|mostly|mainly|usually|normally",
		"also|und|aber|wenn ich mich recht erinnere|naja|na ja|tja|aeh|ah|ach|ach so|bitte|danke|danke schoen|vielen dank|sorry|entschuldigung|ich meine|ich meinte|ich glaube|glaub ich|glaube ich|ich denke|denke ich|ich wuerde sagen|wuerde ich sagen|vermutlich|wahrscheinlich|vielleicht|wohl|es ist|das ist|es war|das waere|es geht um|es handelt sich um|ich haette gern|ich nehme|ich moechte|ich will|wir haben|ich habe|ich hab|bei mir|gemeint ist|ich rede von|ich spreche von|natuerlich|klar|genau|dann|eher|mal|doch|der|die|das|den|dem|fuer die|fuer den|fuer das|hallo|ich bin|um|bei|lieber|gerne|gern",
		"alors|bon|ben|euh|ah|oh|eh bien|s il vous plait|sil vous plait|svp|s il te plait|stp|merci|merci beaucoup|pardon|desole|je veux dire|je voulais dire|je parle de|je parlais de|je pense|je crois|je dirais|je suppose|peut etre|probablement|sans doute|c est|c etait|il s agit de|ce serait|ca serait|plutot|en fait|je prends|je voudrais|je veux|j ai|nous avons|on a|bien sur|pour moi|dans mon cas|le|la|les|l|celui|celle|ceux|celles|du|de la|de l|des|bonjour|je suis|pour|j aimerais",
		"bueno|pues|eh|ah|oh|a ver|por favor|porfa|gracias|muchas gracias|perdon|perdona|disculpe|disculpa|quiero decir|queria decir|me refiero a|me refiero al|me referia a|me referia al|hablo de|creo|creo que|creo que es|pienso que|supongo|diria que|quizas|quiza|tal vez|probablemente|es|era|seria|se trata de|mas bien|en realidad|quiero|quisiera|tengo|tenemos|claro|por supuesto|para mi|en mi caso|el|la|los|las|al|del|hola|soy|para",
		"请|谢谢|多谢|不好意思|嗯|哦|啊|那|那么|就|吧|呢|我的意思是|我是说|我说的是|我指的是|我是指|我想|我觉得|我要|我选|选|应该是|可能是|大概|也许|可能|是的话|是|的|我用的是|我们用的是|我有的是|麻烦|你好|就是|指的是|我问的是|我想问的是|我想要|我们|我|嘛|了",
		"कृपया|प्लीज|धन्यवाद|शुक्रिया|माफ कीजिए|अच्छा|हम्म|तो|जी|मेरा मतलब|मेरा मतलब है|मुझे लगता है|शायद|मैं|मुझे|मेरे पास|मेरा|मेरी|चाहिए|है|हैं|था|थी|के लिए|वाला|वाली|वाले|ही|बस|यह|ये|वह|वो|का|की|के|को|में|से|बात कर रहा हूं|बात कर रही हूं|वाली बात|बारे में",
	},
	actCancel: {
		"never mind|nevermind|nvm|forget it|forget that|forget about it|cancel|cancel that|cancel it|stop|quit|exit|abort|scrap that|drop it|leave it|lets leave it|no longer needed|not needed anymore|i dont need it anymore|dont bother|no need|no need anymore|ive sorted it|i found it|found it|i figured it out|its sorted|solved|its ok forget it|im done|enough|stop asking|start over|lets start over|start again|i changed my mind|ive changed my mind|changed my mind",
		"vergiss es|vergessen sie es|egal vergiss es|schon gut|abbrechen|abbruch|stopp|stop|lass es|lassen sie es|lass gut sein|lassen wir das|hat sich erledigt|erledigt|nicht mehr noetig|brauche ich nicht mehr|brauch ich nicht mehr|schon erledigt|vergiss das",
		"laisse tomber|laissez tomber|oublie|oubliez|oublie ca|oubliez ca|annule|annulez|annuler|arrete|arretez|stop|tant pis|c est bon laisse|laisse|plus besoin|ce n est plus la peine|pas la peine|c est regle|j ai trouve",
		"olvidalo|olvidelo|dejalo|dejelo|cancelar|cancela|cancelalo|para|basta|stop|no importa dejalo|ya no hace falta|ya esta|ya no|da igual dejalo|ya lo encontre|no hace falta|dejemoslo",
		"算了|算了吧|取消|停|停止|不用了|不问了|没事了|不必了|别问了|不需要了|当我没说",
		"रहने दो|रहने दीजिए|छोड़ो|छोड़िए|छोड़ दो|छोड़ दीजिए|जाने दो|जाने दीजिए|रद्द|रद्द करें|रद्द करो|रुको|बंद करो|भूल जाओ|भूल जाइए|कोई बात नहीं|जरूरत नहीं|अब जरूरत नहीं",
	},
	actDontKnow: {
		"couldnt say|i couldnt say|not really sure|i dont know|dont know|dunno|idk|i do not know|i dont really know|i really dont know|no idea|no clue|not sure|im not sure|i am not sure|i have no idea|ive no idea|havent a clue|i havent a clue|havent got a clue|i havent got a clue|havent the foggiest|i have no clue|i cant say|cant say|i cant tell|cant tell|i couldnt tell you|couldnt tell you|hard to say|how should i know|how would i know|i cant remember|i dont remember|cant remember|dont remember|i forgot|unsure|unknown|beats me|who knows|i never know|i havent checked|i wouldnt know|wouldnt know",
		"ich weiss nicht|ich weiss es nicht|weiss nicht|weiss ich nicht|weiss ich nich|keine ahnung|ka|kein plan|kp|das weiss ich nicht|das weiss ich leider nicht|weiss ich leider nicht|leider keine ahnung|bin nicht sicher|ich bin nicht sicher|ich bin mir nicht sicher|bin mir nicht sicher|kann ich nicht sagen|das kann ich nicht sagen|woher soll ich das wissen|weiss nich|ich habe keine ahnung",
		"je ne sais pas|je sais pas|j sais pas|jsp|chais pas|aucune idee|je n en sais rien|j en sais rien|pas sur|pas sure|je ne suis pas sur|je ne suis pas sure|je suis pas sur|je n ai aucune idee|je ne me souviens pas|je ne me rappelle pas|je ne peux pas dire|je l ignore|ne sais pas",
		"no se|no lo se|ni idea|no tengo ni idea|no tengo idea|no estoy seguro|no estoy segura|no sabria decir|no sabria decirte|no me acuerdo|no recuerdo|no lo recuerdo|quien sabe|ns|no sabria|yo que se",
		"不知道|我不知道|不清楚|我不清楚|不确定|我不确定|没概念|不晓得|记不清|记不得了|忘了|我忘了|说不准|不太清楚|我也不知道|不太确定",
		"पता नहीं|मुझे पता नहीं|मुझे नहीं पता|नहीं पता|मालूम नहीं|मुझे मालूम नहीं|नहीं मालूम|मुझे नहीं मालूम|याद नहीं|मुझे याद नहीं|कह नहीं सकता|कह नहीं सकती|पक्का नहीं|पक्का नहीं पता|कोई अंदाजा नहीं|मैं नहीं जानता|मैं नहीं जानती|नहीं जानता|नहीं जानती",
	},
	actJustAnswer: {
		"just answer|just answer me|just answer it|just answer the question|answer anyway|just tell me|just tell me anyway|whatever|whichever|whatever you think|whatever is usual|whichever is easier|any|any of them|any one|anyone of them|anything|either|either one|either is fine|either one is fine|any is fine|skip|skip it|skip that|skip this|pass|next|doesnt matter|it doesnt matter|does not matter|it does not matter|dont care|i dont care|no preference|i have no preference|not important|irrelevant|you choose|you decide|you pick|your choice|your call|up to you|you tell me|take your pick|pick one|choose for me|just pick one|the usual|the default|the normal one|the standard one|standard|default|best guess|your best guess|take a guess|guess|just guess|all the same|all the same to me|same to me|its all the same|makes no difference|no difference|why does it matter just answer|just give me the answer|just give me an answer|stop asking and answer|stop asking just answer|go on|go ahead|proceed|continue|dont ask just answer|whatever works|surprise me|makes no odds|not bothered|im not bothered|im easy|who cares|either way|either way is fine|doesnt matter to me|it doesnt matter to me|doesnt really matter|doesnt really matter to me|it doesnt really matter|not telling|im not telling|id rather not say|i would rather not say|i prefer not to say|prefer not to say|thats private|that is private|none of your business|its none of your business|thats none of your business|not your business|mind your own business",
		"egal|ist egal|ist mir egal|mir egal|geht sie nichts an|das geht sie nichts an|geht dich nichts an|das ist egal|das ist mir egal|voellig egal|scheissegal|antworte einfach|antworten sie einfach|einfach antworten|sag einfach|sagen sie einfach|sag es einfach|sag schon|sagen sie es einfach|spielt keine rolle|ist nicht wichtig|nicht wichtig|unwichtig|ueberspringen|weiter|such dir was aus|such es dir aus|suchen sie es sich aus|du entscheidest|sie entscheiden|entscheide du|entscheiden sie|wie du willst|wie sie wollen|wie du meinst|wie sie meinen|irgendeine|irgendeins|irgendeiner|irgendwas|das uebliche|standard|das normale|beides moeglich|schnuppe|wurscht|ist mir wurscht|ist wurscht|ganz egal",
		"peu importe|n importe|n importe quoi|n importe lequel|n importe laquelle|ca m est egal|cela m est egal|egal|reponds|repondez|reponds simplement|repondez simplement|dis moi simplement|dites moi simplement|dites simplement|reponds quand meme|repondez quand meme|passe|passer|passons|suivant|comme tu veux|comme vous voulez|a toi de choisir|a vous de choisir|choisis|choisissez|choisissez pour moi|au choix|sans importance|ca n a pas d importance|pas important|ce n est pas important|c est egal|le plus courant|par defaut|je m en fiche|je m en fous",
		"da igual|me da igual|da lo mismo|me da lo mismo|no importa|no me importa|responde|responda|solo responde|solo responda|simplemente responde|simplemente responda|responde y ya|contesta|conteste|solo dime|dime y ya|cualquiera|cualquiera de ellos|cualquiera de ellas|la que sea|el que sea|lo que sea|salta|saltar|siguiente|paso|tu eliges|usted elige|elige tu|elija usted|tu decides|usted decide|como quieras|como quiera|lo normal|lo habitual|por defecto|dime lo normal|dime lo habitual|prefiero no decirlo|es indiferente|indiferente|es igual|que mas da",
		"随便|随便吧|都行|都可以|无所谓|不重要|没关系|直接回答|直接回答吧|直接说|直接告诉我|直接说吧|你决定|你决定吧|你选|你选吧|您决定|您选吧|跳过|哪个都行|哪个都可以|任意|任何一个|默认|默认的|一般的|你看着办|先回答吧|怎样都行",
		"कोई भी|कुछ भी|कोई भी चलेगा|कुछ भी चलेगा|फर्क नहीं पड़ता|कोई फर्क नहीं पड़ता|कोई फर्क नहीं|बस जवाब दो|बस जवाब दे दो|बस जवाब दीजिए|बस बता दो|बस बताओ|बस बताइए|सीधे बताओ|सीधा जवाब दो|आप चुनें|आप चुनिए|आप ही चुन लो|आप तय करें|तुम चुनो|जो भी हो|जो ठीक लगे|जो आपको ठीक लगे|छोड़कर आगे बढ़ो|आगे बढ़ो|आगे बढ़ें|जरूरी नहीं|मायने नहीं रखता",
	},
	actAll: {
		"both|a bit of both|bit of both|both of them|both please|both of those|both of these|for both|both options|all|all of them|all of those|all of these|all three|all four|all options|all the options|every one|everyone of them|each|each of them|each one|everything|the lot|all the above|all of the above|for all|for each|for all of them|for every one|the two|the three|the two of them|one and the other|tell me both|tell me all|all please",
		"beide|beides|alle beide|alle|alles|alle drei|alle vier|fuer beide|fuer alle|die beiden|jede|jeder|jedes|allesamt|saemtliche|sowohl als auch|alle zusammen|alle davon",
		"les deux|tous|toutes|tout|tous les deux|toutes les deux|tous les trois|toutes les trois|les trois|pour les deux|pour tous|pour toutes|chacun|chacune|l un et l autre|l une et l autre|l ensemble",
		"ambos|ambas|los dos|las dos|todos|todas|todo|los tres|las tres|todos ellos|todas ellas|para ambos|para todos|cada uno|cada una|para los dos|para las dos|uno y otro",
		"都|两个都|两者都|都要|全部|全都|所有|所有的|三个都|两个都要|两个都说|都说说|两种都|每一个|每个|两个|都有|两者|全要|都告诉我",
		"दोनों|दोनो|सभी|सब|तीनों|दोनों के लिए|सभी के लिए|सबके|हर एक|सारे|सब के सब|दोनों बताओ|दोनों बताइए|सब बताओ",
	},
	actNone: {
		"neither of those two|neither of the two|neither of these two|neither|neither one|neither of them|neither of those|neither of these|none|none of them|none of those|none of these|none of the above|none of these fit|none of those fit|none fit|none fits|none applies|none apply|none of these apply|none of them apply|no one of them|not any of them|not any of these|not one of them|something else|something different|other|another|another one|a different one|something else entirely|nothing of that|nothing like that|no none|not those|not these|nope none|neither fits|not listed|mine isnt listed|mine is not listed|its not listed|it isnt listed|its not there|isnt on the list|not on the list|not in the list|wrong both|none of that",
		"keine|keiner|keines|keins|keine davon|keiner davon|keines davon|keins davon|keine von beiden|keiner von beiden|keines von beiden|keins von beiden|weder noch|nichts davon|etwas anderes|was anderes|was ganz anderes|etwas ganz anderes|keine passt|passt nicht|passt alles nicht|nichts passt|keins passt|andere|anderes|ein anderer|eine andere|ein anderes|steht nicht dabei|ist nicht dabei|nicht dabei",
		"aucun|aucune|aucun des deux|aucune des deux|ni l un ni l autre|ni l une ni l autre|aucun de ceux la|aucune de celles la|rien de tout ca|rien de tout cela|autre chose|autre|un autre|une autre|pas ceux la|aucun ne correspond|aucune ne correspond|quelque chose d autre|ni l un ni l autre ne correspond",
		"ninguno|ninguna|ninguno de ellos|ninguna de ellas|ninguno de los dos|ninguna de las dos|ni uno ni otro|ni una ni otra|ni lo uno ni lo otro|nada de eso|otra cosa|otro|otra|ninguno de esos|ninguna de esas|ninguna encaja|ninguno encaja|algo distinto|algo diferente|ninguno de los anteriores|ninguna de las anteriores",
		"都不是|都不对|两个都不是|一个都不是|没有一个|以上都不是|其他|其它|别的|另外的|都不符合|都不合适|全都不是|不是这些|都没有|两者都不是",
		"कोई नहीं|इनमें से कोई नहीं|दोनों नहीं|दोनों में से कोई नहीं|कुछ और|इनमें से कोई भी नहीं|कोई भी नहीं|दूसरा कुछ|इनमें नहीं|इनमें से नहीं|और कुछ",
	},
	actYes: {
		"yes|yeah|yep|yup|yes please|sure|correct|exactly|right|thats right|thats it|thats the one|that one|that is correct|indeed|true|yes it is|yes that one|yes i do|yes i am|affirmative|y|aye|this one|that|this|yes thats right|absolutely|ya|si si|yes it does|i do|i am|it is",
		"ja|jawohl|jo|jep|ja bitte|genau|richtig|stimmt|das stimmt|korrekt|ganz genau|ja genau|ja richtig|eben|ja klar|genau das|das da",
		"oui|ouais|exact|exactement|c est ca|c est bien ca|tout a fait|oui c est ca|voila|oui exactement|d accord|celui la|celle la",
		"si|claro|claro que si|exacto|exactamente|eso es|asi es|correcto|vale|eso|ese|esa|ese mismo|esa misma|efectivamente",
		"是的|对|对的|是|没错|好|好的|嗯嗯|正是|就是这个|对啊|没错就是这个|可以",
		"हां|हाँ|जी हां|हां जी|सही|बिल्कुल|ठीक|ठीक है|सही है|हा|जी|यही|वही|जी बिल्कुल|हां यही",
	},
	actNo: {
		"no|nope|nah|no wait|wait no|no sorry|sorry no|scratch that|correction|oops|nothing|no it isnt|no it is not|not really|no thanks|wrong|thats wrong|thats not it|not that|not that one|no i dont|no im not|n|not this one|incorrect|it isnt|not quite|no not that|no no|no sorry|wait no",
		"nein|nee|noe|nein danke|falsch|stimmt nicht|das nicht|eben nicht|nicht ganz|ganz und gar nicht|nicht das|ne",
		"non|pas du tout|non merci|pas ca|c est pas ca|ce n est pas ca|faux|pas celui la|pas celle la|non pas du tout",
		"no gracias|no es eso|eso no|ese no|esa no|para nada|incorrecto|no es asi|no no es eso|que no",
		"不是|不|不对|不是的|没有|错了|不是这个|不用|不是这样",
		"नहीं|कुछ नहीं|ना|जी नहीं|नहीं जी|गलत|यह नहीं|ये नहीं|बिल्कुल नहीं|वो नहीं",
	},
	actExplain: {
		"why|which do you recommend|which one do you recommend|what do you recommend|what would you recommend|which would you recommend|what do you suggest|explain the options|explain the choices|explain them|what do you mean|what do you mean by that|what does that mean|what does it mean|what do they mean|what are those|what are these|whats that|what is that|whats this|what are they|whats the difference|what is the difference|whats the diff|how do they differ|how are they different|how are those different|which ones are there|which ones|which are there|what options are there|what are the options|what are my options|what are the choices|what choices are there|what is there|what else is there|which options do i have|what can i choose from|can you explain|please explain|explain|explain please|explain that|could you explain|i dont understand|i not understand|not understand|i no understand|no understand|dont understand|i dont get it|dont get it|i dont follow|you lost me|huh|what|eh|come again|pardon|sorry what|why do you ask|why do you need to know|why do you need that|why does it matter|does it matter|does that matter|why is that important|how do i know|how do i tell|how can i tell|how would i know which|how do i find out|how can i find out|where do i see that|where can i see that|where do i find that|remind me what they are|say that again|repeat that|could you repeat that|can you repeat that|what was the question|what did you ask|which is which|what do those mean|what do these mean|what do you mean exactly|what exactly do you mean|i dont understand the question|meaning|such as|like what|for example",
		"was meinst du|was meinen sie|was meinen sie damit|was meinst du damit|was heisst das|was bedeutet das|was ist das|was ist der unterschied|wo ist der unterschied|worin liegt der unterschied|was ist da der unterschied|was unterscheidet die|welche gibt es|welche gibt es denn|was gibt es denn|was gibt es|welche moeglichkeiten gibt es|was sind die optionen|wie bitte|hae|was|verstehe ich nicht|ich verstehe nicht|ich verstehe die frage nicht|versteh ich nicht|erklaer mal|erklaeren sie bitte|warum fragst du|warum fragen sie|wozu brauchst du das|wieso fragen sie|woran erkenne ich das|woher weiss ich das|wie finde ich das heraus|wo sehe ich das|wo steht das|was waren nochmal die optionen|was soll das heissen|was bedeuten die|kannst du das erklaeren|koennen sie das erklaeren|zum beispiel",
		"que veux tu dire|que voulez vous dire|tu veux dire quoi|vous voulez dire quoi|qu est ce que ca veut dire|ca veut dire quoi|c est quoi|c est quoi ca|c est quoi la difference|quelle est la difference|quelle difference|quelles sont les differences|lesquels|lesquelles|quels sont les choix|quelles sont les options|il y a quoi|quelles options|comment|pardon|hein|quoi|je ne comprends pas|je comprends pas|j ai pas compris|je n ai pas compris|je ne comprends pas la question|expliquez|explique|pouvez vous expliquer|pourquoi cette question|pourquoi demandez vous ca|comment savoir|comment je sais|ou est ce que je vois ca|comment le savoir|par exemple|a quoi ca correspond",
		"que quieres decir|que quiere decir|que quieres decir con eso|que significa|que significa eso|que es eso|que son|que es|cual es la diferencia|que diferencia hay|en que se diferencian|cuales hay|cuales son|que opciones hay|cuales son las opciones|que opciones tengo|como|como dice|perdon como|no entiendo|no lo entiendo|no entiendo la pregunta|explica|explicame|puedes explicar|puede explicar|por que preguntas|por que lo pregunta|como lo se|como puedo saberlo|donde lo veo|donde puedo verlo|por ejemplo|a que te refieres|a que se refiere",
		"什么意思|你是什么意思|这是什么意思|那是什么意思|是什么意思|有什么区别|区别是什么|有什么不同|有什么差别|有哪些|都有哪些|有哪些选项|有哪几种|什么|啊什么|不懂|我不懂|不明白|我不明白|没听懂|没看懂|解释一下|能解释一下吗|为什么问这个|为什么这么问|怎么看|怎么区分|怎么分辨|怎么知道|你指的是什么|这两个有什么区别|它们有什么区别|哪几个|比如",
		"क्या मतलब|मतलब क्या|इसका क्या मतलब है|इसका मतलब क्या है|क्या मतलब है आपका|आपका क्या मतलब है|क्या अंतर है|क्या फर्क है|इनमें क्या फर्क है|इनमें क्या अंतर है|दोनों में क्या फर्क है|दोनों में क्या अंतर है|कौन कौन से हैं|कौन कौन से|कौन से हैं|क्या विकल्प हैं|विकल्प क्या हैं|समझ नहीं आया|समझा नहीं|मैं समझा नहीं|मैं समझी नहीं|नहीं समझा|समझाइए|समझाओ|क्या|क्यों पूछ रहे हो|क्यों पूछ रहे हैं|कैसे पता करूं|कैसे पता चलेगा|जैसे|मतलब",
	},
}

// prefixTable are phrases that decide although more words follow: "I don't
// know which one I have".
var prefixTable = map[act][]string{
	actDontKnow: {
		"i dont know|i do not know|i dont really know|i really dont know|dont know|dunno|idk|no idea|no clue|not sure|im not sure|i am not sure|i have no idea|ive no idea|i cant remember|i dont remember|cant remember|i cant tell|i cant say|i couldnt tell you|i forgot|havent a clue|i havent a clue|i never know",
		"ich weiss nicht|ich weiss leider nicht|ich weiss gar nicht|weiss nicht|weiss ich nicht|keine ahnung|ich habe keine ahnung|ich bin nicht sicher|ich bin mir nicht sicher|bin mir nicht sicher",
		"je ne sais pas|je sais pas|aucune idee|je n ai aucune idee|je ne suis pas sur|je ne suis pas sure|je ne me souviens pas|je ne me rappelle",
		"no se|no lo se|ni idea|no tengo ni idea|no tengo idea|no estoy seguro|no estoy segura|no me acuerdo|no recuerdo",
		"不知道|我不知道|不清楚|我不清楚|不确定|我不确定|我忘了|忘了|我也不知道|不太清楚|记不清",
		"मुझे नहीं पता|मुझे पता नहीं|पता नहीं|मुझे याद नहीं|मालूम नहीं|मुझे नहीं मालूम",
	},
	actJustAnswer: {
		"just answer|just tell me|please just answer|just give me|stop asking|it doesnt matter|doesnt matter|dont care|i dont care|its all the same|whatever|whichever|makes no difference|no preference|up to you|skip|can you just answer|can you just tell me|could you just answer|answer the question|i just want an answer|i just want the answer|i just need an answer|i just need the answer",
		"antworte einfach|antworten sie einfach|sag einfach|sagen sie einfach|ist egal|ist mir egal|mir egal|egal|das ist egal|das ist mir egal|es ist egal|es ist mir egal|spielt keine rolle",
		"peu importe|n importe|ca m est egal|repondez|reponds|dites moi simplement|dis moi simplement|ca n a pas d importance|je m en fiche",
		"da igual|me da igual|no importa|solo responde|solo dime|solo responda|responde|simplemente responde|es indiferente",
		"随便|无所谓|直接回答|直接告诉我|直接说|你直接",
		"कोई फर्क नहीं|फर्क नहीं पड़ता|बस जवाब|बस बता|सीधे बता|कोई भी",
	},
	actExplain: {
		"why is this|why are you asking|why do you keep|why so|what do you mean|what does that mean|whats the difference|what is the difference|what are the differences|whats the diff|explain the difference|explain what|can you explain|could you explain|please explain|i dont understand|i dont get what|i dont get the|how do i know which|how do i know if|how do i know whether|how do i tell|how can i tell|how do i find out|how can i find out|why do you ask|why do you need|why are you asking|which ones do you|which ones are|which options|what options|remind me what|what would be the difference|how do they differ|how are they different|whats meant by|what is meant by|how would i know",
		"was meinst du|was meinen sie|was ist der unterschied|was ist denn der unterschied|worin besteht der unterschied|wo ist der unterschied|was ist da der unterschied|ich verstehe nicht|welche gibt es|was verstehst du unter|was verstehen sie unter|woran erkenne ich|woher weiss ich|wie finde ich heraus|warum fragst du|warum fragen sie|was genau meinen",
		"que veux tu dire|que voulez vous dire|qu entendez vous par|qu entends tu par|quelle est la difference|c est quoi la difference|quelle difference|je ne comprends pas|comment savoir|comment je sais|comment savoir si|pourquoi demandez|quels sont les|quelles sont les options",
		"que quieres decir|que quiere decir|cual es la diferencia|que diferencia|no entiendo|como se si|como se cual|a que te refieres|a que se refiere|por que preguntas|que opciones",
		"你说的|什么意思|什么叫|有什么区别",
		"आपका क्या मतलब|क्या मतलब|क्या अंतर|क्या फर्क|मैं कैसे जानूं|मुझे कैसे पता",
	},
}

// topicTable are phrases that announce another question.
var topicTable = []string{
	"different question|another question|new question|other question|one more question|quick question|unrelated question|different topic|new topic|change of topic|changing the subject|on another note|on a different note|something completely different|lets talk about something else|separate question|totally different question|completely different question|i have another question|i have a different question|before that|first another question|unrelated",
	"andere frage|eine andere frage|neue frage|noch eine frage|ganz andere frage|anderes thema|themenwechsel|mal was anderes|mal etwas anderes|andere frage noch|zwischenfrage|kurze frage|eine frage noch",
	"autre question|une autre question|nouvelle question|j ai une autre question|autre sujet|changeons de sujet|rien a voir|question differente|une question differente",
	"otra pregunta|una pregunta distinta|nueva pregunta|tengo otra pregunta|cambiando de tema|otro tema|una pregunta diferente|otra cosa mas",
	"另一个问题|另外一个问题|换个问题|换个话题|新问题|问个别的|另外问一下|顺便问一下|再问一个问题|另外问一个|还有个问题",
	"एक और सवाल|दूसरा सवाल|नया सवाल|अलग सवाल|एक दूसरा सवाल|विषय बदलते हैं|एक अलग सवाल|एक बात और",
}

// splitTable are words at which a sentence is cut in two.
var splitTable = []string{
	"but|although|though|however|because|since i|maybe|perhaps|probably|i think|i guess",
	"aber|sondern|obwohl|jedoch|vielleicht|weil",
	"mais|cependant|pourtant|peut etre|parce que",
	"pero|sino|aunque|quizas|porque",
	"但是|不过|但|因为|也许|可能",
	"लेकिन|मगर|पर शायद|शायद|क्योंकि",
}

// negationTable are words that rule out what follows (or, in Hindi, precedes).
var negationTable = []string{
	"not|neither|neither the|no not|not the|its not|it is not|it isnt|isnt|im not|i am not|not a|definitely not|anything but|any but|except|all but|all except|everything but|everything except|other than|without the|dont want|i dont want|i dont have|i dont mean|i didnt mean",
	"nicht|weder|nicht der|nicht die|nicht das|nicht den|kein|keine|keinen|keinesfalls|ausser|alle ausser|auf keinen fall|bloss nicht",
	"pas|ni|ni le|ni la|pas le|pas la|pas celui|pas celle|ce n est pas|c est pas|sauf|tous sauf|surtout pas|je n ai pas|non pas",
	"no es|ni|no el|no la|excepto|menos|todos menos|todas menos|salvo|no tengo|no quiero",
	"不是|不要|除了|非|别",
	"नहीं|छोड़कर|के अलावा|नही",
}

// frameTable are the words that are taken off a detail, which else is kept as
// it was written.
var frameTable = []string{
	"well|what about|how about|let me think|let me see|hold on|hang on|so much|for your help|for the help|thank you so much|thanks so much|thanks for your help|thank you for your help|much appreciated|ok|okay|uh|um|hm|hmm|so|please|pls|plz|sorry|oh|ah|hi|hello|hey|actually|i think|i guess|i suppose|i believe|i mean|i meant|i meant to say|i was talking about|im talking about|i was asking about|im asking about|i am asking about|i was thinking of|it is|its|thats|that is|that would be|thatd be|thanks|thank you|thx|ty|cheers|thank you very much|thanks a lot|kind regards|lets say|maybe|perhaps|probably|and|but|then|sir|madam|mate|something else|because|as i said|obviously|of course|mostly|mainly|usually|normally",
	"naja|na ja|tja|aeh|ah|ach|ach so|bitte|danke|danke schoen|vielen dank|sorry|entschuldigung|ich meine|ich meinte|ich glaube|glaube ich|glaub ich|ich denke|denke ich|vermutlich|wahrscheinlich|vielleicht|es ist|das ist|es geht um|es handelt sich um|das waere|also|hallo|und|aber|sondern|etwas anderes|gemeint ist|ich rede von|ich spreche von|weil",
	"alors|bon|ben|euh|ah|oh|eh bien|s il vous plait|sil vous plait|svp|s il te plait|stp|merci|merci beaucoup|pardon|desole|je veux dire|je voulais dire|je parle de|je parlais de|je pense|je crois|je dirais|peut etre|probablement|sans doute|c est|il s agit de|ce serait|en fait|bonjour|et|mais|autre chose|parce que",
	"bueno|pues|eh|ah|oh|a ver|por favor|porfa|gracias|muchas gracias|perdon|perdona|disculpe|disculpa|quiero decir|queria decir|me refiero a|me referia a|hablo de|creo|creo que|creo que es|supongo|quizas|quiza|tal vez|probablemente|es|se trata de|hola|y|pero|sino|otra cosa|porque",
	"请|谢谢|多谢|不好意思|嗯|哦|啊|那|我的意思是|我是说|我说的是|我指的是|我是指|我想|我觉得|我问的是|我想问的是|指的是|就是|应该是|可能是|大概是|也许|可能|你好|麻烦|是|但是|吧|呢|其他",
	"कृपया|प्लीज|धन्यवाद|शुक्रिया|माफ कीजिए|अच्छा|हम्म|तो|जी|मेरा मतलब|मेरा मतलब है|मुझे लगता है|शायद|लेकिन|कुछ और",
}

// phrases are the tables in plain form.
type phrases struct {
	whole    map[string]act
	prefixes []prefix // longest first
	fillers  map[string]bool
	frames   map[string]bool
	topics   [][]string
	splits   map[string]bool
	negation [][]string
}

type prefix struct {
	words []string
	act   act
}

func split(lines []string) []string {
	var ps []string
	for _, l := range lines {
		ps = append(ps, strings.Split(l, "|")...)
	}
	return ps
}

var lexicon = sync.OnceValue(func() *phrases {
	l := &phrases{whole: map[string]act{}, fillers: map[string]bool{}, frames: map[string]bool{}, splits: map[string]bool{}}
	for _, a := range []act{actYes, actNo, actExplain, actAll, actNone, actDontKnow, actJustAnswer, actCancel} {
		for _, p := range split(phraseTable[a]) {
			l.whole[key(p)] = a
		}
	}
	for _, p := range split(phraseTable[actFiller]) {
		l.fillers[key(p)] = true
	}
	for _, p := range split(frameTable) {
		l.frames[key(p)] = true
	}
	for a, table := range prefixTable {
		for _, p := range split(table) {
			l.prefixes = append(l.prefixes, prefix{plains(p), a})
		}
	}
	slices.SortFunc(l.prefixes, func(a, b prefix) int {
		if d := len(b.words) - len(a.words); d != 0 {
			return d
		}
		return slices.Compare(a.words, b.words)
	})
	for _, p := range split(topicTable) {
		l.topics = append(l.topics, plains(p))
	}
	for _, p := range split(splitTable) {
		l.splits[key(p)] = true
	}
	for _, p := range split(negationTable) {
		l.negation = append(l.negation, plains(p))
	}
	slices.SortFunc(l.negation, func(a, b []string) int { return len(b) - len(a) })
	return l
})
