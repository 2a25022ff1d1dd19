package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
)

// OpenFile opens a GGUF file. Close the model when it is done with.
func OpenFile(name string) (*Model, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		var m *Model
		if m, err = Open(f, info.Size()); err == nil {
			m.files = append(m.files, f)
			return m, nil
		}
	}
	_ = f.Close()
	return nil, fmt.Errorf("reading %s: %w", name, err)
}

// Open reads the metadata of a GGUF file of size bytes, version 2 or 3; tensors
// are read from r when they are asked for. It trusts nothing in the file: a
// count or length that the file's size belies is an error.
func Open(r io.ReaderAt, size int64) (*Model, error) {
	d := &reader{r: r, size: size}
	if magic := d.bytes(4); d.err == nil && string(magic) != "GGUF" {
		return nil, errors.New("it is no GGUF file")
	}
	if v := d.u32(); d.err == nil && v != 2 && v != 3 {
		return nil, fmt.Errorf("it is GGUF version %d; versions 2 and 3 are known", v)
	}
	tensors, entries := d.count(25), d.count(13)
	m := &Model{}
	seen := map[string]bool{}
	for i := 0; i < entries && d.err == nil; i++ {
		key := d.text()
		value := d.value(key)
		if d.err == nil && seen[key] {
			return nil, fmt.Errorf("the entry %q stands twice", key)
		}
		seen[key] = true
		m.Metadata = append(m.Metadata, KV{key, value})
	}
	offsets := make([]uint64, 0, max(0, tensors))
	clear(seen)
	for i := 0; i < tensors && d.err == nil; i++ {
		t, offset := d.tensor()
		if d.err == nil && seen[t.Name] {
			return nil, fmt.Errorf("the tensor %q stands twice", t.Name)
		}
		seen[t.Name] = true
		m.Tensors, offsets = append(m.Tensors, t), append(offsets, offset)
	}
	if d.err != nil {
		return nil, d.err
	}
	align := uint64(defaultAlign)
	if v := m.Metadata.Get(alignKey); v != nil {
		n, ok := whole(v)
		if !ok || n%8 != 0 || n > 1<<20 {
			return nil, fmt.Errorf("%s is %v", alignKey, v)
		}
		align = uint64(n)
	}
	start := (uint64(d.at) + align - 1) / align * align
	for i := range m.Tensors {
		if err := place(&m.Tensors[i], r, start, offsets[i], uint64(size)); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", m.Tensors[i].Name, err)
		}
	}
	return m, nil
}

const (
	alignKey     = "general.alignment"
	defaultAlign = 32
)

// place makes a tensor's rows readable. One of a type that cannot be read says
// so when it is read.
func place(t *Tensor, r io.ReaderAt, start, offset, size uint64) error {
	row, ok := t.Type.size(t.Width())
	if !ok {
		kind := t.Type
		t.rows = func([]float32, int) error {
			return fmt.Errorf("it is stored as %s; take the base model as f16, f32, bf16 or q8_0", kind)
		}
		return nil
	}
	total := uint64(row) * uint64(t.Rows())
	if offset > size || start+offset > size || total > size-start-offset {
		return fmt.Errorf("its %d bytes at %d lie outside the file of %d", total, start+offset, size)
	}
	begin, kind := int64(start+offset), t.Type
	t.rows = func(dst []float32, from int) error {
		n := len(dst) / t.Width()
		data := make([]byte, n*row)
		if k, err := r.ReadAt(data, begin+int64(from)*int64(row)); k < len(data) {
			return fmt.Errorf("reading rows %d to %d: %w", from, from+n, err)
		}
		kind.decode(dst, data)
		return nil
	}
	return nil
}

// reader reads a header piece by piece and keeps the first error.
type reader struct {
	r    io.ReaderAt
	size int64
	at   int64
	err  error

	buffer []byte // what was read ahead
	start  int64  // where the buffer begins
}

const readAhead = 1 << 16

func (d *reader) bytes(n int) []byte {
	if d.err != nil {
		return make([]byte, min(n, 8))
	}
	if int64(n) > d.size-d.at {
		d.err = fmt.Errorf("the file of %d bytes ends in the middle of its header", d.size)
		return make([]byte, min(n, 8))
	}
	if d.at < d.start || d.at+int64(n) > d.start+int64(len(d.buffer)) {
		d.buffer = make([]byte, min(max(int64(n), readAhead), d.size-d.at))
		d.start = d.at
		if k, err := d.r.ReadAt(d.buffer, d.at); k < len(d.buffer) {
			d.err = fmt.Errorf("reading the header: %w", err)
			return make([]byte, min(n, 8))
		}
	}
	out := d.buffer[d.at-d.start:][:n]
	d.at += int64(n)
	return out
}

