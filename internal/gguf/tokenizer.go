package gguf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// hfTokenizer is what matters of tokenizer.json.
type hfTokenizer struct {
	Added []struct {
		ID      int    `json:"id"`
		Content string `json:"content"`
		Special bool   `json:"special"`
	} `json:"added_tokens"`
	Split splitter `json:"pre_tokenizer"`
	Model struct {
		Type         string            `json:"type"`
		Vocabulary   map[string]int    `json:"vocab"`
		Merges       []json.RawMessage `json:"merges"`
		ByteFallback bool              `json:"byte_fallback"`
		IgnoreMerges bool              `json:"ignore_merges"`
	} `json:"model"`
}

// splitter is a step that cuts a text before the merges.
type splitter struct {
	Type    string     `json:"type"`
	Steps   []splitter `json:"pretokenizers"`
	Pattern struct {
		Regex string `json:"Regex"`
	} `json:"pattern"`
	UseRegex   *bool `json:"use_regex"`
	Individual bool  `json:"individual_digits"`
}

// splits are the patterns of the tokenizers that Granite 4 and Llama 3 share
// with others, as files write them.
var splits = []string{
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	`(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`,
}

// pre gives llama.cpp's name of the way in which the tokenizer cuts a text.
func (t hfTokenizer) pre() (string, error) {
	steps := t.Split.Steps
	if t.Split.Type != "Sequence" {
		steps = []splitter{t.Split}
	}
	var kinds []string
	pattern, whole := "", false
	for _, s := range steps {
		kinds = append(kinds, s.Type)
		if s.Type == "Split" {
			pattern = s.Pattern.Regex
		}
		if s.Type == "ByteLevel" {
			whole = s.UseRegex == nil || *s.UseRegex
		}
	}
	switch strings.Join(kinds, " ") {
	case "ByteLevel":
		if whole {
			return "gpt-2", nil
		}
	case "Digits ByteLevel":
		if whole && steps[0].Individual {
			return "refact", nil // also Granite 3
		}
	case "Split ByteLevel":
		for _, s := range splits {
			if pattern == s && !whole {
				if t.Model.IgnoreMerges {
					return "llama-bpe", nil
				}
				return "dbrx", nil // also Granite 4
			}
		}
	}
	return "", fmt.Errorf("the way in which its tokenizer cuts texts (%s %q) is not known; have the model as a GGUF file (f16 or q8_0) instead", strings.Join(kinds, ", "), pattern)
}

// GGUF's kinds of tokens.
const (
	tokenNormal, tokenControl, tokenUserDefined, tokenUnused = int32(1), int32(3), int32(4), int32(5)
)

// tokenizer reads the folder's tokenizer into metadata.
func tokenizer(dir string, c hfConfig) (Metadata, error) {
	var t hfTokenizer
	if err := readJSON(dir, "tokenizer.json", &t); err != nil {
		return nil, err
	}
	if t.Model.Type != "BPE" || t.Model.ByteFallback {
		return nil, errors.New("its tokenizer is no byte-level BPE; have the model as a GGUF file (f16 or q8_0) instead")
	}
	pre, err := t.pre()
	if err != nil {
		return nil, err
	}
	tokens, kinds := make([]string, c.Vocabulary), make([]int32, c.Vocabulary)
	for i := range tokens {
		tokens[i], kinds[i] = fmt.Sprintf("[PAD%d]", i), tokenUnused
	}
	numbers := map[string]int{}
	set := func(text string, id int, kind int32) error {
		if id < 0 || id >= len(tokens) {
			return fmt.Errorf("its tokenizer gives the token %q the number %d, and the vocabulary has %d", text, id, len(tokens))
		}
		tokens[id], kinds[id], numbers[text] = text, kind, id
		return nil
	}
	for text, id := range t.Model.Vocabulary {
		if err := set(text, id, tokenNormal); err != nil {
			return nil, err
		}
	}
	for _, a := range t.Added {
		kind := tokenUserDefined
		if a.Special {
			kind = tokenControl
		}
		if err := set(a.Content, a.ID, kind); err != nil {
			return nil, err
		}
	}
	merges := make([]string, len(t.Model.Merges))
	for i, raw := range t.Model.Merges {
		var two []string
		if json.Unmarshal(raw, &merges[i]) != nil {
			if json.Unmarshal(raw, &two) != nil || len(two) != 2 {
				return nil, fmt.Errorf("its tokenizer has the merge %s", raw)
			}
			merges[i] = two[0] + " " + two[1]
		}
	}
	m := Metadata{
		{"tokenizer.ggml.model", "gpt2"}, {"tokenizer.ggml.pre", pre},
		{"tokenizer.ggml.tokens", tokens}, {"tokenizer.ggml.token_type", kinds}, {"tokenizer.ggml.merges", merges},
	}
	return specials(dir, c, numbers, m)
}

// specials adds the numbers of special tokens and the chat template.
func specials(dir string, c hfConfig, numbers map[string]int, m Metadata) (Metadata, error) {
	var settings struct {
		AddBOS   *bool           `json:"add_bos_token"` // not told: as its kind of tokenizer does
		AddEOS   *bool           `json:"add_eos_token"`
		BOS      json.RawMessage `json:"bos_token"`
		EOS      json.RawMessage `json:"eos_token"`
		Unknown  json.RawMessage `json:"unk_token"`
		Pad      json.RawMessage `json:"pad_token"`
		Template json.RawMessage `json:"chat_template"`
	}
	if err := readJSON(dir, "tokenizer_config.json", &settings); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, s := range []struct {
		name  string
		token json.RawMessage
		id    json.RawMessage
	}{{"bos", settings.BOS, c.BOS}, {"eos", settings.EOS, c.EOS}, {"unknown", settings.Unknown, nil}, {"padding", settings.Pad, c.Pad}} {
		id, ok := numbers[tokenText(s.token)]
		if !ok {
			id, ok = one(s.id)
		}
		if ok {
			m = append(m, KV{"tokenizer.ggml." + s.name + "_token_id", uint32(id)})
		}
	}
	if settings.AddBOS != nil {
		m = append(m, KV{"tokenizer.ggml.add_bos_token", *settings.AddBOS})
	}
	if settings.AddEOS != nil {
		m = append(m, KV{"tokenizer.ggml.add_eos_token", *settings.AddEOS})
	}
	var template string
	if data, err := os.ReadFile(filepath.Join(dir, "chat_template.jinja")); err == nil {
		template = string(data)
	} else if len(settings.Template) > 0 {
		_ = json.Unmarshal(settings.Template, &template) // a list of named ones is left out
	}
	if template != "" {
		m = append(m, KV{"tokenizer.chat_template", template})
	}
	return m, nil
}

// tokenText reads a token that is written as a text or as an object.
func tokenText(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil {
		return s
	}
	var object struct {
		Content string `json:"content"`
	}
	_ = json.Unmarshal(raw, &object)
	return object.Content
}
