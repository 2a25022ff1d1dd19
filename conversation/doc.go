// Package conversation holds what was said: turns, the clarification that
// waits for a reply, how a reply is folded back into the question it belongs
// to, and the stores that keep conversations.
//
// It imports no other stage. Messages are its small value type that the other
// stages share.
//
// # Folding a reply back in
//
// While a clarification is pending, the next message is a reply to it. Fold
// understands the reply and gives the question to go on with. The pending
// question is never lost and never replaced by the bare reply.
//
// The reply is cut into parts at its punctuation and before words such as "but"
// and "maybe". Each part is read on its own, by the first rule that fits, after
// politeness and hesitation are taken off both its ends:
//
//	part                                                     act
//	an option's text, word for word                          choose
//	a set phrase: "both", "no idea", "never mind", ...        what the phrase does
//	begins with "I don't know", "just tell me", ...          don't know, just answer
//	"what do you mean by X?", "what is X?", X of the options explain
//	"I'm not a member", where "not a member" is an option    choose
//	"not", "all but", "except" and an option                 rule out
//	"the second", "b", "#2", "the first two", "1 and 3"      choose; "1 or 2": between
//	"the cheaper", "the newest", by the options' numbers     choose
//	a whole question or request about something foreign      question
//	a question in which nothing is foreign                   explain
//	words of an option's text, slips of the finger allowed   choose; of several alike: between
//	a number in the range of one option ("under 19")         choose
//	anything else                                            detail
//
// Foreign is a word that stands neither in the pending question nor in the
// clarification and its options. A number that stands in an option's text is
// text ("2" chooses "2 days" and not the second option); other numbers are
// places in the list.
//
// Then the acts of all parts decide, from the top. A part after "no" takes back
// what was chosen before it ("the first, no, the second"). A choice known only
// by a word of the option among foreign words gives way to a question.
//
//	acts                             kind            the conversation then
//	another topic is announced       new_question    drops the pending question, asks this one
//	the question again, and more     detail, choice  goes on with the question as asked again
//	choose                           choice,         goes on with the question and the options' texts
//	                                 several, all
//	question                         new_question    drops the pending question, asks this one
//	explain, and just answer         just_answer     answers and states the assumption
//	explain                          explain         says what is offered; still pending
//	all                              all             goes on with all options
//	no to "is it X?", "A or not A?"  choice          goes on with the other option
//	yes to it, or to one option      choice          goes on with that option
//	none, rule out, no               none            goes on without those; the detail instead, if one was given
//	                                                 (all but one ruled out: choice)
//	cancel                           cancel          drops the pending question
//	just answer                      just_answer     answers and states the assumption
//	don't know                       dont_know       answers and states the assumption
//	detail                           detail          goes on with the question and the user's words
//	                                                 (choice, if a Matcher knows the option meant)
//	between                          unclear_choice  names the options that fit; still pending
//	yes, all, "the first", where no  detail          goes on with the question, the clarification and the reply
//	options were given
//	nothing, or no such option       unclear_choice  asks again; still pending
//
// What is said besides a choice ("the van, for three days") is kept as a detail
// with it. How question and reply become one question that stands on its own is
// told at the function compose: a pronoun or unclear words are replaced where
// that is certain to read well, otherwise what was learnt stands in brackets
// behind the question, where a second clarification adds to it.
//
// The rules know English, German, French, Spanish, Chinese and Hindi. They are
// measured on the replayed replies in testdata, some of which were held out while
// the rules were made; its README has the figures.
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
