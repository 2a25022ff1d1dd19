package retrieval

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"slices"
	"strings"
)

// Document is one file as its loader read it: text in blocks, in reading
// order, each under its headings. Chunk cuts it into passages.
type Document struct {
	ID       string            // path relative to the folder read, slash-separated
	Title    string            // what the document calls itself, or its file name made readable
	Source   string            // where a person finds it; Chunk adds the place of a passage
	Metadata map[string]string // front matter and the like; each passage carries it
	Blocks   []Block
}

// Block is a piece of a document of one kind, such as a paragraph or a table.
type Block struct {
	Kind     BlockKind
	Headings []string // the headings it stands under, outermost first
	Text     string   // for a table, its rows, one a line, without Header
	Header   string   // a table's header, repeated in each passage cut from the table
	Place    string   // where in the document: "#anchor", "page 3", "row 12"; may be empty
}

// BlockKind says where a block that is too long for one passage is cut.
type BlockKind int

const (
	Paragraph BlockKind = iota // cut at line breaks and sentence ends
	List                       // cut between items, then as a paragraph
	Table                      // cut between rows, then as a paragraph
	Code                       // cut between lines, then as a paragraph
)

// Fingerprint gives a hash of all that the document says, metadata included:
// two documents with the same fingerprint give the same passages.
func (d Document) Fingerprint() string {
	h := sha256.New()
	hashStrings(h, d.ID, d.Title, d.Source)
	hashStrings(h, slices.Sorted(maps.Keys(d.Metadata))...)
	for _, key := range slices.Sorted(maps.Keys(d.Metadata)) {
		hashStrings(h, d.Metadata[key])
	}
	for _, b := range d.Blocks {
		hashStrings(h, string(rune('0'+b.Kind)), b.Text, b.Header, b.Place)
		hashStrings(h, b.Headings...)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// hashStrings adds texts to h so that no two lists of texts add the same bytes.
func hashStrings(h hash.Hash, texts ...string) {
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(texts)))
	h.Write(length[:])
	for _, text := range texts {
		binary.LittleEndian.PutUint64(length[:], uint64(len(text)))
		h.Write(length[:])
		h.Write([]byte(text))
	}
}

// CleanText gives text as this package keeps it: valid UTF-8 with U+FFFD for
// each run of broken bytes, no NUL bytes, and "\n" for every line end.
func CleanText(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if strings.ContainsAny(text, "\x00\r") {
		text = lineEnds.Replace(text)
	}
	return text
}

var lineEnds = strings.NewReplacer("\x00", "", "\r\n", "\n", "\r", "\n")
