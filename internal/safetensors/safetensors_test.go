package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/askback/askback/internal/safetensors"
	"github.com/askback/askback/internal/safetensors/safetensorstest"
)

func words(values ...uint16) []byte {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint16(data, v)
	}
	return data
}

func TestRead(t *testing.T) {
	data := safetensorstest.File(
		safetensorstest.Floats("b", []float32{1, -2.5, 3}, 3, 1),
		safetensorstest.Tensor{Name: "half", DType: safetensors.F16, Shape: []int{2, 3}, Data: words(0x3c00, 0xc100, 0x0001, 0x8000, 0x7c00, 0x7bff)},
		safetensorstest.Tensor{Name: "brain", DType: safetensors.BF16, Shape: []int{2}, Data: words(0x3f80, 0xc020)},
		safetensorstest.Tensor{Name: "int", DType: safetensors.I8, Shape: []int{4}, Data: []byte{0, 127, 128, 255}},
		safetensorstest.Tensor{Name: "empty", DType: safetensors.I64, Shape: []int{0, 5}},
		safetensorstest.Tensor{Name: "scalar", DType: safetensors.U8, Data: []byte{7}},
	)
	f, err := safetensors.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := f.Names(), []string{"b", "brain", "empty", "half", "int", "scalar"}; !slices.Equal(got, want) {
		t.Errorf("Names = %v, want %v", got, want)
	}
	for name, want := range map[string][]float32{
		"b":     {1, -2.5, 3},
		"half":  {1, -2.5, float32(math.Ldexp(1, -24)), float32(math.Copysign(0, -1)), float32(math.Inf(1)), 65504},
		"brain": {1, -2.5},
	} {
		got, err := f.Float32s(name)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(got, want, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	if got, err := f.Bytes("int"); err != nil || !bytes.Equal(got, []byte{0, 127, 128, 255}) {
		t.Errorf("int = %v, %v", got, err)
	}
	if info, ok := f.Info("empty"); !ok || info.Elements() != 0 || !slices.Equal(info.Shape, []int{0, 5}) {
		t.Errorf("empty: %+v, %v", info, ok)
	}
	if info, ok := f.Info("scalar"); !ok || info.Elements() != 1 {
		t.Errorf("scalar: %+v, %v", info, ok)
	}
	if _, ok := f.Info("none"); ok {
		t.Error("there is a tensor none")
	}
	if _, err := f.Float32s("int"); err == nil || !strings.Contains(err.Error(), "I8") {
		t.Errorf("floats of an int8 tensor: error %v", err)
	}
	if _, err := f.Bytes("none"); err == nil {
		t.Error("bytes of a missing tensor: no error")
	}
	some := make([]float32, 2)
	if err := f.ReadFloat32s("half", some, 1); err != nil || some[0] != -2.5 || some[1] != float32(math.Ldexp(1, -24)) {
		t.Errorf("two numbers of half from 1 on: %v, %v", some, err)
	}
	for _, from := range []int{-1, 2, math.MaxInt} {
		if err := f.ReadFloat32s("b", some, from); err == nil {
			t.Errorf("two numbers of three from %d on: no error", from)
		}
	}
}

func TestMetadata(t *testing.T) {
	f, err := safetensors.Parse(safetensorstest.Raw(`{"__metadata__":{"format":"pt"}}`, nil))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Metadata("format"); got != "pt" {
		t.Errorf("format = %q, want pt", got)
	}
}

func TestMalformed(t *testing.T) {
	entry := func(fields string) []byte { return safetensorstest.Raw(`{"x":{`+fields+`}}`, make([]byte, 8)) }
	huge := binary.LittleEndian.AppendUint64(nil, 1<<40)
	for name, c := range map[string]struct {
		data []byte
		want string // in the error
	}{
		"empty file":         {nil, "too few"},
		"short prefix":       {[]byte{1, 2, 3}, "too few"},
		"huge header":        {huge, "claims"},
		"negative header":    {slices.Repeat([]byte{255}, 16), "claims"},
		"header beyond file": {binary.LittleEndian.AppendUint64(nil, 9), "claims"},
		"not JSON":           {safetensorstest.Raw("hello", nil), "invalid character"},
		"not an object":      {safetensorstest.Raw("[]", nil), "not a JSON object"},
		"cut JSON":           {safetensorstest.Raw(`{"x":`, nil), "EOF"},
		"more after JSON":    {safetensorstest.Raw(`{} {}`, nil), "more after"},
		"name twice":         {safetensorstest.Raw(`{"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, nil), "twice"},
		"unknown type":       {entry(`"dtype":"F8","shape":[8],"data_offsets":[0,8]`), `"F8" is not known`},
		"no offsets":         {entry(`"dtype":"F32","shape":[2]`), "data_offsets"},
		"begin beyond end":   {entry(`"dtype":"F32","shape":[0],"data_offsets":[8,4]`), "outside"},
		"negative begin":     {entry(`"dtype":"F32","shape":[3],"data_offsets":[-4,8]`), "outside"},
		"end beyond file":    {entry(`"dtype":"F32","shape":[3],"data_offsets":[0,12]`), "outside"},
		"shape and bytes":    {entry(`"dtype":"F32","shape":[3],"data_offsets":[0,8]`), "needs 12 bytes"},
		"negative side":      {entry(`"dtype":"F32","shape":[-2,-1],"data_offsets":[0,8]`), "negative"},
		"overflowing shape":  {entry(`"dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,8]`), "too large"},
		"gap at the start":   {entry(`"dtype":"F32","shape":[1],"data_offsets":[4,8]`), "no tensor"},
		"gap at the end":     {entry(`"dtype":"F32","shape":[1],"data_offsets":[0,4]`), "no tensor"},
		"overlap": {safetensorstest.Raw(
			`{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"y":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, make([]byte, 8)), "overlaps"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := safetensors.Parse(c.data)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(safetensorstest.File(safetensorstest.Floats("a", []float32{1, 2}, 2), safetensorstest.Floats("b", []float32{3}, 1, 1)))
	f.Add(safetensorstest.Raw(`{"__metadata__":{"k":"v"},"h":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}}`, []byte{0, 60}))
	f.Add(safetensorstest.Raw(`{"x":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := safetensors.Parse(data)
		if err != nil {
			return
		}
		total := 0
		for _, name := range file.Names() {
			raw, err := file.Bytes(name)
			if err != nil {
				t.Fatalf("a tensor of a file that was taken cannot be read: %v", err)
			}
			total += len(raw)
			info, _ := file.Info(name)
			if len(raw) != info.Elements()*info.DType.Size() {
				t.Fatalf("%s: %d bytes for %d elements of %s", name, len(raw), info.Elements(), info.DType)
			}
			file.Float32s(name)
		}
		if total > len(data) {
			t.Fatalf("the tensors have %d bytes, the file %d", total, len(data))
		}
	})
}
