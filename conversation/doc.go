// Package conversation holds what was said: turns, the clarification that
// waits for a reply, how a reply is folded back into the question it belongs
// to, and the stores that keep conversations.
//
// It imports no other stage. Messages are its small value type that the other
// stages share.
package conversation
