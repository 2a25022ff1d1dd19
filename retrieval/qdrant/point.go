package qdrant

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"time"

	api "github.com/qdrant/go-client/qdrant"

	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/internal/prepare"
)

// The names of the two vectors.
const (
	vectorDense = "dense" // the embedder's
	vectorWords = "words" // BM25 weights by the hash of the word
)

// Fields of the payload. Those of a record are the first four, the title, and
// the last five; in one that an older version of this program made, the title is
// missing.
const (
	fieldTenant   = "tenant"
	fieldKind     = "kind"     // kindPassage or kindDocument
	fieldDocument = "document" // id
	fieldVersion  = "version"  // of the document; of a record "" if none is whole
	fieldID       = "id"
	fieldTitle    = "title"
	fieldSource   = "source"
	fieldText     = "text"
	fieldMetadata = "metadata"
	fieldPairs    = "pairs"    // of the metadata, see pair
	fieldKeys     = "keys"     // of the identifiers that the passage holds
	fieldSure     = "sure"     // those whose form is sure, as they are written
	fieldFamilies = "families" // of the sure ones
	fieldSpans    = "spans"    // families of which it holds a span
	fieldEmbedded = "embedded" // hash of the text that the vector was made from

	fieldFingerprint = "fingerprint"
	fieldPrevious    = "previous"  // the version that held before, whose points are kept for a while
	fieldCommitted   = "committed" // when the version became the one that holds, Unix milliseconds
	fieldPassages    = "passages"  // how many it has
	fieldStale       = "stale"     // yes while points of other versions may be left

	kindPassage  = "passage"
	kindDocument = "document"
)

// indexed are the fields that filters name.
var indexed = []string{fieldTenant, fieldKind, fieldDocument, fieldVersion, fieldPairs, fieldKeys, fieldSure, fieldFamilies, fieldSpans, fieldStale, fieldID}

