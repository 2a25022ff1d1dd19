package local

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/askback/askback/internal/edit"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/internal/prepare"
)

func TestDots(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, dim := range []int{32, 64, 96, 384, 1024} {
		for _, n := range []int{1, 2, 3, 100} {
			query, rows := randomVector(r, dim), randomVector(r, dim*n)
			got, generic := make([]float32, n), make([]float32, n)
			dots(query, rows, got)
			dotsGeneric(query, rows, generic)
			for i := range n {
				var want, size float64
				for j := range dim {
					p := float64(query[j]) * float64(rows[i*dim+j])
					want += p
					size += math.Abs(p)
				}
				for name, x := range map[string]float32{"dots": got[i], "dotsGeneric": generic[i]} {
					if math.Abs(float64(x)-want) > 1e-6*size {
						t.Errorf("%s, %d numbers, row %d of %d: %v, want %v", name, dim, i, n, x, want)
					}
				}
			}
		}
	}
}

// Vectors of any length, over several blocks, each in its place.
func TestCosines(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, dim := range []int{1, 3, 31, 33, 384} {
		var d dense
		d.setDim(dim)
		n := 2*blockRows + 7
		vectors := make([][]float32, n)
		for i := range vectors {
			v, err := prepare.Unit(randomVector(r, dim))
			if err != nil {
				t.Fatal(err)
			}
			vectors[i] = v
			d.add(v)
		}
		query := vectors[blockRows]
		got := d.cosines(query)
		if len(got) != n {
			t.Fatalf("%d cosines, want %d", len(got), n)
		}
		for i, v := range vectors {
			var want float64
			for j := range v {
				want += float64(v[j]) * float64(query[j])
			}
			if math.Abs(float64(got[i])-want) > 1e-5 {
				t.Fatalf("dimension %d, slot %d: %v, want %v", dim, i, got[i], want)
			}
			if !slices.Equal(d.at(int32(i)), v) {
				t.Fatalf("dimension %d: slot %d holds another vector", dim, i)
			}
		}
	}
}

func TestTop(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	before := func(a, b int32) bool { return a*7919%1009 < b*7919%1009 } // any fixed order
	for range 300 {
		scores := make([]float32, r.IntN(60))
		for i := range scores {
			scores[i] = float32(r.IntN(8)) // many equal ones
		}
		skip := int32(r.IntN(5) + 2)
		ok := func(slot int32) bool { return slot%skip != 0 }
		var want []int32
		for i := range scores {
			if ok(int32(i)) {
				want = append(want, int32(i))
			}
		}
		slices.SortFunc(want, func(a, b int32) int {
			if scores[a] > scores[b] || scores[a] == scores[b] && before(a, b) {
				return -1
			}
			return 1
		})
		k := r.IntN(70)
		want = want[:min(k, len(want))]
		if got := top(scores, k, ok, before); !slices.Equal(got, want) {
			t.Fatalf("the best %d of %v\n got %v\nwant %v", k, scores, got, want)
		}
	}
}

// BM25 as the formula reads, over a corpus from which passages were deleted.
func TestBM25(t *testing.T) {
	texts := map[string]string{
		"a": "the cat sat on the mat with a cat",
		"b": "dogs and cats",
		"c": "a very long passage about birds, fish, horses, cows, and not one cat but many mice",
		"d": "dog",
		"e": "nothing here",
	}
	m := newMemory(1)
	for _, name := range []string{"x", "a", "b", "c", "d", "e"} {
		p := retrieval.Passage{ID: name, Document: name, Text: texts[name], Title: "Dog"}
		if name == "x" {
			p.Text = "cat dog cat dog"
		}
		m.replace(name, "1", []*entry{newEntry(p, []float32{1})})
	}
	m.remove("x")

	bags, total := make(map[string]map[string]float64), 0.0
	length := make(map[string]float64)
	for name, text := range texts {
		bags[name] = map[string]float64{"dog": 2}
		for term := range slices.Values(prepare.Terms(text)) {
			bags[name][term]++
		}
		for _, n := range bags[name] {
			length[name] += n
		}
		total += length[name]
	}
	average := total / float64(len(texts))
	query := []string{"cat", "dog", "unknown", "cat"}
	got := m.lexical.score(query, make([]float32, len(m.entries)))
	for name := range texts {
		want := 0.0
		for _, term := range query[:3] {
			df := 0.0
			for _, bag := range bags {
				if bag[term] > 0 {
					df++
				}
			}
			tf, n := bags[name][term], float64(len(texts))
			want += math.Log(1+(n-df+0.5)/(df+0.5)) * tf * 2.2 / (tf + 1.2*(0.25+0.75*length[name]/average))
		}
		if score := float64(got[m.byID[name]]); math.Abs(score-want) > 1e-5 {
			t.Errorf("%s: %v, want %v", name, score, want)
		}
	}
	if got[0] != 0 {
		t.Errorf("the deleted passage scores %v", got[0])
	}
}

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b        string
		limit, want int
	}{
		{"", "", 3, 0}, {"A", "", 3, 1}, {"ERR5172", "ERR5172", 3, 0}, {"ERR5172", "ERR5171", 3, 1},
		{"ERR5172", "ERR5712", 3, 1}, {"ERR5172", "EER5172", 3, 1}, {"ERR5172", "ERR51723", 3, 1}, {"ABC", "XYZ", 5, 3},
		{"ABCDEFG", "A", 3, 4},
	} {
		if got := edit.Distance([]byte(test.a), []byte(test.b), test.limit); got != test.want {
			t.Errorf("distance(%q, %q, %d) = %d, want %d", test.a, test.b, test.limit, got, test.want)
		}
	}
}

