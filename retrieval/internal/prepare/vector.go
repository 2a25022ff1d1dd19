package prepare

import (
	"fmt"
	"math"
)

// Unit gives the vector scaled to length 1, which makes the inner product the
// cosine. A vector without a direction is an error.
func Unit(v []float32) ([]float32, error) {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if len(v) == 0 || sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
		return nil, fmt.Errorf("the embedder gave a vector of %d numbers that is empty, all zeros or not finite", len(v))
	}
	scale := 1 / math.Sqrt(sum)
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(float64(x) * scale)
	}
	return out, nil
}
