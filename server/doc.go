// Package server offers a pipeline over HTTP: turns as JSON or as server-sent
// events, conversations, documents, health, and an OpenAPI 3.1 description of
// all that at /openapi.json.
//
// # Turns
//
// A turn has an id, the client's or one that the server makes, which is the
// message's key: sent again it is the same turn. It runs in the server and not in
// the request:
//
//	POST   /api/conversations/{conversation}/turns                starts it, and follows it
//	GET    /api/conversations/{conversation}/turns/{turn}/events  follows it (again)
//	DELETE /api/conversations/{conversation}/turns/{turn}         stops it, and the model with it
//
// A lost connection does not stop a turn: its answer is written and kept, and is
// there when the client comes back. Only DELETE, Options.TurnLimit and the
// server's shutdown stop a turn.
//
// # Events
//
// A stream of server-sent events is numbered from 1 in each turn:
//
//	turn        {id, conversation}   first; if it comes again the turn was begun anew
//	waiting     {}                   another turn of the conversation has to end first
//	understood  {question}           the question, folded and standalone
//	retrieved   {passages}
//	decided     a gate's decision
//	delta       {text}               the next piece of the answer; joined they are the answer, byte for byte
//	result      the turn's result, as POST gives it without a stream
//	error       a problem (RFC 9457), instead of a result
//	end         {}                   last. A stream without it was interrupted
//
// A comment is sent every ten seconds from the start, so that no proxy takes the
// stream for dead. Who comes back says with Last-Event-ID what it has; once the
// stream was given to its end the answer to that is 204, which makes an
// EventSource stop. Some minutes after its end, or after a restart of the server, a
// turn is given from the store: whole, or, to a client that has the first part, its
// result alone. One that runs in another process with the same store is given when it
// is stored; only that process can stop it.
//
// # Keys
//
// With Options.Keys nobody is let in without a key but to what HandlePublic serves and
// to /healthz and /readyz; whose a request is (User) is its key's tenant. See
// server/keys, and server/tenant for what keeps tenants apart.
//
// # Errors
//
// Every error is an application/problem+json, see Problem.
package server
