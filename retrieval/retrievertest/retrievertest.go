package retrievertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/askback/askback/retrieval"
)

// Store is what the suite is for: a store that retrieves.
type Store interface {
	retrieval.Store
	retrieval.Retriever
}

// Run runs the suite. open gives a new, empty store that embeds with e; what it
// must close it closes in t.Cleanup.
func Run(t *testing.T, open func(t *testing.T, e retrieval.Embedder) Store) {
	for _, test := range []struct {
		name string
		run  func(s *suite, t *testing.T)
	}{
		{"Empty", (*suite).empty},
		{"Rankings", (*suite).rankings},
		{"Context", (*suite).context},
		{"Fields", (*suite).fields},
		{"Limits", (*suite).limits},
		{"OddQueries", (*suite).oddQueries},
		{"Filter", (*suite).filter},
		{"Identifiers", (*suite).identifiers},
		{"KnownIdentifiers", (*suite).knownIdentifiers},
		{"Spans", (*suite).spans},
		{"Explain", (*suite).explain},
		{"Duplicates", (*suite).duplicates},
		{"Replace", (*suite).replace},
		{"ReplaceAll", (*suite).replaceAll},
		{"Delete", (*suite).delete},
		{"Library", (*suite).library},
		{"Invalid", (*suite).invalid},
		{"EmbedderFails", (*suite).embedderFails},
		{"Cancelled", (*suite).cancelled},
		{"Concurrent", (*suite).concurrent},
		{"Sync", (*suite).sync},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &suite{embedder: new(Embedder)}
			s.store = open(t, s.embedder)
			test.run(s, t)
		})
	}
}

type suite struct {
	store    Store
	embedder *Embedder
}

// handbook is a small corpus in which each ranking can be told by reading.
func handbook() []retrieval.Chunked {
	return []retrieval.Chunked{
		document("leave.md", "Leave",
			"Employees have 28 days of annual leave.",
			"Contractors have no annual leave.",
			"Sick leave needs a note from the fourth day on."),
		document("pump.md", "Pump AX-100",
			"ERR-5171 means that the filter is blocked.",
			"ERR-5172 means that the water is too hot.",
			"ERR-5173 means that the door is open.",
			"Every code is shown until the pump is switched off."),
		document("日本.md", "休暇",
			"正社員の年次有給休暇は二十日です。",
			"契約社員には年次有給休暇がありません。"),
	}
}

// document makes a document of passages whose ids are its name and a number
// from 1.
func document(name, title string, texts ...string) retrieval.Chunked {
	c := retrieval.Chunked{Document: name, Fingerprint: "1"}
	for i, text := range texts {
		c.Passages = append(c.Passages, retrieval.Passage{
			ID: fmt.Sprintf("%s/%d", name, i+1), Document: name, Title: title, Source: fmt.Sprintf("%s#%d", name, i+1), Text: text,
			Metadata: map[string]string{"folder": string([]rune(title)[:1]), "language": "en"},
		})
	}
	return c
}

func (s *suite) put(t *testing.T, documents ...retrieval.Chunked) {
	t.Helper()
	for _, d := range documents {
		if err := s.store.Replace(t.Context(), d.Document, d.Fingerprint, d.Passages); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *suite) find(t *testing.T, q retrieval.Query) []retrieval.Passage {
	t.Helper()
	passages, err := s.store.Retrieve(t.Context(), q)
	if err != nil {
		t.Fatalf("Retrieve(%.80q): %v", q.Texts, err)
	}
	return passages
}

func ids(passages []retrieval.Passage) string {
	var out []string
	for _, p := range passages {
		out = append(out, p.ID)
	}
	return strings.Join(out, " ")
}

func (s *suite) wantDocuments(t *testing.T, want map[string]string) {
	t.Helper()
	got, err := s.store.Documents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got, want) {
		t.Errorf("Documents: %v, want %v", got, want)
	}
}

func (s *suite) empty(t *testing.T) {
	if got := s.find(t, retrieval.Query{Texts: []string{"leave"}}); len(got) != 0 {
		t.Errorf("an empty store finds %v", ids(got))
	}
	s.wantDocuments(t, map[string]string{})
}

