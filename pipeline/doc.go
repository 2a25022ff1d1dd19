// Package pipeline runs one turn from question to result: it folds a reply to
// a pending clarification in, runs gate 1 and retrieval at the same time, then
// gate 2, then the generator, and commits the turn, all or nothing.
//
//	reply ──> claim the conversation ──> pending clarification? fold the reply in
//	      ──> gate 1 (dialogue) ───────────ask──> Clarification
//	      ──> retrieve, at the same time
//	      ──> gate 2 (dialogue, passages) ─ask──> Clarification
//	      ──> generate ──> Answer or NoAnswer
//	      ──> commit
//
// A result is exactly one of Answer, Clarification and NoAnswer. Every result
// carries its trace. A turn that fails or is cancelled leaves the conversation as
// it was, but that what was shown of its answer is kept, marked as partial.
//
// A follow-up is made to stand alone before it goes to the search, the gates and
// the generator: an identifier, a phrase or a name takes the place of its like in
// the question before, a name that of a pronoun; otherwise the question that the
// chain began with is named beside it, "how long does it take? (following: How do I
// return an order?)". A question that stands alone is left as it is, so that a new
// topic begins anew. Parts.Rewriter, a language model, does it better, and is
// checked: it must keep identifiers, numbers and most words of the question.
//
// How often that gives what people wrote is printed by
//
//	go test ./pipeline -run TestRewrites -v [-args -rewrites FILE.jsonl,...]
//
// for the dialogues in testdata, or for files of {history, query, standalone}
// objects, beside the question alone and the question joined to the one before.
//
// What the user settled in a clarification holds for later questions too, whichever
// gate would ask and in whatever words, until the user changes it. The answer says
// that it takes it for granted: "Assuming you still mean the Cargo 2: ...".
//
// The gates and the generator are given the end of the dialogue that fits into
// Parts.GateHistory and Parts.AnswerHistory, whole turns, the oldest dropped first;
// what was settled in dropped turns is kept.
//
// Turns of one conversation run one after the other, over all processes that
// share the store. A message with a key is one turn however often it is sent.
package pipeline
