package documents

import (
	"strings"
	"unicode/utf8"

	"github.com/askback/askback/retrieval"
)

// maxHeading is the most runes of a heading; a longer one is a paragraph.
const maxHeading = 200

// outline adds blocks to a document under the headings that stand open.
type outline struct {
	document *retrieval.Document
	headings []heading // outermost first
	pending  bool      // the last heading has nothing under it yet
	title    string    // the first heading of level 1
}

type heading struct {
	level int // 1 is the outermost
	text  string
	place string // of the blocks under it
}

// open starts a section.
func (o *outline) open(h heading) {
	h.text = strings.Join(strings.Fields(h.text), " ")
	if h.text == "" {
		return
	}
	if utf8.RuneCountInString(h.text) > maxHeading {
		o.add(retrieval.Block{Text: h.text})
		return
	}
	for first := true; len(o.headings) > 0 && o.headings[len(o.headings)-1].level >= h.level; first = false {
		if first && o.pending {
			o.close()
		} else {
			o.headings = o.headings[:len(o.headings)-1]
		}
	}
	o.headings = append(o.headings, h)
	o.pending = true
	if h.level == 1 && o.title == "" {
		o.title = h.text
	}
}

// close makes a heading with nothing under it a paragraph of the section that
// it is in, so that what it says is not lost. Call it at the end.
func (o *outline) close() {
	if !o.pending {
		return
	}
	last := o.headings[len(o.headings)-1]
	o.headings = o.headings[:len(o.headings)-1]
	o.add(retrieval.Block{Text: last.text})
}

// add adds a block that says something.
func (o *outline) add(b retrieval.Block) {
	if strings.TrimSpace(b.Header+b.Text) == "" {
		return
	}
	for _, h := range o.headings {
		b.Headings = append(b.Headings, h.text)
	}
	if n := len(o.headings); n > 0 && b.Place == "" {
		b.Place = o.headings[n-1].place
	}
	o.document.Blocks = append(o.document.Blocks, b)
	o.pending = false
}
