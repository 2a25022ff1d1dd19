package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
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
	shown    string                     // of the answer, so far
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
	assumed  string             // an option that was settled earlier and is taken for granted
	trace    Trace
	result   Result // once it is stored
}

// timed runs f as a stage and records what it took.
func (t *turn) timed(name string, f func(context.Context) error) error {
	stage, err := runStage(t.ctx, name, f)
	t.trace.Stages = append(t.trace.Stages, stage)
	return err
}

// runStage runs f and says what it took.
func runStage(ctx context.Context, name string, f func(context.Context) error) (StageTime, error) {
	ctx, used := conversation.MeterUsage(ctx)
	start := time.Now()
	err := f(ctx)
	return StageTime{Name: name, Elapsed: time.Since(start), Usage: used(), Began: start, Err: seen(err)}, err
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
	err := t.timed("claim", func(ctx context.Context) (err error) {
		claim, err = t.claim(ctx)
		return err
	})
	var repeat *conversation.RepeatError
	if errors.As(err, &repeat) {
		return t.repeated(repeat.Turn)
	}
	if err != nil {
		return err
	}
	defer claim.Release()
	t.conv = claim.Conversation().Clone()
	if err := t.settledBefore(); err != nil {
		return err
	}
	result, err := t.answer()
	if err == nil {
		err = t.timed("commit", func(ctx context.Context) error { return t.commit(ctx, claim, result) })
	}
	if err != nil {
		t.keepPart(claim)
		return err
	}
	t.result = result
	return t.emit(Finished{result})
}

// claim waits for the right to write the next turn, and says so if that takes
// long.
func (t *turn) claim(ctx context.Context) (claim conversation.Claim, err error) {
	m := t.message
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(done)
		defer recovered("the store", &err)
		claim, err = t.p.parts.Store.Begin(ctx, conversation.Request{
			Conversation: m.Conversation, User: m.User, Key: m.Key, Text: cmp.Or(t.text, m.Choice)})
	}()
	select {
	case <-done:
		return claim, err
	case <-time.After(patience):
	}
	held := t.held(ctx)
	select {
	case <-done: // meanwhile
		return claim, err
	default:
	}
	if gone := t.emit(Waiting{held}); gone != nil {
		cancel()
		if <-done; err == nil {
			claim.Release()
		}
		return nil, gone
	}
	<-done
	return claim, err
}

// held tells who is at work on the conversation, if the store knows.
func (t *turn) held(ctx context.Context) conversation.Held {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := t.p.parts.Store.Load(ctx, t.message.Conversation, 1)
	if err != nil || c.Held == nil || c.User != t.message.User {
		return conversation.Held{}
	}
	return *c.Held
}

// recovered makes a part's panic an error of its turn. In a goroutine of the turn's it
// would end the program.
func recovered(part string, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s panicked: %v", part, p)
	}
}

// patience is how long a turn waits for another one without a word.
const patience = time.Second

// repeated gives the result of the turn that the same message had before.
func (t *turn) repeated(stored conversation.Turn) error {
	var r Record
	if err := json.Unmarshal(stored.Detail, &r); err != nil {
		return fmt.Errorf("reading turn %d of conversation %q: %w", stored.Number, t.message.Conversation, err)
	}
	if t.text != "" && t.text != stored.Text || t.text == "" && !r.clicked(t.message.Choice) {
		return ErrKey
	}
	result := r.Result()
	if result == nil {
		return fmt.Errorf("turn %d of conversation %q was not written by a pipeline", stored.Number, t.message.Conversation)
	}
	_ = t.emit(Finished{result}) // nothing is left to stop
	return nil
}