func (s *suite) rankings(t *testing.T) {
	s.put(t, handbook()...)
	for _, test := range []struct {
		texts []string
		want  string // the first of the result
	}{
		{[]string{"How many days of annual leave do employees have?"}, "leave.md/1 leave.md/2"},
		{[]string{"do contractors have annual leave"}, "leave.md/2 leave.md/1"},
		{[]string{"CONTRACTORS!"}, "leave.md/2"},
		{[]string{"is a sick note needed"}, "leave.md/3"},
		{[]string{"the door is open", "contractors"}, "pump.md/3"},
		{[]string{"contractors", "the door is open"}, "leave.md/2"},
		{[]string{"契約社員の休暇"}, "日本.md/2"},
		{[]string{"filter blocked"}, "pump.md/1"},
	} {
		got := ids(s.find(t, retrieval.Query{Texts: test.texts}))
		if !strings.HasPrefix(got+" ", test.want+" ") {
			t.Errorf("%q\n finds %s\n  want %s first", test.texts, got, test.want)
		}
	}
}

// context wants what fits the context to rise, and not before what fits the
// question; identifiers in the context are not asked for, and without a question
// nothing is found.
func (s *suite) context(t *testing.T) {
	s.put(t, handbook()...)
	for _, test := range []struct {
		text, context string
		first         string // of the result
		rises         string // stands higher than without the context, if not ""
	}{
		{"do contractors have annual leave", "the door is open, do contractors have annual leave", "leave.md/2", "pump.md/3"},
		{"do contractors have annual leave", "ERR-5172, do contractors have annual leave", "leave.md/2", "pump.md/2"},
		{"contractors", "\x00 \n", "leave.md/2", ""},
		{"contractors", "contractors", "leave.md/2", ""},
	} {
		without := s.find(t, retrieval.Query{Texts: []string{test.text}, Limit: 20})
		got := s.find(t, retrieval.Query{Texts: []string{test.text}, Context: test.context, Limit: 20})
		if !strings.HasPrefix(ids(got)+" ", test.first+" ") {
			t.Errorf("%q after %q\n finds %s\n  want %s first", test.text, test.context, ids(got), test.first)
		}
		place := func(passages []retrieval.Passage) int {
			return slices.IndexFunc(passages, func(p retrieval.Passage) bool { return p.ID == test.rises })
		}
		if test.rises != "" && place(got) >= place(without) {
			t.Errorf("%q after %q\n finds %s\nbefore %s\n  want %s to rise", test.text, test.context, ids(got), ids(without), test.rises)
		}
		if len(got) != 9 {
			t.Errorf("%q after %q finds %d passages, want all", test.text, test.context, len(got))
		}
		for _, p := range got {
			if p.Score >= 1+1e-9 {
				t.Errorf("%q after %q: %s scores %v, as if it held an identifier asked for", test.text, test.context, p.ID, p.Score)
			}
		}
	}
	if got := s.find(t, retrieval.Query{Context: "contractors"}); len(got) != 0 {
		t.Errorf("a context without a text finds %s", ids(got))
	}
}

func (s *suite) fields(t *testing.T) {
	d := document("a/b c.md", "Title > Part", "The only text.")
	d.Passages[0].Metadata = map[string]string{"audience": "all", "größe": "çok"}
	s.put(t, d)
	want := d.Passages[0]
	for range 2 {
		got := s.find(t, retrieval.Query{Texts: []string{"only text"}})
		if len(got) != 1 {
			t.Fatalf("found %d passages, want 1", len(got))
		}
		p := got[0]
		if p.ID != want.ID || p.Document != want.Document || p.Title != want.Title || p.Source != want.Source || p.Text != want.Text || !maps.Equal(p.Metadata, want.Metadata) {
			t.Errorf("found  %+v\nstored %+v", p, want)
		}
		if p.Score <= 0 {
			t.Errorf("Score is %v, want more than 0", p.Score)
		}
		p.Metadata["audience"] = "changed by the caller" // must not reach the store
	}
	d.Passages[0].Metadata["audience"] = "changed by the caller"
	if got := s.find(t, retrieval.Query{Texts: []string{"only text"}}); got[0].Metadata["audience"] != "all" {
		t.Error("the store shares the metadata of what it was given")
	}
}

