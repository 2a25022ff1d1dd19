package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
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
		claim, err = t.p.parts.Store.Begin(t.ctx, t.message.Conversation)
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

// understand settles what the question is: it folds a reply into the pending
// question and answers small talk. A result ends the turn.
func (t *turn) understand() (Result, error) {
	p := t.conv.Pending
	t.since = len(t.conv.Turns) + 1
	t.budget = gate.Budget{Asked: t.conv.Asked}
	if p == nil {
		if t.message.Choice != "" {
			return nil, ErrNoPending
		}
		if reply, ok := conversation.Smalltalk(t.text); ok {
			return t.say(t.text, reply), nil
		}
		t.question, t.history = t.text, settledHistory(t.conv.Turns)
		return nil, t.theOther()
	}
	t.pending, t.budget.InARow = p, p.Asked
	var f conversation.Folded
	err := t.timed("fold", func() (err error) {
		if t.message.Choice != "" {
			f, err = conversation.FoldChoice(*p, t.message.Choice)
			if err != nil {
				return fmt.Errorf("%w: %w", ErrNoOption, err)
			}
			if t.text == "" {
				t.text = f.Chosen[0].Text
			}
			return nil
		}
		f, err = conversation.Fold(t.ctx, *p, t.text, t.p.parts.Matcher)
		return err
	})
	if err != nil {
		return nil, err
	}
	t.trace.Reply = &ReplyTrace{Pending: p.ID, Original: p.Question, Kind: f.Kind, Rule: f.Rule, Chosen: f.Chosen}
	switch f.Kind {
	case conversation.ReplyExplain, conversation.ReplyUnclear:
		return t.repeat(f), nil
	case conversation.ReplyCancel:
		t.settle(f)
		return t.say(t.text, f.Say), nil
	case conversation.ReplyNewQuestion:
		t.settle(f)
		if reply, ok := conversation.Smalltalk(t.text); ok {
			return t.say(t.text, reply), nil
		}
		t.question, t.history = t.text, settledHistory(t.conv.Turns)
		return nil, nil
	}
	t.settle(f)
	t.folded, t.question, t.since = &f, f.Question, p.Since
	t.history = settledHistory(t.conv.Turns[:max(0, min(p.Since-1, len(t.conv.Turns)))])
	return nil, nil
}

var otherOne = regexp.MustCompile(`(?i)^\s*(and |or |what about |how about )?the other( one)?\W*$`)

// theOther resolves "and the other one?" after a choice between two options:
// the question is the same, with the other option.
func (t *turn) theOther() error {
	n := len(t.conv.Asked)
	if n == 0 || !otherOne.MatchString(t.text) {
		return nil
	}
	asked := t.conv.Asked[n-1]
	if len(asked.Options) != 2 || len(asked.Chosen) != 1 {
		return nil
	}
	other := asked.Options[0]
	if other.Text == asked.Chosen[0] {
		other = asked.Options[1]
	}
	f, err := conversation.FoldChoice(asked, other.ID)
	if err != nil {
		return err
	}
	t.folded, t.pending, t.question = &f, &asked, f.Question
	t.trace.Reply = &ReplyTrace{Pending: asked.ID, Original: asked.Question, Kind: f.Kind, Rule: "the other one", Chosen: f.Chosen}
	return nil
}

// settle ends the pending clarification and keeps what the user chose, so that
// it is not asked again.
func (t *turn) settle(f conversation.Folded) {
	for _, o := range f.Chosen {
		for i := range t.conv.Asked {
			if t.conv.Asked[i].ID == t.conv.Pending.ID {
				t.conv.Asked[i].Chosen = append(t.conv.Asked[i].Chosen, o.Text)
			}
		}
	}
	t.conv.Pending = nil
}

// repeat shows the pending clarification again with a word of explanation. An
// explanation costs nothing; asking which of two was meant costs one ask.
func (t *turn) repeat(f conversation.Folded) Result {
	p := *t.conv.Pending
	if f.Kind == conversation.ReplyUnclear {
		p.Asked++
	}
	t.conv.Pending = &p
	return &Clarification{
		Turn: Turn{Text: f.Say, Question: p.Question}, ID: p.ID, Gate: gate.Stage(p.Gate), Options: p.Options,
	}
}

// say is an answer that needs no sources: small talk, an acknowledgement.
func (t *turn) say(question, text string) Result {
	return &Answer{Turn: Turn{Text: text, Question: question}}
}

