package lora

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/gate/clarifiertest"
	"github.com/askback/askback/internal/safetensors/safetensorstest"
	"github.com/askback/askback/retrieval"
)

// FuzzConfig reads anything as clarifier.json: it is refused in words, or the
// clarifier keeps its contract with it.
func FuzzConfig(f *testing.F) {
	whole := embeddedClarifier(f)
	folder := fstest.MapFS{}
	for _, name := range []string{"adapter_config.json", "adapter_model.safetensors", "heads.safetensors", "clarifier.json"} {
		data, err := fs.ReadFile(embeddedAdapter(), name)
		if err != nil {
			f.Fatal(err)
		}
		folder[name] = &fstest.MapFile{Data: data}
	}
	good := string(folder["clarifier.json"].Data)
	f.Add(good)
	f.Add(strings.Replace(good, `"joint_layers": `, `"joint_layers": 1`, 1))
	f.Add(`{"version":2,"tokens":{"history":1,"question":1,"passage_history":1,"passage_question":1,"passage":1},"prefix":null}`)
	f.Add(`{"version":2,"decision":{"pre":{"scale":[0]}}}`)
	f.Add(`null`)
	requests := []gate.Request{
		{Stage: gate.Pre, Question: "How much is it?", History: []conversation.Message{{Role: conversation.User, Text: "Hello"}}},
		{Stage: gate.Post, Question: "What is the deposit?", Passages: []retrieval.Passage{{ID: "a", Title: "Deposit: City", Text: "It is 200."}, {ID: "b", Title: "Deposit: Cargo", Text: "It is 450."}}},
	}
	f.Fuzz(func(t *testing.T, config string) {
		folder := fstest.MapFS{"adapter_config.json": folder["adapter_config.json"], "adapter_model.safetensors": folder["adapter_model.safetensors"],
			"heads.safetensors": folder["heads.safetensors"], "clarifier.json": {Data: []byte(config)}}
		c := &Clarifier{model: whole.model}
		if err := c.load(folder); err != nil {
			if !strings.Contains(err.Error(), "clarifier.json") && !strings.Contains(err.Error(), "base") {
				t.Errorf("%v does not name what is wrong", err)
			}
			return
		}
		for _, r := range requests {
			v, err := c.Clarify(t.Context(), r)
			if err != nil {
				if !strings.Contains(err.Error(), "weights are broken") {
					t.Error(err)
				}
				continue
			}
			clarifiertest.Check(t, r, v)
		}
	})
}

// An adapter whose numbers come to nothing says so, at each question.
func TestBrokenWeights(t *testing.T) {
	c := embeddedClarifier(t)
	pre := c.config.Decision[gate.Pre]
	pre.Weights = slices.Clone(pre.Weights)
	for i := range pre.Weights {
		pre.Weights[i] = 1e308 * float64(1-2*(i%2)) // +Inf and -Inf
	}
	c.config.Decision = map[gate.Stage]decision{gate.Pre: pre}
	if v, err := c.Clarify(t.Context(), gate.Request{Stage: gate.Pre, Question: "How much is it?"}); err == nil || !strings.Contains(err.Error(), "weights are broken") {
		t.Errorf("%+v, %v", v, err)
	}
}

// FuzzHeads reads anything as weights: they are refused, or give all that they should.
func FuzzHeads(f *testing.F) {
	const hidden, reading = 2, 1
	weights := func(name string, in, out int) safetensorstest.Tensor {
		return safetensorstest.Floats(name+".weight", make([]float32, in*out), out, in)
	}
	var all []safetensorstest.Tensor
	for _, l := range []struct {
		name    string
		in, out int
	}{{"tags", hidden, tagCount}, {"read", 4 * hidden, reading}, {"passage", reading, 2}, {"pair.0", 3 * reading, 1}, {"pair.1", 1, 1},
		{"gate1.0", 4 * hidden, 1}, {"gate1.1", 1, 1}, {"gate2.0", 3*hidden + 2*reading, 1}, {"gate2.1", 1, 1}} {
		all = append(all, weights(l.name, l.in, l.out), safetensorstest.Floats(l.name+".bias", make([]float32, l.out), l.out))
	}
	all = append(all, weights("gate1_signs", 2, 1), weights("gate2_signs", 7, 1))
	good := safetensorstest.File(all...)
	if _, err := readHeads(good, hidden); err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)-3])
	f.Add(safetensorstest.File(all[1:]...))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := readHeads(data, hidden)
		if err != nil {
			return
		}
		states := [][]float32{make([]float32, 3*hidden), make([]float32, 2*hidden), make([]float32, hidden)}
		o := h.apply(states, []int{0, 1, 0})
		if len(o.tags) != 3 || len(o.passage) != 2 || len(o.pair) != 2 {
			t.Errorf("%+v", o)
		}
		h.apply(states[:1], []int{0})
	})
}
