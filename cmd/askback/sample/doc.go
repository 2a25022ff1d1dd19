// Package sample is the knowledge base that the binary carries: the help
// centre, staff handbook and finance pages of Larkwheel, an invented maker of
// electric bicycles. Pages that answer the same question differently say in
// their headings for what or whom they hold.
//
// questions.jsonl holds questions over it in the format of a clarification
// case, without passages (they are to be retrieved), and with what is expected
// of the turn; see Question.
package sample
