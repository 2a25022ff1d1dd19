package examples_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestExamples runs each example in its folder and holds it to its output.
func TestExamples(t *testing.T) {
	for _, tc := range []struct {
		name string
		want []string // in this order
	}{
		{"quickstart", []string{"asks back:", "shop", "online", "answers:", "30 days", "returns.md"}},
		{"chain", []string{"*pipeline.Clarification:", "visitors", "*pipeline.Answer:", "18 euros"}},
		{"customgate", []string{"clarification: Is it the savings or the current account?", "answer:", "100 euros"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "go", "run", ".")
			cmd.Dir = tc.name
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			rest := string(out)
			for _, w := range tc.want {
				_, after, ok := strings.Cut(rest, w)
				if !ok {
					t.Fatalf("the output lacks %q after the ones before it:\n%s", w, out)
				}
				rest = after
			}
		})
	}
}
