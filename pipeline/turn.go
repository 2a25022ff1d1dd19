package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/retrieval"
)

// turn is the state of one run through the pipeline.
type turn struct {
	p       *Pipeline
	ctx     context.Context
	message Message
	emit    func(Event) error

	text     string                     // the user's words, clean
	conv     *conversation.Conversation // a copy, committed at the end
	question string                     // folded, as the gates read it
	history  []conversation.Message     // the dialogue before the question
	since    int                        // number of the turn that brought the question
	budget   gate.Budget
	folded   *conversation.Folded // how a pending clarification was settled
	pending  *conversation.Pending
	cosine   map[string]float64 // of each retrieved passage, by id; 0 if not known
	each     int                // passages at the front that must each be answered from
	aimed    bool               // gate 1 would have asked, but the search was aimed
	composed string             // the question with an option that was chosen earlier
	trace    Trace
}

// timed runs f and records how long it took.
func (t *turn) timed(name string, f func() error) error {
	start := time.Now()
	err := f()
	t.trace.Stages = append(t.trace.Stages, StageTime{name, time.Since(start)})
	return err
}

func (t *turn) note(format string, a ...any) {
	t.trace.Notes = append(t.trace.Notes, fmt.Sprintf(format, a...))
}

// run goes through the stages in order.
func (t *turn) run() error {
	if err := t.open(); err != nil {
		return err
	}
	var claim conversation.Claim
	if err := t.timed("claim", func() (err error) {
		claim, err = t.p.parts.Store.Begin(t.ctx, conversation.Request{Conversation: t.message.Conversation, Text: t.text})
		return err
	}); err != nil {
		return err
	}
	defer claim.Release()
	t.conv = claim.Conversation()
	result, err := t.answer()
	if err != nil {
		return err
	}
	if err := t.timed("commit", func() error { return t.commit(claim, result) }); err != nil {
		return err
	}
	return t.emit(Finished{result})
}

// open checks the message.
func (t *turn) open() (err error) {
	if t.message.Choice != "" && strings.TrimSpace(t.message.Text) == "" {
		return nil
	}
	t.text, err = clean(t.message.Text, t.p.parts.MaxText)
	return err
}

// answer finds the result of the turn without storing anything.
func (t *turn) answer() (Result, error) {
	if done, err := t.understand(); done != nil || err != nil {
		return done, err
	}
	understood, queries, resolved := standalone(t.conv.Turns, t.question)
	if resolved { // the dialogue has settled it: the gates read it whole
		t.question = understood
	}
	t.trace.Queries = queries
	if err := t.emit(Understood{understood}); err != nil {
		return nil, err
	}
	passages, asked, err := t.preGateAndRetrieval(queries)
	if asked != nil || err != nil {
		return asked, err
	}
	if text := t.missingIdentifier(understood); text != "" {
		return &NoAnswer{Turn{Text: text, Question: understood}}, nil
	}
	passages = t.carryOver(t.choose(passages))
	passages, asked, err = t.postGate(passages)
	if asked != nil || err != nil {
		return asked, err
	}
	if t.composed != "" {
		understood = t.composed
	}
	return t.generate(understood, passages)
}

// generate writes the answer from the passages, streaming.
func (t *turn) generate(understood string, passages []retrieval.Passage) (Result, error) {
	r := generation.Request{Question: understood, History: t.history, Passages: passages, Each: t.each, Assumption: t.assumption()}
	var whole *generation.Answer
	err := t.timed("generate", func() error {
		for e, err := range t.p.parts.Generator.Generate(t.ctx, r) {
			if err != nil {
				return fmt.Errorf("writing the answer: %w", err)
			}
			if e.Delta != "" {
				if err := t.emit(Delta{e.Delta}); err != nil {
					return err
				}
			}
			if e.Done != nil {
				whole = e.Done
			}
		}
		if whole == nil {
			if err := t.ctx.Err(); err != nil {
				return err
			}
			return fmt.Errorf("writing the answer: the generator's stream was cut before its end")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, d := range whole.Dropped {
		t.note("dropped the citation %s: no such passage", d)
	}
	if !whole.Found {
		return &NoAnswer{Turn{Text: notFound, Question: understood}}, nil
	}
	return &Answer{Turn: Turn{Text: whole.Text, Question: understood}, Citations: whole.Citations, Assumption: r.Assumption}, nil
}

// assumption is the reading that is taken for granted when the user would not
// or could not say which was meant.
func (t *turn) assumption() string {
	if t.folded == nil || !t.folded.Assume {
		return ""
	}
	if o := t.pending.Options; len(o) > 0 {
		return o[0].Text
	}
	return ""
}

// notFound is what is said when the sources do not hold the answer.
const notFound = "I could not find the answer to that in the sources I have."

// missingIdentifier says, for a question about identifiers of which the
// sources hold none, that they do not, and what comes near. Otherwise it is "".
// Nothing else is said then: a neighbour's text would be wrong.
func (t *turn) missingIdentifier(question string) string {
	store, ok := t.p.parts.Retriever.(retrieval.IdentifierStore)
	if !ok {
		return ""
	}
	known, err := store.KnownIdentifiers(t.ctx, question)
	if err != nil {
		t.note("identifiers could not be looked up: %v", err)
		return ""
	}
	if len(known) == 0 || slices.ContainsFunc(known, func(id retrieval.KnownIdentifier) bool { return id.Known }) {
		return ""
	}
	text := fmt.Sprintf("%s is not in the sources I have.", known[0].Identifier)
	if near := known[0].Nearest; len(near) > 0 {
		text += fmt.Sprintf(" Did you mean %s?", orList(near[:min(3, len(near))]))
	}
	return text
}

// commit stores the turn.
func (t *turn) commit(claim conversation.Claim, r Result) error {
	number := t.conv.Next()
	own := r.turn()
	own.Conversation, own.Number, own.Trace = t.message.Conversation, number, t.trace
	own.Trace.Queries = append([]string{}, t.trace.Queries...) // lists are never null in JSON
	own.Trace.Passages = append([]PassageTrace{}, t.trace.Passages...)
	own.Trace.Gates = append([]gate.Decision{}, t.trace.Gates...)
	record := r.Record()
	detail, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encoding the turn: %w", err)
	}
	t.conv.Turns = append(slices.Clone(t.conv.Turns), conversation.Turn{
		Number: number, At: time.Now().UTC(), Text: t.text, Question: record.Question,
		Kind: record.Kind, Reply: record.Text, Detail: detail,
	})
	if err := claim.Commit(t.ctx, t.conv); err != nil {
		return fmt.Errorf("storing the turn: %w", err)
	}
	return nil
}

// orList is "a, b or c".
func orList(items []string) string {
	last := len(items) - 1
	if last == 0 {
		return items[0]
	}
	return strings.Join(items[:last], ", ") + " or " + items[last]
}
