package reply

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/internal/safetensors/safetensorstest"
)

// FuzzConfig reads anything as reply.json: it is refused in words that name the file,
// or a reply is read with it as something that was offered.
func FuzzConfig(f *testing.F) {
	folder := fstest.MapFS{}
	for _, name := range []string{"adapter_config.json", "adapter_model.safetensors", "heads.safetensors", "reply.json"} {
		data, err := fs.ReadFile(embedded, "adapter/"+name)
		if err != nil {
			f.Fatal(err)
		}
		folder[name] = &fstest.MapFile{Data: data}
	}
	good := string(folder["reply.json"].Data)
	f.Add(good)
	f.Add(strings.Replace(good, `"version": 1`, `"version": 2`, 1))
	f.Add(`{"version":1,"kinds":["choice","choice"]}`)
	f.Add(`null`)
	whole := embeddedReader(f)
	p := conversation.Pending{ID: "c", Question: "What is the deposit?", Text: "City or Cargo?", Options: []conversation.Option{{ID: "1", Text: "City"}, {ID: "2", Text: "Cargo"}}}
	f.Fuzz(func(t *testing.T, config string) {
		folder := fstest.MapFS{"adapter_config.json": folder["adapter_config.json"], "adapter_model.safetensors": folder["adapter_model.safetensors"],
			"heads.safetensors": folder["heads.safetensors"], "reply.json": {Data: []byte(config)}}
		r := &Reader{model: whole.model}
		if err := r.load(folder); err != nil {
			if !strings.Contains(err.Error(), "reply.json") && !strings.Contains(err.Error(), "base") && !strings.Contains(err.Error(), "heads") {
				t.Errorf("%v does not name what is wrong", err)
			}
			return
		}
		got, err := conversation.FoldWith(t.Context(), p, "the second one, I think", nil, r)
		if err != nil {
			t.Errorf("%v", err)
		}
		for _, o := range got.Chosen {
			if o.ID != "1" && o.ID != "2" {
				t.Errorf("chosen is %+v", got)
			}
		}
	})
}

// FuzzHeads reads anything as weights: they are refused, or give as many logits as
// there are kinds and options.
func FuzzHeads(f *testing.F) {
	const hidden, kinds = 2, 3
	linear := func(name string, in, out int) []safetensorstest.Tensor {
		return []safetensorstest.Tensor{safetensorstest.Floats(name+".weight", make([]float32, in*out), out, in), safetensorstest.Floats(name+".bias", make([]float32, out), out)}
	}
	var all []safetensorstest.Tensor
	for _, l := range [][]safetensorstest.Tensor{linear("option.0", 4*hidden, 1), linear("option.1", 1, 1), linear("kind.0", 3*hidden+3, 1), linear("kind.1", 1, kinds)} {
		all = append(all, l...)
	}
	good := safetensorstest.File(all...)
	f.Add(good)
	f.Add(good[:len(good)-3])
	f.Add(safetensorstest.File(all[1:]...))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := readHeads(data, hidden, kinds)
		if err != nil {
			return
		}
		k, o := h.apply(make([]float32, 5*hidden), input{reply: span{1, 2}, options: []span{{3, 3}, {3, 4}}})
		if len(k) != kinds || len(o) != 2 {
			t.Errorf("%d kinds, %d options", len(k), len(o))
		}
	})
}
