package gguf

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/askback/askback/internal/safetensors"
)

// The files of an adapter as PEFT saves it.
const (
	AdapterConfig  = "adapter_config.json"
	AdapterWeights = "adapter_model.safetensors"
)

// Adapter is a LoRA as PEFT saves it: for each module two matrices A and B, and
// the scale of their product.
type Adapter struct {
	Base    string   // the model that it was trained on, by the hub's name
	Rank    int      // r
	Alpha   float64  // such that the scale is alpha over the rank, also where PEFT takes the root of the rank
	Modules []string // the kinds of modules that it changes, sorted

	pairs map[string]pair // by the module's name, such as model.layers.0.self_attn.q_proj
}

// pair is B·A for one module; a has rank rows of width numbers, b rows rows of
// rank numbers.
type pair struct {
	a, b              []float32
	rank, width, rows int
}

// config is what matters of adapter_config.json.
type config struct {
	Type          string                     `json:"peft_type"`
	Base          string                     `json:"base_model_name_or_path"`
	Rank          int                        `json:"r"`
	Alpha         float64                    `json:"lora_alpha"`
	Bias          string                     `json:"bias"`
	RootRank      bool                       `json:"use_rslora"`
	DoRA          bool                       `json:"use_dora"`
	QALoRA        bool                       `json:"use_qalora"`
	LoRABias      bool                       `json:"lora_bias"`
	Transposed    bool                       `json:"fan_in_fan_out"`
	Invocation    []int                      `json:"alora_invocation_tokens"`
	Saved         []string                   `json:"modules_to_save"`
	Ranks         map[string]json.RawMessage `json:"rank_pattern"`
	Alphas        map[string]json.RawMessage `json:"alpha_pattern"`
	Replication   []json.RawMessage          `json:"layer_replication"`
	Tokens        json.RawMessage            `json:"trainable_token_indices"`
	MegatronUsed  any                        `json:"megatron_config"`
	TargetWeights []string                   `json:"target_parameters"`
}

// check refuses what would be converted into something else than it is.
func (c config) check() error {
	switch {
	case c.Type != "LORA":
		return fmt.Errorf("it is of the type %q; only LORA is known", c.Type)
	case len(c.Invocation) > 0:
		return errors.New("it is an activated LoRA (alora), which works only from its invocation tokens on and cannot be served by Ollama; take the variant in the folder lora")
	case c.DoRA:
		return errors.New("it uses DoRA (use_dora), which has no form in GGUF")
	case c.QALoRA:
		return errors.New("it uses QA-LoRA (use_qalora), which has no form in GGUF")
	case c.Bias != "" && c.Bias != "none" || c.LoRABias:
		return errors.New("it has biases (bias, lora_bias), which cannot be converted")
	case c.Transposed:
		return errors.New("its matrices are transposed (fan_in_fan_out), as of no llama or granite model")
	case len(c.Saved) > 0:
		return fmt.Errorf("it replaces whole modules (modules_to_save: %s), which cannot be converted", strings.Join(c.Saved, ", "))
	case len(c.Ranks) > 0 || len(c.Alphas) > 0:
		return errors.New("its modules have different ranks or scales (rank_pattern, alpha_pattern), which cannot be converted")
	case len(c.Replication) > 0:
		return errors.New("it repeats layers (layer_replication), which cannot be converted")
	case len(c.Tokens) > 0 && string(c.Tokens) != "null":
		return errors.New("it changes single tokens (trainable_token_indices), which cannot be converted")
	case len(c.TargetWeights) > 0:
		return fmt.Errorf("it changes bare weights (target_parameters: %s), which cannot be converted", strings.Join(c.TargetWeights, ", "))
	case c.Rank < 1:
		return fmt.Errorf("its rank r is %d", c.Rank)
	case !(math.Abs(c.Alpha) > 0 && !math.IsInf(c.Alpha, 0)):
		return fmt.Errorf("its lora_alpha is %v", c.Alpha)
	}
	return nil
}

// OpenAdapter reads an adapter from a folder, whole. What cannot be converted is
// an error that names it.
func OpenAdapter(dir string) (*Adapter, error) {
	settings, err := os.ReadFile(filepath.Join(dir, AdapterConfig))
	if err != nil {
		return nil, fmt.Errorf("reading the adapter: %w", err)
	}
	weights, err := os.ReadFile(filepath.Join(dir, AdapterWeights))
	if err != nil {
		return nil, fmt.Errorf("reading the adapter: %w", err)
	}
	a, err := ParseAdapter(settings, weights)
	if err != nil {
		return nil, fmt.Errorf("the adapter in %s: %w", dir, err)
	}
	return a, nil
}

