package local

import (
	"maps"
	"slices"

	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/internal/prepare"
)

// memory is what searches work on: passages by slot, their vectors and
// postings. A slot is used once; deleted ones stay empty until there are so
// many that all is packed anew. It is guarded by Index.mu.
type memory struct {
	entries   []*entry // by slot; nil if deleted
	live      int
	vectors   dense
	lexical   *lexical
	byID      map[string]int32
	documents map[string]document
	known     map[string]*knownIdentifier // by key
	families  map[string]map[string]bool  // keys of the sure identifiers, by family
	spans     map[string][]span           // by family
}

// document is what is known of a stored document.
type document struct {
	fingerprint string
	slots       []int32
}

// entry is a passage made ready for the index.
type entry struct {
	passage     retrieval.Passage
	vector      []float32      // unit; nil once it stands in the memory
	words       []prepare.Word // nil once it stands in the memory; made again when it leaves
	identifiers []retrieval.Identifier
	spans       map[string]prepare.Span // the last of each family
}

// A span is a passage's.
type span struct {
	prepare.Span
	slot int32
}

// knownIdentifier is an identifier that passages hold.
type knownIdentifier struct {
	retrieval.Identifier         // as first written
	slots                []int32 // of the passages that hold it, ascending
	sure                 []int32 // of those in which its form is sure
}

func newMemory(dim int) *memory {
	m := &memory{
		lexical:   newLexical(),
		byID:      make(map[string]int32),
		documents: make(map[string]document),
		known:     make(map[string]*knownIdentifier),
		families:  make(map[string]map[string]bool),
		spans:     make(map[string][]span),
	}
	m.vectors.setDim(dim)
	return m
}

// newEntry does the work on a passage that needs no lock.
func newEntry(p retrieval.Passage, vector []float32) *entry {
	p.Score = 0
	p.Metadata = maps.Clone(p.Metadata)
	e := &entry{passage: p, vector: vector}
	made := prepare.Passage(p)
	e.words, e.identifiers, e.spans = made.Words, made.Identifiers, made.Spans
	return e
}

// replace makes the entries the whole content of the document.
func (m *memory) replace(name, fingerprint string, entries []*entry) {
	m.remove(name)
	slots := make([]int32, len(entries))
	for i, e := range entries {
		slots[i] = m.add(e)
	}
	m.documents[name] = document{fingerprint, slots}
}

func (m *memory) add(e *entry) int32 {
	slot := int32(len(m.entries))
	if m.vectors.dim == 0 {
		m.vectors.setDim(len(e.vector))
	}
	m.vectors.add(e.vector)
	e.vector = nil
	m.lexical.add(e.words)
	e.words = nil
	m.entries = append(m.entries, e)
	m.byID[e.passage.ID] = slot
	m.live++
	for family, s := range e.spans {
		m.spans[family] = append(m.spans[family], span{s, slot})
	}
	for _, id := range e.identifiers {
		k := m.known[id.Key]
		if k == nil {
			k = &knownIdentifier{Identifier: id}
			m.known[id.Key] = k
		}
		k.slots = append(k.slots, slot)
		if !id.Sure {
			continue
		}
		if len(k.sure) == 0 {
			k.Identifier = id
			if id.Family != "" {
				if m.families[id.Family] == nil {
					m.families[id.Family] = make(map[string]bool)
				}
				m.families[id.Family][id.Key] = true
			}
		}
		k.sure = append(k.sure, slot)
	}
	return slot
}

// remove takes a document and its passages out.
func (m *memory) remove(name string) {
	d, ok := m.documents[name]
	if !ok {
		return
	}
	delete(m.documents, name)
	for _, slot := range d.slots {
		e := m.entries[slot]
		m.entries[slot] = nil
		m.live--
		delete(m.byID, e.passage.ID)
		m.lexical.remove(slot, prepare.Passage(e.passage).Words)
		for _, id := range e.identifiers {
			m.forget(id, slot)
		}
		for family := range e.spans {
			m.spans[family] = slices.DeleteFunc(m.spans[family], func(s span) bool { return s.slot == slot })
		}
	}
}

func (m *memory) forget(id retrieval.Identifier, slot int32) {
	k := m.known[id.Key]
	k.slots = without(k.slots, slot)
	k.sure = without(k.sure, slot)
	if keys := m.families[id.Family]; len(k.sure) == 0 && keys != nil {
		delete(keys, id.Key)
		if len(keys) == 0 {
			delete(m.families, id.Family)
		}
	}
	if len(k.slots) == 0 {
		delete(m.known, id.Key)
	}
}

// holding gives the slots of the passages that are about an identifier, because
// they hold it or a span that covers it, ascending and each once.
func (m *memory) holding(id retrieval.Identifier) []int32 {
	var slots []int32
	if k := m.known[id.Key]; k != nil {
		slots = slices.Clone(k.slots)
	}
	for _, s := range m.spans[id.Family] {
		if s.Covers(id.Key) {
			slots = append(slots, s.slot)
		}
	}
	slices.Sort(slots)
	return slices.Compact(slots)
}

// holds reports whether a passage holds the very identifier.
func (m *memory) holds(slot int32, key string) bool {
	return slices.ContainsFunc(m.entries[slot].identifiers, func(id retrieval.Identifier) bool { return id.Key == key })
}

func without(slots []int32, slot int32) []int32 {
	if i, ok := slices.BinarySearch(slots, slot); ok {
		return slices.Delete(slots, i, i+1)
	}
	return slots
}

// pack builds the memory anew once most of its slots are empty.
func (m *memory) pack() {
	dead := len(m.entries) - m.live
	if dead < blockRows || dead < m.live {
		return
	}
	fresh := newMemory(m.vectors.dim)
	for _, name := range slices.Sorted(maps.Keys(m.documents)) {
		d := m.documents[name]
		slots := make([]int32, len(d.slots))
		for i, slot := range d.slots {
			e := m.entries[slot]
			e.vector = m.vectors.at(slot)
			e.words = prepare.Passage(e.passage).Words
			slots[i] = fresh.add(e)
		}
		fresh.documents[name] = document{d.fingerprint, slots}
	}
	*m = *fresh
}
