//go:build unix

package ollama_test

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/ollama/ollama/api"
	"github.com/tmc/langchaingo/llms"
	plain "github.com/tmc/langchaingo/llms/ollama"

	"github.com/askback/askback/gate"
	"github.com/askback/askback/gate/evaluate"
	"github.com/askback/askback/gate/lora"
	ollamagate "github.com/askback/askback/gate/ollama"
	"github.com/askback/askback/generation/ollama"
	"github.com/askback/askback/internal/ollamatest"
	"github.com/askback/askback/internal/ollamatest/tinygguf"
)

// tokens is the length of the answer.
const tokens = 128

// model is an answer of that many tokens, each of some milliseconds, so that
// what is measured is the way and not the model.
func model(b *testing.B, s *ollamatest.Server) string {
	var pieces []string
	for i := range tokens {
		pieces = append(pieces, fmt.Sprintf("word%d ", i))
	}
	return s.Model(b, "answer", tinygguf.Scripted(tinygguf.Config{Layers: 2, FF: 2048}, tinygguf.Say(pieces...)))
}

// BenchmarkAnswer asks for the same answer by the server's own client, by
// generation/ollama and by langchaingo's adapter, in turn, and reports the
// median of the time to the first token, in microseconds, of tokens a second,
// of the whole time beside the server's own client, in percent, pair by pair, and
// of this process's CPU time for each token, in microseconds, which holds on a
// busy machine too.
func BenchmarkAnswer(b *testing.B) {
	s := ollamatest.Start(b)
	name := model(b, s)
	ours, err := ollama.New(ollama.Options{Host: s.URL, Model: name, HTTP: s.HTTP})
	if err != nil {
		b.Fatal(err)
	}
	theirs, err := plain.New(plain.WithModel(name), plain.WithServerURL(s.URL), plain.WithHTTPClient(s.HTTP))
	if err != nil {
		b.Fatal(err)
	}
	base, err := url.Parse(s.URL)
	if err != nil {
		b.Fatal(err)
	}
	client := api.NewClient(base, s.HTTP)
	const prompt = "How high is the deposit?"
	through := func(m llms.Model) func(first func()) error {
		return func(first func()) error {
			_, err := m.GenerateContent(b.Context(), []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, prompt)}, llms.WithMaxTokens(1024),
				llms.WithStreamingFunc(func(context.Context, []byte) error { first(); return nil }))
			return err
		}
	}
	ways := []struct {
		name  string
		ask   func(first func()) error
		first []float64 // microseconds
		whole []float64
		cpu   []float64
	}{
		{name: "client", ask: func(first func()) error {
			return client.Chat(b.Context(), &api.ChatRequest{
				Model: name, Messages: []api.Message{{Role: "user", Content: prompt}}, Options: map[string]any{"temperature": 0, "num_ctx": 4096, "num_predict": 1024},
			}, func(api.ChatResponse) error { first(); return nil })
		}},
		{name: "askback", ask: through(ours)},
		{name: "langchaingo", ask: through(theirs)},
	}
	run := func(i int, count bool) {
		for k := range ways {
			w := &ways[(i+k)%len(ways)]
			used := cpuTime()
			start, first := time.Now(), time.Duration(0)
			if err := w.ask(func() {
				if first == 0 {
					first = time.Since(start)
				}
			}); err != nil {
				b.Fatalf("%s: %v", w.name, err)
			}
			if count {
				w.first = append(w.first, float64(first.Microseconds()))
				w.whole = append(w.whole, float64(time.Since(start).Microseconds()))
				w.cpu = append(w.cpu, float64(cpuTime()-used)/1e3/tokens)
			}
		}
	}
	run(0, false) // loads the model
	b.ResetTimer()
	for i := range b.N {
		run(i, true)
	}
	b.StopTimer()
	for _, w := range ways {
		b.ReportMetric(median(w.first), w.name+"-first-us")
		b.ReportMetric(median(w.cpu), w.name+"-cpu-us/token")
		b.ReportMetric(tokens/(median(w.whole)/1e6), w.name+"-tokens/s")
		if w.name != "client" {
			var over []float64
			for i := range w.whole {
				over = append(over, 100*(w.whole[i]/ways[0].whole[i]-1))
			}
			b.ReportMetric(median(over), w.name+"-over-%")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// cpuTime is what this process has used of the CPU.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if len(v) == 0 {
		return 0
	}
	return v[len(v)/2]
}

var turns = flag.Int("turns", 500, "turns of the day that BenchmarkDay replays")

// BenchmarkDay replays a day of 500 turns, taken from the labelled test cases,
// at both gates: with the embedded clarifier alone, with the clarifier model
// alone, and with the cascade. The model here is a tiny one, so that the calls
// are what counts; a real one takes its own time for each.
func BenchmarkDay(b *testing.B) {
	f, err := os.Open("../../training/data/test.jsonl")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	all, err := evaluate.Read(f)
	if err != nil {
		b.Fatal(err)
	}
	var cases []evaluate.Case
	for i := range *turns {
		cases = append(cases, all[i*len(all) / *turns])
	}
	s := ollamatest.Start(b)
	screen, err := lora.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	served, err := ollamagate.New(ollamagate.Options{Host: s.URL, HTTP: s.HTTP,
		Model: s.Model(b, "clear", tinygguf.Scripted(tinygguf.Config{Context: 32768}, tinygguf.Say(`{"clarification": "`, "CLEAR", `"}`)))})
	if err != nil {
		b.Fatal(err)
	}
	for _, way := range []struct {
		name      string
		clarifier gate.Clarifier
	}{
		{"embedded", screen},
		{"model", served},
		{"cascade", gate.Cascade{Screen: screen, Second: served}},
	} {
		b.Run(way.name, func(b *testing.B) {
			g := gate.Gate{Clarifier: way.clarifier, Policy: gate.Policy{TimeLimit: 10 * time.Minute}}
			calls, decisions := 0, 0
			for range b.N {
				for _, c := range cases {
					for _, stage := range []gate.Stage{gate.Pre, gate.Post} {
						d, err := g.Decide(b.Context(), c.Request(stage), gate.Budget{})
						if err != nil || d.Error != "" || d.SecondError != "" {
							b.Fatalf("%s at gate %s: %v %s %s", c.ID, stage, err, d.Error, d.SecondError)
						}
						decisions++
						if d.Second == gate.SecondAsked || way.name == "model" {
							calls++
						}
						if d.Ask {
							break // the turn ends here
						}
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N*len(cases)), "ms/turn")
			b.ReportMetric(float64(calls)/float64(b.N), "calls")
			b.ReportMetric(100*float64(calls)/float64(decisions), "%-of-decisions")
			b.ReportMetric(0, "ns/op")
		})
	}
}
