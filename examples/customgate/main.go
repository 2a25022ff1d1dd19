// Command customgate puts a clarifier of your own in front of the embedded one:
// a rule that always asks which account is meant, before anything is searched.
package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/askback/askback/gate"
	"github.com/askback/askback/gate/lora"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/local"
	"github.com/askback/askback/retrieval/minilm"
)

// accountRule asks which account is meant whenever a balance is asked for. To
// everything else the next clarifier answers.
type accountRule struct{ next gate.Clarifier }

func (a accountRule) Clarify(ctx context.Context, r gate.Request) (gate.Verdict, error) {
	q := strings.ToLower(r.Question)
	if r.Stage == gate.Pre && strings.Contains(q, "balance") && !strings.Contains(q, "savings") && !strings.Contains(q, "current") {
		return gate.Verdict{Score: 1, Clarification: "Is it the savings or the current account?", Clarifier: "account rule"}, nil
	}
	return a.next.Clarify(ctx, r)
}

// Threshold keeps the next clarifier's calibrated thresholds.
func (a accountRule) Threshold(s gate.Stage) float64 { return a.next.(gate.Calibrated).Threshold(s) }

func main() {
	ctx := context.Background()
	embedder := must(minilm.New())
	index := must(local.Open(ctx, local.Options{Embedder: embedder}))
	for name, text := range map[string]string{
		"savings": "The lowest balance of a savings account is 100 euros.",
		"current": "The lowest balance of a current account is 0 euros.",
	} {
		p := retrieval.Passage{ID: name, Document: name, Title: "Lowest balance: " + name + " account", Source: name + ".md", Text: text}
		if err := index.Replace(ctx, name, "1", []retrieval.Passage{p}); err != nil {
			log.Fatal(err)
		}
	}
	assistant := must(pipeline.New(pipeline.Parts{
		Retriever: index,
		Clarifier: accountRule{must(lora.New(nil))},
		Generator: generation.Extractive{Embedder: embedder},
	}))
	for _, text := range []string{"What is the lowest balance?", "the savings account"} {
		r := must(assistant.Ask(ctx, pipeline.Message{Text: text})).Record()
		fmt.Printf("%s: %s\n", r.Kind, r.Text)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
