package encoder

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"sync"
	"unsafe"

	"github.com/askback/askback/internal/safetensors"
)

// Model is a transformer encoder in memory. It does not change after it is
// loaded and is safe for concurrent use.
type Model struct {
	config    Config
	tokenizer *Tokenizer
	kernels   *kernels

	// The word table: floats, or int8 with a scale for each word.
	words     []float32
	wordBytes []int8
	wordScale []float32

	positions, types   []float32
	normGain, normBias []float32
	layers             []layer

	cores chan struct{} // holds one for each core that a run has taken
	pool  sync.Pool     // of *workspace
}

// layer is one block of the transformer. The projections of queries, keys and
// values are one linear layer of three times the hidden size, in that order.
type layer struct {
	qkv, attended, up, down linear
	norm1Gain, norm1Bias    []float32 // after attention
	norm2Gain, norm2Bias    []float32 // after the feed-forward part
}

// Load reads a model from a folder with config.json, vocab.txt and
// model.safetensors, in the layout of Hugging Face's BertModel. A weight may be
// int8 when NAME.scale (float32, one for each row) stands beside it.
func Load(fsys fs.FS) (*Model, error) {
	return load(fsys, available()[0])
}

func load(fsys fs.FS, k *kernels) (*Model, error) {
	config, err := readConfig(fsys)
	if err != nil {
		return nil, err
	}
	vocab, err := fs.ReadFile(fsys, "vocab.txt")
	if err != nil {
		return nil, err
	}
	weights, size, done, err := openReaderAt(fsys, "model.safetensors")
	if err != nil {
		return nil, err
	}
	defer done()

	m := &Model{config: config, kernels: k, layers: make([]layer, config.Layers), cores: make(chan struct{}, runtime.GOMAXPROCS(0))}
	file, err := safetensors.Open(weights, size)
	if err != nil {
		return nil, fmt.Errorf("reading model.safetensors: %w", err)
	}
	jobs := []func() error{
		func() (err error) {
			m.config.Fingerprint, err = fingerprint(fsys, vocab, io.NewSectionReader(weights, 0, size))
			return err
		},
		func() (err error) {
			m.tokenizer, err = newTokenizer(string(vocab))
			if err == nil && m.tokenizer.size > config.Vocabulary {
				err = fmt.Errorf("vocab.txt has %d pieces, but the model knows %d", m.tokenizer.size, config.Vocabulary)
			}
			return err
		},
		func() error { return m.readEmbeddings(file) },
	}
	for i := range m.layers {
		jobs = append(jobs, func() error { return m.readLayer(file, i) })
	}
	errs := make([]error, len(jobs))
	parallel(runtime.GOMAXPROCS(0), len(jobs), func(_, task int) { errs[task] = jobs[task]() })
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	m.pool.New = func() any { return &workspace{} }
	return m, nil
}

// openReaderAt opens a file for reading anywhere; a file system whose files
// cannot be read so has its file read whole.
func openReaderAt(fsys fs.FS, name string) (r io.ReaderAt, size int64, done func() error, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, 0, nil, err
	}
	if r, ok := f.(io.ReaderAt); ok {
		if info, err := f.Stat(); err == nil {
			return r, info.Size(), f.Close, nil
		}
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, 0, nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return bytes.NewReader(data), int64(len(data)), func() error { return nil }, nil
}