func (d *reader) u32() uint32 { return binary.LittleEndian.Uint32(d.bytes(4)) }
func (d *reader) u64() uint64 { return binary.LittleEndian.Uint64(d.bytes(8)) }

// count reads how many things follow, each of least bytes or more.
func (d *reader) count(least int64) int {
	n := d.u64()
	if d.err == nil && n > uint64(d.size-d.at)/uint64(least) {
		d.err = fmt.Errorf("it claims %d entries, more than its %d bytes can hold", n, d.size)
	}
	if d.err != nil {
		return 0
	}
	return int(n)
}

func (d *reader) text() string { return string(d.bytes(d.count(1))) }

// The format's numbers of value types.
const (
	typeU8, typeI8, typeU16, typeI16, typeU32, typeI32, typeF32 = 0, 1, 2, 3, 4, 5, 6
	typeBool, typeText, typeArray, typeU64, typeI64, typeF64    = 7, 8, 9, 10, 11, 12
)

func (d *reader) value(key string) any {
	switch kind := d.u32(); kind {
	case typeU8:
		return d.u8()
	case typeI8:
		return int8(d.u8())
	case typeU16:
		return d.u16()
	case typeI16:
		return int16(d.u16())
	case typeU32:
		return d.u32()
	case typeI32:
		return int32(d.u32())
	case typeF32:
		return math.Float32frombits(d.u32())
	case typeBool:
		return d.u8() != 0
	case typeText:
		return d.text()
	case typeU64:
		return d.u64()
	case typeI64:
		return int64(d.u64())
	case typeF64:
		return math.Float64frombits(d.u64())
	case typeArray:
		return d.array(key)
	default:
		d.fail(key, kind)
		return nil
	}
}

func (d *reader) fail(key string, kind uint32) {
	if d.err == nil {
		d.err = fmt.Errorf("the entry %q is of the unknown type %d", key, kind)
	}
}

func (d *reader) u8() uint8   { return d.bytes(1)[0] }
func (d *reader) u16() uint16 { return binary.LittleEndian.Uint16(d.bytes(2)) }

func (d *reader) array(key string) any {
	switch kind := d.u32(); kind {
	case typeU8:
		return slices.Clone(d.bytes(d.count(1)))
	case typeI8:
		return list(d, 1, func() int8 { return int8(d.u8()) })
	case typeU16:
		return list(d, 2, d.u16)
	case typeI16:
		return list(d, 2, func() int16 { return int16(d.u16()) })
	case typeU32:
		return list(d, 4, d.u32)
	case typeI32:
		return list(d, 4, func() int32 { return int32(d.u32()) })
	case typeF32:
		return list(d, 4, func() float32 { return math.Float32frombits(d.u32()) })
	case typeBool:
		return list(d, 1, func() bool { return d.u8() != 0 })
	case typeText:
		return list(d, 8, d.text)
	case typeU64:
		return list(d, 8, d.u64)
	case typeI64:
		return list(d, 8, func() int64 { return int64(d.u64()) })
	case typeF64:
		return list(d, 8, func() float64 { return math.Float64frombits(d.u64()) })
	default: // arrays of arrays are written by nobody
		d.fail(key, kind)
		return nil
	}
}

func list[T any](d *reader, least int64, next func() T) []T {
	n := d.count(least)
	out := make([]T, 0, n)
	for i := 0; i < n && d.err == nil; i++ {
		out = append(out, next())
	}
	return out
}

func (d *reader) tensor() (Tensor, uint64) {
	t := Tensor{Name: d.text()}
	sides := d.u32()
	if d.err == nil && (sides < 1 || sides > 4) {
		d.err = fmt.Errorf("tensor %q has %d dimensions", t.Name, sides)
	}
	total := 1.0
	for i := uint32(0); i < sides && d.err == nil; i++ {
		n := d.u64()
		if total *= float64(n); n < 1 || n >= maxSide || total >= 1<<60 {
			d.err = fmt.Errorf("tensor %q has a side of %d", t.Name, n)
		}
		t.Dims = append(t.Dims, int(n))
	}
	t.Type = Type(d.u32())
	return t, d.u64()
}