var loraName = regexp.MustCompile(`^base_model\.model\.(.+)\.lora_([AB])(?:\.default)?\.weight$`)

// ParseAdapter reads an adapter from its two files.
func ParseAdapter(settings, weights []byte) (*Adapter, error) {
	var c config
	if err := json.Unmarshal(settings, &c); err != nil {
		return nil, fmt.Errorf("reading %s: %w", AdapterConfig, err)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	f, err := safetensors.Parse(weights)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", AdapterWeights, err)
	}
	a := &Adapter{Base: c.Base, Rank: c.Rank, Alpha: c.Alpha, pairs: map[string]pair{}}
	if c.RootRank {
		a.Alpha *= math.Sqrt(float64(c.Rank))
	}
	kinds := map[string]bool{}
	for _, name := range f.Names() {
		m := loraName.FindStringSubmatch(name)
		if m == nil {
			return nil, fmt.Errorf("the tensor %s is neither lora_A nor lora_B of a module and cannot be converted", name)
		}
		info, _ := f.Info(name)
		if len(info.Shape) != 2 {
			return nil, fmt.Errorf("the tensor %s has the shape %v, not that of a matrix", name, info.Shape)
		}
		data, err := f.Float32s(name)
		if err != nil {
			return nil, err
		}
		p := a.pairs[m[1]]
		rank := info.Shape[0]
		if m[2] == "A" {
			p.a, p.width = data, info.Shape[1]
		} else {
			rank = info.Shape[1]
			p.b, p.rows = data, info.Shape[0]
		}
		if rank != c.Rank {
			return nil, fmt.Errorf("the tensor %s has the rank %d, and %s says %d", name, rank, AdapterConfig, c.Rank)
		}
		p.rank = rank
		a.pairs[m[1]] = p
		kinds[m[1][strings.LastIndexByte(m[1], '.')+1:]] = true
	}
	for module, p := range a.pairs {
		if p.a == nil || p.b == nil {
			return nil, fmt.Errorf("the module %s has only one of lora_A and lora_B", module)
		}
	}
	if len(a.pairs) == 0 {
		return nil, fmt.Errorf("%s holds no weights", AdapterWeights)
	}
	a.Modules = slices.Sorted(maps.Keys(kinds))
	return a, nil
}

// LoRA is an adapter in GGUF's layout, for one shape of base model.
type LoRA struct {
	Adapter *Adapter
	shape   Shape
	pairs   map[string]pair // by the tensor's name
}

// For lays the adapter out for a base model of that shape. A module that is not
// known, or has other sides than the base's, is an error.
func (a *Adapter) For(s Shape) (*LoRA, error) {
	l := &LoRA{a, s, map[string]pair{}}
	for _, name := range slices.Sorted(maps.Keys(a.pairs)) {
		p := a.pairs[name]
		layer, m, err := s.find(name)
		if err != nil {
			return nil, fmt.Errorf("converting the adapter: %w", err)
		}
		if p.width != m.width || p.rows != m.rows {
			return nil, fmt.Errorf("converting the adapter: it changes %s of %d by %d numbers, and the base model's has %d by %d; it was trained on %s", name, p.rows, p.width, m.rows, m.width, a.Base)
		}
		for _, part := range m.parts {
			q := pair{a: p.a, b: make([]float32, part.rows*p.rank), rank: p.rank, width: p.width, rows: part.rows}
			for i := range part.rows {
				from := part.from(i) * p.rank
				copy(q.b[i*p.rank:(i+1)*p.rank], p.b[from:from+p.rank])
			}
			t := tensorName(layer, part)
			if _, twice := l.pairs[t]; twice {
				return nil, fmt.Errorf("converting the adapter: two of its modules change %s", t)
			}
			l.pairs[t] = q
		}
	}
	return l, nil
}

// Model gives the adapter as a GGUF file has it.
func (l *LoRA) Model() *Model {
	m := &Model{Metadata: Metadata{
		{"general.architecture", l.shape.Arch},
		{"general.type", "adapter"},
		{"general.name", "LoRA for " + l.Adapter.Base},
		{"general.file_type", fileTypes[F32]},
		{"adapter.type", "lora"},
		{"adapter.lora.alpha", float32(l.Adapter.Alpha)},
	}}
	for _, name := range slices.Sorted(maps.Keys(l.pairs)) {
		p := l.pairs[name]
		m.Tensors = append(m.Tensors, inMemory(name+".lora_a", p.a, p.width, p.rank), inMemory(name+".lora_b", p.b, p.rank, p.rows))
	}
	return m
}
