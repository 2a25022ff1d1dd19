package conversation

import (
	"context"
	"testing"
)

// BenchmarkFold folds the replies of the bank, one in each step.
func BenchmarkFold(b *testing.B) {
	cs := Replies(b)
	for i := 0; b.Loop(); i++ {
		c := cs[i%len(cs)]
		if _, err := Fold(context.Background(), c.Pending, c.Reply, nil); err != nil {
			b.Fatal(err)
		}
	}
}