func (s *suite) limits(t *testing.T) {
	s.put(t, handbook()...)
	all := 0
	for _, d := range handbook() {
		all += len(d.Passages)
	}
	for limit, want := range map[int]int{0: retrieval.DefaultLimit, -1: retrieval.DefaultLimit, 1: 1, 3: 3, all: all, 1000: all} {
		got := s.find(t, retrieval.Query{Texts: []string{"leave"}, Limit: limit})
		if len(got) != want {
			t.Errorf("Limit %d gives %d passages, want %d", limit, len(got), want)
		}
		if !slices.IsSortedFunc(got, func(a, b retrieval.Passage) int { return cmp.Compare(b.Score, a.Score) }) {
			t.Errorf("Limit %d: the scores do not fall: %v", limit, got)
		}
	}
}

func (s *suite) oddQueries(t *testing.T) {
	s.put(t, handbook()...)
	for _, texts := range [][]string{nil, {}, {""}, {" \n\t"}, {"", "\x00"}} {
		if got := s.find(t, retrieval.Query{Texts: texts}); len(got) != 0 {
			t.Errorf("%q finds %s", texts, ids(got))
		}
	}
	for name, text := range map[string]string{
		"long":        "contractors " + strings.Repeat("filler ", 1<<17),
		"long tail":   strings.Repeat("filler ", 1<<17) + "contractors",
		"one word":    strings.Repeat("x", 1<<20) + " contractors",
		"null bytes":  "contr\x00actors",
		"broken":      "contractors \xff\xfe",
		"twice":       "contractors",
		"marks":       "?!* contractors \"(",
		"query words": "contractors AND NOT OR * : ^ ~",
	} {
		got := s.find(t, retrieval.Query{Texts: []string{"", text, text}})
		if len(got) == 0 || got[0].ID != "leave.md/2" {
			t.Errorf("%s: finds %s, want leave.md/2 first", name, ids(got))
		}
	}
}

func (s *suite) filter(t *testing.T) {
	s.put(t, handbook()...)
	for _, test := range []struct {
		filter map[string]string
		want   string // sorted
	}{
		{map[string]string{"folder": "L"}, "leave.md/1 leave.md/2 leave.md/3"},
		{map[string]string{"folder": "L", "language": "en"}, "leave.md/1 leave.md/2 leave.md/3"},
		{map[string]string{"folder": "L", "language": "de"}, ""},
		{map[string]string{"folder": "l"}, ""},
		{map[string]string{"no such key": ""}, ""},
	} {
		got := strings.Fields(ids(s.find(t, retrieval.Query{Texts: []string{"door"}, Filter: test.filter})))
		slices.Sort(got)
		if strings.Join(got, " ") != test.want {
			t.Errorf("%v gives %v, want %s", test.filter, got, test.want)
		}
	}
}

func (s *suite) identifiers(t *testing.T) {
	s.put(t, handbook()...)
	s.put(t, document("wrong.md", "What ERR-5171 means", "What does it mean? It means that the water is too hot, what else."))
	for _, query := range []string{
		"what does ERR-5172 mean", "err-5172", "ERR 5172", "what does err 5172 mean", "err_5172?", "ERR‑5172", "I get ERR5172, what does it mean",
	} {
		got := ids(s.find(t, retrieval.Query{Texts: []string{query}, Limit: 20}))
		if !strings.HasPrefix(got, "pump.md/2 ") {
			t.Errorf("%q finds %s, want pump.md/2 first", query, got)
		}
		for _, neighbour := range []string{"pump.md/1", "pump.md/3", "wrong.md/1"} {
			if strings.Contains(got, neighbour) {
				t.Errorf("%q finds %s, which is about a neighbouring code", query, neighbour)
			}
		}
	}
	got := ids(s.find(t, retrieval.Query{Texts: []string{"how do ERR-5173 and ERR-5172 differ"}, Limit: 2}))
	if got != "pump.md/2 pump.md/3" && got != "pump.md/3 pump.md/2" {
		t.Errorf("two codes find %s, want both their passages first", got)
	}
	s.put(t, document("other.md", "Pump AX-200", "ERR-5171 means that the belt is torn.", "ERR-5172 means that the belt is loose."))
	for query, want := range map[string]string{
		"the AX-100 shows ERR-5172":           "pump.md/2",
		"ERR-5172 on the ax 200":              "other.md/2",
		"the belt is loose, AX-100, ERR-5171": "pump.md/1",
	} {
		got := ids(s.find(t, retrieval.Query{Texts: []string{query}, Limit: 20}))
		if got != want && !strings.HasPrefix(got, want+" ") || strings.Count(got, "pump.md/")+strings.Count(got, "other.md/") > 2 {
			t.Errorf("%q finds %s, want %s and of the other codes and pumps none", query, got, want)
		}
	}
	got = ids(s.find(t, retrieval.Query{Texts: []string{"ERR-9999"}, Limit: 20}))
	if strings.Contains(got, "pump.md/1") || strings.Contains(got, "pump.md/2") || strings.Contains(got, "pump.md/3") {
		t.Errorf("a code that is not in the corpus finds the passages of others: %s", got)
	}
}

