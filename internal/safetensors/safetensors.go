package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// maxHeader bounds the JSON header, as the reference reader does.
const maxHeader = 100 << 20

// DType is the type of a tensor's elements, by the format's own name.
type DType string

// The element types that the reader knows.
const (
	F64  DType = "F64"
	F32  DType = "F32"
	F16  DType = "F16"
	BF16 DType = "BF16"
	I64  DType = "I64"
	I32  DType = "I32"
	I16  DType = "I16"
	I8   DType = "I8"
	U64  DType = "U64"
	U32  DType = "U32"
	U16  DType = "U16"
	U8   DType = "U8"
	Bool DType = "BOOL"
)

// Size gives the bytes of one element, or 0 for a type that is not known.
func (d DType) Size() int {
	switch d {
	case F64, I64, U64:
		return 8
	case F32, I32, U32:
		return 4
	case F16, BF16, I16, U16:
		return 2
	case I8, U8, Bool:
		return 1
	}
	return 0
}

// Info describes one tensor of a file.
type Info struct {
	Name  string
	DType DType
	Shape []int // empty for a scalar

	begin, end int64 // in the file
}

// Elements gives the number of elements, the product of the shape.
func (i Info) Elements() int { return int(i.end-i.begin) / i.DType.Size() }

// File is an open safetensors file. It is safe for concurrent use when the
// reader beneath it is.
type File struct {
	r        io.ReaderAt
	tensors  map[string]Info
	names    []string
	metadata map[string]string
}

// Parse reads a file that is wholly in memory.
func Parse(data []byte) (*File, error) {
	return Open(bytes.NewReader(data), int64(len(data)))
}

// Open reads the header of a file of size bytes; tensors are read from r when
// they are asked for. It fails when the header is malformed or any tensor in
// it does not fit the file.
func Open(r io.ReaderAt, size int64) (*File, error) {
	header, start, err := readHeader(r, size)
	if err != nil {
		return nil, err
	}
	entries, err := decodeHeader(header)
	if err != nil {
		return nil, fmt.Errorf("reading the header: %w", err)
	}
	f := &File{r: r, tensors: make(map[string]Info, len(entries))}
	for name, raw := range entries {
		if name == "__metadata__" {
			if err := json.Unmarshal(raw, &f.metadata); err != nil {
				return nil, fmt.Errorf("reading the header's metadata: %w", err)
			}
			continue
		}
		info, err := readInfo(name, raw, start, size)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		f.tensors[name] = info
		f.names = append(f.names, name)
	}
	slices.Sort(f.names)
	if err := f.checkCover(start, size); err != nil {
		return nil, err
	}
	return f, nil
}

func readHeader(r io.ReaderAt, size int64) (header []byte, end int64, err error) {
	var prefix [8]byte
	if size < int64(len(prefix)) {
		return nil, 0, fmt.Errorf("the file has %d bytes, too few for a header", size)
	}
	if err := readFull(r, prefix[:], 0); err != nil {
		return nil, 0, fmt.Errorf("reading the header's length: %w", err)
	}
	n := binary.LittleEndian.Uint64(prefix[:])
	if n > maxHeader || int64(n) > size-8 {
		return nil, 0, fmt.Errorf("the header claims %d bytes in a file of %d", n, size)
	}
	header = make([]byte, n)
	if err := readFull(r, header, 8); err != nil {
		return nil, 0, fmt.Errorf("reading the header: %w", err)
	}
	return header, 8 + int64(n), nil
}

// decodeHeader splits the top level of the header, refusing a name that
// stands twice, which encoding/json alone would take.
func decodeHeader(header []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(header))
	if t, err := d.Token(); err != nil {
		return nil, err
	} else if t != json.Delim('{') {
		return nil, errors.New("it is not a JSON object")
	}
	entries := map[string]json.RawMessage{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		name := key.(string) // the decoder allows only strings here
		if _, twice := entries[name]; twice {
			return nil, fmt.Errorf("%q stands twice", name)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, err
		}
		entries[name] = raw
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if rest := header[d.InputOffset():]; strings.Trim(string(rest), " \t\r\n") != "" {
		return nil, errors.New("there is more after the JSON object")
	}
	return entries, nil
}

