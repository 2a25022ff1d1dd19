package encoder

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/askback/askback/internal/safetensors"
)

// Adapter is a LoRA adapter for one model (Hu et al., "LoRA: Low-Rank
// Adaptation of Large Language Models", arXiv 2106.09685): beside each adapted
// layer y = W x it adds scale * B A x. It does not change after it is loaded
// and is safe for concurrent use.
type Adapter struct {
	model  *Model
	layers []layerLoRA
}

type layerLoRA struct {
	qkv, attended, up, down *lowRank
}

// lowRank is the side path of one linear layer. Layers that are fused side by
// side (queries, keys, values) have one path each, their inner products lying
// next to each other.
type lowRank struct {
	width int    // floats of inner products for each row, a multiple of the panel width
	down  linear // A, of width outputs
	ups   []upPath
}

// upPath is scale * B for the outputs [from, to) of the layer.
type upPath struct {
	from, to int
	offset   int // of its inner products within width
	rank     int
	floats   []float32 // panels
}

// at gives the path that adds to the panel at column, or nil.
func (l *lowRank) at(column int) *upPath {
	if l == nil {
		return nil
	}
	for i := range l.ups {
		if u := &l.ups[i]; u.from <= column && column < u.to {
			return u
		}
	}
	return nil
}

func (u *upPath) panel(k *kernels, column int) []float32 {
	return u.floats[(column-u.from)*u.rank:][:k.cols*u.rank]
}

// loraConfig is the part of PEFT's adapter_config.json that decides what an
// adapter computes.
type loraConfig struct {
	Type    string          `json:"peft_type"`
	Rank    int             `json:"r"`
	Alpha   float64         `json:"lora_alpha"`
	RSLoRA  bool            `json:"use_rslora"`
	Targets json.RawMessage `json:"target_modules"`
	Bias    string          `json:"bias"`
}

// LoadAdapter reads an adapter as PEFT saves it: adapter_config.json and
// adapter_model.safetensors (F32, F16 or BF16). Any of a layer's linear parts
// may be adapted: attention.self.query, .key and .value,
// attention.output.dense, intermediate.dense, output.dense. An adapter of the
// pooler is left out, since the last hidden states do not depend on it. What
// does not fit the model, or asks for what is not supported here, is an error
// that names it.
func (m *Model) LoadAdapter(fsys fs.FS) (*Adapter, error) {
	config, err := readLoRAConfig(fsys)
	if err != nil {
		return nil, err
	}
	data, err := fs.ReadFile(fsys, "adapter_model.safetensors")
	if err != nil {
		return nil, err
	}
	file, err := safetensors.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("reading adapter_model.safetensors: %w", err)
	}
	pairs, err := m.readPairs(file, config)
	if err != nil {
		return nil, fmt.Errorf("adapter_model.safetensors: %w", err)
	}
	if err := checkTargets(config, pairs); err != nil {
		return nil, err
	}
	a := &Adapter{model: m, layers: make([]layerLoRA, m.config.Layers)}
	for i := range a.layers {
		at := func(module string) *pair { return pairs[moduleKey{i, module}] }
		l := &a.layers[i]
		l.qkv = m.newLowRank(at("attention.self.query"), at("attention.self.key"), at("attention.self.value"))
		l.attended = m.newLowRank(at("attention.output.dense"))
		l.up = m.newLowRank(at("intermediate.dense"))
		l.down = m.newLowRank(at("output.dense"))
	}
	return a, nil
}

// unsupported are options of PEFT's LoRA that change what an adapter computes
// and that this package does not apply.
var unsupported = []string{
	"use_dora", "lora_bias", "fan_in_fan_out", "rank_pattern", "alpha_pattern", "modules_to_save",
	"layer_replication", "trainable_token_indices", "alora_invocation_tokens", "use_qalora",
	"use_bdlora", "target_parameters", "arrow_config", "corda_config", "kasa_config", "lora_ga_config",
	"megatron_config", "monteclora_config", "velora_config",
}

func readLoRAConfig(fsys fs.FS) (loraConfig, error) {
	const name = "adapter_config.json"
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return loraConfig{}, err
	}
	var c loraConfig
	var all map[string]any
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("reading %s: %w", name, err)
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return c, fmt.Errorf("reading %s: %w", name, err)
	}
	for _, option := range unsupported {
		if isSet(all[option]) {
			return c, fmt.Errorf("%s: %s is set, which is not supported", name, option)
		}
	}
	// Some initialisations change the base weights as well.
	if start, ok := all["init_lora_weights"].(string); ok && !slices.Contains([]string{"gaussian", "orthogonal", "eva"}, start) {
		return c, fmt.Errorf("%s: init_lora_weights %q changes the base weights, which is not supported; convert the adapter when saving it", name, start)
	}
	switch {
	case c.Type != "LORA":
		return c, fmt.Errorf("%s: peft_type is %q; only LORA is supported", name, c.Type)
	case c.Rank < 1 || c.Rank > maxSide:
		return c, fmt.Errorf("%s: r is %d; it must be at least 1", name, c.Rank)
	case c.Bias != "" && c.Bias != "none":
		return c, fmt.Errorf("%s: bias is %q; only none is supported", name, c.Bias)
	}
	return c, nil
}

