// Command chain uses a pipeline inside langchaingo, and langchaingo's parts
// inside the pipeline: its vector store interface holds the passages, its model
// interface writes the answer, and its chain runs the turns.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms/fake"
	"github.com/tmc/langchaingo/schema"

	"github.com/askback/askback/gate/lora"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/pipeline/langchain"
	"github.com/askback/askback/retrieval/local"
	"github.com/askback/askback/retrieval/minilm"
)

func main() {
	ctx := context.Background()
	index := must(local.Open(ctx, local.Options{Embedder: must(minilm.New())}))

	// Any vectorstores.VectorStore will do; here it is our own.
	store := langchain.NewVectorStore(index)
	must(store.AddDocuments(ctx, []schema.Document{
		{PageContent: "The parking fee is 4 euros a day for residents.", Metadata: map[string]any{"title": "Parking fee: residents", "source": "parking.md"}},
		{PageContent: "The parking fee is 18 euros a day for visitors.", Metadata: map[string]any{"title": "Parking fee: visitors", "source": "parking-visitors.md"}},
	}))

	// Any llms.Model will do: ollama.New(...), openai.New(...). This one has
	// learnt its line, so that the example runs alone.
	model := fake.NewFakeLLM([]string{"ANSWER: The parking fee is 18 euros a day. [1]"})

	assistant := must(pipeline.New(pipeline.Parts{
		Retriever: langchain.FromVectorStore(store),
		Clarifier: must(lora.New(nil)),
		Generator: generation.Model{LLM: model},
	}))
	chain := langchain.NewChain(assistant, "example")
	for _, text := range []string{"What is the parking fee?", "visitors"} {
		out := must(chains.Call(ctx, chain, map[string]any{langchain.InputKey: text}))
		fmt.Printf("%T: %s\n", out[langchain.ResultKey], out[langchain.OutputKey])
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
