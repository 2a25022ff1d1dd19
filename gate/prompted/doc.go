// Package prompted is a clarifier over any langchaingo model: for people
// without a fine-tuned one, and as the baseline of those that are. The model
// is told in words when to ask and when not, and replies with JSON, which is
// validated whether or not the model promised it.
//
// It tells no probabilities: a verdict's score is one of two values. Options
// are those that the clarification names and passages hold; otherwise the
// question is open.
package prompted