// isSet tells a value that asks for something from null, false, 0 and empty.
func isSet(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case bool:
		return v
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

// checkTargets makes sure that each module the config names by its ending is
// in the file. A pattern (a string instead of a list) is left to PEFT.
func checkTargets(c loraConfig, pairs map[moduleKey]*pair) error {
	var targets []string
	if json.Unmarshal(c.Targets, &targets) != nil {
		return nil
	}
	for _, target := range targets {
		found := target == "pooler" || strings.HasSuffix(target, "pooler.dense")
		for key := range pairs {
			full := fmt.Sprintf("encoder.layer.%d.%s", key.layer, key.module)
			found = found || full == target || strings.HasSuffix(full, "."+target) || strings.HasSuffix(target, "."+full)
		}
		if !found {
			return fmt.Errorf("adapter_config.json names the target module %q, but adapter_model.safetensors has nothing for it", target)
		}
	}
	return nil
}

// moduleKey names a linear part of the model: its layer and its name within.
type moduleKey struct {
	layer  int
	module string
}

// pair holds A (rank rows of in) and scale * B (out rows of rank).
type pair struct {
	rank, in, out int
	a, b          []float32
}

// moduleName matches what PEFT calls a tensor of a wrapped BertModel, also when
// the model is part of a larger one.
var moduleName = regexp.MustCompile(`^base_model\.model\.(?:.*\.)?encoder\.layer\.(\d+)\.(.+)\.lora_([AB])(?:\.default)?\.weight$`)

var poolerName = regexp.MustCompile(`^base_model\.model\.(?:.*\.)?pooler\.dense\.lora_[AB](?:\.default)?\.weight$`)

func (m *Model) readPairs(file *safetensors.File, c loraConfig) (map[moduleKey]*pair, error) {
	scale := c.Alpha / float64(c.Rank)
	if c.RSLoRA { // Kalajdzievski, "A Rank Stabilization Scaling Factor", arXiv 2312.03732
		scale = c.Alpha / math.Sqrt(float64(c.Rank))
	}
	pairs := map[moduleKey]*pair{}
	for _, name := range file.Names() {
		if poolerName.MatchString(name) {
			continue
		}
		match := moduleName.FindStringSubmatch(name)
		if match == nil {
			return nil, fmt.Errorf("tensor %q does not belong to an adapter of this model", name)
		}
		layer, err := strconv.Atoi(match[1])
		in, out, ok := m.moduleShape(match[2])
		if err != nil || layer >= m.config.Layers || !ok {
			return nil, fmt.Errorf("tensor %q: %s has no such part", name, m.config.Name)
		}
		key := moduleKey{layer, match[2]}
		p := pairs[key]
		if p == nil {
			p = &pair{rank: c.Rank, in: in, out: out}
			pairs[key] = p
		}
		part, want := &p.a, []int{c.Rank, in}
		if match[3] == "B" {
			part, want = &p.b, []int{out, c.Rank}
		}
		info, _ := file.Info(name)
		if !equalShape(info.Shape, want) {
			return nil, fmt.Errorf("tensor %q has shape %v, but r %d and %s ask for %v", name, info.Shape, c.Rank, m.config.Name, want)
		}
		if *part != nil {
			return nil, fmt.Errorf("tensor %q stands for a part that another tensor has set", name)
		}
		if *part, err = file.Float32s(name); err != nil {
			return nil, err
		}
		if match[3] == "B" {
			for i := range p.b {
				p.b[i] *= float32(scale)
			}
		}
	}
	if len(pairs) == 0 {
		return nil, fmt.Errorf("no tensor of it adapts %s", m.config.Name)
	}
	for key, p := range pairs {
		if p.a == nil || p.b == nil {
			return nil, fmt.Errorf("encoder.layer.%d.%s has only one of lora_A and lora_B", key.layer, key.module)
		}
	}
	return pairs, nil
}

// moduleShape gives the width of a linear part's input and output.
func (m *Model) moduleShape(module string) (in, out int, ok bool) {
	c := &m.config
	switch module {
	case "attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense":
		return c.Hidden, c.Hidden, true
	case "intermediate.dense":
		return c.Hidden, c.Intermediate, true
	case "output.dense":
		return c.Intermediate, c.Hidden, true
	}
	return 0, 0, false
}

// newLowRank packs the side paths of layers that are fused side by side; a nil
// pair is a layer without one.
func (m *Model) newLowRank(parts ...*pair) *lowRank {
	cols := m.kernels.cols
	l := &lowRank{}
	from := 0
	for _, p := range parts {
		if p == nil {
			from += m.config.Hidden // only parts of the hidden size are fused
			continue
		}
		up := upPath{from: from, to: from + p.out, offset: l.width, rank: p.rank, floats: make([]float32, p.rank*p.out)}
		pack(up.floats, p.b, p.rank, 0, cols)
		l.ups = append(l.ups, up)
		l.down.in = p.in
		l.width += p.rank
		from += p.out
	}
	if l.ups == nil {
		return nil
	}
	l.width = roundUp(l.width, cols)
	l.down.out = l.width
	l.down.bias = make([]float32, l.width)
	l.down.floats = make([]float32, l.width*l.down.in)
	for i, at := 0, 0; i < len(parts); i++ {
		if p := parts[i]; p != nil {
			pack(l.down.floats, p.a, p.in, l.ups[at].offset, cols)
			at++
		}
	}
	return l
}