func readInfo(name string, raw json.RawMessage, start, size int64) (Info, error) {
	var entry struct {
		DType   DType   `json:"dtype"`
		Shape   []int   `json:"shape"`
		Offsets []int64 `json:"data_offsets"`
	}
	if err := json.Unmarshal(raw, &entry); err != nil {
		return Info{}, err
	}
	width := entry.DType.Size()
	if width == 0 {
		return Info{}, fmt.Errorf("the element type %q is not known", entry.DType)
	}
	need := uint64(width)
	for _, n := range entry.Shape {
		if n < 0 {
			return Info{}, fmt.Errorf("shape %v has a negative side", entry.Shape)
		}
		hi, lo := bits.Mul64(need, uint64(n))
		if hi != 0 || lo > math.MaxInt64 {
			return Info{}, fmt.Errorf("shape %v is too large", entry.Shape)
		}
		need = lo
	}
	if len(entry.Offsets) != 2 {
		return Info{}, fmt.Errorf("data_offsets has %d numbers instead of 2", len(entry.Offsets))
	}
	begin, end := entry.Offsets[0], entry.Offsets[1]
	if begin < 0 || end < begin || end > size-start {
		return Info{}, fmt.Errorf("its bytes [%d, %d) lie outside the file's data of %d bytes", begin, end, size-start)
	}
	if uint64(end-begin) != need {
		return Info{}, fmt.Errorf("%s of shape %v needs %d bytes, but has %d", entry.DType, entry.Shape, need, end-begin)
	}
	return Info{Name: name, DType: entry.DType, Shape: entry.Shape, begin: start + begin, end: start + end}, nil
}

// checkCover makes sure that the tensors tile the data: no overlap, no gap.
func (f *File) checkCover(start, size int64) error {
	byPlace := make([]Info, 0, len(f.tensors))
	for _, t := range f.tensors {
		byPlace = append(byPlace, t)
	}
	slices.SortFunc(byPlace, func(a, b Info) int {
		switch {
		case a.begin != b.begin:
			return int(min(max(a.begin-b.begin, -1), 1))
		default:
			return int(min(max(a.end-b.end, -1), 1))
		}
	})
	at := start
	for _, t := range byPlace {
		if t.begin < at {
			return fmt.Errorf("tensor %q overlaps the one before it", t.Name)
		}
		if t.begin > at {
			return fmt.Errorf("%d bytes before tensor %q belong to no tensor", t.begin-at, t.Name)
		}
		at = t.end
	}
	if at != size {
		return fmt.Errorf("%d bytes at the end belong to no tensor", size-at)
	}
	return nil
}

// Names lists the tensors, sorted.
func (f *File) Names() []string { return slices.Clone(f.names) }

// Metadata gives a value of the header's free-form metadata, or "".
func (f *File) Metadata(key string) string { return f.metadata[key] }

// Info describes a tensor; ok is false when the file has none of that name.
func (f *File) Info(name string) (info Info, ok bool) {
	info, ok = f.tensors[name]
	return info, ok
}

// Bytes reads a tensor's raw bytes into new memory.
func (f *File) Bytes(name string) ([]byte, error) {
	info, ok := f.tensors[name]
	if !ok {
		return nil, fmt.Errorf("there is no tensor %q", name)
	}
	data := make([]byte, info.end-info.begin)
	if err := readFull(f.r, data, info.begin); err != nil {
		return nil, fmt.Errorf("reading tensor %q: %w", name, err)
	}
	return data, nil
}

// Float32s reads a tensor of type F32, F16 or BF16 as float32 numbers.
func (f *File) Float32s(name string) ([]float32, error) {
	info, ok := f.tensors[name]
	if !ok {
		return nil, fmt.Errorf("there is no tensor %q", name)
	}
	out := make([]float32, info.Elements())
	return out, f.ReadFloat32s(name, out, 0)
}

// ReadFloat32s fills dst with the numbers of a tensor of type F32, F16 or BF16,
// from the number at place from on, in the order of the file.
func (f *File) ReadFloat32s(name string, dst []float32, from int) error {
	info, ok := f.tensors[name]
	switch {
	case !ok:
		return fmt.Errorf("there is no tensor %q", name)
	case info.DType != F32 && info.DType != F16 && info.DType != BF16:
		return fmt.Errorf("tensor %q holds %s, not a float type (F32, F16, BF16)", name, info.DType)
	case from < 0 || from > info.Elements() || len(dst) > info.Elements()-from:
		return fmt.Errorf("tensor %q has %d numbers; %d from %d on cannot be read", name, info.Elements(), len(dst), from)
	}
	width := info.DType.Size()
	data := make([]byte, width*len(dst))
	if err := readFull(f.r, data, info.begin+int64(from)*int64(width)); err != nil {
		return fmt.Errorf("reading tensor %q: %w", name, err)
	}
	switch info.DType {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
	case F16:
		for i := range dst {
			dst[i] = FromHalf(binary.LittleEndian.Uint16(data[2*i:]))
		}
	case BF16:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[2*i:])) << 16)
		}
	}
	return nil
}

// FromHalf widens an IEEE 754 half-precision number, exactly.
func FromHalf(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exponent := uint32(h>>10) & 31
	fraction := uint32(h) & 1023
	switch exponent {
	case 0: // zero and subnormals: fraction * 2^-24
		value := float32(fraction) * (1.0 / (1 << 24))
		return math.Float32frombits(sign | math.Float32bits(value))
	case 31: // infinity and NaN
		return math.Float32frombits(sign | 255<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}

func readFull(r io.ReaderAt, p []byte, at int64) error {
	n, err := r.ReadAt(p, at)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}