// fingerprint hashes the three files that make a model what it is.
func fingerprint(fsys fs.FS, vocab []byte, weights io.Reader) (string, error) {
	config, err := fs.ReadFile(fsys, "config.json")
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d %d\n", len(config), len(vocab)) // so that the borders count
	h.Write(config)
	h.Write(vocab)
	if _, err := io.Copy(h, weights); err != nil {
		return "", fmt.Errorf("reading model.safetensors: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// Config describes the model.
func (m *Model) Config() Config { return m.config }

// Tokenizer gives the model's own tokenizer.
func (m *Model) Tokenizer() *Tokenizer { return m.tokenizer }

// tensor is a matrix as it stands in the file: floats, or int8 and scales.
type tensor struct {
	floats []float32
	bytes  []int8
	scale  []float32
}

// read reads tensors one after another and keeps the first error.
type reader struct {
	file *safetensors.File
	err  error
}

func (r *reader) shaped(name string, shape ...int) bool {
	if r.err != nil {
		return false
	}
	info, ok := r.file.Info(name)
	if !ok {
		r.err = fmt.Errorf("model.safetensors has no tensor %q", name)
		return false
	}
	if !equalShape(info.Shape, shape) {
		r.err = fmt.Errorf("model.safetensors: tensor %q has shape %v, but the config asks for %v", name, info.Shape, shape)
		return false
	}
	return true
}

func equalShape(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func (r *reader) floats(name string, shape ...int) []float32 {
	if !r.shaped(name, shape...) {
		return nil
	}
	values, err := r.file.Float32s(name)
	r.err = err
	return values
}

func (r *reader) matrix(name string, rows, columns int) tensor {
	if !r.shaped(name, rows, columns) {
		return tensor{}
	}
	if info, _ := r.file.Info(name); info.DType != safetensors.I8 {
		return tensor{floats: r.floats(name, rows, columns)}
	}
	data, err := r.file.Bytes(name)
	r.err = err
	return tensor{bytes: signed(data), scale: r.floats(name+".scale", rows)}
}

// signed reads bytes as two's complement numbers, in place.
func signed(data []byte) []int8 {
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(data))), len(data))
}

func (m *Model) readEmbeddings(file *safetensors.File) error {
	r := &reader{file: file}
	c := &m.config
	words := r.matrix("embeddings.word_embeddings.weight", c.Vocabulary, c.Hidden)
	m.words, m.wordBytes, m.wordScale = words.floats, words.bytes, words.scale
	m.positions = r.floats("embeddings.position_embeddings.weight", c.MaxTokens, c.Hidden)
	m.types = r.floats("embeddings.token_type_embeddings.weight", c.Types, c.Hidden)
	m.normGain = r.floats("embeddings.LayerNorm.weight", c.Hidden)
	m.normBias = r.floats("embeddings.LayerNorm.bias", c.Hidden)
	return r.err
}

func (m *Model) readLayer(file *safetensors.File, i int) error {
	r := &reader{file: file}
	c := &m.config
	l := &m.layers[i]
	at := func(name string) string { return fmt.Sprintf("encoder.layer.%d.%s", i, name) }
	l.qkv = m.readLinear(r, c.Hidden, c.Hidden, at("attention.self.query"), at("attention.self.key"), at("attention.self.value"))
	l.attended = m.readLinear(r, c.Hidden, c.Hidden, at("attention.output.dense"))
	l.up = m.readLinear(r, c.Hidden, c.Intermediate, at("intermediate.dense"))
	l.down = m.readLinear(r, c.Intermediate, c.Hidden, at("output.dense"))
	l.norm1Gain = r.floats(at("attention.output.LayerNorm.weight"), c.Hidden)
	l.norm1Bias = r.floats(at("attention.output.LayerNorm.bias"), c.Hidden)
	l.norm2Gain = r.floats(at("output.LayerNorm.weight"), c.Hidden)
	l.norm2Bias = r.floats(at("output.LayerNorm.bias"), c.Hidden)
	return r.err
}

// readLinear packs the named layers, each of out outputs, side by side.
func (m *Model) readLinear(r *reader, in, out int, names ...string) linear {
	l := linear{in: in, out: out * len(names)}
	for i, name := range names {
		w := r.matrix(name+".weight", out, in)
		l.bias = append(l.bias, r.floats(name+".bias", out)...)
		if r.err != nil {
			return linear{}
		}
		switch {
		case w.bytes != nil && l.floats == nil:
			if l.bytes == nil {
				l.bytes = make([]int8, in*l.out)
			}
			pack(l.bytes, w.bytes, in, i*out, m.kernels.cols)
			l.scale = append(l.scale, w.scale...)
		case w.floats != nil && l.bytes == nil:
			if l.floats == nil {
				l.floats = make([]float32, in*l.out)
			}
			pack(l.floats, w.floats, in, i*out, m.kernels.cols)
		default:
			r.err = fmt.Errorf("model.safetensors: %s and %s must be of one type", names[0], name)
			return linear{}
		}
	}
	return l
}
