package gguf

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"sync"
)

// Options say how a model is written.
type Options struct {
	Type     Type                    // of matrices; one whose rows q8_0 cannot hold becomes f16, and vectors stay f32
	Progress func(done, total int64) // numbers written so far, of how many; nil: not told
}

// fileTypes are the format's numbers for files of mostly one type.
var fileTypes = map[Type]uint32{F32: 0, F16: 1, Q8_0: 7}

// as gives the type that a tensor is written in.
func (o Options) as(t Tensor) Type {
	if len(t.Dims) < 2 {
		return F32
	}
	if _, ok := o.Type.size(t.Width()); !ok {
		return F16
	}
	return o.Type
}

// Write writes the model as a GGUF file, version 3. The metadata is kept, but
// for what says how the numbers are stored. A context that is over ends it.
func (m *Model) Write(ctx context.Context, w io.Writer, o Options) error {
	number, ok := fileTypes[o.Type]
	if !ok {
		return fmt.Errorf("writing a model: %s cannot be written", o.Type)
	}
	metadata := m.Metadata.with("general.file_type", number)
	if o.Type == Q8_0 {
		metadata = metadata.with("general.quantization_version", uint32(2))
	}
	h := &header{}
	h.WriteString("GGUF")
	h.put(uint32(3), uint64(len(m.Tensors)))
	var entries header
	n := 0
	for _, kv := range metadata {
		if kv.Key == alignKey {
			continue // the default is written
		}
		entries.text(kv.Key)
		if err := entries.value(kv.Value); err != nil {
			return fmt.Errorf("writing the entry %s: %w", kv.Key, err)
		}
		n++
	}
	h.put(uint64(n))
	h.Write(entries.Bytes())
	var offset, total int64
	for _, t := range m.Tensors {
		if err := t.Read(nil, 0); err != nil { // before memory is taken for it
			return err
		}
		h.text(t.Name)
		h.put(uint32(len(t.Dims)))
		for _, d := range t.Dims {
			h.put(uint64(d))
		}
		h.put(uint32(o.as(t)), uint64(offset))
		row, _ := o.as(t).size(t.Width())
		offset += int64(row) * int64(t.Rows())
		offset += padding(offset)
		total += int64(product(t.Dims))
	}
	h.Write(make([]byte, padding(int64(h.Len()))))
	out := bufio.NewWriterSize(w, 1<<20)
	if _, err := out.Write(h.Bytes()); err != nil {
		return fmt.Errorf("writing the header: %w", err)
	}
	var done int64
	for _, t := range m.Tensors {
		if err := writeTensor(ctx, out, t, o.as(t), func(n int) {
			if done += int64(n); o.Progress != nil {
				o.Progress(done, total)
			}
		}); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the last tensor: %w", err)
	}
	return nil
}

func padding(n int64) int64 { return (defaultAlign - n%defaultAlign) % defaultAlign }

// pieceSize is about how many numbers are converted at a time by a goroutine.
const pieceSize = 1 << 20

// writeTensor converts a tensor's rows in pieces, as many at a time as there
// are processors, and writes them in order.
func writeTensor(ctx context.Context, w io.Writer, t Tensor, as Type, wrote func(n int)) error {
	rows := min(max(1, pieceSize/t.Width()), t.Rows())
	pieces := make([]piece, runtime.GOMAXPROCS(0))
	var size int64
	for from := 0; from < t.Rows(); {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var group sync.WaitGroup
		used := 0
		for ; used < len(pieces) && from < t.Rows(); used++ {
			p, first, n := &pieces[used], from, min(rows, t.Rows()-from)
			group.Go(func() { p.convert(t, as, first, n) })
			from += n
		}
		group.Wait()
		for i := range pieces[:used] {
			p := &pieces[i]
			if p.err != nil {
				return fmt.Errorf("writing tensor %s: %w", t.Name, p.err)
			}
			if _, err := w.Write(p.data); err != nil {
				return fmt.Errorf("writing tensor %s: %w", t.Name, err)
			}
			size += int64(len(p.data))
			wrote(len(p.numbers))
		}
	}
	if _, err := w.Write(make([]byte, padding(size))); err != nil {
		return fmt.Errorf("writing tensor %s: %w", t.Name, err)
	}
	return nil
}

// piece is some rows on their way, with memory that is used again.
type piece struct {
	numbers []float32
	data    []byte
	err     error
}

func (p *piece) convert(t Tensor, as Type, from, n int) {
	if need := n * t.Width(); cap(p.numbers) < need {
		p.numbers = make([]float32, need)
	} else {
		p.numbers = p.numbers[:need]
	}
	if p.err = t.Read(p.numbers, from); p.err == nil {
		p.data, p.err = as.encode(p.data[:0], p.numbers)
	}
}

// header collects what stands before the tensors' data.
type header struct{ bytes.Buffer }

func (h *header) put(values ...any) {
	for _, v := range values {
		_ = binary.Write(h, binary.LittleEndian, v) // a buffer takes everything
	}
}

func (h *header) text(s string) {
	h.put(uint64(len(s)))
	h.WriteString(s)
}

// value writes a value with its type's number before it.
func (h *header) value(value any) error {
	if s, ok := value.(string); ok {
		h.put(uint32(typeText))
		h.text(s)
		return nil
	}
	if list, ok := value.([]string); ok {
		h.put(uint32(typeArray), uint32(typeText), uint64(len(list)))
		for _, s := range list {
			h.text(s)
		}
		return nil
	}
	kind, length, ok := kindOf(value)
	if !ok {
		return fmt.Errorf("a value of type %T cannot be written", value)
	}
	if length < 0 {
		h.put(kind, value)
	} else {
		h.put(uint32(typeArray), kind, uint64(length), value)
	}
	return nil
}

// kindOf gives a value's type, and its length if it is a list, or -1.
func kindOf(value any) (kind uint32, length int, ok bool) {
	switch v := value.(type) {
	case uint8:
		return typeU8, -1, true
	case int8:
		return typeI8, -1, true
	case uint16:
		return typeU16, -1, true
	case int16:
		return typeI16, -1, true
	case uint32:
		return typeU32, -1, true
	case int32:
		return typeI32, -1, true
	case float32:
		return typeF32, -1, true
	case bool:
		return typeBool, -1, true
	case uint64:
		return typeU64, -1, true
	case int64:
		return typeI64, -1, true
	case float64:
		return typeF64, -1, true
	case []uint8:
		return typeU8, len(v), true
	case []int8:
		return typeI8, len(v), true
	case []uint16:
		return typeU16, len(v), true
	case []int16:
		return typeI16, len(v), true
	case []uint32:
		return typeU32, len(v), true
	case []int32:
		return typeI32, len(v), true
	case []float32:
		return typeF32, len(v), true
	case []bool:
		return typeBool, len(v), true
	case []uint64:
		return typeU64, len(v), true
	case []int64:
		return typeI64, len(v), true
	case []float64:
		return typeF64, len(v), true
	}
	return 0, 0, false
}
