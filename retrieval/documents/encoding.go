package documents

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/askback/askback/retrieval"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	textunicode "golang.org/x/text/encoding/unicode"
)

var errNotText error = fault{ErrFormat, "not a text file"}

var (
	utf16LE = textunicode.UTF16(textunicode.LittleEndian, textunicode.IgnoreBOM)
	utf16BE = textunicode.UTF16(textunicode.BigEndian, textunicode.IgnoreBOM)
)

// decodeText gives the text of a file in UTF-8, UTF-16 or Windows-1252 (of
// which Latin-1 is a part), without its byte-order mark. Broken UTF-8 becomes
// U+FFFD and NUL bytes are dropped. The error says that it is no text at all.
func decodeText(data []byte) (string, error) {
	text := retrieval.CleanText(decode(data))
	if !looksLikeText(text) {
		return "", errNotText
	}
	return text, nil
}

func decode(data []byte) string {
	if rest, ok := bytes.CutPrefix(data, []byte("\xEF\xBB\xBF")); ok {
		return string(rest)
	}
	if enc := utf16Encoding(data); enc != nil {
		// Decoders of UTF-16 replace what is broken; they give no error.
		text, _ := enc.NewDecoder().Bytes(data)
		return strings.TrimPrefix(string(text), "\uFEFF")
	}
	if brokenUTF8(data) {
		return string(data)
	}
	text, _ := charmap.Windows1252.NewDecoder().Bytes(data)
	return string(text)
}

// utf16Encoding tells UTF-16 by its byte-order mark, or by the NUL bytes that
// stand in every second place for the letters, spaces and line ends of ASCII.
func utf16Encoding(data []byte) encoding.Encoding {
	switch {
	case bytes.HasPrefix(data, []byte("\xFF\xFE")):
		return utf16LE
	case bytes.HasPrefix(data, []byte("\xFE\xFF")):
		return utf16BE
	}
	sample := data[:min(len(data), 64<<10)]
	var nul [2]int // at even and odd places
	for i, b := range sample {
		if b == 0 {
			nul[i%2]++
		}
	}
	if stray := nul[0]+nul[1] < len(sample)/5 && utf8.Valid(sample[:lastRune(sample)]); stray {
		return nil // UTF-8 in which some NUL bytes got lost
	}
	switch {
	case nul[1] > 0 && nul[1] >= 8*nul[0]:
		return utf16LE
	case nul[0] > 0 && nul[0] >= 8*nul[1]:
		return utf16BE
	}
	return nil
}

// lastRune gives the length of data without a rune that was cut at its end.
func lastRune(data []byte) int {
	for i := len(data) - 1; i >= 0 && i >= len(data)-utf8.UTFMax; i-- {
		if utf8.RuneStart(data[i]) {
			if !utf8.FullRune(data[i:]) {
				return i
			}
			break
		}
	}
	return len(data)
}

// brokenUTF8 tells UTF-8, whole or with some bytes broken, from the encodings
// of one byte a letter: in those, bytes over 127 rarely make up a valid rune.
func brokenUTF8(data []byte) bool {
	valid, broken := 0, 0
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && n == 1:
			broken++
		case n > 1:
			valid++
		}
		data = data[n:]
	}
	return broken == 0 || valid > broken
}

// looksLikeText reports whether a text is free of what only binary files have:
// more than a few control characters, broken bytes or unassigned code points.
func looksLikeText(text string) bool {
	const sample = 64 << 10
	odd, all := 0, 0
	for i, r := range text {
		if i > sample {
			break
		}
		all++
		if r == utf8.RuneError || unicode.Is(unicode.Co, r) ||
			unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\f' && r != '\v' && r != '\x1b' && r != '\u0085' {
			odd++
		}
	}
	return odd <= 2 || odd*10 <= all
}
