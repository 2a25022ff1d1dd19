package retrieval

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
)

// log is a store that writes down what is asked of it.
type log struct {
	documents map[string]string
	lines     []string
	fail      error // of Replace
}

func (l *log) Documents(context.Context) (map[string]string, error) {
	return maps.Clone(l.documents), nil
}

func (l *log) Replace(_ context.Context, document, fingerprint string, passages []Passage) error {
	if l.fail != nil {
		return l.fail
	}
	l.lines = append(l.lines, fmt.Sprintf("replace %s %s %d", document, fingerprint, len(passages)))
	l.documents[document] = fingerprint
	return nil
}

func (l *log) Delete(_ context.Context, documents ...string) error {
	l.lines = append(l.lines, "delete "+strings.Join(documents, " "))
	for _, d := range documents {
		delete(l.documents, d)
	}
	return nil
}

// batchLog takes batches.
type batchLog struct{ log }

func (l *batchLog) ReplaceAll(ctx context.Context, documents []Chunked) error {
	var names []string
	for _, d := range documents {
		names = append(names, d.Document)
	}
	l.lines = append(l.lines, "batch "+strings.Join(names, " "))
	for _, d := range documents {
		l.documents[d.Document] = d.Fingerprint
	}
	return l.fail
}

// A step is an input with its error.
type step struct {
	input Input
	err   error
}

func sequence(steps ...step) iter.Seq2[Input, error] {
	return func(yield func(Input, error) bool) {
		for _, s := range steps {
			if !yield(s.input, s.err) {
				return
			}
		}
	}
}

// doc is a document with n passages.
func doc(name, fingerprint string, n int) step {
	return step{input: Input{Document: name, Fingerprint: fingerprint, Passages: func() ([]Passage, error) {
		var passages []Passage
		for i := range n {
			passages = append(passages, Passage{ID: fmt.Sprint(name, i), Document: name, Text: "text"})
		}
		return passages, nil
	}}}
}

func unread(name string) step {
	s := doc(name, "1", 0)
	s.input.Passages = func() ([]Passage, error) { return nil, errors.New("cut off") }
	return s
}

func invalid(name string) step {
	s := doc(name, "1", 0)
	s.input.Passages = func() ([]Passage, error) {
		return []Passage{{ID: "1", Document: name, Text: "caf\xe9"}}, nil
	}
	return s
}

// summary tells a report in a line.
func summary(r SyncReport) string {
	var skipped []string
	for _, s := range r.Skipped {
		skipped = append(skipped, s.Document)
	}
	return fmt.Sprintf("added %v changed %v unchanged %v deleted %v skipped %v passages %d", r.Added, r.Changed, r.Unchanged, r.Deleted, skipped, r.Passages)
}

func TestSync(t *testing.T) {
	for _, test := range []struct {
		name    string
		stored  string // name=fingerprint, ...
		steps   []step
		options SyncOptions
		store   string // what the store is asked
		report  string
		err     string
	}{
		{name: "nothing", report: "added [] changed [] unchanged [] deleted [] skipped [] passages 0"},
		{name: "new, changed, unchanged and gone", stored: "a=1 b=1 c=1 d=1",
			steps:  []step{doc("e", "1", 2), doc("b", "2", 3), doc("a", "1", 9)},
			store:  "replace e 1 2; replace b 2 3; delete c d",
			report: "added [e] changed [b] unchanged [a] deleted [c d] skipped [] passages 5"},
		{name: "what is gone may stay", stored: "a=1 b=1", steps: []step{doc("a", "1", 1)}, options: SyncOptions{Keep: true},
			report: "added [] changed [] unchanged [a] deleted [] skipped [] passages 0"},
		{name: "an empty document is stored", stored: "a=1", steps: []step{doc("a", "2", 0)},
			store: "replace a 2 0", report: "added [] changed [a] unchanged [] deleted [] skipped [] passages 0"},
		{name: "what cannot be read is skipped and stays", stored: "a=0 b=0 c=0",
			steps:  []step{unread("a"), invalid("b"), {Input{Document: "c"}, errors.New("no permission")}, doc("d", "1", 1)},
			store:  "replace d 1 1",
			report: "added [d] changed [] unchanged [] deleted [] skipped [a b c] passages 1"},
		{name: "the same id twice", steps: []step{doc("a", "1", 1), doc("a", "2", 1)},
			store: "replace a 1 1", report: "added [a] changed [] unchanged [] deleted [] skipped [a] passages 1"},
		{name: "the list breaks off", stored: "a=1 z=1", steps: []step{doc("b", "1", 1), {Input{}, errors.New("folder gone")}},
			store: "replace b 1 1", report: "added [b] changed [] unchanged [] deleted [] skipped [] passages 1", err: "listing documents: folder gone"},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := &log{documents: make(map[string]string)}
			for pair := range strings.FieldsSeq(test.stored) {
				name, fingerprint, _ := strings.Cut(pair, "=")
				store.documents[name] = fingerprint
			}
			done := 0
			test.options.Progress = func(p Progress) {
				if done++; p.Done != done || p.Document == "" {
					t.Errorf("progress %+v after %d documents", p, done)
				}
			}
			report, err := Sync(t.Context(), store, sequence(test.steps...), test.options)
			if got := strings.Join(store.lines, "; "); got != test.store {
				t.Errorf("asked of the store\n got %s\nwant %s", got, test.store)
			}
			if got := summary(report); got != test.report {
				t.Errorf("reported\n got %s\nwant %s", got, test.report)
			}
			if got := fmt.Sprint(err); got != test.err && (err != nil || test.err != "") {
				t.Errorf("error %q, want %q", got, test.err)
			}
			if test.err == "" && done != len(test.steps) {
				t.Errorf("progress for %d documents, want %d", done, len(test.steps))
			}
		})
	}
}

