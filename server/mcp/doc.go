// Package mcp offers a pipeline to clients of the Model Context Protocol, such as
// assistants on a desktop and programming tools, as two tools:
//
//	ask     {question, conversation?}  one turn: an answer with citations, a clarification, or that the sources do not hold it
//	search  {query, limit?}            passages
//
// over streamable HTTP (HTTP) and standard input and output (Run). Results come as
// text and as structured content, see Result and Passages. What stands in passages
// and answers is from documents: data to the model that reads it, which the tools'
// descriptions say.
//
// # Conversations
//
// A call of ask without a conversation begins one, whose id comes with the result.
// With that id the next call is a follow-up, or a reply to the clarification that
// waits.
//
// # Clarifications
//
// A client that declares elicitation is asked in the midst of the call: the user gets
// a form with the options and room for own words.
//
//	accept   the reply is folded in, and the call goes on to the answer
//	         (or to a second clarification, as far as the pipeline's policy allows)
//	         a form sent empty means: just answer
//	decline  means: just answer. The answer states what it assumes
//	cancel   nothing is done. The clarification is the result, and waits
//
// For other clients the clarification is the result: its text says what may be
// replied, and the model or its user replies by calling ask again.
//
// Clients of the protocol from 2026-07-28 on are asked as its multi round-trip
// requests have it: the call's result is the form, and the client calls again with
// what the user said and with the state that it was given. That state names the
// conversation and the clarification, both of which any client may name, so nothing
// is won by changing it, and it needs no seal.
package mcp