// settledHistory is the dialogue as the gates read it: what was asked, as
// understood, and what was answered. The back and forth of a clarification is
// left out, since its outcome stands in the question as understood.
func settledHistory(turns []conversation.Turn) []conversation.Message {
	var m []conversation.Message
	for i, turn := range turns {
		if turn.Kind == conversation.KindClarification && i+1 < len(turns) {
			continue
		}
		m = append(m,
			conversation.Message{Role: conversation.User, Text: turn.Question},
			conversation.Message{Role: conversation.Assistant, Text: turn.Reply})
	}
	return m
}

// preGateAndRetrieval runs gate 1 and retrieval at the same time; if the gate
// asks, retrieval is cancelled.
func (t *turn) preGateAndRetrieval(queries []string) ([]retrieval.Passage, Result, error) {
	type found struct {
		hits    []retrieval.Hit
		err     error
		elapsed time.Duration
	}
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	done := make(chan found, 1)
	go func() {
		start := time.Now()
		hits, err := retrieve(ctx, t.p.parts.Retriever, retrieval.Query{Texts: queries, Limit: t.p.parts.Limit})
		done <- found{hits, err, time.Since(start)}
	}()
	wait := func() found { return <-done }
	if t.folded == nil { // a reply has made the question clear enough to search for
		d, err := t.gateDecision(gate.Request{Stage: gate.Pre, History: t.history, Question: t.question})
		if err == nil && d.Ask && d.Score < sureScore {
			// The search runs already: if it soon comes back with what the question is
			// about, it could be aimed, and gate 1 has nothing to ask.
			select {
			case f := <-done:
				done <- f
				if f.err == nil && aimed(t.question, f.hits) {
					d.Ask, d.Reason, t.aimed = false, gate.ReasonAimed, true
				}
			case <-time.After(searchGrace):
			}
		}
		if err == nil {
			err = t.decided(d)
		}
		if err != nil || d.Ask {
			cancel()
			wait()
			if err != nil {
				return nil, nil, err
			}
			return nil, t.ask(d), nil
		}
	}
	f := wait()
	t.trace.Stages = append(t.trace.Stages, StageTime{"retrieve", f.elapsed})
	if f.err != nil {
		return nil, nil, fmt.Errorf("retrieving passages: %w", f.err)
	}
	passages := make([]retrieval.Passage, len(f.hits))
	t.cosine = map[string]float64{}
	for i, h := range f.hits {
		passages[i] = h.Passage
		t.cosine[h.ID] = h.Cosine
		t.trace.Passages = append(t.trace.Passages, PassageTrace{h.ID, h.Title, h.Score, h.Cosine})
	}
	return passages, nil, t.emit(Retrieved{slices.Clone(t.trace.Passages)})
}

// retrieve asks a retriever, and for the similarities too if it can tell them.
func retrieve(ctx context.Context, r retrieval.Retriever, q retrieval.Query) ([]retrieval.Hit, error) {
	if e, ok := r.(retrieval.Explainer); ok {
		return e.Explain(ctx, q)
	}
	passages, err := r.Retrieve(ctx, q)
	hits := make([]retrieval.Hit, len(passages))
	for i, p := range passages {
		hits[i].Passage = p
	}
	return hits, err
}

// farCosine is the similarity below which a passage has nothing to do with the
// question.
const farCosine = 0.25

// nearShare is how similar to the question a passage must be, as a share of
// the most similar one's cosine, to compete with it at gate 2.
const nearShare = 0.6

// near leaves out the passages that are beside the point: a retriever gives as
// many as it is asked for, and gate 2 is to compare those that may answer.
// Without similarities all stay.
func (t *turn) near(passages []retrieval.Passage) []retrieval.Passage {
	return t.within(passages, max(nearShare*t.bestCosine(), farCosine))
}

// within leaves out the passages whose similarity is known and below least.
func (t *turn) within(passages []retrieval.Passage, least float64) []retrieval.Passage {
	if t.bestCosine() == 0 {
		return passages
	}
	return slices.DeleteFunc(slices.Clone(passages), func(p retrieval.Passage) bool {
		cosine, known := t.cosine[p.ID]
		return known && cosine < least
	})
}

// bestCosine is that of the passage most similar to the question, 0 if the
// retriever does not tell it.
func (t *turn) bestCosine() float64 {
	best := 0.0
	for _, c := range t.cosine {
		best = max(best, c)
	}
	return best
}

// gateDecision runs one gate.
func (t *turn) gateDecision(r gate.Request) (d gate.Decision, err error) {
	err = t.timed("gate "+string(r.Stage), func() (err error) {
		d, err = t.p.gate.Decide(t.ctx, r, t.budget)
		return err
	})
	return d, err
}

// decided records what a gate decided.
func (t *turn) decided(d gate.Decision) error {
	t.trace.Gates = append(t.trace.Gates, d)
	return t.emit(Decided{d})
}

