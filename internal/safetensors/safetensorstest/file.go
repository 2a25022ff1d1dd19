// Package safetensorstest makes safetensors files for tests.
package safetensorstest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/askback/askback/internal/safetensors"
)

// Tensor is one tensor of a file to be made. Data is taken as it is, so that
// a test can make files that lie.
type Tensor struct {
	Name  string
	DType safetensors.DType
	Shape []int
	Data  []byte
}

// Floats makes a tensor of type F32. It panics when the shape does not hold
// the values.
func Floats(name string, values []float32, shape ...int) Tensor {
	n := 1
	for _, side := range shape {
		n *= side
	}
	if n != len(values) {
		panic(fmt.Sprintf("tensor %s: shape %v does not hold %d values", name, shape, len(values)))
	}
	data, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		panic(err)
	}
	return Tensor{Name: name, DType: safetensors.F32, Shape: shape, Data: data}
}

// File lays tensors out as a safetensors file, in their order.
func File(tensors ...Tensor) []byte {
	type entry struct {
		DType   safetensors.DType `json:"dtype"`
		Shape   []int             `json:"shape"`
		Offsets [2]int            `json:"data_offsets"`
	}
	header := map[string]entry{}
	var data []byte
	for _, t := range tensors {
		at := len(data)
		data = append(data, t.Data...)
		header[t.Name] = entry{t.DType, append([]int{}, t.Shape...), [2]int{at, len(data)}}
	}
	text, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	return Raw(string(text), data)
}

// Raw puts a header, whatever it says, before data.
func Raw(header string, data []byte) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), data...)
}
