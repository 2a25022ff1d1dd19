package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/internal/untrusted"
	"github.com/askback/askback/retrieval"
)

// preGateAndRetrieval runs gate 1 and retrieval at the same time; if the gate
// asks, retrieval is cancelled.
func (t *turn) preGateAndRetrieval(queries []string) ([]retrieval.Passage, Result, error) {
	type found struct {
		hits  []retrieval.Hit
		stage StageTime
		err   error
	}
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	done := make(chan found, 1)
	go func() {
		var f found
		f.stage, f.err = runStage(ctx, "retrieve", func(ctx context.Context) (err error) {
			defer recovered("the retriever", &err)
			f.hits, err = t.search(ctx, retrieval.Query{Texts: queries, Context: t.trace.Context, Limit: t.p.parts.Limit})
			return err
		})
		done <- f
	}()
	if t.folded == nil { // a reply has made the question clear enough to search for
		d, err := t.gateDecision(gate.Request{Stage: gate.Pre, History: t.gateHistory(), Question: t.question})
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
		if err == nil && d.Ask {
			if _, settled := t.recall(d); settled {
				d.Ask, d.Reason = false, gate.ReasonRepeat
			}
		}
		if err == nil {
			err = t.decided(d)
		}
		if err != nil || d.Ask {
			cancel()
			f := <-done
			if err != nil {
				t.trace.Stages = append(t.trace.Stages, f.stage)
				return nil, nil, err
			}
			return nil, t.ask(d), nil
		}
	}
	f := <-done
	t.trace.Stages = append(t.trace.Stages, f.stage)
	if f.err != nil {
		return nil, nil, fmt.Errorf("retrieving passages: %w", f.err)
	}
	passages := make([]retrieval.Passage, len(f.hits))
	t.cosine = map[string]float64{}
	for i, h := range f.hits {
		passages[i] = h.Passage
		t.cosine[h.ID] = h.Cosine
		t.trace.Passages = append(t.trace.Passages, PassageTrace{h.ID, untrusted.Visible(h.Title), h.Score, h.Cosine})
	}
	return passages, nil, t.emit(Retrieved{slices.Clone(t.trace.Passages)})
}

// gateDecision runs one gate.
func (t *turn) gateDecision(r gate.Request) (d gate.Decision, err error) {
	err = t.timed("gate "+string(r.Stage), func(ctx context.Context) (err error) {
		d, err = t.p.gate.Decide(ctx, r, t.budget)
		return err
	})
	return d, err
}

// decided records what a gate decided.
func (t *turn) decided(d gate.Decision) error {
	t.trace.Gates = append(t.trace.Gates, d)
	if d.Second == gate.SecondSpared {
		t.trace.Saved++
	}
	return t.emit(Decided{d})
}

const (
	// sureScore is the score from which on gate 1 asks whatever the search finds.
	sureScore = 0.9
	// searchGrace is how long gate 1, when it would ask, waits for the search.
	searchGrace = 2 * time.Second
	// aimedCosine is the similarity from which on a passage that shares a word of
	// content with the question counts as what it is about.
	aimedCosine = 0.3
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
		return h.Cosine >= aimedCosine && holds(beyond(h.Passage, question)) > 0
	})
}

// aimless are words that stand in any question.
var aimless = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq("the and for are was how why who can may our its his her out get got any all but not too now you yes one two him she had did does use say see way what when where which whom whose does long take much many this that these those there have about with from your they them then tell here will would could should also know want need please just like more some other another same thing things cost costs anything something everything work works help") {
		m[w] = true
	}
	return m
}()

// postGate runs gate 2 where it is still open: there is a choice to be made
// between passages and the user has not made it or waived it.
func (t *turn) postGate(passages []retrieval.Passage) ([]retrieval.Passage, Result, error) {
	t.weighEchoes(passages)
	near := t.near(passages)
	if len(near) < 2 || t.folded != nil && (t.folded.Assume || len(t.folded.Chosen) > 0 && t.pending.Gate == string(gate.Post)) {
		return passages, nil, nil
	}
	d, err := t.gateDecision(gate.Request{Stage: gate.Post, History: t.gateHistory(), Question: t.question, Passages: near})
	if d.Ask && len(d.Verdict.Options) == 0 && (t.folded != nil || t.aimed) || d.Ask && t.overtaken(near, d.Verdict.Options) {
		d.Ask, d.Reason = false, gate.ReasonNoChoice
	}
	var r conversation.Recalled
	recalled := false
	if err == nil {
		if d.Ask || d.Reason == gate.ReasonRepeat {
			if r, recalled = t.recall(d); recalled {
				d.Ask, d.Reason = false, gate.ReasonRepeat
			}
		}
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
	if recalled {
		return t.keepTo(passages, d.Verdict.Options, []conversation.Option{r.Option}, nil), nil, nil
	}
	if !d.Ask {
		return passages, nil, nil
	}
	return nil, t.ask(d), nil
}

// ask makes the gate's clarification the pending one.
func (t *turn) ask(d gate.Decision) Result {
	v := d.Verdict
	p := conversation.Pending{
		ID:   fmt.Sprintf("c%d", t.conv.Next()),
		Gate: string(d.Stage), Question: t.question, Text: v.Clarification, Options: v.Options, Unclear: v.Unclear,
		Asked: t.budget.InARow + 1, Since: t.since, At: time.Now().UTC(),
	}
	if t.folded != nil {
		p.Unclear = nil // what was unclear has been said; the choice is about something else
	}
	t.conv.Pending = &p
	t.conv.Asked = append(slices.Clone(t.conv.Asked), p)
	return &Clarification{Turn: Turn{Text: p.Text, Question: t.question}, ID: p.ID, Gate: d.Stage, Options: p.Options}
}
