package local_test

import (
	"context"
	"fmt"
	"log"

	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/local"
	"github.com/askback/askback/retrieval/retrievertest"
)

func Example() {
	ctx := context.Background()
	// Options.Path would keep the index on disk.
	index, err := local.Open(ctx, local.Options{Embedder: new(retrievertest.Embedder)})
	if err != nil {
		log.Fatal(err)
	}
	defer index.Close()

	documents := func(yield func(retrieval.Document, error) bool) {
		_ = yield(retrieval.Document{ID: "leave.md", Title: "Leave", Blocks: []retrieval.Block{
			{Headings: []string{"Employees"}, Text: "Employees have 28 days of annual leave (form HR-204)."},
			{Headings: []string{"Contractors"}, Text: "Contractors have no annual leave (form HR-207)."},
		}}, nil)
	}
	report, err := retrieval.Sync(ctx, index, retrieval.Inputs(documents, retrieval.ChunkOptions{}), retrieval.SyncOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("added", report.Added)

	passages, err := index.Retrieve(ctx, retrieval.Query{Texts: []string{"what is form hr 207 for"}})
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range passages {
		fmt.Printf("%s: %s\n", p.Title, p.Text)
	}
	known, err := index.KnownIdentifiers(ctx, "and HR-205?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s known: %v, near it: %v\n", known[0].Identifier, known[0].Known, known[0].Nearest)
	// Output:
	// added [leave.md]
	// Leave > Contractors: Contractors have no annual leave (form HR-207).
	// HR-205 known: false, near it: [HR-204 HR-207]
}
