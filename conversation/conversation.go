package conversation

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Role says who wrote a message.
type Role string

// The two roles of a dialogue.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one utterance of a dialogue.
type Message struct {
	Role Role   `json:"role"`
	Text string `json:"text"`
}

// Kind says how a turn ended.
type Kind string

// A turn ends in exactly one of these ways.
const (
	KindAnswer        Kind = "answer"        // answered, with citations where it rests on passages
	KindClarification Kind = "clarification" // asked back; the conversation waits for a reply
	KindNoAnswer      Kind = "no_answer"     // the sources do not hold the answer
	// KindPartial is a turn that was broken off. Reply holds what the user had
	// been shown of the answer, if anything. Such a turn settles nothing: the
	// conversation's State is as it was before it.
	KindPartial Kind = "partial"
)

// Turn is one exchange: what the user wrote and what came back.
type Turn struct {
	Number   int             `json:"number"`           // from 1, without gaps
	At       time.Time       `json:"at"`               // when the turn was committed, UTC
	Text     string          `json:"text"`             // the user's words
	Question string          `json:"question"`         // the question as understood: standalone, folded
	Kind     Kind            `json:"kind"`             // how the turn ended
	Reply    string          `json:"reply"`            // the assistant's words
	Detail   json.RawMessage `json:"detail,omitempty"` // whatever the pipeline keeps with the turn (citations, trace); opaque here
	Key      string          `json:"key,omitempty"`    // of the message, see Request; a message that was broken off may stand again, answered
}

// Option is one reading that a clarification offers.
type Option struct {
	ID       string   `json:"id"`       // short, unique in its clarification: "1", "2", ...
	Text     string   `json:"text"`     // as shown to the user
	Passages []string `json:"passages"` // ids of the passages that this reading rests on; empty if none
}

// Pending is the clarification that waits for a reply. A conversation has one
// at most.
type Pending struct {
	ID       string   `json:"id"`       // unique in the conversation
	Gate     string   `json:"gate"`     // "pre" or "post"
	Question string   `json:"question"` // the original question with what was learnt so far; never lost
	Text     string   `json:"text"`     // the clarification as shown
	Options  []Option `json:"options,omitempty"`
	Unclear  []string `json:"unclear,omitempty"` // the user's words that are unclear, if known
	Asked    int      `json:"asked"`             // clarifications in a row, this one included
	Since    int      `json:"since"`             // number of the turn that brought the original question
	Chosen   []string `json:"chosen,omitempty"`  // once settled: the texts of the options that the user chose

	Settled ReplyKind `json:"settled,omitempty"` // once settled: how
	Detail  string    `json:"detail,omitempty"`  // once settled: what the user said in own words
	Assumed string    `json:"assumed,omitempty"` // once settled without an answer: the option that was taken for granted

	At time.Time `json:"at,omitzero"` // when it was shown, UTC
}

// State is what a conversation carries from turn to turn beside its turns. A
// store keeps it as one JSON value that each turn writes anew, so it has to stay
// small however long the conversation gets.
type State struct {
	Pending *Pending `json:"pending,omitempty"`
}

// Conversation is one dialogue, or its end: a long one is read by its last
// turns.
type Conversation struct {
	ID      string `json:"id"`
	User    string `json:"user,omitempty"`    // whose conversation it is; "" if nobody's in particular
	Title   string `json:"title,omitempty"`   // the name that it was given, or else its first question, see Title; a claim does not give it
	Earlier int    `json:"earlier,omitempty"` // turns before those in Turns, which were not read
	Turns   []Turn `json:"turns"`             // the last turns, oldest first
	State
	Asked []Pending `json:"asked,omitempty"` // the clarifications shown here, oldest first, the last 128 of them; none is shown twice
	Open  *Turn     `json:"open,omitempty"`  // the turn that runs now, which has no reply yet; a claim's own is not given
	Held  *Held     `json:"-"`               // the claim of Open; nil if it has run out, so that nobody is at work on it
}

// Held tells of the claim that a running turn has on its conversation.
type Held struct {
	By    string    // the process that runs the turn, as Holder names it; "" if that is not known
	Until time.Time // when the claim runs out unless the process moves it on; zero in a store for one process
}

// Holder names this process among all that may share a store.
func Holder() string {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Sprintf("process %d", os.Getpid())
	}
	return fmt.Sprintf("process %d on %s", os.Getpid(), host)
}

// Next is the number of the turn that comes after those of c.
func (c *Conversation) Next() int { return c.Earlier + len(c.Turns) + 1 }

// Before gives those of c's turns that came before the turn of that number.
func (c *Conversation) Before(number int) []Turn {
	return c.Turns[:max(0, min(number-1-c.Earlier, len(c.Turns)))]
}

// History gives the dialogue as messages, oldest first: for each turn the
// user's words and the assistant's. Turns that were broken off are left out.
func (c *Conversation) History() []Message {
	m := make([]Message, 0, 2*len(c.Turns))
	for _, t := range c.Turns {
		if t.Kind == KindPartial {
			continue
		}
		m = append(m, Message{User, t.Text}, Message{Assistant, t.Reply})
	}
	return m
}
