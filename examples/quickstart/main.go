// Command quickstart answers from a folder of files, and asks back when its
// passages hold answers that differ.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/askback/askback/gate/lora"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/documents"
	"github.com/askback/askback/retrieval/local"
	"github.com/askback/askback/retrieval/minilm"
)

func main() {
	ctx := context.Background()
	embedder := must(minilm.New())
	index := must(local.Open(ctx, local.Options{Embedder: embedder}))
	files := documents.Inputs(ctx, os.DirFS("docs"), documents.InputOptions{})
	must(retrieval.Sync(ctx, index, files, retrieval.SyncOptions{}))

	assistant := must(pipeline.New(pipeline.Parts{
		Retriever: index,
		Clarifier: must(lora.New(nil)),
		Generator: generation.Extractive{Embedder: embedder},
	}))
	for _, text := range []string{"Within how many days must items be returned?", "online"} {
		switch r := must(assistant.Ask(ctx, pipeline.Message{Text: text})).(type) {
		case *pipeline.Clarification:
			fmt.Println("asks back:", r.Text)
		case *pipeline.Answer:
			fmt.Println("answers:", r.Text, "from", r.Citations[0].Source)
		case *pipeline.NoAnswer:
			fmt.Println(r.Text)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
