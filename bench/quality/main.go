// Command quality measures how well retrieval finds the passages that answer
// conversational questions, and prints the README's table.
//
//	go run ./bench/quality [-public FOLDER] [-index FILE] [-choose]
//
// The questions are the written cases of training/data; their passages are
// pooled, so that a question is searched for among all of them. -public names a
// folder of public sets in the shape {"history", "query", "docs", "label"},
// whose passages join the pool. -index keeps the vectors for the next run.
// -choose prints, on the train and validation splits alone, what the defaults
// are chosen by: the weights of the rankings.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/local"
	"github.com/askback/askback/retrieval/minilm"
)

func main() {
	log.SetFlags(0)
	data := flag.String("data", "training/data", "folder of the written cases")
	publicFolder := flag.String("public", "", "folder of public sets")
	path := flag.String("index", "", "file that keeps the vectors")
	choose := flag.Bool("choose", false, "compare weights on the train and validation splits")
	flag.Parse()
	ctx := context.Background()

	pool, sets, err := load(*data, *publicFolder)
	if err != nil {
		log.Fatal(err)
	}
	index, err := fill(ctx, pool, *path)
	if err != nil {
		log.Fatal(err)
	}
	b := bench{index: index, places: map[string]*places{}}
	if *choose {
		for _, s := range slices.Insert(slices.Delete(sets, 1, 2), 0, changed(sets[0])) {
			s.questions = sample(s.questions, most)
			b.choose(ctx, s)
		}
		return
	}
	fmt.Printf("%d passages\n\n", len(pool))
	for _, s := range sets[1:] {
		b.table(ctx, s)
	}
}

// fill makes the index of the pool.
func fill(ctx context.Context, p pool, path string) (*local.Index, error) {
	embedder, err := minilm.New()
	if err != nil {
		return nil, err
	}
	index, err := local.Open(ctx, local.Options{Path: path, Embedder: embedder, Identity: embedder.Identity()})
	if err != nil {
		return nil, err
	}
	inputs := func(yield func(retrieval.Input, error) bool) {
		for _, id := range slices.Sorted(maps.Keys(p)) {
			input := retrieval.Input{Document: id, Fingerprint: id, Passages: func() ([]retrieval.Passage, error) {
				return []retrieval.Passage{p[id]}, nil
			}}
			if !yield(input, nil) {
				return
			}
		}
	}
	_, err = retrieval.Sync(ctx, index, inputs, retrieval.SyncOptions{Batch: 256})
	return index, err
}

// places are the rankings for one text, the first 100 of each.
type places struct{ dense, bm25 []string }

// method says how rankings are made and joined.
type method struct {
	name        string
	dense, bm25 float64 // weights; both 0: the index as it ships
	context     float64 // weight of the query's context
}

type bench struct {
	index  *local.Index
	mu     sync.Mutex
	places map[string]*places
}

// enough is the number of hits that hold the first 100 of each ranking: a hit
// that is in one only at place 100 is behind at most the first 260 of both.
const enough = 600

