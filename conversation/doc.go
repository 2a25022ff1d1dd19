// Package conversation holds what was said: turns, the clarification that
// waits for a reply, how a reply is folded back into the question it belongs
// to, and the stores that keep conversations.
//
// It imports no other stage. Messages are its small value type that the other
// stages share.
//
// # Folding a reply back in
//
// A conversation is in one of two states: nothing waits, or one clarification
// waits (Conversation.Pending), with the question it belongs to and the number of
// clarifications in a row. The next message is a reply to it. FoldWith
// understands the reply; its kind moves the conversation on:
//
//	state    message                     next     what happens
//	nothing  small talk                  nothing  answered, no source is asked
//	nothing  "actually it's the other"   nothing  changes what was settled; the last question again
//	nothing  a question                  nothing  answered, or "not in the sources"
//	                                     waits    a gate asks: clarification 1
//	waits    choice, several, all        nothing  question + options' texts, answered
//	                                     waits    the other gate asks: one more in a row
//	waits    detail                      as above question + the user's words
//	waits    none                        as above question without those; with the detail instead, if one was given
//	waits    just_answer, dont_know      nothing  answered with the assumption stated; closed for the conversation
//	waits    new_question                as for a question; the one that waited is dropped
//	waits    cancel                      nothing  acknowledged
//	waits    explain                     waits    says what is offered; costs nothing
//	waits    unclear_choice              waits    names the options that fit, or asks again; costs one
//	                                     nothing  no more are allowed in a row: answered with the assumption stated
//	waits    its time runs out           nothing  the next message is one of its own
//
// The question that is answered is always the pending one with what was learnt;
// it is never lost and never replaced by the bare reply. How the two become one
// question that reads well is told at the function compose: a pronoun or unclear
// words are replaced where that is certain to read well, otherwise what was
// learnt stands in brackets behind the question, where a second clarification
// adds to it. What is said besides a choice ("the van, for three days") is kept
// as a detail with it.
//
// # How a reply is understood
//
// In three steps, each for what the one before is not sure of: rules, a Matcher
// (similarity, as of an encoder), Readers (the embedded one of package reply, which
// was trained on replies; after it a language model, if there is one). A rule decides
// alone only where it has proved right on replies that no rule was made on: an
// option's text word for word, a place in the list, a comparison or range, yes and no,
// "don't know", and a question that is taken back. A Reader that agrees with the rules
// changes nothing.
//
// The rules cut the reply into parts at its punctuation and before words such as
// "but" and "maybe". Each part is read on its own, by the first rule that fits,
// after politeness and hesitation are taken off both its ends:
//
//	part                                                     act
//	an option's text, word for word                          choose
//	a set phrase: "both", "no idea", "never mind", ...        what the phrase does
//	begins or ends so: "just tell me ...", "... no idea"     what the phrase does
//	"could it be X?", "am I allowed to say X?"               choose
//	"what do you mean by X?", "does X count?", "which one    explain
//	is it for Y?", "why does that matter?"
//	"all except X"; "the one without X"                      choose the rest; rule out
//	"I'm not a member", where "not a member" is an option    choose
//	"not", "no" and an option                                rule out
//	"the second", "b", "#2", "the first two", "1 and 3"      choose; "1 or 2": between
//	"tell me for both", "compare them all"                   all
//	"the cheaper", "the newest", by the options' numbers     choose
//	a whole question or request about something foreign      question
//	"my card was stolen", "I want to cancel my order"        question
//	a question in which nothing is foreign                   explain
//	words of an option's text, or of what the clarification  choose; of several alike: between
//	says of it alone; slips of the finger, other words for
//	periods, numbers in words, Hindi in Latin letters
//	a number in the range of one option ("under 19")         choose
//	anything else                                            detail
//
// Foreign is a word that stands neither in the pending question nor in the
// clarification and its options. A number that stands in an option's text is
// text ("2" chooses "2 days" and not the second option); other numbers are
// places in the list.
//
// Then the acts of all parts decide, from the top. A part after "no", "I mean" and
// the like takes back what was chosen before it ("the first, no, the second"), and
// what holds now takes back what held before ("I had Basic, now it's Pro"). A
// choice known only by a word of the option among foreign words gives way to a
// question.
//
//	acts                             kind
//	another topic is announced       new_question
//	the question again, and more     detail, choice
//	choose                           choice, several, all
//	all                              all
//	question                         new_question
//	explain, and just answer         just_answer
//	explain                          explain
//	no to "is it X?", "A or not A?"  choice of the other
//	yes to it, or to one option      choice of that
//	none, rule out, no               none (all but one ruled out: choice)
//	cancel                           cancel
//	just answer                      just_answer
//	between some                     unclear_choice
//	don't know                       dont_know
//	detail                           detail (choice, if the Matcher knows the option meant)
//	between all                      unclear_choice
//	yes, all, "the first", where no  detail, with the clarification
//	options were given
//	nothing, or no such option       unclear_choice
//
// The Matcher also weighs statements in English: one that is far from the pending
// question and its options is a question of its own, and one that is near is a
// detail, however it sounds.
//
// A question that comes with a choice ("City. And when do you open?") is kept in the
// folded question, and in Folded.Also for whoever searches.
//
// The rules know English, German, French, Spanish, Chinese and Hindi, the last in
// its own script and in Latin letters. They are measured on the replayed replies in
// testdata; its README has the figures, also those of replies that the rules had not
// seen, which are lower.
//
// # What is settled
//
// How each clarification was settled stands in Conversation.Asked: what was chosen,
// said in own words, refused, or not known and therefore assumed. Recall finds, for
// a clarification that a gate would show, whether that is settled: the same option,
// or the same choice in other words, by words or by a Matcher's similarity, whichever
// gate asked. Repeats keeps the same clarification from being shown twice. Amend knows
// the message that changes what was settled.
//
// # Stores
//
// A Store gives one claim at a time on a conversation, over all processes that
// share it. Memory is the store for one process; the sub-package sqlite keeps
// conversations in a file, postgres in a database for any number of machines.
// storetest is the suite that every store passes.
//
// A turn goes so:
//
//	Begin    waits for its place in line; claims; keeps the user's words; reads the last turns
//	Commit   stores turn and state, all or nothing, and ends the claim
//	Release  ends the claim, and nothing was said
//	death    the claim runs out; the next Begin keeps the words as a turn of KindPartial,
//	         or takes the turn up again if it is the same message, by its key
//	a key    whose turn is stored gives that turn
//
// A turn of KindPartial, also one that was stopped after a part of its answer was
// shown, settles nothing: what waited still waits, and the same message may be
// sent again. It is no part of the dialogue that the other stages read.
//
// A long conversation is read by its last turns (Conversation.Earlier tells how
// many there are before), so that a turn costs the same in it as in a short one.
package conversation
