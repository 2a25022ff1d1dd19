package local

import (
	"math"
	"strings"

	"github.com/askback/askback/retrieval/internal/prepare"
)

// A posting list holds the slots of the passages with a term, ascending, and
// how often they hold it.
type postings struct {
	slots []int32
	count []float32 // occurrences, those in the title weighted
	live  int       // how many of slots are not deleted
}

// lexical is the inverted index. Terms are numbered; deleted passages stay in
// the lists, marked dead by a negative length, until the memory is compacted.
type lexical struct {
	numbers map[string]int32
	lists   []postings
	length  []float32 // by slot, in terms; -1 if deleted
	live    int
	total   float64 // of the lengths of live passages
}

func newLexical() *lexical { return &lexical{numbers: make(map[string]int32)} }

// number gives a term's number, a new one if it has none.
func (l *lexical) number(term string) int32 {
	n, ok := l.numbers[term]
	if !ok {
		n = int32(len(l.lists))
		l.numbers[strings.Clone(term)] = n // not to keep the text that it is cut from
		l.lists = append(l.lists, postings{})
	}
	return n
}

// add puts a passage into the next slot.
func (l *lexical) add(words []prepare.Word) {
	slot := int32(len(l.length))
	var length float32
	for _, w := range words {
		list := &l.lists[l.number(w.Text)]
		list.slots = append(list.slots, slot)
		list.count = append(list.count, w.Count)
		list.live++
		length += w.Count
	}
	l.length = append(l.length, length)
	l.total += float64(length)
	l.live++
}

// remove takes the passage in a slot, with these words, out of what counts.
func (l *lexical) remove(slot int32, words []prepare.Word) {
	for _, w := range words {
		l.lists[l.numbers[w.Text]].live--
	}
	l.total -= float64(l.length[slot])
	l.live--
	l.length[slot] = -1
}

// score adds up the BM25 scores of the terms in scores, which has a zero for
// each slot, and returns it.
func (l *lexical) score(terms []string, scores []float32) []float32 {
	if l.live == 0 {
		return scores
	}
	// The norm k1*(1-b+b*length/average) as two numbers.
	base := float32(prepare.K1 * (1 - prepare.B))
	slope := float32(prepare.K1 * prepare.B / max(l.total/float64(l.live), 1e-9))
	seen := make(map[int32]bool, len(terms))
	for _, term := range terms {
		n, ok := l.numbers[term]
		if !ok || seen[n] {
			continue
		}
		seen[n] = true
		list := &l.lists[n]
		if list.live == 0 {
			continue
		}
		idf := float32(math.Log(1 + (float64(l.live)-float64(list.live)+0.5)/(float64(list.live)+0.5)))
		for i, slot := range list.slots {
			length := l.length[slot]
			if length < 0 {
				continue
			}
			count := list.count[i]
			scores[slot] += idf * count * (prepare.K1 + 1) / (count + base + slope*length)
		}
	}
	return scores
}
