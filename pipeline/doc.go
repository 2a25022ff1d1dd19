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
// Turns of one conversation run one after the other, over all processes that
// share the store. A message with a key is one turn however often it is sent.
package pipeline
