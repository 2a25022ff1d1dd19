package encoder

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Token is one piece of a text.
type Token struct {
	ID         int32
	Start, End int // byte offsets into the original text; never inside a rune
}

// Tokenizer splits text into the word pieces of a BERT vocabulary: lower-cased,
// accents stripped, punctuation and CJK ideographs standing alone, then the
// longest known pieces from the left (WordPiece).
//
// Text is data: a literal "[SEP]" or "[CLS]" in it becomes plain pieces
// ("[", "sep", "]"), never the special token, so what a user or a document
// says cannot change how a sequence is read.
//
// Bytes that are not UTF-8 are dropped, as are control characters. A Tokenizer
// does not change after it is made and is safe for concurrent use.
type Tokenizer struct {
	starts             map[string]int32 // pieces that begin a word
	rest               map[string]int32 // pieces that go on, without their ##
	pad, unk, cls, sep int32
	size               int
}

// maxWordRunes is the longest word that is looked up; a longer one is unknown.
const maxWordRunes = 100

// newTokenizer reads a vocab.txt: one piece a line, its id being its line.
func newTokenizer(vocab string) (*Tokenizer, error) {
	if !utf8.ValidString(vocab) {
		return nil, errors.New("vocab.txt is not UTF-8")
	}
	lines := strings.Split(strings.TrimSuffix(vocab, "\n"), "\n")
	t := &Tokenizer{
		starts: make(map[string]int32, len(lines)),
		rest:   make(map[string]int32, len(lines)/4),
		size:   len(lines),
	}
	for id, line := range lines {
		line = strings.TrimSuffix(line, "\r")
		if piece, ok := strings.CutPrefix(line, "##"); ok && piece != "" {
			t.rest[piece] = int32(id)
		} else {
			t.starts[line] = int32(id)
		}
	}
	for name, id := range map[string]*int32{"[PAD]": &t.pad, "[UNK]": &t.unk, "[CLS]": &t.cls, "[SEP]": &t.sep} {
		found, ok := t.starts[name]
		if !ok {
			return nil, fmt.Errorf("vocab.txt has no %s", name)
		}
		*id = found
	}
	return t, nil
}

// CLS gives the id of the token that begins each sequence.
func (t *Tokenizer) CLS() int32 { return t.cls }

// SEP gives the id of the token that ends each part of a sequence.
func (t *Tokenizer) SEP() int32 { return t.sep }

// PAD gives the id of the token that stands for nothing.
func (t *Tokenizer) PAD() int32 { return t.pad }

// UNK gives the id of the token that stands for an unknown word.
func (t *Tokenizer) UNK() int32 { return t.unk }

// Tokenize splits a text; it adds no special tokens. The tokens' offsets never
// decrease, and each token's slice of the text is not empty. Two tokens may
// share a rune when its decomposition falls into several pieces, as a Korean
// syllable's can.
func (t *Tokenizer) Tokenize(text string) []Token {
	// English prose has about one token for each five bytes.
	tokens := make([]Token, 0, len(text)/5+4)
	eachWord(text, func(w *word) { tokens = t.pieces(tokens, w) })
	return tokens
}

// Count gives the number of tokens in a text, without special tokens.
func (t *Tokenizer) Count(text string) int {
	n := 0
	var tokens []Token
	eachWord(text, func(w *word) {
		tokens = t.pieces(tokens[:0], w)
		n += len(tokens)
	})
	return n
}

// pieces appends the word's pieces, or one unknown token for the whole word
// when any part of it is unknown.
func (t *Tokenizer) pieces(tokens []Token, w *word) []Token {
	before := len(tokens)
	token := func(id int32, from, to int) Token {
		return Token{ID: id, Start: w.runes[from].start, End: w.runes[to-1].end}
	}
	if len(w.runes) > maxWordRunes {
		return append(tokens, token(t.unk, 0, len(w.runes)))
	}
	text := w.encode()
	vocab := t.starts
	for from := 0; from < len(w.runes); {
		to := len(w.runes)
		for ; to > from; to-- {
			// Indexing a map by string(bytes) does not allocate.
			if id, ok := vocab[string(text[w.offsets[from]:w.offsets[to]])]; ok {
				tokens = append(tokens, token(id, from, to))
				break
			}
		}
		if to == from {
			return append(tokens[:before], token(t.unk, 0, len(w.runes)))
		}
		from, vocab = to, t.rest
	}
	return tokens
}
