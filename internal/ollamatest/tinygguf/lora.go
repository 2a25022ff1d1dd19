package tinygguf

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strings"
)

// LoRA gives an adapter for a base of that architecture. Its tensors are named
// after the base's, with .lora_a and .lora_b.
func LoRA(arch string, alpha float32, tensors []Tensor) *File {
	f := &File{Tensors: tensors}
	f.set("general.type", "adapter")
	f.set("general.architecture", arch)
	f.set("general.name", "tiny-lora")
	f.set("general.file_type", uint32(0))
	f.set("adapter.type", "lora")
	f.set("adapter.lora.alpha", alpha)
	return f
}

// Merge gives the base with an adapter's tensors added in: B·A times alpha over
// the rank.
func Merge(base *File, alpha float32, tensors []Tensor) *File {
	a, b := map[string]Tensor{}, map[string]Tensor{}
	for _, t := range tensors {
		if name, ok := strings.CutSuffix(t.Name, ".lora_a"); ok {
			a[name] = t
		}
		if name, ok := strings.CutSuffix(t.Name, ".lora_b"); ok {
			b[name] = t
		}
	}
	out := &File{KVs: base.KVs}
	for _, t := range base.Tensors {
		if A, ok := a[t.Name]; ok {
			B := b[t.Name]
			rows, rank := int(t.Dims[0]), int(B.Dims[0])
			data := slices.Clone(t.Data)
			for j := range int(t.Dims[1]) {
				for i := range rows {
					var sum float32
					for k := range rank {
						sum += B.Data[j*rank+k] * A.Data[k*rows+i]
					}
					data[j*rows+i] += alpha / float32(rank) * sum
				}
			}
			t.Data = data
		}
		out.Tensors = append(out.Tensors, t)
	}
	return out
}

// PermuteRows reorders a projection's output rows as llama's conversion from
// the Hugging Face layout does for q and k: the halves of each head are
// interleaved.
func PermuteRows(t Tensor, heads int) Tensor {
	row, rows := int(t.Dims[0]), int(t.Dims[1])
	head := rows / heads
	data := make([]float32, len(t.Data))
	for h := range heads {
		for half := range 2 {
			for j := range head / 2 {
				from, to := h*head+half*head/2+j, h*head+2*j+half
				copy(data[to*row:(to+1)*row], t.Data[from*row:(from+1)*row])
			}
		}
	}
	t.Data = data
	return t
}

// Safetensors gives tensors as a safetensors file of 32-bit floats, their
// shapes in torch's order, which is ggml's backwards.
func Safetensors(tensors []Tensor) ([]byte, error) {
	type entry struct {
		Type    string   `json:"dtype"`
		Shape   []uint64 `json:"shape"`
		Offsets [2]int   `json:"data_offsets"`
	}
	header := map[string]entry{}
	var body []byte
	for _, t := range slices.SortedFunc(slices.Values(tensors), func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) }) {
		shape := slices.Clone(t.Dims)
		slices.Reverse(shape)
		start := len(body)
		for _, x := range t.Data {
			body = binary.LittleEndian.AppendUint32(body, math.Float32bits(x))
		}
		header[t.Name] = entry{"F32", shape, [2]int{start, len(body)}}
	}
	h, err := json.Marshal(header)
	if err != nil {
		return nil, err
	}
	for len(h)%8 != 0 {
		h = append(h, ' ')
	}
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(h))), h...), body...), nil
}
