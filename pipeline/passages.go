package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/internal/untrusted"
	"github.com/askback/askback/retrieval"
)

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

// weighEchoes takes from passages the similarity that they owe to repeating the
// question, which answers nothing: what counts is that of the rest. Without a
// Matcher such a passage is as similar as one must be at least.
func (t *turn) weighEchoes(passages []retrieval.Passage) {
	var repeating []int
	var rest []string
	for i, p := range passages {
		if says := beyond(p, t.question); says != strings.TrimSpace(p.Title+"\n"+p.Text) && t.cosine[p.ID] > farCosine {
			repeating, rest = append(repeating, i), append(rest, says)
		}
	}
	if len(repeating) == 0 {
		return
	}
	cosines := make([]float64, len(rest))
	if m := t.p.parts.Matcher; m != nil {
		switch c, err := m.Similarity(t.ctx, t.question, rest); {
		case err != nil:
			t.note("what repeats the question could not be compared: %v", err)
		case len(c) == len(rest):
			cosines = c
		}
	}
	for k, i := range repeating {
		t.cosine[passages[i].ID] = min(t.cosine[passages[i].ID], max(cosines[k], farCosine))
	}
}

// beyond is what a passage says besides repeating the question.
func beyond(p retrieval.Passage, question string) string {
	return strings.TrimSpace(untrusted.WithoutEcho(p.Title, question) + "\n" + untrusted.WithoutEcho(p.Text, question))
}

const (
	fewEchoes   = 2 // passages that repeat the question, if there are others
	beyondCrowd = 4 // times as many are searched for when there are more
)

// search asks the retriever. Where passages that repeat the question crowd out
// the others, it looks further and keeps few of them.
func (t *turn) search(ctx context.Context, q retrieval.Query) ([]retrieval.Hit, error) {
	hits, err := retrieval.Explain(ctx, t.p.parts.Retriever, q)
	if err != nil || len(hits) < q.Limit || len(crowd(hits, t.question)) == 0 {
		return hits, err
	}
	limit := q.Limit
	q.Limit *= beyondCrowd
	if hits, err = retrieval.Explain(ctx, t.p.parts.Retriever, q); err != nil {
		return nil, err
	}
	tooMany := crowd(hits, t.question)
	hits = slices.DeleteFunc(hits, func(h retrieval.Hit) bool { return tooMany[h.ID] })
	return hits[:min(limit, len(hits))], nil
}

// crowd gives the ids of the hits that repeat the question, but for the first few.
// A heading repeats it if it says nothing else: "What is the deposit? > City" is one
// of the answers to choose from.
func crowd(hits []retrieval.Hit, question string) map[string]bool {
	repeating, tooMany := 0, map[string]bool{}
	for _, h := range hits {
		if untrusted.WithoutEcho(h.Text, question) == h.Text && (h.Title == "" || untrusted.WithoutEcho(h.Title, question) != "") {
			continue
		}
		if repeating++; repeating > fewEchoes {
			tooMany[h.ID] = true
		}
	}
	return tooMany
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

// alsoAsked searches for a question that came with a choice, and puts the best
// passage for it behind those that the choice is answered from.
func (t *turn) alsoAsked(passages []retrieval.Passage) ([]retrieval.Passage, error) {
	if t.folded == nil || t.folded.Also == "" || len(passages) == 0 {
		return passages, nil
	}
	var hits []retrieval.Hit
	err := t.timed("retrieve", func(ctx context.Context) (err error) {
		hits, err = retrieval.Explain(ctx, t.p.parts.Retriever, retrieval.Query{Texts: []string{t.folded.Also}, Limit: t.p.parts.Limit})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("retrieving passages: %w", err)
	}
	front := max(t.each, 1)
	for _, h := range hits {
		if slices.ContainsFunc(passages[:front], func(p retrieval.Passage) bool { return p.ID == h.ID }) ||
			slices.ContainsFunc(t.pending.Options, func(o conversation.Option) bool { return slices.Contains(o.Passages, h.ID) }) {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(passages[front:]), func(p retrieval.Passage) bool { return p.ID == h.ID })
		t.each = front + 1
		return slices.Concat(passages[:front], []retrieval.Passage{h.Passage}, rest), nil
	}
	return passages, nil
}

// besideShare is how similar to the question a passage must be, as a share of
// the most similar one's cosine, to answer when the best ones are ruled out.
const besideShare = 0.8

// carryOver keeps to what the user chose earlier in the conversation: of
// passages whose headings name an option that was not chosen then, those are
// left aside that have a counterpart for the chosen one, unless the question
// names the other now. What was settled last counts.
func (t *turn) carryOver(passages []retrieval.Passage) []retrieval.Passage {
	names := func(text, option string) bool {
		return strings.Contains(" "+strings.Join(wordsOf(text), " ")+" ", " "+strings.Join(wordsOf(option), " ")+" ")
	}
	for _, asked := range slices.Backward(t.conv.Asked) {
		for _, chosen := range asked.Chosen {
			if !slices.ContainsFunc(passages, func(p retrieval.Passage) bool { return names(p.Title, chosen) }) {
				continue
			}
			before := len(passages)
			passages = slices.DeleteFunc(slices.Clone(passages), func(p retrieval.Passage) bool {
				return !names(p.Title, chosen) && slices.ContainsFunc(asked.Options, func(o conversation.Option) bool {
					return !slices.Contains(asked.Chosen, o.Text) && names(p.Title, o.Text) && !names(t.question, o.Text)
				})
			})
			if len(passages) < before && names(passages[0].Title, chosen) && !slices.ContainsFunc(asked.Options, func(o conversation.Option) bool { return names(t.question, o.Text) }) {
				t.assumed = chosen // and the answer says so
			}
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

// overtaken reports whether a passage that none of the options rests on is
// clearly more similar to the question than one of the options: then the choice is not
// between these.
func (t *turn) overtaken(passages []retrieval.Passage, options []conversation.Option) bool {
	least, optional := 2.0, map[string]bool{}
	for _, o := range options {
		best := 0.0
		for _, id := range o.Passages {
			optional[id] = true
			best = max(best, t.cosine[id])
		}
		least = min(least, best)
	}
	return slices.ContainsFunc(passages, func(p retrieval.Passage) bool {
		return !optional[p.ID] && t.cosine[p.ID] > least+0.05
	})
}
