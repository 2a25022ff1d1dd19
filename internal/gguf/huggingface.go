package gguf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/askback/askback/internal/safetensors"
)

// hfConfig is what matters of a model's config.json.
type hfConfig struct {
	Type       string   `json:"model_type"`
	Vocabulary int      `json:"vocab_size"`
	Context    int      `json:"max_position_embeddings"`
	Width      int      `json:"hidden_size"`
	Layers     int      `json:"num_hidden_layers"`
	Heads      int      `json:"num_attention_heads"`
	KVHeads    int      `json:"num_key_value_heads"`
	Head       int      `json:"head_dim"`
	FF         int      `json:"intermediate_size"`
	SharedFF   int      `json:"shared_intermediate_size"`
	Experts    int      `json:"num_local_experts"`
	LayerTypes []string `json:"layer_types"`
	Positions  string   `json:"position_embedding_type"`
	Epsilon    float64  `json:"rms_norm_eps"`
	Tied       bool     `json:"tie_word_embeddings"`
	Activation string   `json:"hidden_act"`
	Quantized  any      `json:"quantization_config"`

	Theta   float64        `json:"rope_theta"`
	Scaling map[string]any `json:"rope_scaling"`
	Rope    map[string]any `json:"rope_parameters"` // where newer files have both

	Embedding float64 `json:"embedding_multiplier"`
	Residual  float64 `json:"residual_multiplier"`
	Attention float64 `json:"attention_multiplier"`
	Logits    float64 `json:"logits_scaling"`

	BOS json.RawMessage `json:"bos_token_id"`
	EOS json.RawMessage `json:"eos_token_id"`
	Pad json.RawMessage `json:"pad_token_id"`
}

// OpenHuggingFace opens a model as Hugging Face's libraries save it: a folder
// with config.json, the tokenizer, and safetensors in one file or several. The
// architectures are llama, granite, and granitemoehybrid without experts and
// without Mamba layers; the tokenizer must be a byte-level BPE. For others, have
// the model as a GGUF file. Close the model when it is done with.
func OpenHuggingFace(dir string) (*Model, error) {
	m := &Model{}
	if err := m.openHuggingFace(dir); err != nil {
		_ = m.Close()
		return nil, fmt.Errorf("reading the model in %s: %w", dir, err)
	}
	return m, nil
}

func (m *Model) openHuggingFace(dir string) error {
	var c hfConfig
	if err := readJSON(dir, "config.json", &c); err != nil {
		return err
	}
	s, theta, err := c.shape()
	if err != nil {
		return err
	}
	m.Metadata = c.metadata(s, theta, filepath.Base(dir))
	tokens, err := tokenizer(dir, c)
	if err != nil {
		return err
	}
	m.Metadata = append(m.Metadata, tokens...)
	weights, err := m.openWeights(dir)
	if err != nil {
		return err
	}
	return m.layOut(weights, c, s)
}

// readJSON reads a file of the folder.
func readJSON(dir, name string, to any) error {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, to); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}

// shape checks that the model is one that can be converted as it is.
func (c hfConfig) shape() (s Shape, theta float64, err error) {
	refuse := func(format string, a ...any) (Shape, float64, error) {
		return Shape{}, 0, fmt.Errorf(format+"; have the model as a GGUF file (f16 or q8_0) instead", a...)
	}
	s = Shape{Arch: c.Type, Layers: c.Layers, Width: c.Width, Heads: c.Heads, KVHeads: c.KVHeads, Head: c.Head, FF: c.FF}
	switch c.Type {
	case "llama", "granite":
	case "granitemoehybrid":
		if c.Experts > 0 || slices.ContainsFunc(c.LayerTypes, func(t string) bool { return t != "attention" && t != "full_attention" }) {
			return refuse("it has experts or Mamba layers, which are not converted")
		}
		if c.Positions != "rope" {
			return refuse("its positions are embedded by %q, which is not converted", c.Positions)
		}
		s.Arch = "granite"
		if c.SharedFF > 0 {
			s.FF = c.SharedFF
		}
	default:
		return refuse("its type %q is not converted", c.Type)
	}
	if c.Quantized != nil {
		return refuse("its weights are quantised, which is not converted")
	}
	if c.Activation != "silu" && c.Activation != "" {
		return refuse("its activation %q is not converted", c.Activation)
	}
	if s.KVHeads == 0 {
		s.KVHeads = s.Heads
	}
	if s.Head == 0 && s.Heads > 0 {
		s.Head = s.Width / s.Heads
	}
	for _, n := range []int{s.Layers, s.Width, s.Heads, s.KVHeads, s.Head, s.FF, c.Vocabulary, c.Context} {
		if n < 1 || n >= maxSide {
			return refuse("config.json has no size for its layers, heads, vocabulary or context")
		}
	}
	theta = c.Theta
	for _, r := range []map[string]any{c.Scaling, c.Rope} {
		for _, key := range []string{"rope_type", "type"} {
			if kind, ok := r[key].(string); ok && kind != "default" {
				return refuse("its rotary embedding is scaled by %q, which is not converted", kind)
			}
		}
		if t, ok := r["rope_theta"].(float64); ok {
			theta = t
		}
	}
	if theta == 0 {
		theta = 10000
	}
	return s, theta, nil
}

