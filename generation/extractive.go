package generation

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"

	"github.com/askback/askback/internal/untrusted"
	"github.com/askback/askback/retrieval"
)

// Extractive answers with the sentences of the passages that answer the
// question, whole and in their own words, each with its citation. It needs no
// language model. Embedder is required; the zero value of the rest works.
type Extractive struct {
	Embedder retrieval.Embedder
	Reader   Reader  // optional: a model that marks answers in the passages
	MinScore float64 // an answer less probable than this is none; 0 means DefaultMinScore, negative answers whatever is best
	MaxWords int     // words that an answer has room for, more for steps; 0 means DefaultMaxWords
}

// Defaults of Extractive.
const (
	DefaultMaxWords = 80
	DefaultMinScore = 0.5
)

// Reader marks the words that answer a question in each passage, as a model
// with a token head does: nothing where there is no answer. Extractive prefers
// sentences that hold such words, and doubts an answer where there are none.
type Reader interface {
	Answers(ctx context.Context, r Request) ([]Span, error)
}

// Span is a place that answers the question: bytes Start to End of the text of
// Request.Passages[Passage]. Score is its probability, 0 to 1.
type Span struct {
	Passage, Start, End int
	Score               float64
}

var _ Generator = Extractive{}

// Generate implements Generator. The text is sent sentence by sentence.
func (g Extractive) Generate(ctx context.Context, r Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		answer, pieces, err := g.answer(ctx, r)
		if err != nil {
			yield(Event{}, err)
			return
		}
		for _, p := range pieces {
			if err := ctx.Err(); err != nil {
				yield(Event{}, err)
				return
			}
			if !yield(Event{Delta: p}, nil) {
				return
			}
		}
		yield(Event{Done: answer}, nil)
	}
}

func (g Extractive) answer(ctx context.Context, r Request) (*Answer, []string, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if g.Embedder == nil {
		return nil, nil, errors.New("generation.Extractive has no embedder; set Embedder")
	}
	if len(r.Passages) == 0 || strings.TrimSpace(r.Question) == "" {
		return &Answer{}, nil, nil
	}
	ev, err := read(ctx, g.Embedder, r)
	if err != nil {
		return nil, nil, err
	}
	if g.Reader != nil {
		spans, err := g.Reader.Answers(ctx, r)
		if err != nil {
			return nil, nil, err
		}
		ev.mark(spans)
	}
	least, room := g.MinScore, g.MaxWords
	if least == 0 {
		least = DefaultMinScore
	}
	if room <= 0 {
		room = DefaultMaxWords
	}
	picks := ev.choose(least, room)
	if len(picks) == 0 {
		return &Answer{}, nil, nil
	}
	pieces, citations := ev.write(picks, r.Assumption)
	return &Answer{Text: strings.Join(pieces, ""), Citations: citations, Found: true}, pieces, nil
}

// pick is a unit of a passage that goes into the answer.
type pick struct{ passage, index int }

// write puts the picks into words. A run of neighbouring units of a passage
// shares one citation.
func (ev *evidence) write(picks []pick, assumption string) (pieces []string, citations []Citation) {
	if assumption = readable(assumption); assumption != "" {
		pieces = append(pieces, assuming(assumption))
	}
	listed, overview := ev.asList(picks), ev.spread(picks)
	last, number := pick{-1, -1}, 0
	for i, p := range picks {
		u, passage := ev.units[p.passage][p.index], ev.passages[p.passage]
		if n := len(citations); n > 0 && last == (pick{p.passage, p.index - 1}) {
			citations[n-1].Quote = quotable(passage.Text[ev.start(picks, i):u.end])
		} else {
			citations = append(citations, Citation{
				N: n + 1, Passage: passage.ID, Title: untrusted.Visible(passage.Title), Source: untrusted.Visible(passage.Source), Quote: quotable(passage.Text[u.start:u.end]),
			})
		}
		last = p
		piece, between := u.line, " "
		if listed[i] || i > 0 && listed[i-1] || u.kind == code {
			between = "\n"
		}
		if !listed[i] {
			number = 0
		} else if number++; u.numbered {
			piece = strconv.Itoa(number) + ". " + piece
		} else if h := lastHeading(passage.Title); overview && h != "" {
			piece = "- " + h + ": " + piece
		} else {
			piece = "- " + piece
		}
		if u.kind == code {
			piece += "\n"
		}
		if len(pieces) > 0 {
			piece = between + piece
		}
		if i+1 < len(picks) && ev.introduces(p, picks[i+1]) {
			pieces = append(pieces, piece)
			continue // what follows carries the mark
		}
		mark := "[" + strconv.Itoa(len(citations)) + "]"
		if u.kind != code {
			mark = " " + mark
		}
		pieces = append(pieces, piece+mark)
	}
	return pieces, citations
}

// introduces says whether a is the lead-in of the list that b is an item of,
// or of the code that b is.
func (ev *evidence) introduces(a, b pick) bool {
	u := ev.units[b.passage][b.index]
	return a.passage == b.passage && (u.lead == a.index || u.kind == code && b.index == a.index+1)
}

// start gives where the run of neighbours that ends with picks[i] begins.
func (ev *evidence) start(picks []pick, i int) int {
	for i > 0 && picks[i-1] == (pick{picks[i].passage, picks[i].index - 1}) {
		i--
	}
	return ev.units[picks[i].passage][picks[i].index].start
}

// asList says which picks stand on a line of their own: items and rows where
// there are several, and all of an overview over several passages.
func (ev *evidence) asList(picks []pick) []bool {
	listed, n := make([]bool, len(picks)), 0
	for i, p := range picks {
		k := ev.units[p.passage][p.index].kind
		listed[i] = k == item || k == row || ev.spread(picks)
		if listed[i] {
			n++
		}
	}
	if n < 2 {
		return make([]bool, len(picks))
	}
	return listed
}

// spread says whether the picks are an overview: asked for, and from several
// passages.
func (ev *evidence) spread(picks []pick) bool {
	if !ev.several {
		return false
	}
	for _, p := range picks {
		if p.passage != picks[0].passage {
			return true
		}
	}
	return false
}

func lastHeading(title string) string {
	if i := strings.LastIndex(title, " > "); i >= 0 {
		title = title[i+len(" > "):]
	}
	return readable(title)
}

// assuming words the assumption as the start of the answer.
func assuming(a string) string {
	a = strings.TrimRight(a, ".:; ")
	switch low := strings.ToLower(a); {
	case strings.HasPrefix(low, "assuming "):
		return strings.ToUpper(a[:1]) + a[1:] + ":"
	case strings.HasPrefix(low, "you "), strings.HasPrefix(low, "that "):
		return "Assuming " + low[:1] + a[1:] + ":"
	}
	return "Assuming you mean " + a + ":"
}
