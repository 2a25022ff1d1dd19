package reply

import (
	"bufio"
	"encoding/json"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/askback/askback/conversation"
)

func embeddedReader(t testing.TB) *Reader {
	t.Helper()
	r, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// golden is one reply as training/replies/ship.py computed it in PyTorch.
type golden struct {
	ID      string
	Pending conversation.Pending
	Reply   string
	IDs     []int32
	Kinds   []float64
	Options []float64
}

// TestGolden holds the reading in Go to the one in PyTorch.
func TestGolden(t *testing.T) {
	r := embeddedReader(t)
	f, err := os.Open("testdata/golden.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cases := 0
	for lines := bufio.NewScanner(f); lines.Scan(); cases++ {
		var g golden
		if err := json.Unmarshal(lines.Bytes(), &g); err != nil {
			t.Fatal(err)
		}
		if in := r.input(g.Pending, g.Reply); !slices.Equal(in.IDs, g.IDs) {
			t.Errorf("%s: tokens %v\nwant %v", g.ID, in.IDs, g.IDs)
			continue
		}
		kinds, options, err := r.score(t.Context(), g.Pending, g.Reply)
		if err != nil {
			t.Fatal(err)
		}
		for name, pair := range map[string][2][]float64{"kinds": {kinds, g.Kinds}, "options": {options, g.Options}} {
			got, want := pair[0], pair[1]
			if len(got) != len(want) {
				t.Errorf("%s: %d %s, want %d", g.ID, len(got), name, len(want))
				continue
			}
			for i := range got {
				if math.Abs(got[i]-want[i]) > 2e-3 {
					t.Errorf("%s: %s %d: %.5f, want %.5f", g.ID, name, i, got[i], want[i])
				}
			}
		}
	}
	if cases < 60 {
		t.Errorf("%d cases", cases)
	}
}

// What the reader is for: none of these is a rule's.
func TestRead(t *testing.T) {
	r := embeddedReader(t)
	deposit := conversation.Pending{ID: "c1", Question: "What is the deposit?", Text: "Is it for a bicycle or a van?",
		Options: []conversation.Option{{ID: "1", Text: "bicycle"}, {ID: "2", Text: "van"}}, Asked: 1}
	for _, c := range []struct {
		reply  string
		kind   conversation.ReplyKind
		chosen string
	}{
		{"cycling with the kids", conversation.ReplyChoice, "bicycle"},
		{"whatever, say what it usually is", conversation.ReplyJustAnswer, ""},
		{"there is a leak in our bathroom", conversation.ReplyNewQuestion, ""},
		{"not a clue, my brother booked it", conversation.ReplyDontKnow, ""},
	} {
		got, err := conversation.FoldWith(t.Context(), deposit, c.reply, nil, r)
		if err != nil {
			t.Fatal(err)
		}
		chosen := ""
		if got.Kind == conversation.ReplyChoice {
			chosen = got.Chosen[0].Text
		}
		if got.Kind != c.kind || chosen != c.chosen {
			t.Errorf("%q is read as %s %q (%s), want %s %q", c.reply, got.Kind, chosen, got.Rule, c.kind, c.chosen)
		}
	}
}

// An adapter that does not fit is refused, with what is wrong.
func TestRefused(t *testing.T) {
	sub, err := fs.Sub(embedded, "adapter")
	if err != nil {
		t.Fatal(err)
	}
	whole := func(name string) []byte {
		data, err := fs.ReadFile(sub, name)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for _, c := range []struct{ name, old, new, want string }{
		{"reply.json", `"version": 1`, `"version": 2`, "version 2"},
		{"reply.json", `"base_fingerprint": "`, `"base_fingerprint": "x`, "trained on the base"},
		{"reply.json", `"reply": `, `"reply": 9`, "budgets"},
		{"reply.json", `"first option"`, `"last option"`, "last option"},
		{"reply.json", `{`, `<`, "reply.json"},
		{"heads.safetensors", `kind.0.weight`, `kind.9.weight`, "kind.0.weight"},
		{"adapter_config.json", `"LORA"`, `"IA3"`, "LORA"},
	} {
		folder := fstest.MapFS{}
		for _, name := range []string{"reply.json", "heads.safetensors", "adapter_config.json", "adapter_model.safetensors"} {
			data := whole(name)
			if name == c.name {
				data = []byte(strings.Replace(string(data), c.old, c.new, 1))
			}
			folder[name] = &fstest.MapFile{Data: data}
		}
		if _, err := New(folder); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %q for %q: %v; want %q", c.name, c.new, c.old, err, c.want)
		}
	}
	if _, err := New(fstest.MapFS{}); err == nil {
		t.Error("an empty folder is taken")
	}
}

func BenchmarkRead(b *testing.B) {
	r := embeddedReader(b)
	p := conversation.Pending{Question: "how long is the warranty", Text: "Do you mean the panels, the inverter or the battery?",
		Options: []conversation.Option{{ID: "1", Text: "panels"}, {ID: "2", Text: "inverter"}, {ID: "3", Text: "battery"}}, Asked: 1}
	for b.Loop() {
		if _, err := r.Read(b.Context(), p, "the things on the roof", conversation.Folded{Kind: conversation.ReplyDetail, Rule: "detail"}); err != nil {
			b.Fatal(err)
		}
	}
}
