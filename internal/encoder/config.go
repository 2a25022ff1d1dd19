package encoder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// Pooling says how the hidden states of a text become one vector.
type Pooling string

const (
	MeanPooling Pooling = "mean" // the mean over all tokens, [CLS] and [SEP] included
	CLSPooling  Pooling = "cls"  // the first token's state
)

// Config describes a model.
type Config struct {
	Name         string // for people and for identities, such as all-MiniLM-L6-v2
	Fingerprint  string // 16 hex digits of the hash of the model's files
	Layers       int
	Hidden       int // length of a hidden state
	Heads        int // attention heads in each layer
	Intermediate int // width of the feed-forward layer
	MaxTokens    int // longest sequence, special tokens included
	Vocabulary   int // number of token ids
	Types        int // number of token types
	NormEpsilon  float32

	// How Embedder uses the model.
	Pooling        Pooling
	QueryPrefix    string // put before each query
	DocumentPrefix string // put before each document
}

// readConfig reads a Hugging Face config.json. What askback adds to it stands
// under the key "askback" and may be missing.
func readConfig(fsys fs.FS) (Config, error) {
	data, err := fs.ReadFile(fsys, "config.json")
	if err != nil {
		return Config{}, err
	}
	var file struct {
		ModelType    string  `json:"model_type"`
		Name         string  `json:"_name_or_path"`
		Activation   string  `json:"hidden_act"`
		Position     string  `json:"position_embedding_type"`
		Layers       int     `json:"num_hidden_layers"`
		Hidden       int     `json:"hidden_size"`
		Heads        int     `json:"num_attention_heads"`
		Intermediate int     `json:"intermediate_size"`
		MaxTokens    int     `json:"max_position_embeddings"`
		Vocabulary   int     `json:"vocab_size"`
		Types        int     `json:"type_vocab_size"`
		NormEpsilon  float32 `json:"layer_norm_eps"`
		Askback      struct {
			Name           string  `json:"name"`
			Pooling        Pooling `json:"pooling"`
			QueryPrefix    string  `json:"query_prefix"`
			DocumentPrefix string  `json:"document_prefix"`
		} `json:"askback"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return Config{}, fmt.Errorf("reading config.json: %w", err)
	}
	switch {
	case file.ModelType != "bert":
		return Config{}, fmt.Errorf("config.json: model_type is %q; only bert is supported", file.ModelType)
	case file.Activation != "gelu":
		return Config{}, fmt.Errorf("config.json: hidden_act is %q; only gelu is supported", file.Activation)
	case file.Position != "" && file.Position != "absolute":
		return Config{}, fmt.Errorf("config.json: position_embedding_type is %q; only absolute is supported", file.Position)
	}
	c := Config{
		Name:           file.Askback.Name,
		Layers:         file.Layers,
		Hidden:         file.Hidden,
		Heads:          file.Heads,
		Intermediate:   file.Intermediate,
		MaxTokens:      file.MaxTokens,
		Vocabulary:     file.Vocabulary,
		Types:          file.Types,
		NormEpsilon:    file.NormEpsilon,
		Pooling:        file.Askback.Pooling,
		QueryPrefix:    file.Askback.QueryPrefix,
		DocumentPrefix: file.Askback.DocumentPrefix,
	}
	if c.Name == "" {
		c.Name = file.Name
	}
	if c.Pooling == "" {
		c.Pooling = MeanPooling
	}
	if err := c.check(); err != nil {
		return Config{}, fmt.Errorf("config.json: %w", err)
	}
	return c, nil
}

// maxSide bounds each size in a config, so that products of two fit an int.
const maxSide = 1 << 24

func (c Config) check() error {
	for _, size := range []int{c.Layers, c.Hidden, c.Heads, c.Intermediate, c.MaxTokens, c.Vocabulary, c.Types} {
		if size < 1 || size > maxSide {
			return errors.New("a size is missing or out of range")
		}
	}
	switch {
	case c.Layers > 1000:
		return fmt.Errorf("num_hidden_layers %d is out of range", c.Layers)
	case c.Hidden%32 != 0 || c.Intermediate%32 != 0:
		return fmt.Errorf("hidden_size %d and intermediate_size %d must be multiples of 32", c.Hidden, c.Intermediate)
	case c.Hidden%c.Heads != 0:
		return fmt.Errorf("hidden_size %d is not a multiple of num_attention_heads %d", c.Hidden, c.Heads)
	case c.MaxTokens < 3:
		return fmt.Errorf("max_position_embeddings is %d; a text needs at least 3", c.MaxTokens)
	case c.NormEpsilon <= 0:
		return fmt.Errorf("layer_norm_eps is %g; it must be above zero", c.NormEpsilon)
	case c.Pooling != MeanPooling && c.Pooling != CLSPooling:
		return fmt.Errorf("pooling is %q; only mean and cls are supported", c.Pooling)
	}
	return nil
}