// settledBefore drops a clarification that has waited too long, and refuses a
// reply to one that waits no more.
func (t *turn) settledBefore() error {
	id := t.message.Clarification
	if p := t.conv.Pending; t.p.expired(p) {
		t.note("the clarification %s waited longer than %v and is dropped", p.ID, t.p.parts.Policy.Expire)
		t.conv.Pending = nil
		if t.message.Choice != "" || id == p.ID {
			return fmt.Errorf("%w: it expired after %v; ask the question again", ErrSettled, t.p.parts.Policy.Expire)
		}
	}
	if id == "" || t.conv.Pending != nil && t.conv.Pending.ID == id {
		return nil
	}
	for _, asked := range t.conv.Asked {
		if said := cmp.Or(strings.Join(asked.Chosen, ", "), asked.Detail); asked.ID == id && said != "" {
			return fmt.Errorf("%w: it was answered with %q", ErrSettled, said)
		}
	}
	return fmt.Errorf("%w: it was answered or dropped", ErrSettled)
}

// expired reports whether a clarification has waited longer than the policy
// lets it.
func (p *Pipeline) expired(c *conversation.Pending) bool {
	limit := p.parts.Policy.Expire
	return c != nil && limit > 0 && !c.At.IsZero() && time.Since(c.At) > limit
}

// keepPart keeps a turn that was broken off after a part of its answer was
// shown. What the turn had settled is not kept.
func (t *turn) keepPart(claim conversation.Claim) {
	if t.shown == "" {
		return
	}
	c := claim.Conversation()
	c.Turns = append(c.Turns, conversation.Turn{
		Number: c.Next(), At: time.Now().UTC(), Text: t.text, Question: t.question, Kind: conversation.KindPartial, Reply: t.shown,
	})
	_ = t.timed("keep", func(ctx context.Context) error { // the turn has failed already, and its error is told
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		return claim.Commit(ctx, c)
	})
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
	understood, queries, resolved := t.contextual(t.question)
	if resolved { // the dialogue has settled it: the gates read it whole
		t.question = understood
	}
	t.trace.Queries, t.trace.Context = queries, dialogueContext(unbroken(t.conv.Turns), t.question)
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
	passages, err = t.alsoAsked(t.carryOver(t.choose(passages)))
	if err != nil {
		return nil, err
	}
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
	r := generation.Request{Question: understood, History: recent(t.history, t.conv.Asked, t.p.parts.AnswerHistory), Passages: passages, Each: t.each, Assumption: t.assumption()}
	if asked, _, leans := strings.Cut(understood, followingMark); leans {
		r.Asked = asked
	}
	var whole *generation.Answer
	var pieces runes
	say := func(said string) error {
		if said == "" {
			return nil
		}
		if t.shown == "" {
			said = t.stillMeant() + said
		}
		return t.emit(Delta{said})
	}
	err := t.timed("generate", func(ctx context.Context) error {
		for e, err := range t.p.parts.Generator.Generate(ctx, r) {
			if err != nil {
				return fmt.Errorf("writing the answer: %w", err)
			}
			if err := say(pieces.next(e.Delta)); err != nil {
				return err
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
		return say(pieces.rest())
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
	return &Answer{Turn: Turn{Text: t.stillMeant() + validText(whole.Text), Question: understood}, Citations: whole.Citations, Assumption: cmp.Or(r.Assumption, t.assumed)}, nil
}

// stillMeant states what was settled earlier about another question and is taken
// to hold for this one too. The generator is not told, since it is no part of
// what is asked.
func (t *turn) stillMeant() string {
	if t.assumed == "" {
		return ""
	}
	return fmt.Sprintf("Assuming you still mean %s: ", t.assumed)
}

// assumption is the reading that is taken for granted when the user would not
// or could not say which was meant.
func (t *turn) assumption() string {
	if t.folded == nil || !t.folded.Assume {
		return ""
	}
	if o := append(slices.Clone(t.folded.Chosen), t.pending.Options...); len(o) > 0 {
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
func (t *turn) commit(ctx context.Context, claim conversation.Claim, r Result) error {
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
	if err := claim.Commit(ctx, t.conv); err != nil {
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
