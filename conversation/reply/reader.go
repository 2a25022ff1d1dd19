package reply

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/internal/encoder"
)

// Reader is the embedded reader of replies. It is safe for concurrent use.
type Reader struct {
	model   *encoder.Model
	adapter *encoder.Adapter
	heads   *heads
	config  config
}

var _ conversation.Reader = (*Reader)(nil)

// config is reply.json, which describes an adapter beside its weights.
type config struct {
	Version     int    `json:"version"`
	Name        string `json:"name"`
	Base        string `json:"base"`
	Fingerprint string `json:"base_fingerprint"`
	Budget      struct {
		Reply         int `json:"reply"`
		Question      int `json:"question"`
		Clarification int `json:"clarification"`
		Option        int `json:"option"`
		Options       int `json:"options"`
	} `json:"tokens"` // the most of each part; of the options their number
	Kinds    []conversation.ReplyKind `json:"kinds"` // in the order of the kind head's outputs
	Decision decision                 `json:"decision"`
}

//go:embed adapter
var embedded embed.FS

// New makes a reader of an adapter's folder: adapter_config.json and
// adapter_model.safetensors as PEFT writes them, heads.safetensors and reply.json
// (training/replies/README.md describes them). nil is the adapter that the program
// carries. An adapter that does not fit the embedded base is refused with an error
// that says why.
func New(adapter fs.FS) (*Reader, error) {
	model, err := encoder.MiniLM()
	if err != nil {
		return nil, err
	}
	if adapter == nil {
		if adapter, err = fs.Sub(embedded, "adapter"); err != nil {
			return nil, err
		}
	}
	r := &Reader{model: model}
	if err := r.load(adapter); err != nil {
		return nil, fmt.Errorf("loading the adapter of the reader of replies: %w", err)
	}
	return r, nil
}

func (r *Reader) load(adapter fs.FS) error {
	data, err := fs.ReadFile(adapter, "reply.json")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &r.config); err != nil {
		return fmt.Errorf("reply.json: %w", err)
	}
	base, b := r.model.Config(), r.config.Budget
	switch {
	case r.config.Version != 1:
		return fmt.Errorf("reply.json: version %d; this program reads version 1", r.config.Version)
	case r.config.Fingerprint != base.Fingerprint:
		return fmt.Errorf("it was trained on the base %s (%s), but the base here is %s (%s)",
			r.config.Base, r.config.Fingerprint, base.Name, base.Fingerprint)
	case b.Reply < 1 || b.Question < 1 || b.Clarification < 1 || b.Option < 1 || b.Options < 1 ||
		b.Reply+b.Question+b.Clarification+b.Options*(b.Option+1)+4 > base.MaxTokens:
		return fmt.Errorf("reply.json: the token budgets %+v do not fit the base's %d tokens", b, base.MaxTokens)
	}
	if err := r.config.Decision.check(r.config.Kinds); err != nil {
		return fmt.Errorf("reply.json: decision: %w", err)
	}
	if r.adapter, err = r.model.LoadAdapter(adapter); err != nil {
		return err
	}
	weights, err := fs.ReadFile(adapter, "heads.safetensors")
	if err != nil {
		return err
	}
	if r.heads, err = readHeads(weights, base.Hidden, len(r.config.Kinds)); err != nil {
		return fmt.Errorf("heads.safetensors: %w", err)
	}
	return nil
}

// span is a range of tokens.
type span struct{ from, to int }

// input is one sequence, and where its parts stand.
type input struct {
	encoder.Sequence
	reply   span
	options []span
}

// input puts a reply and what it answers into one sequence; of each part the first
// tokens are kept, and of the options the first ones.
func (r *Reader) input(p conversation.Pending, reply string) input {
	t, b := r.model.Tokenizer(), r.config.Budget
	var in input
	in.IDs, in.Types = []int32{t.CLS()}, []int32{0}
	add := func(text string, most int, kind int32) span {
		s := span{from: len(in.IDs)}
		tokens := t.Tokenize(text)
		for _, token := range tokens[:min(len(tokens), most)] {
			in.IDs, in.Types = append(in.IDs, token.ID), append(in.Types, kind)
		}
		s.to = len(in.IDs)
		in.IDs, in.Types = append(in.IDs, t.SEP()), append(in.Types, kind)
		return s
	}
	in.reply = add(cut(reply), b.Reply, 0)
	add(cut(p.Question), b.Question, 1)
	add(cut(p.Text), b.Clarification, 1)
	for i, o := range p.Options[:min(len(p.Options), b.Options)] {
		in.options = append(in.options, add(fmt.Sprintf("%d %s", i+1, cut(o.Text)), b.Option, 1))
	}
	return in
}

// cut bounds a text before it is split into tokens, of which far fewer are read.
func cut(s string) string { return s[:min(len(s), 4000)] }

// Read implements conversation.Reader.
func (r *Reader) Read(ctx context.Context, p conversation.Pending, reply string, rules conversation.Folded) (conversation.Reading, error) {
	kinds, options, err := r.score(ctx, p, reply)
	if err != nil {
		return conversation.Reading{}, err
	}
	return r.decide(p, reply, rules, kinds, options), nil
}

// score gives the logits of the heads.
func (r *Reader) score(ctx context.Context, p conversation.Pending, reply string) (kinds, options []float64, err error) {
	in := r.input(p, reply)
	states, err := r.model.Forward(ctx, []encoder.Sequence{in.Sequence}, encoder.Options{Adapter: r.adapter})
	if err != nil {
		return nil, nil, fmt.Errorf("reading a reply: %w", err)
	}
	kinds, options = r.heads.apply(states[0], in)
	return kinds, options, nil
}