const (
	// sureScore is the score from which on gate 1 asks whatever the search finds.
	sureScore = 0.9
	// searchGrace is how long gate 1, when it would ask, waits for the search.
	searchGrace = 2 * time.Second
	// aimedCosine is the similarity from which on a passage that shares a word with
	// the question counts as what it is about. Bare pronouns and fragments stay
	// below it over any sources.
	aimedCosine = 0.4
)

// aimed reports whether the search found what the question is about: a passage
// that is similar and shares a word with it, or, where the retriever does not
// tell similarities, a heading that holds all of its words, two at least.
func aimed(question string, hits []retrieval.Hit) bool {
	var words []string
	for _, w := range wordsOf(question) {
		if len(w) >= 3 && !aimless[w] {
			words = append(words, w)
		}
	}
	holds := func(text string) (n int) {
		text = strings.ToLower(text)
		for _, w := range words {
			if strings.Contains(text, w) {
				n++
			}
		}
		return n
	}
	return slices.ContainsFunc(hits, func(h retrieval.Hit) bool {
		if h.Cosine == 0 {
			return len(words) >= 2 && holds(h.Title) == len(words)
		}
		return h.Cosine >= aimedCosine && holds(h.Title+" "+h.Text) > 0
	})
}

// aimless are words that stand in any question.
var aimless = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq("the and for are was how why who can may our its his her out get got any all but not too now you yes one two him she had did does use say see way what when where which whom whose does long take much many this that these those there have about with from your they them then tell here will would could should also know want need please just like more some other another same thing things") {
		m[w] = true
	}
	return m
}()

// choose keeps to the reading that the user chose: the passages of the options
// that were not chosen, or were ruled out, are left aside, and those of the
// chosen ones come first.
func (t *turn) choose(passages []retrieval.Passage) []retrieval.Passage {
	if t.folded == nil {
		return passages
	}
	chosen := t.folded.Chosen
	if len(chosen) == 0 && t.folded.Assume && len(t.pending.Options) > 0 {
		chosen = t.pending.Options[:1]
	}
	passages = t.keepTo(passages, t.pending.Options, chosen, t.folded.Excluded)
	if len(t.folded.Excluded) > 0 && len(chosen) == 0 {
		// None of the readings that fitted best is meant: what is left answers only
		// if it fits about as well.
		passages = t.within(passages, besideShare*t.bestCosine())
	}
	return passages
}

// besideShare is how similar to the question a passage must be, as a share of
// the most similar one's cosine, to answer when the best ones are ruled out.
const besideShare = 0.8

// carryOver keeps to what the user chose earlier in the conversation: of
// passages whose headings name an option that was not chosen then, those are
// left aside that have a counterpart for the chosen one, unless the question
// names the other now.
func (t *turn) carryOver(passages []retrieval.Passage) []retrieval.Passage {
	names := func(text, option string) bool {
		return strings.Contains(" "+strings.Join(wordsOf(text), " ")+" ", " "+strings.Join(wordsOf(option), " ")+" ")
	}
	for _, asked := range t.conv.Asked {
		for _, chosen := range asked.Chosen {
			if !slices.ContainsFunc(passages, func(p retrieval.Passage) bool { return names(p.Title, chosen) }) {
				continue
			}
			passages = slices.DeleteFunc(slices.Clone(passages), func(p retrieval.Passage) bool {
				return !names(p.Title, chosen) && slices.ContainsFunc(asked.Options, func(o conversation.Option) bool {
					return !slices.Contains(asked.Chosen, o.Text) && names(p.Title, o.Text) && !names(t.question, o.Text)
				})
			})
		}
	}
	return passages
}

func wordsOf(text string) []string { return word.FindAllString(strings.ToLower(text), -1) }

// keepTo puts the passages of the chosen options first and leaves out those of
// the options that were not chosen or are excluded.
func (t *turn) keepTo(passages []retrieval.Passage, options, chosen, excluded []conversation.Option) []retrieval.Passage {
	want, drop := map[string]bool{}, map[string]bool{}
	for _, o := range chosen {
		for _, id := range o.Passages {
			want[id] = true
		}
	}
	if len(want) > 0 {
		excluded = append(slices.Clone(excluded), options...)
	}
	for _, o := range excluded {
		for _, id := range o.Passages {
			drop[id] = !want[id]
		}
	}
	if len(want)+len(drop) == 0 {
		return passages
	}
	var first, rest []retrieval.Passage
	for _, p := range passages {
		switch {
		case want[p.ID]:
			first = append(first, p)
			delete(want, p.ID)
		case !drop[p.ID]:
			rest = append(rest, p)
		}
	}
	first = append(first, t.fetch(want)...)
	if len(chosen) > 1 {
		first = t.onePerOption(first, chosen)
	}
	return append(first, rest...)
}

