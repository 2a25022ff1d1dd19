package main

import (
	"strings"
	"testing"
)

// Models that no server is asked for are findings like any other.
func TestDoctorModelsWithoutServer(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, tc := range []struct{ flag, found, do string }{
		{"--embedding-model=openai:m", "FAIL  embedding model  openai:m: only models on an Ollama server embed here", "nomic-embed-text"},
		{"--clarifier-model=openai:m", "FAIL  clarifier model  openai:m is a chat model", "write prompted:openai:m"},
		{"--clarifier-model=prompted:", "FAIL  clarifier model  prompted: names no model", "write prompted:MODEL"},
	} {
		out, errOut, code := command(t, "", "doctor", tc.flag)
		if code != exitFailed || !strings.Contains(out, tc.found) || !strings.Contains(out, "-> ") || !strings.Contains(out, tc.do) {
			t.Errorf("%s: exit code %d, %s%s", tc.flag, code, out, errOut)
		}
	}
}
