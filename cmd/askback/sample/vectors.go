package sample

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
)

// About says in a few words whose knowledge base it is.
const About = "Larkwheel, an invented maker of e-bikes"

// vectors holds the passages' embeddings, so that the program starts without
// computing them. `go test ./cmd/askback -run TestSampleVectors -update` makes
// the file anew.
//
//go:embed vectors.bin
var vectors []byte

// header is the first line of vectors.bin; the vectors follow, in the order of
// the ids, as little-endian float32.
type header struct {
	Identity  string   `json:"identity"` // of the embedder
	Dimension int      `json:"dimension"`
	IDs       []string `json:"ids"` // of the passages
}

// Vectors gives the built-in embeddings by passage id, or none if they were
// made by another embedder than the one of that identity.
func Vectors(identity string) (map[string][]float32, error) {
	line, data, _ := bytes.Cut(vectors, []byte{'\n'})
	var h header
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, fmt.Errorf("reading the sample's vectors: %w", err)
	}
	if h.Identity != identity {
		return nil, nil
	}
	if len(data) != 4*h.Dimension*len(h.IDs) {
		return nil, fmt.Errorf("reading the sample's vectors: %d bytes for %d vectors of %d numbers", len(data), len(h.IDs), h.Dimension)
	}
	out := make(map[string][]float32, len(h.IDs))
	for _, id := range h.IDs {
		v := make([]float32, h.Dimension)
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
		out[id], data = v, data[4*h.Dimension:]
	}
	return out, nil
}

// EncodeVectors writes what Vectors reads.
func EncodeVectors(identity string, by map[string][]float32) ([]byte, error) {
	h := header{Identity: identity, IDs: slices.Sorted(maps.Keys(by))}
	for _, v := range by {
		h.Dimension = len(v)
	}
	line, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	out := append(line, '\n')
	for _, id := range h.IDs {
		for _, x := range by[id] {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
		}
	}
	return out, nil
}

// Shows says in a few words what a question demonstrates.
func (q Question) Shows() string {
	switch {
	case q.Gate == "pre":
		return "asks back: it cannot be understood alone"
	case q.Gate == "post":
		return "asks back: the sources hold answers that differ"
	case q.Expect == "no_answer":
		return "not in the sources"
	}
	return "answered"
}