// rankings gives the rankings for a text, worked out once.
func (b *bench) rankings(ctx context.Context, text string) (*places, error) {
	b.mu.Lock()
	p, ok := b.places[text]
	b.mu.Unlock()
	if ok {
		return p, nil
	}
	hits, err := b.index.Explain(ctx, retrieval.Query{Texts: []string{text}, Limit: enough})
	if err != nil {
		return nil, err
	}
	first := func(score func(retrieval.Hit) float64) []string {
		slices.SortStableFunc(hits, func(x, y retrieval.Hit) int {
			if d := score(y) - score(x); d != 0 {
				return int(math.Copysign(1, d))
			}
			return strings.Compare(x.ID, y.ID)
		})
		var ids []string
		for _, h := range hits {
			if len(ids) == 100 || score(h) <= 0 {
				break
			}
			ids = append(ids, h.ID)
		}
		return ids
	}
	p = &places{
		dense: first(func(h retrieval.Hit) float64 { return h.Cosine }),
		bm25:  first(func(h retrieval.Hit) float64 { return h.BM25 }),
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.places[text] = p
	return p, nil
}

// found gives the first ten passages for a query.
func (b *bench) found(ctx context.Context, q retrieval.Query, m method) ([]string, error) {
	var ids []string
	if m.dense == 0 && m.bm25 == 0 {
		q.Limit = 10
		passages, err := b.index.Retrieve(ctx, q)
		for _, p := range passages {
			ids = append(ids, p.ID)
		}
		return ids, err
	}
	var lists []retrieval.Ranking[string]
	add := func(text string, weight float64) error {
		if text == "" || weight == 0 {
			return nil
		}
		p, err := b.rankings(ctx, text)
		if err != nil {
			return err
		}
		if m.dense > 0 {
			lists = append(lists, retrieval.Ranking[string]{Items: p.dense, Weight: weight * m.dense})
		}
		if m.bm25 > 0 {
			lists = append(lists, retrieval.Ranking[string]{Items: p.bm25, Weight: weight * m.bm25})
		}
		return nil
	}
	for i, text := range q.Texts {
		if err := add(text, 1/float64(i+1)); err != nil {
			return nil, err
		}
	}
	if err := add(q.Context, m.context); err != nil {
		return nil, err
	}
	for _, f := range retrieval.Fuse(lists...) {
		ids = append(ids, f.Item)
	}
	return ids[:min(len(ids), 10)], nil
}

// score is what is measured over the questions of a set.
type score struct{ recall, ndcg float64 }

// recallAt5 is the share of the passages that answer that are among the first
// five, of five at most.
func recallAt5(found []string, gold map[string]bool) float64 {
	n := 0
	for _, id := range found[:min(5, len(found))] {
		if gold[id] {
			n++
		}
	}
	return float64(n) / float64(min(5, len(gold)))
}

// ndcgAt10 is the normalised discounted cumulative gain of the first ten, with
// a gain of 1 for a passage that answers. Source: Järvelin, Kekäläinen,
// "Cumulated gain-based evaluation of IR techniques", TOIS 2002.
func ndcgAt10(found []string, gold map[string]bool) float64 {
	gain, best := 0.0, 0.0
	for i := range 10 {
		discount := 1 / math.Log2(float64(i+2))
		if i < len(found) && gold[found[i]] {
			gain += discount
		}
		if i < len(gold) {
			best += discount
		}
	}
	return gain / best
}

// measure runs one form and method over a set, on all processors.
func (b *bench) measure(ctx context.Context, s set, f form, m method) score {
	scores := make([]score, len(s.questions))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(scores); i = int(next.Add(1)) - 1 {
				q := s.questions[i]
				query, err := f.query(ctx, q)
				if err != nil {
					log.Fatalf("%q: %v", q.text, err)
				}
				ids, err := b.found(ctx, query, m)
				if err != nil {
					log.Fatalf("%q: %v", q.text, err)
				}
				scores[i] = score{recallAt5(ids, q.gold), ndcgAt10(ids, q.gold)}
			}
		})
	}
	wg.Wait()
	var mean score
	for _, x := range scores {
		mean.recall += x.recall / float64(len(scores))
		mean.ndcg += x.ndcg / float64(len(scores))
	}
	return mean
}

// table prints a set's figures as Markdown: recall@5 / nDCG@10.
func (b *bench) table(ctx context.Context, s set) {
	methods := []method{
		{name: "dense", dense: 1, context: retrieval.ContextWeight}, {name: "BM25", bm25: 1, context: retrieval.ContextWeight},
		{name: "hybrid", dense: 1, bm25: 1, context: retrieval.ContextWeight}, {name: "hybrid, identifiers first"},
	}
	fmt.Printf("%s, %d questions\n\n| query |", s.name, len(s.questions))
	for _, m := range methods {
		fmt.Printf(" %s |", m.name)
	}
	fmt.Printf("\n|---|%s\n", strings.Repeat("---|", len(methods)))
	for _, f := range forms() {
		fmt.Printf("| %s |", f.name)
		for _, m := range methods {
			x := b.measure(ctx, s, f, m)
			fmt.Printf(" %s / %s |", share(x.recall), share(x.ndcg))
		}
		fmt.Println()
	}
	fmt.Println()
}

func share(x float64) string { return strings.TrimPrefix(fmt.Sprintf("%.3f", x), "0") }

// choose prints what weights and the length of the context do on the sets that
// they are chosen by.
func (b *bench) choose(ctx context.Context, s set) {
	fmt.Printf("%s, %d questions: recall@5 / nDCG@10\n", s.name, len(s.questions))
	for _, bm25 := range []float64{.25, .5, 1, 2} {
		x := b.measure(ctx, s, forms()[3], method{dense: 1, bm25: bm25})
		fmt.Printf("  BM25 %.2f, no context          %s / %s\n", bm25, share(x.recall), share(x.ndcg))
	}
	for _, turns := range []int{1, 2, 3, 100} {
		f := form{query: func(ctx context.Context, q question) (retrieval.Query, error) {
			query, err := asked(ctx, q)
			if query.Context = join(q, turns); len(q.history) == 0 {
				query.Context = ""
			}
			return query, err
		}}
		for _, weight := range []float64{.25, .5, .75, 1, 2} {
			x := b.measure(ctx, s, f, method{dense: 1, bm25: 1, context: weight})
			fmt.Printf("  context of %3d turns, %.2f     %s / %s\n", turns, weight, share(x.recall), share(x.ndcg))
		}
	}
}