func (s *suite) knownIdentifiers(t *testing.T) {
	known, ok := s.store.(retrieval.IdentifierStore)
	if !ok {
		t.Skip("the store does not know identifiers")
	}
	s.put(t, handbook()...)
	for _, test := range []struct{ text, want string }{
		{"what is the leave of employees", ""},
		{"over 9999 employees", ""},
		{"what does err 5172 mean", "err 5172: known"},
		{"what does ERR-5174 mean", "ERR-5174: ERR-5171 ERR-5172 ERR-5173"},
		{"what does err 5712 mean, and ERR-5171", "err 5712: ERR-5172 ERR-5171 ERR-5173; ERR-5171: known"},
		{"EER-5172", "EER-5172: ERR-5172"},
		{"part ZX-77", "ZX-77:"},
	} {
		ids, err := known.KnownIdentifiers(t.Context(), test.text)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, id := range ids {
			switch {
			case id.Known:
				got = append(got, id.Identifier+": known")
			default:
				got = append(got, strings.TrimSpace(id.Identifier+": "+strings.Join(id.Nearest, " ")))
			}
		}
		if line := strings.Join(got, "; "); line != test.want {
			t.Errorf("%q\n got %s\nwant %s", test.text, line, test.want)
		}
	}
	if err := s.store.Delete(t.Context(), "pump.md"); err != nil {
		t.Fatal(err)
	}
	ids, err := known.KnownIdentifiers(t.Context(), "ERR-5172")
	if err != nil || len(ids) != 1 || ids[0].Known || len(ids[0].Nearest) != 0 {
		t.Errorf("after the document is deleted: %+v, %v", ids, err)
	}
}

// spans has passages that are about all codes from one to another.
func (s *suite) spans(t *testing.T) {
	s.put(t, document("codes.md", "Codes", "ERR-5100 to ERR-5199 come from the network.", "ERR-5200 – ERR-5299 come from the disk.", "ERR-5150 and ERR-5160 are the same.", "Write them down."))
	for query, want := range map[string]string{
		"what is ERR-5155": "codes.md/1 codes.md/4",
		"what is ERR-5250": "codes.md/2 codes.md/4",
		"what is ERR-5150": "codes.md/3 codes.md/1 codes.md/4",
		"what is ERR-5300": "codes.md/4",
	} {
		if got := ids(s.find(t, retrieval.Query{Texts: []string{query}})); got != want {
			t.Errorf("%q finds %s, want %s", query, got, want)
		}
	}
	if known, ok := s.store.(retrieval.IdentifierStore); ok {
		for id, want := range map[string]bool{"ERR-5155": true, "ERR-5300": false} {
			if got, err := known.KnownIdentifiers(t.Context(), id); err != nil || len(got) != 1 || got[0].Known != want {
				t.Errorf("%s: %v, %v; want known to be %v", id, got, err, want)
			}
		}
	}
}

