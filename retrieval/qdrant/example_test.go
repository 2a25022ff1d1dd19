package qdrant_test

import (
	"context"
	"fmt"
	"log"

	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/qdrant"
	"github.com/askback/askback/retrieval/retrievertest"
)

// Two customers in one collection. In these tests the server is Qdrant's edge
// engine behind a test front; a whole server is used in the same way.
func Example() {
	ctx := context.Background()
	store, err := qdrant.Open(ctx, qdrant.Options{
		Addr:       exampleAddr(), // such as "localhost:6334"
		Collection: exampleCollection(),
		Tenant:     "acme",
		Embedder:   new(retrievertest.Embedder),
		Identity:   "words@1",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	documents := func(yield func(retrieval.Document, error) bool) {
		_ = yield(retrieval.Document{ID: "leave.md", Title: "Leave", Metadata: map[string]string{"language": "en"}, Blocks: []retrieval.Block{
			{Headings: []string{"Employees"}, Text: "Employees have 28 days of annual leave (form HR-204)."},
			{Headings: []string{"Contractors"}, Text: "Contractors have no annual leave (form HR-207)."},
		}}, nil)
	}
	report, err := retrieval.Sync(ctx, store, retrieval.Inputs(documents, retrieval.ChunkOptions{}), retrieval.SyncOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("added", report.Added)

	atLeast := 0.2
	hits, err := store.Search(ctx, qdrant.Search{
		Query:       retrieval.Query{Texts: []string{"do contractors have annual leave"}, Filter: map[string]string{"language": "en"}},
		Threshold:   &atLeast, // of the cosine
		PerDocument: 1,
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, h := range hits {
		fmt.Printf("%s: %s\n", h.Title, h.Text)
	}

	other, err := qdrant.Open(ctx, qdrant.Options{Addr: exampleAddr(), Collection: exampleCollection(), Tenant: "globex", Embedder: new(retrievertest.Embedder)})
	if err != nil {
		log.Fatal(err)
	}
	defer other.Close()
	n, err := other.Len(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the other customer has", n)
	// Output:
	// added [leave.md]
	// Leave > Contractors: Contractors have no annual leave (form HR-207).
	// the other customer has 0
}
