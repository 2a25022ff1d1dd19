package minilm_test

import (
	"testing"

	"github.com/askback/askback/retrieval/minilm"
)

func TestSimilarity(t *testing.T) {
	e, err := minilm.New()
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.Similarity(t.Context(), "How do I send an item back?", []string{"Returning a product", "Opening hours of the shop"})
	if err != nil {
		t.Fatal(err)
	}
	if s[0] < .4 || s[1] > s[0]-.2 {
		t.Errorf("similarities %v; the first should be well above the second", s)
	}
	if n := e.Count("How do I send an item back?"); n != 8 {
		t.Errorf("%d tokens, want 8", n)
	}
}
