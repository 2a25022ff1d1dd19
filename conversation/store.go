package conversation

import (
	"context"
	"errors"
)

var (
	// ErrBusy says that another turn of the same conversation is running and
	// did not end in time. Nothing was changed; try again.
	ErrBusy = errors.New("another turn of this conversation is running; wait for it to end and send the message again")
	// ErrNotFound says that there is no conversation of that id.
	ErrNotFound = errors.New("no such conversation")
	// ErrLost says that a claim ran out, or was released, before its commit:
	// another turn may have been written since. Nothing was changed.
	ErrLost = errors.New("the turn's claim on the conversation was lost; nothing was stored; send the message again")
)

// Store keeps conversations. All methods may be called from many goroutines,
// and for a store on disk from many processes. storetest holds the suite that
// every implementation passes.
type Store interface {
	// Begin claims conversation id for one turn and gives its state as the
	// claim sees it; an unknown id is an empty conversation. It waits while
	// another turn holds the claim, until ctx is done or the store's wait limit
	// is over: then ErrBusy. A claim whose process died expires.
	Begin(ctx context.Context, id string) (Claim, error)
	// Load gives a conversation as it is now, or ErrNotFound.
	Load(ctx context.Context, id string) (*Conversation, error)
	// List gives the ids of all conversations, most recently changed first.
	List(ctx context.Context) ([]string, error)
	// Delete removes a conversation, or ErrNotFound.
	Delete(ctx context.Context, id string) error
	// Close releases what the store holds.
	Close() error
}

// Claim is the right to write the next turn of one conversation.
type Claim interface {
	// Conversation is the state when the claim was made. The caller may change
	// the copy freely; only Commit stores anything.
	Conversation() *Conversation
	// Commit stores next, all or nothing, and ends the claim. Turns already
	// stored are never rewritten: next.Turns must begin with them, and what is
	// new must be numbered on from there. ErrLost if the claim is no longer held.
	// After an error nothing is stored, and the claim is held until Release.
	Commit(ctx context.Context, next *Conversation) error
	// Release ends the claim and leaves the conversation as it was. After
	// Commit it does nothing, so that it can be deferred.
	Release()
}
