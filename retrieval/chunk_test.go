package retrieval

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// words counts as a simple tokenizer does: a token for each word.
func words(text string) int { return len(strings.Fields(text)) }

func TestChunk(t *testing.T) {
	type want struct{ title, source, text string }
	tests := []struct {
		name    string
		options ChunkOptions
		blocks  []Block
		want    []want
	}{
		{
			name:    "blocks under one heading share a passage",
			options: ChunkOptions{MaxTokens: 20, Count: words},
			blocks: []Block{
				{Headings: []string{"Guide", "Leave"}, Place: "#leave", Text: "Ask your lead."},
				{Headings: []string{"Guide", "Leave"}, Place: "#leave", Text: "- by mail\n- by phone", Kind: List},
				{Headings: []string{"Guide", "Sick days"}, Place: "#sick-days", Text: "Call in."},
			},
			want: []want{
				{"Guide > Leave", "g.md#leave", "Ask your lead.\n\n- by mail\n- by phone"},
				{"Guide > Sick days", "g.md#sick-days", "Call in."},
			},
		},
		{
			name:    "rows of a table keep their header",
			options: ChunkOptions{MaxTokens: 13, Count: words},
			blocks: []Block{{Kind: Table, Header: "| code | sense |\n|---|---|",
				Text: "| E1 | full |\n| E2 | empty |\n| E3 | lost |", Place: "page 2"}},
			want: []want{
				{"Guide", "g.md, page 2", "| code | sense |\n|---|---|\n| E1 | full |"},
				{"Guide", "g.md, page 2", "| code | sense |\n|---|---|\n| E2 | empty |"},
				{"Guide", "g.md, page 2", "| code | sense |\n|---|---|\n| E3 | lost |"},
			},
		},
		{
			name:    "a list is cut between items, with what is inside them",
			options: ChunkOptions{MaxTokens: 9, Count: words},
			blocks:  []Block{{Kind: List, Text: "- one two\n  - inner item\n- three four\n- five six"}},
			want: []want{
				{"Guide", "g.md", "- one two\n  - inner item"},
				{"Guide", "g.md", "- three four\n- five six"},
			},
		},
		{
			name:    "code is cut between lines and keeps its indentation",
			options: ChunkOptions{MaxTokens: 6, Count: words},
			blocks:  []Block{{Kind: Code, Text: "if x {\n\treturn the answer\n}"}},
			want: []want{
				{"Guide", "g.md", "if x {"},
				{"Guide", "g.md", "\treturn the answer\n}"},
			},
		},
		{
			name:    "sentences, not abbreviations",
			options: ChunkOptions{MaxTokens: 9, Count: words},
			blocks:  []Block{{Text: `Ask Dr. Weber first. "Is it open?" he will say. Then wait e.g. until noon.`}},
			want: []want{
				{"Guide", "g.md", `Ask Dr. Weber first.`},
				{"Guide", "g.md", `"Is it open?" he will say.`},
				{"Guide", "g.md", `Then wait e.g. until noon.`},
			},
		},
		{
			name:    "Chinese sentences with their quotation marks",
			options: ChunkOptions{MaxTokens: 18},
			blocks:  []Block{{Text: "他说：「今天不开门。」我们明天再来！好吗？好。"}},
			want: []want{
				{"Guide", "g.md", "他说：「今天不开门。」"},
				{"Guide", "g.md", "我们明天再来！好吗？好。"},
			},
		},
		{
			name:    "Hindi sentences",
			options: ChunkOptions{MaxTokens: 8, Count: words},
			blocks:  []Block{{Text: "यह पहला वाक्य है। यह दूसरा वाक्य है।"}},
			want: []want{
				{"Guide", "g.md", "यह पहला वाक्य है।"},
				{"Guide", "g.md", "यह दूसरा वाक्य है।"},
			},
		},
		{
			name:    "Thai at its spaces",
			options: ChunkOptions{MaxTokens: 22},
			blocks:  []Block{{Text: "สวัสดีครับ ผมมาจากกรุงเทพ"}},
			want: []want{
				{"Guide", "g.md", "สวัสดีครับ"},
				{"Guide", "g.md", "ผมมาจากกรุงเทพ"},
			},
		},
		{
			name:    "characters of several runes stay whole",
			options: ChunkOptions{MaxTokens: 7, Count: utf8.RuneCountInString},
			blocks:  []Block{{Text: "👩‍👩‍👧👩‍👩‍👧"}},
			want:    []want{{"", "g.md", "👩‍👩‍👧"}, {"", "g.md", "👩‍👩‍👧"}},
		},
		{
			name:    "two pages are two passages",
			options: ChunkOptions{},
			blocks:  []Block{{Text: "One.", Place: "page 1"}, {Text: "Two.", Place: "page 2"}},
			want:    []want{{"Guide", "g.md, page 1", "One."}, {"Guide", "g.md, page 2", "Two."}},
		},
		{
			name:    "broken text is mended",
			options: ChunkOptions{},
			blocks:  []Block{{Text: "caf\xe9\x00 bar\r\nopen", Headings: []string{"\xff"}}, {Text: " \n"}},
			want:    []want{{"Guide > \uFFFD", "g.md", "caf\uFFFD bar\nopen"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := Document{ID: "g.md", Title: "Guide", Source: "g.md", Blocks: tt.blocks}
			var got []want
			for _, p := range Chunk(d, tt.options) {
				got = append(got, want{p.Title, p.Source, p.Text})
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestChunkTitleKeepsRoomForText(t *testing.T) {
	long := strings.Repeat("very long heading ", 100)
	d := Document{ID: "d", Title: "Guide", Blocks: []Block{
		{Headings: []string{"Part", "Chapter", long}, Text: "Some text of the section."},
	}}
	passages := Chunk(d, ChunkOptions{MaxTokens: 40})
	if len(passages) != 1 {
		t.Fatalf("%d passages, want 1", len(passages))
	}
	if got := passages[0].Title; !strings.HasPrefix(got, "Guide > … > very long heading") || !strings.HasSuffix(got, "long…") {
		t.Errorf("title %q", got)
	}
	if n := EstimateTokens(passages[0].Title + "\n" + passages[0].Text); n > 40 {
		t.Errorf("%d tokens, want at most 40", n)
	}
}

func TestChunkIDs(t *testing.T) {
	section := func(heading, text string) Block {
		return Block{Headings: []string{heading}, Text: text, Place: "#" + heading}
	}
	ids := func(blocks ...Block) []string {
		var ids []string
		for _, p := range Chunk(Document{ID: "g.md", Title: "Guide", Blocks: blocks}, ChunkOptions{}) {
			ids = append(ids, p.ID)
		}
		return ids
	}
	base := ids(section("a", "One."), section("b", "Two."))
	if got := ids(section("new", "Zero."), section("a", "One."), section("b", "Two.")); !reflect.DeepEqual(got[1:], base) {
		t.Errorf("a new section before them changed the ids: %v, want %v", got[1:], base)
	}
	if got := ids(section("a", "One!"), section("b", "Two.")); got[0] == base[0] || got[1] != base[1] {
		t.Errorf("after a change of the first text: %v, before %v", got, base)
	}
	same := ids(section("a", "One."), section("b", "Two."), section("a", "One."))
	if same[0] != base[0] || same[2] == same[0] {
		t.Errorf("repeated passages: %v", same)
	}
	if again := ids(section("a", "One."), section("b", "Two."), section("a", "One.")); !reflect.DeepEqual(again, same) {
		t.Errorf("ids differ from call to call: %v, %v", again, same)
	}
}

func TestFingerprint(t *testing.T) {
	base := func() Document {
		return Document{ID: "a", Title: "b", Source: "a", Metadata: map[string]string{"k": "v", "l": "w"},
			Blocks: []Block{{Headings: []string{"h"}, Text: "t", Header: "r", Place: "p"}}}
	}
	changes := map[string]func(*Document){
		"id":          func(d *Document) { d.ID = "x" },
		"title":       func(d *Document) { d.Title = "x" },
		"source":      func(d *Document) { d.Source = "x" },
		"metadata":    func(d *Document) { d.Metadata["k"] = "x" },
		"key":         func(d *Document) { d.Metadata = map[string]string{"k": "v", "m": "w"} },
		"text":        func(d *Document) { d.Blocks[0].Text = "x" },
		"header":      func(d *Document) { d.Blocks[0].Header = "x" },
		"place":       func(d *Document) { d.Blocks[0].Place = "x" },
		"kind":        func(d *Document) { d.Blocks[0].Kind = Code },
		"heading":     func(d *Document) { d.Blocks[0].Headings = []string{"x"} },
		"block":       func(d *Document) { d.Blocks = append(d.Blocks, Block{}) },
		"moved bytes": func(d *Document) { d.ID, d.Title = "ab", "" },
	}
	want := base().Fingerprint()
	if got := base().Fingerprint(); got != want {
		t.Errorf("fingerprint differs from call to call")
	}
	for name, change := range changes {
		d := base()
		if change(&d); d.Fingerprint() == want {
			t.Errorf("a change of the %s does not change the fingerprint", name)
		}
	}
}

// checkChunks tests what holds for the passages of any document.
func checkChunks(t *testing.T, d Document, maxTokens int, count func(string) int) {
	t.Helper()
	passages := Chunk(d, ChunkOptions{MaxTokens: maxTokens, Count: count})
	if count == nil {
		count = EstimateTokens
	}
	ids := map[string]bool{}
	var want, got strings.Builder
	for _, b := range d.Blocks {
		want.WriteString(CleanText(b.Header) + CleanText(b.Text))
	}
	last := ""
	for _, p := range passages {
		if ids[p.ID] {
			t.Errorf("two passages have the id %s", p.ID)
		}
		ids[p.ID] = true
		if !utf8.ValidString(p.Text) || !utf8.ValidString(p.Title) || strings.TrimSpace(p.Text) == "" {
			t.Errorf("bad passage: %q: %q", p.Title, p.Text)
		}
		// A passage over the limit may hold a single character only.
		if n := count(p.Title + "\n" + p.Text); n > maxTokens && nextCharacter(p.Text) < len(p.Text) {
			t.Errorf("%d tokens in a passage, want at most %d: %q: %q", n, maxTokens, p.Title, p.Text)
		}
		text := p.Text
		for _, b := range d.Blocks {
			if b.Header != "" && last == b.Header {
				text = strings.TrimPrefix(text, CleanText(b.Header))
			}
			if b.Header != "" && strings.Contains(p.Text, b.Header) {
				last = b.Header
			}
		}
		got.WriteString(text)
	}
	if got, want := squeeze(got.String()), squeeze(want.String()); got != want {
		t.Errorf("text differs\ngot  %.300q\nwant %.300q", got, want)
	}
}

// squeeze removes white space.
func squeeze(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}

func TestChunkLosesNothing(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	vocabulary := []string{"leave", "policy.", "Dr.", "ERR-5172", "年假", "休暇です。", "การลา", "छुट्टी।", "e\u0301",
		"👩‍👩‍👧", "a.b.c", strings.Repeat("x", 90), "\n", "\n\n", "  ", "(see", "above)", "!", "。」", "ق", "\u200b"}
	sentence := func(n int) string {
		var b strings.Builder
		for range random.IntN(n) {
			b.WriteString(vocabulary[random.IntN(len(vocabulary))])
			if random.IntN(4) > 0 {
				b.WriteByte(' ')
			}
		}
		return b.String()
	}
	for range 300 {
		d := Document{ID: "d", Title: sentence(4)}
		for i := range random.IntN(12) {
			b := Block{Kind: BlockKind(random.IntN(4)), Text: sentence(80)}
			if random.IntN(2) == 0 {
				b.Headings = []string{fmt.Sprint("part ", i/3)}
			}
			d.Blocks = append(d.Blocks, b)
		}
		checkChunks(t, d, 1+random.IntN(60), nil)
		checkChunks(t, d, 1+random.IntN(60), words)
		if t.Failed() {
			t.Fatalf("document: %#v", d)
		}
	}
}

func TestChunkTableLosesNothing(t *testing.T) {
	rows := ""
	for i := range 200 {
		rows += fmt.Sprintf("| E%d | %s |\n", i, strings.Repeat("word ", i))
	}
	header := "| code | HEADER |\n| --- | --- |\n"
	checkChunks(t, Document{ID: "d", Title: "T", Blocks: []Block{{Kind: Table, Header: header, Text: rows}}}, 60, nil)

	// A header too long to repeat is a row like the others.
	wide := strings.Repeat("| column ", 500)
	checkChunks(t, Document{ID: "d", Title: "T", Blocks: []Block{{Kind: Table, Header: wide, Text: rows}}}, 60, nil)
}

// TestChunkHugeLines holds the limit, and the time to something linear, where
// no spaces or line ends help.
func TestChunkHugeLines(t *testing.T) {
	const size, megabyte = 1 << 17, 1 << 20
	random := make([]byte, size*3/4)
	for i := range random {
		random[i] = byte(i * i >> 3)
	}
	lines := map[string]string{
		"letters":         strings.Repeat("a", megabyte),
		"base64":          base64.StdEncoding.EncodeToString(random),
		"Chinese":         strings.Repeat("采访记录", megabyte/12),
		"Chinese marks":   strings.Repeat("我们今天谈谈。他说不行，", size/36),
		"Japanese":        strings.Repeat("休暇の申請", size/15),
		"Thai":            strings.Repeat("การลาพักร้อน", size/36),
		"spaces":          strings.Repeat(" ", size) + "a",
		"stops":           strings.Repeat(".", size),
		"closing":         strings.Repeat("。」", size/6),
		"combining marks": "e" + strings.Repeat("\u0301", size/2),
		"short words":     strings.Repeat("a ", size/2),
		"one sentence":    strings.Repeat("word, ", size/6),
		"emoji":           strings.Repeat("👩‍👩‍👧", size/25),
		"flags":           strings.Repeat("🇩🇪", size/8),
	}
	unknown := func(text string) int { return 2 + words(text) } // takes a long word for one token
	for name, line := range lines {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []BlockKind{Paragraph, List} {
				d := Document{ID: "d", Title: "T", Blocks: []Block{{Kind: kind, Text: line}}}
				start := time.Now()
				checkChunks(t, d, 200, nil)
				checkChunks(t, d, 200, unknown)
				if spent := time.Since(start); spent > time.Minute { // seconds, with the race detector
					t.Errorf("took %v", spent)
				}
				for _, p := range Chunk(d, ChunkOptions{Count: unknown}) {
					if n := utf8.RuneCountInString(p.Text); n > 200*runesPerToken {
						t.Fatalf("a passage of %d runes", n)
					}
				}
			}
		})
	}
}

func FuzzChunk(f *testing.F) {
	f.Add("# Title", "A paragraph. Another one.", "| a | b |", uint8(0), uint8(20))
	f.Add("", "他说：「今天不开门。」我们明天再来！", "", uint8(1), uint8(3))
	f.Add("h", "- a\n  - b\n- c\xff\x00\r\n", "", uint8(1), uint8(1))
	f.Add("h", "if x {\n\treturn\n}", "", uint8(3), uint8(4))
	f.Fuzz(func(t *testing.T, heading, text, more string, kind, maxTokens uint8) {
		d := Document{ID: "d", Title: "T", Blocks: []Block{
			{Kind: BlockKind(kind % 4), Headings: []string{heading}, Text: text},
			{Kind: Paragraph, Headings: []string{heading}, Text: more},
		}}
		checkChunks(t, d, int(maxTokens)+1, nil)
	})
}

func BenchmarkChunk(b *testing.B) {
	paragraph := strings.Repeat("Carry-over leave must be used by the end of March. Ask your lead first, then the office. ", 8)
	var d Document
	size := 0
	for i := range 1000 {
		d.Blocks = append(d.Blocks, Block{Headings: []string{fmt.Sprint("Part ", i/4)}, Text: paragraph})
		size += len(paragraph)
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		Chunk(d, ChunkOptions{})
	}
}