// hashOf is a hash of texts that no other list of texts has.
func hashOf(texts ...string) [sha256.Size]byte {
	h := sha256.New()
	var length [8]byte
	for _, text := range texts {
		binary.LittleEndian.PutUint64(length[:], uint64(len(text)))
		h.Write(length[:])
		h.Write([]byte(text))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// uuid makes the id of a point from what it is of.
func uuid(of ...string) string {
	h := hashOf(of...)
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80 // version 8, RFC 9562: made by a rule of our own
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

func (s *Store) passageID(document, version, id string) string {
	return uuid(kindPassage, s.options.Tenant, document, version, id)
}

func (s *Store) recordID(document string) string {
	return uuid(kindDocument, s.options.Tenant, document)
}

// versionOf is a hash of all that a document's passages say.
func versionOf(passages []retrieval.Passage) string {
	var all []string
	for _, p := range passages {
		all = append(all, p.ID, p.Title, p.Source, p.Text, fmt.Sprint(len(p.Metadata)))
		for _, key := range slices.Sorted(maps.Keys(p.Metadata)) {
			all = append(all, key, p.Metadata[key])
		}
	}
	h := hashOf(all...)
	return hex.EncodeToString(h[:12])
}

func embeddedHash(p retrieval.Passage) string {
	h := hashOf(retrieval.EmbeddingText(p))
	return hex.EncodeToString(h[:12])
}

// point makes the point of a passage.
func (s *Store) point(p retrieval.Passage, version string, vector []float32) *api.PointStruct {
	made := prepare.Passage(p)
	var keys, sure, families, spans, pairs []string
	for _, id := range made.Identifiers {
		keys = append(keys, id.Key)
		if id.Sure {
			sure = append(sure, id.Text)
			if id.Family != "" {
				families = append(families, id.Family)
			}
		}
	}
	for family := range made.Spans {
		spans = append(spans, family)
	}
	metadata := &api.Struct{Fields: make(map[string]*api.Value, len(p.Metadata))}
	for key, value := range p.Metadata {
		metadata.Fields[key] = api.NewValueString(value)
		pairs = append(pairs, pair(key, value))
	}
	payload := map[string]*api.Value{
		fieldTenant:   api.NewValueString(s.options.Tenant),
		fieldKind:     api.NewValueString(kindPassage),
		fieldDocument: api.NewValueString(p.Document),
		fieldVersion:  api.NewValueString(version),
		fieldID:       api.NewValueString(p.ID),
		fieldTitle:    api.NewValueString(p.Title),
		fieldSource:   api.NewValueString(p.Source),
		fieldText:     api.NewValueString(p.Text),
		fieldEmbedded: api.NewValueString(embeddedHash(p)),
		fieldMetadata: api.NewValueStruct(metadata),
	}
	for field, values := range map[string][]string{fieldKeys: keys, fieldSure: sure, fieldFamilies: families, fieldSpans: spans, fieldPairs: pairs} {
		if len(values) > 0 {
			payload[field] = listOf(values)
		}
	}
	vectors := map[string]*api.Vector{vectorDense: api.NewVectorDense(vector)}
	if indices, values := weights(made); len(indices) > 0 {
		vectors[vectorWords] = api.NewVectorSparse(indices, values)
	}
	return &api.PointStruct{Id: api.NewIDUUID(s.passageID(p.Document, version, p.ID)), Payload: payload, Vectors: api.NewVectorsMap(vectors)}
}

// passageOf reads a passage back from its payload.
func passageOf(payload map[string]*api.Value) retrieval.Passage {
	p := retrieval.Passage{
		ID:       payload[fieldID].GetStringValue(),
		Document: payload[fieldDocument].GetStringValue(),
		Title:    payload[fieldTitle].GetStringValue(),
		Source:   payload[fieldSource].GetStringValue(),
		Text:     payload[fieldText].GetStringValue(),
	}
	if fields := payload[fieldMetadata].GetStructValue().GetFields(); len(fields) > 0 {
		p.Metadata = make(map[string]string, len(fields))
		for key, value := range fields {
			p.Metadata[key] = value.GetStringValue()
		}
	}
	return p
}

// averageLength stands in for the average length of passages, in words that
// count, which BM25 weighs lengths by. It must be known before the first passage
// is stored; it is the average over the sample knowledge base as Chunk cuts it.
const averageLength = 64

// weights gives a passage's part of BM25: for each word how much it weighs in
// this passage. The other part, the inverse document frequency, the server
// knows. Words whose hashes are the same count as one.
func weights(made prepare.Prepared) (indices []uint32, values []float32) {
	counts := make(map[uint32]float32, len(made.Words))
	for _, word := range made.Words {
		counts[wordNumber(word.Text)] += word.Count
	}
	indices = slices.Sorted(maps.Keys(counts))
	norm := float32(prepare.K1 * (1 - prepare.B + prepare.B*float64(made.Length)/averageLength))
	for _, i := range indices {
		values = append(values, counts[i]*(prepare.K1+1)/(counts[i]+norm))
	}
	return indices, values
}

// queryWords gives the words of a question, each with the weight 1.
func queryWords(text string) (indices []uint32, values []float32) {
	for _, term := range prepare.Terms(text) {
		indices = append(indices, wordNumber(term))
	}
	slices.Sort(indices)
	indices = slices.Compact(indices)
	for range indices {
		values = append(values, 1)
	}
	return indices, values
}

func wordNumber(word string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(word))
	return h.Sum32()
}

// record is what a document's record says. Without a version, nothing of the
// document is whole.
type record struct {
	document, version, previous, fingerprint, title string
	committed                                       time.Time
	passages                                        int
	stale                                           bool
}

const yes = "yes"

func (s *Store) recordPoint(r record) *api.PointStruct {
	stale := ""
	if r.stale {
		stale = yes
	}
	return &api.PointStruct{
		Id:      api.NewIDUUID(s.recordID(r.document)),
		Vectors: api.NewVectorsMap(map[string]*api.Vector{}),
		Payload: map[string]*api.Value{
			fieldTenant:      api.NewValueString(s.options.Tenant),
			fieldKind:        api.NewValueString(kindDocument),
			fieldDocument:    api.NewValueString(r.document),
			fieldVersion:     api.NewValueString(r.version),
			fieldPrevious:    api.NewValueString(r.previous),
			fieldFingerprint: api.NewValueString(r.fingerprint),
			fieldTitle:       api.NewValueString(r.title),
			fieldCommitted:   api.NewValueInt(r.committed.UnixMilli()),
			fieldPassages:    api.NewValueInt(int64(r.passages)),
			fieldStale:       api.NewValueString(stale),
		},
	}
}

func recordOf(payload map[string]*api.Value) record {
	return record{
		document:    payload[fieldDocument].GetStringValue(),
		version:     payload[fieldVersion].GetStringValue(),
		previous:    payload[fieldPrevious].GetStringValue(),
		fingerprint: payload[fieldFingerprint].GetStringValue(),
		title:       payload[fieldTitle].GetStringValue(),
		committed:   time.UnixMilli(payload[fieldCommitted].GetIntegerValue()),
		passages:    int(payload[fieldPassages].GetIntegerValue()),
		stale:       payload[fieldStale].GetStringValue() == yes,
	}
}

// cosine of two vectors of one length.
func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return ab / math.Sqrt(aa*bb)
}

// measure compares two vectors by the collection's distance.
func (d Distance) measure(a, b []float32) float64 {
	var sum float64
	switch d {
	case Cosine:
		return cosine(a, b)
	case Dot:
		for i := range a {
			sum += float64(a[i]) * float64(b[i])
		}
		return sum
	case Euclid:
		for i := range a {
			x := float64(a[i]) - float64(b[i])
			sum += x * x
		}
		return math.Sqrt(sum)
	default:
		for i := range a {
			sum += math.Abs(float64(a[i]) - float64(b[i]))
		}
		return sum
	}
}

// within reports whether a measure meets a threshold: for a similarity it is the
// least, for a distance the most.
func (d Distance) within(measure, threshold float64) bool {
	const slack = 1e-5 // the server computes in float32
	if d == Cosine || d == Dot {
		return measure >= threshold-slack
	}
	return measure <= threshold+slack
}