// explain gives what Retrieve gives, and what its scores were made of.
func (s *suite) explain(t *testing.T) {
	explainer, ok := s.store.(retrieval.Explainer)
	if !ok {
		t.Skip("the store does not explain")
	}
	s.put(t, handbook()...)
	for _, q := range []retrieval.Query{
		{Texts: []string{"annual leave of contractors"}, Limit: 9},
		{Texts: []string{"the door is open", "what does ERR-5172 mean"}, Limit: 4},
		{Texts: []string{"年次有給休暇"}, Filter: map[string]string{"folder": "休"}},
	} {
		hits, err := explainer.Explain(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var explained []retrieval.Passage
		for _, h := range hits {
			explained = append(explained, h.Passage)
			var cosine float64
			shares := false
			for i, text := range q.Texts {
				c := cosineOf(Vector(text), Vector(retrieval.EmbeddingText(h.Passage)))
				if i == 0 || c > cosine {
					cosine = c
				}
				for _, word := range strings.Fields(text) {
					shares = shares || len(word) > 4 && strings.Contains(retrieval.EmbeddingText(h.Passage), word)
				}
			}
			if math.Abs(h.Cosine-cosine) > 1e-4 {
				t.Errorf("%q: %s has the cosine %v, want %v", q.Texts, h.ID, h.Cosine, cosine)
			}
			if h.BM25 < 0 || shares && h.BM25 == 0 {
				t.Errorf("%q: %s has the BM25 score %v", q.Texts, h.ID, h.BM25)
			}
			if want := strings.Contains(h.Text, "ERR-5172") && strings.Contains(q.Texts[len(q.Texts)-1], "ERR-5172"); want != slices.Equal(h.Identifiers, []string{"ERR-5172"}) {
				t.Errorf("%q: %s is said to hold %q", q.Texts, h.ID, h.Identifiers)
			}
		}
		if got, want := ids(explained), ids(s.find(t, q)); got != want {
			t.Errorf("%q: Explain gives %s, Retrieve %s", q.Texts, got, want)
		}
	}
}

func cosineOf(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab, aa, bb = ab+float64(a[i])*float64(b[i]), aa+float64(a[i])*float64(a[i]), bb+float64(b[i])*float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

func (s *suite) replaceAll(t *testing.T) {
	many, ok := s.store.(retrieval.BatchStore)
	if !ok {
		t.Skip("the store takes one document at a time")
	}
	if err := many.ReplaceAll(t.Context(), nil); err != nil {
		t.Errorf("no documents: %v", err)
	}
	if err := many.ReplaceAll(t.Context(), append(handbook(), retrieval.Chunked{Document: "empty.md", Fingerprint: "e"})); err != nil {
		t.Fatal(err)
	}
	s.wantDocuments(t, map[string]string{"leave.md": "1", "pump.md": "1", "日本.md": "1", "empty.md": "e"})
	for name, documents := range map[string][]retrieval.Chunked{
		"a document twice":  {document("new.md", "New", "one"), document("new.md", "New", "two")},
		"a passage twice":   {document("new.md", "New", "one"), {Document: "other.md", Passages: document("new.md", "New", "one").Passages}},
		"one that is wrong": {document("new.md", "New", "one"), document("bad.md", "New", "caf\xe9")},
	} {
		if err := many.ReplaceAll(t.Context(), documents); !errors.Is(err, retrieval.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	s.wantDocuments(t, map[string]string{"leave.md": "1", "pump.md": "1", "日本.md": "1", "empty.md": "e"})

	// Large enough for several requests of any store.
	var texts []string
	for i := range 700 {
		texts = append(texts, fmt.Sprintf("item number%d", i))
	}
	if err := many.ReplaceAll(t.Context(), []retrieval.Chunked{document("large.md", "List", texts...), document("leave.md", "Leave", "none")}); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 350, 699} {
		if got := ids(s.find(t, retrieval.Query{Texts: []string{texts[i]}, Limit: 1})); got != fmt.Sprintf("large.md/%d", i+1) {
			t.Errorf("%q finds %s", texts[i], got)
		}
	}
	if got := s.find(t, retrieval.Query{Texts: []string{"item"}, Limit: 1000}); len(got) != 700+1+6 {
		t.Errorf("all are %d passages, want 707", len(got))
	}
}

func (s *suite) duplicates(t *testing.T) {
	s.put(t, handbook()...)
	for i := range 5 {
		s.put(t, document(fmt.Sprintf("copy%d.md", i), "Leave", "Contractors have no annual leave."))
	}
	got := s.find(t, retrieval.Query{Texts: []string{"contractors annual leave"}, Limit: 3})
	if len(got) != 3 {
		t.Fatalf("found %s, want 3 passages", ids(got))
	}
	texts := make(map[string]bool)
	for _, p := range got {
		texts[p.Text] = true
	}
	if len(texts) != 3 || !texts["Contractors have no annual leave."] {
		t.Errorf("the result repeats a text: %v", got)
	}
}

func (s *suite) replace(t *testing.T) {
	first := document("a.md", "A", "alpha one", "beta two", "gamma three")
	s.put(t, first, document("b.md", "B", "delta four"))
	s.embedder.Embedded()

	second := document("a.md", "A", "alpha one", "beta changed")
	second.Fingerprint = "2"
	second.Passages[1].ID = "a.md/2'"
	s.put(t, second)
	if got := s.embedder.Embedded(); !slices.Equal(got, []string{"A\nbeta changed"}) {
		t.Errorf("embedded %q, want the changed passage alone", got)
	}
	s.wantDocuments(t, map[string]string{"a.md": "2", "b.md": "1"})
	all := strings.Fields(ids(s.find(t, retrieval.Query{Texts: []string{"alpha"}, Limit: 20})))
	slices.Sort(all)
	if got := strings.Join(all, " "); got != "a.md/1 a.md/2' b.md/1" {
		t.Errorf("after Replace there are %s", got)
	}
	if got := ids(s.find(t, retrieval.Query{Texts: []string{"changed"}, Limit: 1})); got != "a.md/2'" {
		t.Errorf("the new passage is not found: %s", got)
	}

	s.put(t, second) // twice the same
	if got := s.embedder.Embedded(); len(got) != 0 {
		t.Errorf("embedded again: %q", got)
	}
	if got := s.find(t, retrieval.Query{Texts: []string{"alpha"}, Limit: 20}); len(got) != 3 {
		t.Errorf("putting the same twice gives %s", ids(got))
	}

	// The same id with another text is another passage.
	second.Passages[0].Text = "omega"
	s.put(t, second)
	if got := s.embedder.Embedded(); !slices.Equal(got, []string{"A\nomega"}) {
		t.Errorf("embedded %q, want the new text", got)
	}

	s.put(t, retrieval.Chunked{Document: "a.md", Fingerprint: "3"})
	s.wantDocuments(t, map[string]string{"a.md": "3", "b.md": "1"})
	if got := ids(s.find(t, retrieval.Query{Texts: []string{"alpha"}, Limit: 20})); got != "b.md/1" {
		t.Errorf("a document without passages leaves %s", got)
	}
}

func (s *suite) delete(t *testing.T) {
	s.put(t, handbook()...)
	if err := s.store.Delete(t.Context(), "leave.md", "unknown.md"); err != nil {
		t.Fatal(err)
	}
	s.wantDocuments(t, map[string]string{"pump.md": "1", "日本.md": "1"})
	for _, p := range s.find(t, retrieval.Query{Texts: []string{"annual leave"}, Limit: 100}) {
		if p.Document == "leave.md" {
			t.Errorf("%s is found after its document was deleted", p.ID)
		}
	}
	if err := s.store.Delete(t.Context()); err != nil {
		t.Errorf("deleting nothing: %v", err)
	}
	if err := s.store.Delete(t.Context(), "pump.md", "日本.md", "pump.md"); err != nil {
		t.Fatal(err)
	}
	s.empty(t)
}

// library looks at what is stored: the list of documents, and passages by id.
func (s *suite) library(t *testing.T) {
	store, ok := s.store.(retrieval.Library)
	if !ok {
		t.Skip("the store does not show what it holds")
	}
	wantList := func(want ...retrieval.DocumentInfo) {
		t.Helper()
		list, err := store.List(t.Context())
		if err != nil || !slices.Equal(list, want) {
			t.Errorf("List: %+v, %v\nwant %+v", list, err, want)
		}
	}
	wantGet := func(want string, asked ...string) {
		t.Helper()
		passages, err := store.Get(t.Context(), asked...)
		if err != nil || ids(passages) != want {
			t.Errorf("Get(%q) gives %q, %v; want %q", asked, ids(passages), err, want)
		}
	}
	wantList()
	wantGet("", "leave.md/1")

	s.put(t, append(handbook(), document("deep.md", "Guide > Part > Chapter", "deep"), retrieval.Chunked{Document: "empty.md", Fingerprint: "e"})...)
	wantList(
		retrieval.DocumentInfo{ID: "deep.md", Title: "Guide", Passages: 1, Fingerprint: "1"},
		retrieval.DocumentInfo{ID: "empty.md", Fingerprint: "e"},
		retrieval.DocumentInfo{ID: "leave.md", Title: "Leave", Passages: 3, Fingerprint: "1"},
		retrieval.DocumentInfo{ID: "pump.md", Title: "Pump AX-100", Passages: 4, Fingerprint: "1"},
		retrieval.DocumentInfo{ID: "日本.md", Title: "休暇", Passages: 2, Fingerprint: "1"})
	wantGet("pump.md/2 leave.md/1 日本.md/2 leave.md/1", "pump.md/2", "unknown", "leave.md/1", "日本.md/2", "leave.md/1")
	wantGet("", "", "caf\xe9", "leave.md")
	wantGet("")
	passages, err := store.Get(t.Context(), "leave.md/2")
	if want := handbook()[0].Passages[1]; err != nil || len(passages) != 1 || !reflect.DeepEqual(passages[0], want) {
		t.Errorf("Get gives %+v, %v; want %+v", passages, err, want)
	}

	// What was there before is not: neither a passage that was replaced nor one
	// that was deleted.
	changed := document("leave.md", "Absence", "Employees have 30 days of annual leave.")
	changed.Passages[0].ID, changed.Fingerprint = "leave.md/new", "2"
	s.put(t, changed)
	if err := store.Delete(t.Context(), "pump.md", "日本.md", "empty.md"); err != nil {
		t.Fatal(err)
	}
	wantList(
		retrieval.DocumentInfo{ID: "deep.md", Title: "Guide", Passages: 1, Fingerprint: "1"},
		retrieval.DocumentInfo{ID: "leave.md", Title: "Absence", Passages: 1, Fingerprint: "2"})
	wantGet("leave.md/new deep.md/1", "leave.md/1", "leave.md/new", "pump.md/1", "deep.md/1")
}

func (s *suite) invalid(t *testing.T) {
	s.put(t, handbook()...)
	for _, bad := range []string{"caf\xe9", "日本"[:4], "\xed\xa0\x80"} {
		s.invalidWith(t, bad)
	}
	s.wantDocuments(t, map[string]string{"leave.md": "1", "pump.md": "1", "日本.md": "1"})
}

// invalidWith puts bytes that are no valid text into each field.
func (s *suite) invalidWith(t *testing.T, bad string) {
	for name, spoil := range map[string]func(p *retrieval.Passage){
		"text":           func(p *retrieval.Passage) { p.Text = bad },
		"title":          func(p *retrieval.Passage) { p.Title = bad },
		"source":         func(p *retrieval.Passage) { p.Source = bad },
		"id":             func(p *retrieval.Passage) { p.ID = bad },
		"metadata key":   func(p *retrieval.Passage) { p.Metadata[bad] = "x" },
		"metadata value": func(p *retrieval.Passage) { p.Metadata["x"] = bad },
		"no text":        func(p *retrieval.Passage) { p.Text = "" },
		"no id":          func(p *retrieval.Passage) { p.ID = "" },
		"other document": func(p *retrieval.Passage) { p.Document = "pump.md" },
		"same id":        func(p *retrieval.Passage) { p.ID = "new.md/1" },
	} {
		d := document("new.md", "New", "first", "second")
		spoil(&d.Passages[1])
		err := s.store.Replace(t.Context(), d.Document, d.Fingerprint, d.Passages)
		if !errors.Is(err, retrieval.ErrInvalid) || !strings.Contains(err.Error(), "new.md") {
			t.Errorf("%s: error %v, want ErrInvalid that names new.md", name, err)
		}
	}
	for _, id := range []string{"", bad} {
		if err := s.store.Replace(t.Context(), id, "1", nil); !errors.Is(err, retrieval.ErrInvalid) {
			t.Errorf("document id %q: error %v, want ErrInvalid", id, err)
		}
	}
}

func (s *suite) embedderFails(t *testing.T) {
	s.put(t, document("a.md", "A", "alpha"))
	down := errors.New("embedder down")
	s.embedder.Err = func(string) error { return down }
	err := s.store.Replace(t.Context(), "a.md", "2", document("a.md", "A", "beta", "gamma").Passages)
	if !errors.Is(err, down) {
		t.Errorf("Replace: %v, want the embedder's error", err)
	}
	if _, err := s.store.Retrieve(t.Context(), retrieval.Query{Texts: []string{"alpha"}}); !errors.Is(err, down) {
		t.Errorf("Retrieve: %v, want the embedder's error", err)
	}
	s.embedder.Err = nil
	s.wantDocuments(t, map[string]string{"a.md": "1"})
	if got := ids(s.find(t, retrieval.Query{Texts: []string{"beta"}})); got != "a.md/1" {
		t.Errorf("after a failed Replace there are %s", got)
	}
}

func (s *suite) cancelled(t *testing.T) {
	s.put(t, document("a.md", "A", "alpha"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.store.Retrieve(ctx, retrieval.Query{Texts: []string{"alpha"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("Retrieve: %v", err)
	}
	if err := s.store.Replace(ctx, "a.md", "2", document("a.md", "A", "beta").Passages); !errors.Is(err, context.Canceled) {
		t.Errorf("Replace: %v", err)
	}
	if err := s.store.Delete(ctx, "a.md"); !errors.Is(err, context.Canceled) {
		t.Errorf("Delete: %v", err)
	}
	s.wantDocuments(t, map[string]string{"a.md": "1"})
}

// concurrent has readers look at a document that changes all the time: what
// they see is of one revision, whole.
func (s *suite) concurrent(t *testing.T) {
	revision := func(n int) retrieval.Chunked {
		d := document("a.md", "A", fmt.Sprintf("apple, revision %d", n), fmt.Sprintf("banana, revision %d", n), fmt.Sprintf("cherry, revision %d", n))
		for i := range d.Passages {
			d.Passages[i].ID = fmt.Sprintf("%d/%d", n, i)
		}
		return d
	}
	s.put(t, revision(0), document("b.md", "B", "apple pie"))
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				passages, err := s.store.Retrieve(t.Context(), retrieval.Query{Texts: []string{"apple"}, Limit: 10})
				if err != nil {
					t.Error(err)
					return
				}
				revisions := make(map[string]int)
				for _, p := range passages {
					if p.Document == "a.md" {
						revisions[strings.Split(p.ID, "/")[0]]++
					}
				}
				if len(revisions) != 1 || len(passages) != 4 {
					t.Errorf("a reader sees %s", ids(passages))
					return
				}
			}
		})
	}
	for n := range 30 {
		s.put(t, revision(n+1))
	}
	cancel()
	readers.Wait()
}

func (s *suite) sync(t *testing.T) {
	sync := func(documents ...retrieval.Chunked) retrieval.SyncReport {
		t.Helper()
		report, err := retrieval.Sync(t.Context(), s.store, func(yield func(retrieval.Input, error) bool) {
			for _, d := range documents {
				input := retrieval.Input{Document: d.Document, Fingerprint: d.Fingerprint, Passages: func() ([]retrieval.Passage, error) { return d.Passages, nil }}
				if !yield(input, nil) {
					return
				}
			}
		}, retrieval.SyncOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	all := handbook()
	if got := sync(all...); len(got.Added) != 3 || got.Passages != 9 {
		t.Errorf("first Sync: %+v", got)
	}
	s.embedder.Embedded()
	all[0].Fingerprint = "2"
	all[0].Passages = all[0].Passages[:1]
	if got := sync(all[:2]...); !slices.Equal(got.Changed, []string{"leave.md"}) || !slices.Equal(got.Unchanged, []string{"pump.md"}) || !slices.Equal(got.Deleted, []string{"日本.md"}) {
		t.Errorf("second Sync: %+v", got)
	}
	if got := s.embedder.Embedded(); len(got) != 0 {
		t.Errorf("embedded again: %q", got)
	}
	s.wantDocuments(t, map[string]string{"leave.md": "2", "pump.md": "1"})
}
