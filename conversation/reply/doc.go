// Package reply is the embedded reader of replies: a fine-tuned LoRA adapter with
// two small heads on the in-process encoder. It decides what the rules of package
// conversation read by form or by default, such as a choice in other words or a
// change of topic without a question mark.
//
// The reply is read together with the question, its clarification and the options,
// all in one sequence:
//
//	[CLS] reply [SEP] question [SEP] clarification [SEP] 1 option [SEP] 2 option [SEP] ...
//
// One head scores each option, from the mean of its tokens and of the reply's; the
// other gives the kind of the reply. The decision is a regression over what the
// heads say and what the rules made of the reply, fitted to replies to
// clarifications that the heads were not trained on.
//
// An option is chosen only if it is likely enough; below that the user's words are kept
// as a detail, which the search still sees.
//
// A change of topic must not be swallowed as an answer. Where one is likely, though
// less so than an answer, the clarification is shown once more instead; a reply to
// that is taken for what it most likely is.
//
// training/replies holds the replies, the scripts and the figures.
package reply