func (c hfConfig) metadata(s Shape, theta float64, name string) Metadata {
	p := s.Arch + "."
	m := Metadata{
		{"general.architecture", s.Arch}, {"general.type", "model"}, {"general.name", name},
		{p + "block_count", uint32(s.Layers)}, {p + "context_length", uint32(c.Context)},
		{p + "embedding_length", uint32(s.Width)}, {p + "feed_forward_length", uint32(s.FF)},
		{p + "attention.head_count", uint32(s.Heads)}, {p + "attention.head_count_kv", uint32(s.KVHeads)},
		{p + "attention.key_length", uint32(s.Head)}, {p + "attention.value_length", uint32(s.Head)},
		{p + "attention.layer_norm_rms_epsilon", float32(c.Epsilon)},
		{p + "rope.freq_base", float32(theta)}, {p + "rope.dimension_count", uint32(s.Head)},
		{p + "vocab_size", uint32(c.Vocabulary)},
	}
	if s.Arch == "granite" {
		one := func(x float64) float32 {
			if x == 0 {
				return 1
			}
			return float32(x)
		}
		m = append(m, Metadata{
			{p + "attention.scale", one(c.Attention)}, {p + "embedding_scale", one(c.Embedding)},
			{p + "residual_scale", one(c.Residual)}, {p + "logit_scale", one(c.Logits)},
		}...)
	}
	return m
}

// WeightFiles gives the names of the files that an index of weights
// (model.safetensors.index.json) lists, sorted.
func WeightFiles(index string) ([]string, error) {
	var list struct {
		Files map[string]string `json:"weight_map"`
	}
	if err := readJSON(filepath.Dir(index), filepath.Base(index), &list); err != nil {
		return nil, err
	}
	var names []string
	for _, f := range list.Files {
		if !filepath.IsLocal(f) {
			return nil, fmt.Errorf("%s names the file %q outside its folder", index, f)
		}
		names = append(names, f)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// openWeights opens the one file of weights, or those that the index names, and
// gives the file of each tensor.
func (m *Model) openWeights(dir string) (map[string]*safetensors.File, error) {
	names, err := WeightFiles(filepath.Join(dir, "model.safetensors.index.json"))
	if errors.Is(err, fs.ErrNotExist) {
		names, err = []string{"model.safetensors"}, nil
	}
	if err != nil {
		return nil, err
	}
	files := map[string]*safetensors.File{}
	for _, name := range names {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		m.files = append(m.files, f)
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		s, err := safetensors.Open(f, info.Size())
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		for _, t := range s.Names() {
			files[t] = s
		}
	}
	return files, nil
}

// layOut gives each tensor of the folder its name and order in GGUF. One that
// has no place is an error.
func (m *Model) layOut(files map[string]*safetensors.File, c hfConfig, s Shape) error {
	used := map[string]bool{}
	add := func(hf string, p part, dims ...int) error {
		f := files[hf]
		if f == nil {
			return fmt.Errorf("it has no tensor %s", hf)
		}
		used[hf] = true
		m.Tensors = append(m.Tensors, Tensor{Name: p.name, Dims: dims, rows: func(dst []float32, from int) error {
			width := dims[0]
			for i := 0; i < len(dst)/width; {
				// Rows that follow each other in the file are read at once.
				first, n := p.from(from+i), 1
				for i+n < len(dst)/width && p.from(from+i+n) == first+n {
					n++
				}
				if err := f.ReadFloat32s(hf, dst[i*width:(i+n)*width], first*width); err != nil {
					return err
				}
				i += n
			}
			return nil
		}})
		return nil
	}
	sides := func(hf string, want ...int) error {
		if f := files[hf]; f != nil {
			if info, _ := f.Info(hf); !slices.Equal(info.Shape, want) {
				return fmt.Errorf("the tensor %s has the shape %v, and config.json says %v", hf, info.Shape, want)
			}
		}
		return nil
	}
	vector := func(hf, name string) error {
		return errors.Join(sides(hf, s.Width), add(hf, part{name, 1, same}, s.Width))
	}
	matrix := func(hf, name string) error {
		return errors.Join(sides(hf, c.Vocabulary, s.Width), add(hf, part{name, c.Vocabulary, same}, s.Width, c.Vocabulary))
	}
	err := errors.Join(matrix("model.embed_tokens.weight", "token_embd.weight"), vector("model.norm.weight", "output_norm.weight"))
	if !c.Tied {
		err = errors.Join(err, matrix("lm_head.weight", "output.weight"))
	}
	used["lm_head.weight"] = true // a copy of the embeddings, if they are tied
	for layer := range s.Layers {
		prefix, blk := fmt.Sprintf("model.layers.%d.", layer), fmt.Sprintf("blk.%d.", layer)
		err = errors.Join(err, vector(prefix+"input_layernorm.weight", blk+"attn_norm.weight"),
			vector(prefix+"post_attention_layernorm.weight", blk+"ffn_norm.weight"))
		for name, module := range s.modules() {
			fused := strings.HasPrefix(name, "shared_mlp.")
			if !strings.HasPrefix(name, "self_attn.") && fused != (c.Type == "granitemoehybrid") {
				continue
			}
			hf := prefix + name + ".weight"
			err = errors.Join(err, sides(hf, module.rows, module.width))
			for _, p := range module.parts {
				p.name = tensorName(layer, p)
				err = errors.Join(err, add(hf, p, module.width, p.rows))
			}
		}
		if err != nil {
			return err
		}
	}
	for name := range files {
		if !used[name] && !strings.HasSuffix(name, ".rotary_emb.inv_freq") {
			err = errors.Join(err, fmt.Errorf("the tensor %s has no place in %s models of GGUF", name, s.Arch))
		}
	}
	slices.SortStableFunc(m.Tensors, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	return err
}

// one reads a token's number where a file has a number, a list of them, or null.
func one(raw json.RawMessage) (int, bool) {
	var n int
	if len(raw) > 0 && string(raw) != "null" && json.Unmarshal(raw, &n) == nil {
		return n, n >= 0 && n < math.MaxInt32
	}
	var list []int
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		return list[0], list[0] >= 0 && list[0] < math.MaxInt32
	}
	return 0, false
}
