package conversation

import (
	"context"
	"errors"
	"iter"
	"time"
)

var (
	// ErrBusy says that another turn of the same conversation is running and
	// did not end in time, or that too many wait for it already. Nothing was
	// changed; try again.
	ErrBusy = errors.New("another turn of this conversation is running; wait for it to end and send the message again")
	// ErrNotFound says that there is no conversation of that id.
	ErrNotFound = errors.New("no such conversation")
	// ErrLost says that a claim ran out, or was released, before its commit:
	// another turn may have been written since. Nothing was changed.
	ErrLost = errors.New("the turn's claim on the conversation was lost; nothing was stored; send the message again")
	// ErrFull is wrapped by the error for a store that has no room left. Nothing was
	// changed.
	ErrFull = errors.New("there is no room left for conversations")
	// ErrUser says that the conversation is another user's.
	ErrUser = errors.New("the conversation belongs to another user")
)

// RepeatError says that a turn with the request's key was stored before: the
// message came twice. Turn is that turn.
type RepeatError struct{ Turn Turn }

func (e *RepeatError) Error() string {
	return "the message was answered already: a turn with its key is stored"
}

// Store keeps conversations. All methods may be called from many goroutines,
// and for a store on disk from many processes. storetest holds the suite that
// every implementation passes.
type Store interface {
	// Begin claims a conversation for one turn, keeps the user's words, and gives
	// the state as the claim sees it; an unknown id is an empty conversation. It
	// waits while another turn holds the claim, until ctx is done or the store's
	// wait limit is over, or not at all if too many wait already: then ErrBusy.
	// A claim whose process died expires; its turn is then kept as one of
	// KindPartial, unless its key is the request's: then it is taken up again
	// under its number. A key whose turn is stored gives a *RepeatError.
	Begin(ctx context.Context, r Request) (Claim, error)
	// Load gives a conversation as it is now, with its last so many turns (0
	// means DefaultLast, All all), or ErrNotFound.
	Load(ctx context.Context, id string, last int) (*Conversation, error)
	// Rename gives a conversation a title, cleaned by CleanTitle; "" takes it away,
	// so that the first question is its title again. ErrNotFound if there is none of
	// that id.
	Rename(ctx context.Context, id, title string) error
	// List gives the conversations that the filter leaves, most recently changed
	// first, those of one moment by their id. An error ends it.
	List(ctx context.Context, f Filter) iter.Seq2[Info, error]
	// Delete removes the conversations that the filter leaves, with all that was
	// kept of them, and says how many there were. A turn that runs in one of them
	// is lost. An empty filter is an error. By age alone a conversation in which
	// a turn runs is spared.
	Delete(ctx context.Context, f Filter) (int, error)
	// Close releases what the store holds.
	Close() error
}

// Request asks for the next turn of a conversation.
type Request struct {
	Conversation string // its id, see CheckID
	User         string // whose conversation it is. Who begins one owns it: for another user it is ErrUser
	Text         string // the user's words, kept at once so that a crash does not lose them
	// Key names the message: the same message sent again has the same key and is
	// one turn. It is unique in its conversation. "" means that no other
	// message is this one.
	Key  string
	Last int // how many of the last turns are read; 0 means DefaultLast, All all
}

// How many of a conversation's last turns are read.
const (
	DefaultLast = 50
	All         = -1
)

// Filter chooses conversations; each field that is set narrows it down.
type Filter struct {
	ID     string    // the conversation of that id
	User   string    // the conversations of that user
	Before time.Time // those that last changed before
	Limit  int       // how many List gives at most; 0: all. Delete does not look at it
}

// IsZero reports whether the filter leaves every conversation.
func (f Filter) IsZero() bool {
	f.Limit = 0
	return f == Filter{}
}

// Info tells of a conversation without its turns.
type Info struct {
	ID      string    `json:"id"`
	User    string    `json:"user,omitempty"`
	Title   string    `json:"title"` // as in Conversation
	Turns   int       `json:"turns"`
	Created time.Time `json:"created"` // UTC
	Changed time.Time `json:"changed"` // when its last turn was stored, UTC
	Pending bool      `json:"pending"` // a clarification waits for a reply
	Running bool      `json:"running"` // a turn runs now
}

// Claim is the right to write the next turn of one conversation.
type Claim interface {
	// Conversation is the state when the claim was made; its turns come without
	// their Detail. The caller may change the copy freely; only Commit stores
	// anything.
	Conversation() *Conversation
	// Commit stores next, all or nothing, and ends the claim. Turns already
	// stored are never rewritten: next.Turns must begin with them, and what is
	// new must be numbered on from there. Clarifications in next.Asked are added
	// or replaced by their id, and never removed. ErrLost if the claim is no
	// longer held. After an error nothing is stored, and the claim is held until
	// Release.
	Commit(ctx context.Context, next *Conversation) error
	// Release ends the claim and leaves the conversation as it was. After
	// Commit it does nothing, so that it can be deferred.
	Release()
}