func TestSyncBatches(t *testing.T) {
	store := &batchLog{log{documents: map[string]string{"gone": "1"}}}
	report, err := Sync(t.Context(), store, sequence(doc("a", "1", 3), doc("b", "1", 3), doc("c", "1", 100), doc("d", "1", 1)), SyncOptions{Batch: 5})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(store.lines, "; "), "batch a b; batch c; batch d; delete gone"; got != want {
		t.Errorf("asked of the store\n got %s\nwant %s", got, want)
	}
	if report.Passages != 107 || len(report.Added) != 4 {
		t.Errorf("reported %s", summary(report))
	}
}

func TestSyncStops(t *testing.T) {
	full := errors.New("disk full")
	store := &log{documents: map[string]string{"gone": "1"}, fail: full}
	if _, err := Sync(t.Context(), store, sequence(doc("a", "1", 1)), SyncOptions{}); !errors.Is(err, full) || len(store.lines) > 0 {
		t.Errorf("a store that fails: %v, %q", err, store.lines)
	}

	ctx, cancel := context.WithCancel(t.Context())
	store = &log{documents: map[string]string{"gone": "1"}}
	steps := sequence(doc("a", "1", 1), doc("b", "1", 1), doc("c", "1", 1))
	report, err := Sync(ctx, store, steps, SyncOptions{Batch: 1, Progress: func(p Progress) {
		if p.Document == "b" {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || summary(report) != "added [a b] changed [] unchanged [] deleted [] skipped [] passages 2" {
		t.Errorf("cancelled after b: %v, %s", err, summary(report))
	}
	if report, err = Sync(t.Context(), store, steps, SyncOptions{}); err != nil || summary(report) != "added [c] changed [] unchanged [a b] deleted [gone] skipped [] passages 1" {
		t.Errorf("gone on: %v, %s", err, summary(report))
	}
}

func TestInputs(t *testing.T) {
	document := func(text string) Document {
		return Document{ID: "a.md", Title: "A", Blocks: []Block{{Text: text}}}
	}
	fingerprint := func(d Document, o ChunkOptions) string {
		for input, err := range Inputs(func(yield func(Document, error) bool) { yield(d, nil) }, o) {
			passages, errPassages := input.Passages()
			if err != nil || errPassages != nil || input.Document != d.ID || !slices.Equal(texts(passages), texts(Chunk(d, o))) {
				t.Fatalf("%+v, %v, %v", input, err, errPassages)
			}
			return input.Fingerprint
		}
		return ""
	}
	base := fingerprint(document("one"), ChunkOptions{})
	if again := fingerprint(document("one"), ChunkOptions{MaxTokens: DefaultMaxTokens, Count: EstimateTokens}); again != base {
		t.Error("the fingerprint changes although the passages do not")
	}
	for name, other := range map[string]string{
		"text":    fingerprint(document("two"), ChunkOptions{}),
		"size":    fingerprint(document("one"), ChunkOptions{MaxTokens: 100}),
		"counter": fingerprint(document("one"), ChunkOptions{Count: func(s string) int { return len(s) / 3 }}),
	} {
		if other == base {
			t.Errorf("the fingerprint is the same with another %s", name)
		}
	}
	broken := errors.New("broken")
	for input, err := range Inputs(func(yield func(Document, error) bool) { yield(Document{ID: "b.md"}, broken) }, ChunkOptions{}) {
		if input.Document != "b.md" || err != broken {
			t.Errorf("an error is passed on as %+v, %v", input, err)
		}
	}
}

func texts(passages []Passage) []string {
	var out []string
	for _, p := range passages {
		out = append(out, p.Text)
	}
	return out
}
