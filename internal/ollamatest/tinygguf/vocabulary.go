package tinygguf

import "fmt"

// The marks around a message, which Template uses. Start is the last token of
// a prompt and the key of a script's beginning; End ends a reply.
const (
	roleMark = "<|start_of_role|>"
	Start    = "<|end_of_role|>"
	endMark  = "<|end_of_text|>"
	End      = "</s>"
)

// Template lays out a chat for these models, as Granite's does.
const Template = `{{- range .Messages }}<|start_of_role|>{{ .Role }}<|end_of_role|>{{ .Content }}<|end_of_text|>
{{ end }}<|start_of_role|>assistant<|end_of_role|>`

// vocabulary is of SentencePiece's kind: the special tokens, one for each byte
// and each printable ASCII character, and then those of a script.
type vocabulary struct {
	tokens []string
	scores []float32
	kinds  []int32
	index  map[string]int
}

// The kinds of tokens, as GGUF numbers them.
const (
	kindNormal, kindUnknown, kindControl, kindUserDefined, kindByte = 1, 2, 3, 4, 6
	eos                                                             = 2 // its number
)

func newVocabulary(words []string) *vocabulary {
	v := &vocabulary{index: map[string]int{}}
	add := func(s string, score float32, kind int32) {
		if _, ok := v.index[s]; ok {
			return
		}
		v.index[s] = len(v.tokens)
		v.tokens, v.scores, v.kinds = append(v.tokens, s), append(v.scores, score), append(v.kinds, kind)
	}
	add("<unk>", 0, kindUnknown)
	add("<s>", 0, kindControl)
	add(End, 0, kindControl)
	for i := range 256 {
		add(fmt.Sprintf("<0x%02X>", i), 0, kindByte)
	}
	add("\u2581", -1, kindNormal) // a space
	for c := '!'; c <= '~'; c++ {
		add(string(c), -2-float32(c), kindNormal)
	}
	for _, s := range []string{roleMark, Start, endMark} {
		add(s, 0, kindControl)
	}
	for _, s := range words {
		add(s, 0, kindUserDefined)
	}
	return v
}

func (v *vocabulary) write(f *File) {
	f.set("tokenizer.ggml.model", "llama")
	f.set("tokenizer.ggml.pre", "default")
	f.set("tokenizer.ggml.tokens", v.tokens)
	f.set("tokenizer.ggml.scores", v.scores)
	f.set("tokenizer.ggml.token_type", v.kinds)
	f.set("tokenizer.ggml.bos_token_id", uint32(1))
	f.set("tokenizer.ggml.eos_token_id", uint32(eos))
	f.set("tokenizer.ggml.unknown_token_id", uint32(0))
	f.set("tokenizer.ggml.add_bos_token", true)
	f.set("tokenizer.ggml.add_space_prefix", false)
}
