// Package openai serves a pipeline to clients of OpenAI's chat completions:
//
//	POST /v1/chat/completions   a turn, whole or streamed
//	GET  /v1/models             the one model
//	GET  /v1/models/{model}
//
// # What comes back
//
// The assistant's message is the answer with its sources below, or that the sources
// do not hold it, or a clarification with its options numbered and what may be
// replied, so that it reads well where only text is shown. finish_reason is "stop".
// The same stands in fields of the message, for programs: choices[0].message.askback,
// and when streamed choices[0].delta.askback of the chunk with the finish_reason:
// see Extension. Usage is what the models counted that were asked for the turn: to
// write the answer, to read a reply or a follow-up, to decide at a gate. Where none
// was asked, or its server does not count, the reply has no usage, and a stream no
// chunk with it.
//
// A stream begins with the assistant's role, sends a comment every ten seconds while
// nothing else is to be sent, and ends with [DONE]. Without it, it was cut. An error
// after its start is sent as data: {"error": ...}. A client that leaves stops the turn.
//
// # What may be sent
//
// The last message is the user's; its text parts are joined. Messages before it are
// the dialogue, see below. Messages of the roles system and developer are accepted
// and never read: what the assistant is told is its operator's to say, and text that
// a client sends with a question is no part of the question. The request's field
// askback (see Ask) names a conversation, clicks an option, or wants the trace.
//
// Accepted without effect: temperature, top_p, max_tokens, max_completion_tokens,
// stop, seed, penalties, logit_bias, user, store, metadata and everything else that
// shapes a model's sampling. Tools are accepted and never called. Refused, since what
// comes back would not be what was asked for: n over 1, a tool_choice that demands a
// call, a response_format other than text, logprobs, audio, images and files, and any
// other model than the one served.
//
// # Conversations
//
// With a conversation named in askback.conversation, that conversation of the store
// is the truth, and of the messages only the last is read.
//
// Other clients know of no conversations and send the whole dialogue each time. Then
// the dialogue sent is the truth. The conversation that it continues is found by a
// digest: a conversation is stored under the digest of the dialogue (user's messages
// and the assistant's texts as they were given) that it had when it began, which is
// after its first answer. So a reply to a clarification finds what waits for it,
// with its options and what they rest on, on each server that shares the store.
//
// The dialogue that is sent may end in the midst of the stored one, when the client
// edits or asks again, or when two clients had the same dialogue so far; then a new
// conversation takes over the turns, and what waited for a reply after them. What is
// sent and stands nowhere (another server's, another model's, or the store was lost)
// begins a conversation with the messages as its turns. A clarification of ours is known
// by its wording then, so that the reply is folded in all the same, though what its
// options rest on is lost.
//
// User's messages that no reply follows are left out, and so is what the assistant
// says before the user's first message.
package openai