// After many random changes, and packing, the memory answers as one that was
// filled with what is left.
func TestMemoryAgainstFresh(t *testing.T) {
	const seed = 7
	r := rand.New(rand.NewPCG(seed, seed))
	make1 := func(name string, revision int) []*entry {
		r := rand.New(rand.NewPCG(uint64(revision), 1))
		entries := make([]*entry, 40)
		for i := range entries {
			v, err := prepare.Unit(randomVector(r, 5))
			if err != nil {
				t.Fatal(err)
			}
			entries[i] = newEntry(retrieval.Passage{ID: fmt.Sprintf("%s/%03d/%d", name, revision, i), Document: name, Title: name,
				Text: fmt.Sprintf("ERR-%d %s %s %s", r.IntN(300), [...]string{"is", "to ERR-290"}[r.IntN(2)], word(r.Uint64N(50)), word(r.Uint64N(50)))}, v)
		}
		return entries
	}
	m, left := newMemory(0), make(map[string]int)
	packed := false
	for revision := range 200 {
		name := fmt.Sprint("document ", r.IntN(12))
		slots := len(m.entries)
		m.remove(name)
		delete(left, name)
		if r.IntN(4) > 0 {
			m.replace(name, "", make1(name, revision))
			left[name] = revision
		}
		m.pack()
		packed = packed || len(m.entries) < slots
	}
	if !packed {
		t.Fatal("the memory was never packed")
	}
	fresh := newMemory(0)
	for name, revision := range left {
		fresh.replace(name, "", make1(name, revision))
	}
	if m.live != fresh.live || len(m.byID) != len(fresh.byID) || len(m.documents) != len(fresh.documents) {
		t.Fatalf("%d passages in %d documents, want %d in %d", m.live, len(m.documents), fresh.live, len(fresh.documents))
	}
	for i := range 20 {
		texts := []string{fmt.Sprintf("what is ERR-%d %s", i*10, word(uint64(i)))}
		v, err := prepare.Unit(randomVector(r, 5))
		if err != nil {
			t.Fatal(err)
		}
		got := m.search(question{texts: texts, vectors: [][]float32{v}}, 10, 0)
		want := fresh.search(question{texts: texts, vectors: [][]float32{v}}, 10, 0)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d, %q\n got %+v\nwant %+v", seed, texts, got, want)
		}
		if got, want := m.knownIdentifiers(texts[0]), fresh.knownIdentifiers(texts[0]); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d, %q: %+v, want %+v", seed, texts, got, want)
		}
	}
}

func TestSpans(t *testing.T) {
	m := newMemory(1)
	for i, text := range []string{
		"ERR-5100 to ERR-5199 come from the network.",
		"ERR-5200 – ERR-5299 come from the disk.",
		"ERR-5150 and ERR-5160 are the same.",
		"Write ERR codes down.",
	} {
		name := fmt.Sprint(i)
		m.replace(name, "1", []*entry{newEntry(retrieval.Passage{ID: name, Document: name, Text: text}, []float32{1})})
	}
	for _, test := range []struct {
		query, want string
		known       bool
	}{
		{"what is ERR-5155", "0 3", true},
		{"what is ERR-5250", "1 3", true},
		{"what is ERR-5150", "2 0 3", true},
		{"what is ERR-5300", "3", false},
		{"what is ERR-515", "3", false},
	} {
		var got []string
		for _, h := range m.search(question{texts: []string{test.query}, vectors: [][]float32{{1}}}, 10, 0) {
			got = append(got, h.ID)
		}
		if line := strings.Join(got, " "); line != test.want {
			t.Errorf("%q finds %s, want %s", test.query, line, test.want)
		}
		if known := m.knownIdentifiers(test.query); len(known) != 1 || known[0].Known != test.known {
			t.Errorf("%q: %+v, want known %v", test.query, known, test.known)
		}
	}
	for i := range 4 {
		m.remove(fmt.Sprint(i))
	}
	if known := m.knownIdentifiers("ERR-5155"); known[0].Known {
		t.Error("a span outlives its passage")
	}
}

func TestPerDocument(t *testing.T) {
	m := newMemory(1)
	for _, name := range []string{"a", "b"} {
		var entries []*entry
		for i := range 5 {
			entries = append(entries, newEntry(retrieval.Passage{ID: fmt.Sprint(name, i), Document: name, Text: fmt.Sprint("leave ", name, i)}, []float32{1}))
		}
		m.replace(name, "1", entries)
	}
	hits := m.search(question{texts: []string{"leave"}, vectors: [][]float32{{1}}}, 10, 2)
	count := make(map[string]int)
	for _, h := range hits {
		count[h.Document]++
	}
	if len(hits) != 4 || count["a"] != 2 || count["b"] != 2 {
		t.Errorf("passages by document: %v, want 2 of each", count)
	}
}
