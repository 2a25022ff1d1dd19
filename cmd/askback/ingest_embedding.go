package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/askback/askback/retrieval"
)

// embedding is an embedder whose work is counted, and kept in a file until it is
// stored: a large document is stored in one step, and if the program is killed
// before, what was embedded of it is not embedded again.
type embedding struct {
	inner retrieval.Embedder
	// progress, if set, is called with the number of passages that have their
	// vector.
	progress func(done int)

	mu    sync.Mutex
	file  *vectorFile // nil: nothing is kept
	done  int
	count int           // passages that the encoder was asked for
	took  time.Duration // by the encoder
}

// embedAtOnce is the number of texts after which vectors are kept and progress
// is told: about as many as the encoder reads at once.
const embedAtOnce = 32

// EmbedDocuments gives a vector for each text.
func (e *embedding) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	vectors := make([][]float32, len(texts))
	var missing []int
	for i, text := range texts {
		if vectors[i] = e.file.get(text); vectors[i] == nil {
			missing = append(missing, i)
		}
	}
	e.advance(len(texts) - len(missing))
	for len(missing) > 0 {
		now := missing[:min(embedAtOnce, len(missing))]
		missing = missing[len(now):]
		batch := make([]string, len(now))
		for k, i := range now {
			batch[k] = texts[i]
		}
		start := time.Now()
		got, err := e.inner.EmbedDocuments(ctx, batch)
		if err != nil {
			return nil, err
		}
		e.took += time.Since(start)
		e.count += len(now)
		if err := e.file.put(batch, got); err != nil {
			return nil, fmt.Errorf("keeping what was embedded: %w", err)
		}
		for k, i := range now {
			vectors[i] = got[k]
		}
		e.advance(len(now))
	}
	return vectors, nil
}

// EmbedQuery gives a query's vector.
func (e *embedding) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	return e.inner.EmbedQuery(ctx, text)
}

func (e *embedding) advance(n int) {
	e.done += n
	if e.progress != nil && n > 0 {
		e.progress(e.done)
	}
}

// stored says that all that was embedded is in the store now.
func (e *embedding) stored() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.file.clear()
}

// keepIn makes path the file that vectors are kept in. identity is the
// embedder's: vectors of another are dropped.
func (e *embedding) keepIn(path, identity string) (err error) {
	e.file, err = openVectorFile(path, identity)
	return err
}

// close closes the file, and removes it if nothing waits in it.
func (e *embedding) close() error { return e.file.close() }

// vectorFile holds vectors by the hash of their text, each with a checksum; a
// record cut short by a crash ends it. All methods of a nil one do nothing.
type vectorFile struct {
	f      *os.File
	header []byte
	end    int64
	at     map[textHash]int64 // where the records begin
}

type textHash [16]byte

func hashOf(text string) textHash {
	sum := sha256.Sum256([]byte(text))
	return textHash(sum[:16])
}

// recordHead is the hash, and the length of the vector as a uint32; the numbers
// and a CRC-32C of all follow.
const recordHead = len(textHash{}) + 4

func openVectorFile(path, identity string) (*vectorFile, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	v := &vectorFile{f: f, header: []byte("askback vectors 1 " + identity + "\n")}
	if err := v.load(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return v, nil
}

// load finds the records, and cuts off what is none.
func (v *vectorFile) load() error {
	v.at = make(map[textHash]int64)
	data, err := io.ReadAll(io.NewSectionReader(v.f, 0, math.MaxInt64))
	if err != nil {
		return err
	}
	n := len(v.header)
	if len(data) < n || string(data[:n]) != string(v.header) {
		return v.clear()
	}
	for len(data)-n > recordHead {
		size := recordHead + 4*int(binary.LittleEndian.Uint32(data[n+recordHead-4:]))
		if size < 0 || size > len(data)-n-4 {
			break
		}
		record := data[n : n+size]
		if checksum(record) != binary.LittleEndian.Uint32(data[n+size:]) {
			break
		}
		v.at[textHash(record[:len(textHash{})])] = int64(n)
		n += size + 4
	}
	v.end = int64(n)
	return v.f.Truncate(v.end)
}

func checksum(data []byte) uint32 {
	return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
}

// get gives the vector of a text, nil if there is none. The record is checked
// again, since another process may have written to the file.
func (v *vectorFile) get(text string) []float32 {
	if v == nil {
		return nil
	}
	hash := hashOf(text)
	start, ok := v.at[hash]
	if !ok {
		return nil
	}
	head := make([]byte, recordHead)
	if _, err := v.f.ReadAt(head, start); err != nil || textHash(head[:len(hash)]) != hash {
		return nil
	}
	n := 4 * int64(binary.LittleEndian.Uint32(head[len(hash):]))
	if n > v.end-start {
		return nil
	}
	record := make([]byte, int64(recordHead)+n+4)
	if _, err := v.f.ReadAt(record, start); err != nil {
		return nil
	}
	record, sum := record[:len(record)-4], record[len(record)-4:]
	if checksum(record) != binary.LittleEndian.Uint32(sum) {
		return nil
	}
	vector := make([]float32, n/4)
	for i := range vector {
		vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(record[recordHead+4*i:]))
	}
	return vector
}

// put adds the vectors of texts.
func (v *vectorFile) put(texts []string, vectors [][]float32) error {
	if v == nil || len(texts) != len(vectors) { // the store says so of wrong numbers
		return nil
	}
	var records []byte
	for i, text := range texts {
		start := len(records)
		hash := hashOf(text)
		v.at[hash] = v.end + int64(start)
		records = binary.LittleEndian.AppendUint32(append(records, hash[:]...), uint32(len(vectors[i])))
		for _, x := range vectors[i] {
			records = binary.LittleEndian.AppendUint32(records, math.Float32bits(x))
		}
		records = binary.LittleEndian.AppendUint32(records, checksum(records[start:]))
	}
	n, err := v.f.WriteAt(records, v.end)
	v.end += int64(n)
	return err
}

// clear drops all vectors.
func (v *vectorFile) clear() error {
	if v == nil {
		return nil
	}
	clear(v.at)
	v.end = int64(len(v.header))
	if err := v.f.Truncate(0); err != nil {
		return err
	}
	_, err := v.f.WriteAt(v.header, 0)
	return err
}

func (v *vectorFile) close() error {
	if v == nil {
		return nil
	}
	err := v.f.Close()
	if len(v.at) == 0 {
		err = errors.Join(err, os.Remove(v.f.Name()))
	}
	return err
}
