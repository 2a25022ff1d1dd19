package pipeline

import (
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/generation"
)

// Result is how a turn ended: exactly one of *Answer, *Clarification and
// *NoAnswer.
type Result interface {
	// Record is the result in its flat form, for JSON.
	Record() Record
	turn() *Turn
}

// Turn is what every result has.
type Turn struct {
	Conversation string `json:"conversation"`
	Number       int    `json:"turn"`     // of this turn in its conversation, from 1
	Text         string `json:"text"`     // what to show the user
	Question     string `json:"question"` // the question as understood
	Trace        Trace  `json:"trace"`
}

// Answer is a grounded answer. Without citations it is small talk or an
// acknowledgement.
type Answer struct {
	Turn
	Citations  []generation.Citation
	Assumption string // the reading that was assumed and stated, "" if none
}

// Clarification asks back. The conversation now waits for a reply.
type Clarification struct {
	Turn
	ID      string     // of the pending clarification
	Gate    gate.Stage // which gate asked
	Options []conversation.Option
}

// NoAnswer says that the sources do not hold the answer.
type NoAnswer struct{ Turn }

func (t *Turn) turn() *Turn { return t }

// Record is the flat form of a result, as written by `askback chat --json`.
// Lists are never null.
type Record struct {
	Conversation string            `json:"conversation"`
	Turn         int               `json:"turn"`
	Kind         conversation.Kind `json:"kind"`
	Text         string            `json:"text"`
	Question     string            `json:"question"`
	Gate         gate.Stage        `json:"gate"`
	// Clarification is the id of the clarification that waits for a reply; ""
	// for the other kinds.
	Clarification string                `json:"clarification,omitempty"`
	Options       []conversation.Option `json:"options"`
	Citations     []generation.Citation `json:"citations"`
	Assumption    string                `json:"assumption,omitempty"`
	Trace         Trace                 `json:"trace"`
}

// clicked says whether the turn was a click on the option of that id.
func (r Record) clicked(option string) bool {
	reply := r.Trace.Reply
	return reply != nil && len(reply.Chosen) == 1 && reply.Chosen[0].ID == option
}

func (t *Turn) record(k conversation.Kind) Record {
	return Record{Conversation: t.Conversation, Turn: t.Number, Kind: k, Text: t.Text, Question: t.Question,
		Options: []conversation.Option{}, Citations: []generation.Citation{}, Trace: t.Trace}
}

// Record gives the answer's flat form.
func (a *Answer) Record() Record {
	r := a.record(conversation.KindAnswer)
	r.Citations, r.Assumption = append(r.Citations, a.Citations...), a.Assumption
	return r
}

// Record gives the clarification's flat form.
func (c *Clarification) Record() Record {
	r := c.record(conversation.KindClarification)
	r.Clarification, r.Gate, r.Options = c.ID, c.Gate, append(r.Options, c.Options...)
	return r
}

// Record gives the flat form.
func (n *NoAnswer) Record() Record { return n.record(conversation.KindNoAnswer) }

// Result is what the record was made from, or nil if its kind is none of a
// result's.
func (r Record) Result() Result {
	t := Turn{Conversation: r.Conversation, Number: r.Turn, Text: r.Text, Question: r.Question, Trace: r.Trace}
	switch r.Kind {
	case conversation.KindAnswer:
		return &Answer{t, r.Citations, r.Assumption}
	case conversation.KindClarification:
		return &Clarification{t, r.Clarification, r.Gate, r.Options}
	case conversation.KindNoAnswer:
		return &NoAnswer{t}
	}
	return nil
}

// Trace is what happened in a turn and how long it took.
type Trace struct {
	Reply    *ReplyTrace     `json:"reply,omitempty"`       // how a pending clarification was dealt with
	Queries  []string        `json:"queries"`               // wordings sent to the retriever, best first
	Context  string          `json:"context,omitempty"`     // of the dialogue, sent along
	Passages []PassageTrace  `json:"passages"`              // what came back, best first
	Gates    []gate.Decision `json:"gates"`                 // in the order they ran
	Saved    int             `json:"calls_saved,omitempty"` // of a second clarifier, since the first was sure
	Stages   []StageTime     `json:"stages"`                // time by stage
	Notes    []string        `json:"notes,omitempty"`       // anything out of the ordinary: a late gate, a dropped citation
}

// ReplyTrace says how a reply to a pending clarification was understood.
type ReplyTrace struct {
	Pending  string                 `json:"pending"`  // id of the clarification
	Original string                 `json:"original"` // the question it belongs to
	Kind     conversation.ReplyKind `json:"kind"`
	Rule     string                 `json:"rule"`
	Chosen   []conversation.Option  `json:"chosen,omitempty"`
	Excluded []conversation.Option  `json:"excluded,omitempty"` // ruled out
	Detail   string                 `json:"detail,omitempty"`   // what was said in own words
	Question string                 `json:"question"`           // the question to go on with
}

// PassageTrace names a retrieved passage.
type PassageTrace struct {
	ID     string  `json:"id"`
	Title  string  `json:"title"`
	Score  float64 `json:"score"`            // of the fused ranking
	Cosine float64 `json:"cosine,omitempty"` // similarity to the question, if the retriever tells it
}

// StageTime is what one stage of the turn took.
type StageTime struct {
	// Name is claim, fold, rewrite, gate pre, retrieve, gate post, generate, commit or
	// keep: the last two store the turn, whole or what was shown of a broken one. They
	// are told to Parts.Observe alone, since the trace is stored before they end.
	Name    string             `json:"name"`
	Elapsed time.Duration      `json:"elapsed_ns"`
	Usage   conversation.Usage `json:"usage,omitzero"` // of the language models that were asked in it

	// Began and Err are not kept. Err is why the stage failed; a turn may go on all
	// the same.
	Began time.Time `json:"-"`
	Err   error     `json:"-"`
}

// Usage is what language models read and wrote for the turn, all stages together.
func (t Trace) Usage() (u conversation.Usage) {
	for _, s := range t.Stages {
		u = u.Plus(s.Usage)
	}
	return u
}

// Event is a step of a turn: Waiting, Understood, Retrieved, Decided, Delta or
// Finished.
type Event interface{ event() }

// Waiting is sent when another turn of the conversation, which has to end first,
// has been running for a second. A process that died while it ran one holds the
// conversation until its claim runs out.
type Waiting struct {
	Held conversation.Held // which process runs it, as far as the store tells
}

// Understood is sent when the question is known: folded and standalone.
type Understood struct{ Question string }

// Retrieved is sent when the passages are there.
type Retrieved struct{ Passages []PassageTrace }

// Decided is sent when a gate has decided.
type Decided struct{ gate.Decision }

// Delta is the next piece of an answer's text. The pieces joined equal the
// answer's Text.
type Delta struct{ Text string }

// Finished is the last event: the turn is committed.
type Finished struct{ Result Result }

func (Waiting) event()    {}
func (Understood) event() {}
func (Retrieved) event()  {}
func (Decided) event()    {}
func (Delta) event()      {}
func (Finished) event()   {}
