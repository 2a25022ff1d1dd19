// Package untrusted deals with text that others wrote (documents, users,
// models) where it is to be shown, judged or put into a prompt: it takes out
// what a reader does not see (Visible) and what a chat template takes for its
// own (WithoutMarks), and finds sentences that speak to the assistant instead of
// to the reader (Commands).
//
// A prompt keeps text in its place by how it is written down, never by this
// package alone: whoever looks for commands by their words will miss some.
package untrusted
