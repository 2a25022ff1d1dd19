package ollama

import (
	"context"
	"fmt"
	"math"

	"github.com/ollama/ollama/api"
)

// Embed asks for a vector of each text, of length 1. A text that is too long is
// never cut: the error is ErrTooLong then. keep and options are as in Chat.
func (c *Client) Embed(ctx context.Context, model string, texts []string, keep *api.Duration, options map[string]any) ([][]float32, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	no := false
	var r *api.EmbedResponse
	err := again(nil, func() (err error) {
		r, err = c.api.Embed(ctx, &api.EmbedRequest{Model: model, Input: texts, KeepAlive: keep, Truncate: &no, Options: options})
		return err
	})
	if err = c.explain(ctx, model, err); err != nil {
		return nil, err
	}
	if len(r.Embeddings) != len(texts) {
		return nil, fmt.Errorf("ollama at %s gave %d vectors for %d texts", c.host, len(r.Embeddings), len(texts))
	}
	for i, v := range r.Embeddings {
		var sum float64
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		if !(sum > 0) || math.IsInf(sum, 0) { // NaN too
			return nil, fmt.Errorf("ollama at %s gave a vector of length %v by %s for the text %q; try another model, or a newer server", c.host, math.Sqrt(sum), model, start(texts[i]))
		}
		Normalize(v)
	}
	return r.Embeddings, nil
}

// Normalize scales a vector to length 1.
func Normalize(v []float32) {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return
	}
	scale := 1 / math.Sqrt(sum)
	for i := range v {
		v[i] = float32(float64(v[i]) * scale)
	}
}

// start is the beginning of a text, for naming it.
func start(text string) string {
	if r := []rune(text); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return text
}
