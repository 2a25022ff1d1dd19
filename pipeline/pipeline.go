package pipeline

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/retrieval"
)

// Parts are what a pipeline is made of. Only Retriever and Generator are
// required.
type Parts struct {
	Retriever retrieval.Retriever   // finds passages
	Generator generation.Generator  // answers from them
	Clarifier gate.Clarifier        // reads at both gates; nil: never asks back
	Policy    gate.Policy           // when a gate may ask
	Store     conversation.Store    // keeps conversations; nil: in memory
	Matcher   conversation.Matcher  // similarity of a reply to the options; nil: rules alone
	Readers   []conversation.Reader // read replies that the rules are unsure of, each if the one before is unsure; conversation/reply has the embedded one. None: rules alone
	Rewriter  Rewriter              // makes follow-ups stand alone; nil: rules alone
	Limit     int                   // passages for gate 2 and the generator; 0: retrieval.DefaultLimit
	MaxText   int                   // longest message in bytes; 0: DefaultMaxText

	// GateHistory and AnswerHistory are how many tokens of the dialogue the gates
	// and the generator are given, by an estimate: the last turns, and what the user
	// settled before them. 0: DefaultGateHistory, DefaultAnswerHistory.
	GateHistory, AnswerHistory int

	// Observe, if set, is told of each turn at its end. A message that was sent again
	// is no turn of its own. It may be called from several goroutines; package
	// telemetry has one that counts.
	Observe func(context.Context, Outcome)
}

// Outcome is how a turn ended.
type Outcome struct {
	Result  Result // nil if it failed or was stopped
	Err     error  // why there is no result; context.Canceled if its reader left
	Began   time.Time
	Elapsed time.Duration
	Trace   Trace // as far as the turn came, with the stages that failed or were stopped
}

// DefaultConversation is the conversation of messages that name none.
const DefaultConversation = "default"

// DefaultMaxText is the longest message taken, in bytes.
const DefaultMaxText = 32 << 10

var (
	// ErrEmpty says that a message holds no text.
	ErrEmpty = errors.New("the message is empty; write a question")
	// ErrTooLong says that a message is longer than Parts.MaxText.
	ErrTooLong = errors.New("the message is too long")
	// ErrNoPending says that a choice was sent where no clarification waits.
	ErrNoPending = errors.New("no clarification waits for a reply here, or it was settled already; write the question instead")
	// ErrNoOption says that a choice names no option of the pending clarification.
	ErrNoOption = errors.New("the choice is none of the options")
	// ErrSettled says that a reply was meant for a clarification that waits no
	// more: it was answered, dropped or expired.
	ErrSettled = errors.New("this clarification waits no more")
	// ErrKey says that a message has the key of another one.
	ErrKey = errors.New("the message's key was used for another message; give each message a key of its own")
)

// Pipeline runs turns. It is safe for concurrent use; turns of one
// conversation run one after the other.
type Pipeline struct {
	parts Parts
	gate  gate.Gate
}

// New makes a pipeline of parts.
func New(parts Parts) (*Pipeline, error) {
	if parts.Retriever == nil {
		return nil, errors.New("a pipeline needs a Retriever; see retrieval/local for the embedded one")
	}
	if parts.Generator == nil {
		return nil, errors.New("a pipeline needs a Generator; see generation.Extractive for the embedded one")
	}
	if parts.Store == nil {
		parts.Store = conversation.NewMemory()
	}
	if parts.Limit <= 0 {
		parts.Limit = retrieval.DefaultLimit
	}
	if parts.GateHistory <= 0 {
		parts.GateHistory = DefaultGateHistory
	}
	if parts.AnswerHistory <= 0 {
		parts.AnswerHistory = DefaultAnswerHistory
	}
	if parts.MaxText <= 0 {
		parts.MaxText = DefaultMaxText
	}
	return &Pipeline{parts: parts, gate: gate.Gate{Clarifier: parts.Clarifier, Policy: parts.Policy}}, nil
}

// Message is what a user sends.
type Message struct {
	Conversation string // id of the conversation; "" means DefaultConversation
	Text         string // the user's words
	Choice       string // id of the pending clarification's option that was clicked, instead of Text

	// Clarification is the id of the clarification that the message replies to,
	// if the user's program knows it. A reply to one that waits no more is then
	// ErrSettled, and never taken for something else.
	Clarification string
	// User is who writes. Who begins a conversation owns it; for another user it
	// is conversation.ErrUser.
	User string
	// Key names the message, so that the same one sent again (a second click, a
	// request repeated after a lost connection) is one turn: the second gets the
	// first's result, and waits for it if need be. It is unique in the
	// conversation. "" means that no other message is this one.
	Key string
}

// Ask runs one turn and gives its result.
func (p *Pipeline) Ask(ctx context.Context, m Message) (Result, error) {
	for e, err := range p.Stream(ctx, m) {
		if err != nil {
			return nil, err
		}
		if f, ok := e.(Finished); ok {
			return f.Result, nil
		}
	}
	return nil, errors.New("the turn ended without a result")
}

// Stream runs one turn and gives its events as they happen. The last event is
// Finished, sent after the turn is stored; a stream that ends otherwise ends
// with an error. Breaking off the loop cancels the turn; who wants it to end
// although its reader has left goes on with the loop and drops the events. A turn that failed or
// was cancelled leaves the conversation as it was, but for this: if a part of its
// answer was given, the turn is kept with that part as conversation.KindPartial.
// It settles nothing, so a clarification that waited still waits.
func (p *Pipeline) Stream(ctx context.Context, m Message) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if m.Conversation == "" {
			m.Conversation = DefaultConversation
		}
		t := &turn{p: p, ctx: ctx, message: m}
		t.emit = func(e Event) error {
			if d, ok := e.(Delta); ok {
				t.shown += d.Text
			}
			if !yield(e, nil) {
				return errStopped
			}
			return nil
		}
		start := time.Now()
		err := t.run()
		if p.parts.Observe != nil && (err != nil || t.result != nil) {
			o := Outcome{Result: t.result, Began: start, Elapsed: time.Since(start), Trace: t.trace}
			if t.result == nil { // otherwise it was stored, whoever read it
				o.Err = seen(err)
			}
			p.parts.Observe(ctx, o)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// errStopped says that the consumer of a stream left.
var errStopped = errors.New("the consumer of the stream left")

// seen is an error as an observer is told of it.
func seen(err error) error {
	if errors.Is(err, errStopped) {
		return context.Canceled
	}
	return err
}

// clean makes a user's text safe to keep and show: valid UTF-8, no control
// characters but line breaks and tabs, no codes of a terminal, no surrounding space.
func clean(text string, limit int) (string, error) {
	if len(text) > limit {
		return "", fmt.Errorf("%w: %d bytes, the limit is %d; shorten it, or load long material as a document", ErrTooLong, len(text), limit)
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	text = conversation.WithoutEscapes(text)
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return '\n'
		case unicode.IsControl(r) || r == '\uFEFF':
			return -1
		}
		return r
	}, text)
	if strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '\uFFFD' }) == "" {
		return "", ErrEmpty
	}
	return strings.TrimSpace(text), nil
}
