package gguf

import (
	"fmt"
	"strconv"
	"strings"
)

// part says which rows of a module's weights make up one tensor.
type part struct {
	name string            // of the tensor
	rows int               // how many it has
	from func(row int) int // where each stands in the module's weights
}

// module is a weight matrix of a layer, as Hugging Face's files name it.
type module struct {
	width, rows int
	parts       []part
}

func same(row int) int { return row }

// interleave gives the order of GGUF: within each head of that many rows, the
// two halves take turns.
func interleave(head int) func(row int) int {
	return func(row int) int {
		first, r := row/head*head, row%head
		return first + r%2*(head/2) + r/2
	}
}

// modules are the matrices of a layer that are known, by name.
func (s Shape) modules() map[string]module {
	q, kv := s.Heads*s.Head, s.KVHeads*s.Head
	one := func(name string, width, rows int, from func(int) int) module {
		return module{width, rows, []part{{name, rows, from}}}
	}
	return map[string]module{
		"self_attn.q_proj":         one("attn_q", s.Width, q, interleave(s.Head)),
		"self_attn.k_proj":         one("attn_k", s.Width, kv, interleave(s.Head)),
		"self_attn.v_proj":         one("attn_v", s.Width, kv, same),
		"self_attn.o_proj":         one("attn_output", q, s.Width, same),
		"mlp.gate_proj":            one("ffn_gate", s.Width, s.FF, same),
		"mlp.up_proj":              one("ffn_up", s.Width, s.FF, same),
		"mlp.down_proj":            one("ffn_down", s.FF, s.Width, same),
		"shared_mlp.output_linear": one("ffn_down", s.FF, s.Width, same),
		"shared_mlp.input_linear": { // gate and up in one
			s.Width, 2 * s.FF, []part{
				{"ffn_gate", s.FF, same},
				{"ffn_up", s.FF, func(row int) int { return s.FF + row }},
			}},
	}
}

// known lists the modules' last names, for an error.
const known = "q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj, input_linear and output_linear"

// find splits a name such as model.layers.3.self_attn.q_proj into the layer and
// the module.
func (s Shape) find(name string) (layer int, m module, err error) {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(name, "model."), "layers.")
	number, what, _ := strings.Cut(rest, ".")
	layer, numberErr := strconv.Atoi(number)
	m, isKnown := s.modules()[what]
	switch {
	case !ok || numberErr != nil || !isKnown:
		return 0, m, fmt.Errorf("%s is no module that can be converted; known are %s of the layers", name, known)
	case layer < 0 || layer >= s.Layers:
		return 0, m, fmt.Errorf("%s is of layer %d, and the base model has %d", name, layer, s.Layers)
	}
	return layer, m, nil
}

func tensorName(layer int, p part) string { return fmt.Sprintf("blk.%d.%s.weight", layer, p.name) }
