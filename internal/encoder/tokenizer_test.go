package encoder

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTokenOffsets(t *testing.T) {
	tokenizer := minilmWith(t, portable).Tokenizer()
	for _, c := range []struct {
		text string
		want []string // the slices of the text, in order
	}{
		{"", nil},
		{" \t\n", nil},
		{"Hello, World!", []string{"Hello", ",", "World", "!"}},
		{"ERR-5172", []string{"ER", "R", "-", "51", "7", "2"}},
		{"Café", []string{"Café"}},
		{"cafe\u0301 au lait", []string{"cafe\u0301", "au", "lai", "t"}},
		{"我爱 you", []string{"我", "爱", "you"}},
		{"a\x00b\ufffdc", []string{"a\x00b\ufffdc"}}, // dropped characters lie inside the token
		{"\xff ok \xc3", []string{"ok"}},
		{"[SEP]", []string{"[", "SEP", "]"}},
		{strings.Repeat("x", 101), []string{strings.Repeat("x", 101)}},
	} {
		var got []string
		for _, token := range tokenizer.Tokenize(c.text) {
			got = append(got, c.text[token.Start:token.End])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: pieces %q, want %q", c.text, got, c.want)
		}
	}
}

// What a text says never becomes a special token.
func TestSpecialTokensInText(t *testing.T) {
	tokenizer := minilmWith(t, portable).Tokenizer()
	for _, text := range []string{"[CLS]", "[SEP]", "[PAD] [MASK] [SEP][SEP]", "[unused1]", "[ SEP ]", "［SEP］"} {
		for _, token := range tokenizer.Tokenize(text) {
			if slices.Contains([]int32{tokenizer.CLS(), tokenizer.SEP(), tokenizer.PAD(), 103}, token.ID) {
				t.Errorf("%q became special token %d", text, token.ID)
			}
		}
	}
}

func TestSpecialIDs(t *testing.T) {
	tokenizer := minilmWith(t, portable).Tokenizer()
	got := []int32{tokenizer.PAD(), tokenizer.UNK(), tokenizer.CLS(), tokenizer.SEP()}
	if want := []int32{0, 100, 101, 102}; !slices.Equal(got, want) {
		t.Errorf("PAD, UNK, CLS, SEP = %v, want %v", got, want)
	}
}

func TestVocabularyErrors(t *testing.T) {
	const special = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n"
	for _, c := range []struct{ vocab, want string }{
		{"", "has no"},
		{"[PAD]\n[UNK]\n[CLS]\na\n", "has no [SEP]"},
		{special + "a\xff\n", "not UTF-8"},
	} {
		if _, err := newTokenizer(c.vocab); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want one with %q", c.vocab, err, c.want)
		}
	}
	tokenizer, err := newTokenizer(strings.ReplaceAll(special+"a\n##b\n", "\n", "\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	if tokens := tokenizer.Tokenize("ab"); len(tokens) != 2 || tokens[0].ID != 4 || tokens[1].ID != 5 {
		t.Errorf("with CRLF lines, ab = %v, want ids 4 and 5", tokens)
	}
}

// checkTokens holds what Tokenize promises for any text.
func checkTokens(t *testing.T, tokenizer *Tokenizer, text string) {
	t.Helper()
	tokens := tokenizer.Tokenize(text)
	last := Token{}
	for i, token := range tokens {
		switch {
		case token.ID < 0 || int(token.ID) >= tokenizer.size:
			t.Fatalf("%q: token %d has id %d", text, i, token.ID)
		case token.Start < 0 || token.Start >= token.End || token.End > len(text):
			t.Fatalf("%q: token %d is [%d, %d)", text, i, token.Start, token.End)
		case token.Start < last.Start || token.End < last.End:
			t.Fatalf("%q: token %d goes back from %v to %v", text, i, last, token)
		case utf8.ValidString(text) && !utf8.ValidString(text[token.Start:token.End]):
			t.Fatalf("%q: token %d cuts a rune", text, i)
		}
		last = token
	}
	if n := tokenizer.Count(text); n != len(tokens) {
		t.Fatalf("%q: Count = %d, want %d", text, n, len(tokens))
	}
}

func TestTokenOffsetsOfReferenceStrings(t *testing.T) {
	tokenizer := minilmWith(t, portable).Tokenizer()
	for _, row := range readGolden[[]struct{ Text []byte }](t, "tokens.json.gz") {
		checkTokens(t, tokenizer, string(row.Text))
	}
}

// Invalid bytes mean the same as the replacement character.
func TestInvalidUTF8(t *testing.T) {
	tokenizer := minilmWith(t, portable).Tokenizer()
	for _, text := range []string{"caf\xe9 au lait", "\xf0\x9f\x98", "a\xffb", "日\xe6\x97本", "\xed\xa0\x80x"} {
		ids := func(text string) (ids []int32) {
			for _, token := range tokenizer.Tokenize(text) {
				ids = append(ids, token.ID)
			}
			return ids
		}
		if got, want := ids(text), ids(strings.ToValidUTF8(text, "\ufffd")); !slices.Equal(got, want) {
			t.Errorf("%q: ids %v, want %v", text, got, want)
		}
	}
}

func FuzzTokenize(f *testing.F) {
	for _, text := range []string{"", "Hello, World!", "e\u0301\u0323 \u302e\u0300", "한국어 텍스트", "\xff\xfe[SEP]", "𝔘𝔫𝔦 👨‍👩‍👧", strings.Repeat("ß", 101)} {
		f.Add(text)
	}
	m, err := MiniLM()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) { checkTokens(t, m.Tokenizer(), text) })
}

func BenchmarkTokenize(b *testing.B) {
	tokenizer := minilmWith(b, portable).Tokenizer()
	text := strings.Repeat("The quick brown fox jumps over the lazy dog near the riverbank. ", 10)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tokenizer.Tokenize(text)
	}
}