// onePerOption moves one passage of each chosen option to the front, in the
// options' order, so that each is answered.
func (t *turn) onePerOption(passages []retrieval.Passage, chosen []conversation.Option) []retrieval.Passage {
	var front []retrieval.Passage
	for _, o := range chosen {
		i := slices.IndexFunc(passages, func(p retrieval.Passage) bool { return slices.Contains(o.Passages, p.ID) })
		if i >= 0 {
			front = append(front, passages[i])
			passages = slices.Delete(slices.Clone(passages), i, i+1)
		}
	}
	t.each = len(front)
	return append(front, passages...)
}

// getter is a retriever that also gives passages by id.
type getter interface {
	Get(ctx context.Context, ids ...string) ([]retrieval.Passage, error)
}

// fetch gets the chosen passages that the folded question did not retrieve.
func (t *turn) fetch(ids map[string]bool) []retrieval.Passage {
	g, ok := t.p.parts.Retriever.(getter)
	if !ok || len(ids) == 0 {
		return nil
	}
	var want []string
	for id := range ids {
		want = append(want, id)
	}
	slices.Sort(want)
	ps, err := g.Get(t.ctx, want...)
	if err != nil {
		t.note("the chosen passages could not be fetched: %v", err)
	}
	return ps
}

// postGate runs gate 2 where it is still open: there is a choice to be made
// between passages and the user has not made it or waived it.
func (t *turn) postGate(passages []retrieval.Passage) ([]retrieval.Passage, Result, error) {
	near := t.near(passages)
	if len(near) < 2 || t.folded != nil && (t.folded.Assume || len(t.folded.Chosen) > 0 && t.pending.Gate == string(gate.Post)) {
		return passages, nil, nil
	}
	d, err := t.gateDecision(gate.Request{Stage: gate.Post, History: t.history, Question: t.question, Passages: near})
	if d.Ask && len(d.Verdict.Options) == 0 && (t.folded != nil || t.aimed) {
		d.Ask, d.Reason = false, gate.ReasonNoChoice
	}
	if err == nil {
		err = t.decided(d)
	}
	if err != nil {
		return nil, nil, err
	}
	if !d.Ask && d.Reason != gate.ReasonRepeat {
		return slices.DeleteFunc(slices.Clone(passages), func(p retrieval.Passage) bool {
			return slices.Contains(d.Verdict.RuledOut, p.ID)
		}), nil, nil
	}
	if o, ok := t.chosenBefore(d.Verdict.Options); ok {
		t.note("%q was chosen earlier in the conversation and is not asked again", o.Text)
		p := conversation.Pending{Gate: string(gate.Post), Question: t.question, Options: d.Verdict.Options}
		if f, err := conversation.FoldChoice(p, o.ID); err == nil {
			t.composed = f.Question
		}
		return t.keepTo(passages, d.Verdict.Options, []conversation.Option{o}, nil), nil, nil
	}
	if !d.Ask {
		return passages, nil, nil
	}
	return nil, t.ask(d), nil
}

// chosenBefore finds the option that the user chose earlier in the
// conversation, in another clarification: what was once answered is not asked
// again.
func (t *turn) chosenBefore(options []conversation.Option) (conversation.Option, bool) {
	for _, asked := range slices.Backward(t.conv.Asked) {
		for _, text := range asked.Chosen {
			for _, o := range options {
				if strings.EqualFold(o.Text, text) {
					return o, true
				}
			}
		}
	}
	return conversation.Option{}, false
}

// ask makes the gate's clarification the pending one.
func (t *turn) ask(d gate.Decision) Result {
	v := d.Verdict
	p := conversation.Pending{
		ID:   fmt.Sprintf("c%d", len(t.conv.Asked)+1),
		Gate: string(d.Stage), Question: t.question, Text: v.Clarification, Options: v.Options, Unclear: v.Unclear,
		Asked: t.budget.InARow + 1, Since: t.since,
	}
	t.conv.Pending = &p
	t.conv.Asked = append(slices.Clone(t.conv.Asked), p)
	return &Clarification{Turn: Turn{Text: p.Text, Question: t.question}, ID: p.ID, Gate: d.Stage, Options: p.Options}
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
		text += fmt.Sprintf(" Did you mean %s?", strings.Join(near[:min(3, len(near))], " or "))
	}
	return text
}

// commit stores the turn.
func (t *turn) commit(claim conversation.Claim, r Result) error {
	number := len(t.conv.Turns) + 1
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
