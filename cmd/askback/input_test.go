package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestBadInput sends what no person types: each line gets its own fault, on
// standard error and as a line of output, and the good one after it is
// answered.
func TestBadInput(t *testing.T) {
	for _, tc := range []struct{ name, line, fault string }{
		{"a megabyte", strings.Repeat("why ", 1<<18), "the message is too long"},
		{"five megabytes", strings.Repeat("why ", 5<<18), "the line is too long"},
		{"a megabyte without spaces", strings.Repeat("a", 1<<20), "the message is too long"},
		{"nothing but NUL", "\x00\x00\x00", "the message is empty"},
		{"nothing but broken UTF-8", "\xff\xfe\xfd", "the message is empty"},
		{"JSON that ends early", `{"text":"What`, "not a message"},
		{"JSON of another shape", `{"txet":"What"}`, "not a message"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			in := strings.NewReader(tc.line + "\nWhat does \x00ERR-5172\xff mean?\n")
			code := run(t.Context(), []string{"chat", "--json"}, streams{in, &out, &errOut})
			if code != exitFailed || !strings.Contains(errOut.String(), "line 1: "+tc.fault) {
				t.Errorf("exit code %d, standard error %.200q; want %d and %q", code, errOut.String(), exitFailed, tc.fault)
			}
			refused, answered, _ := strings.Cut(out.String(), "\n")
			if !strings.Contains(refused, `"kind":"error","line":1`) || !strings.Contains(refused, tc.fault) ||
				strings.Count(answered, "\n") != 1 || !strings.Contains(answered, "wheel speed sensor") {
				t.Errorf("output %.300s", out.String())
			}
		})
	}
}

func TestLineReader(t *testing.T) {
	r := newLineReader(strings.NewReader("one\r\n\n"+strings.Repeat("x", 200_000)+"\nlast"), 100_000)
	for _, want := range []struct {
		line string
		err  error
	}{{"one", nil}, {"", nil}, {"", errLineTooLong}, {"last", nil}, {"", io.EOF}} {
		line, err := r.next()
		if line != want.line || !errors.Is(err, want.err) {
			t.Errorf("got %.20q, %v; want %q, %v", line, err, want.line, want.err)
		}
	}
}

func TestGauge(t *testing.T) {
	for _, tc := range []struct {
		score, threshold float64
		want             string
	}{{0, .5, "░░┃░"}, {1, .75, "███┃"}, {.5, 2, "██░░"}} {
		if got := gauge(tc.score, tc.threshold, 4); got != tc.want {
			t.Errorf("gauge(%v, %v) = %s, want %s", tc.score, tc.threshold, got, tc.want)
		}
	}
}

// A command that was stopped says so, whatever it was at, and what to do stays.
func TestTold(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{errors.New("reading a: gone"), "reading a: gone"},
		{fmt.Errorf("embedding 64 passages: %w", context.Canceled), "stopped"},
		{fmt.Errorf("embedding: %w\nwhat was stored stays", context.Canceled), "stopped\nwhat was stored stays"},
		{fmt.Errorf("embedding: %w", context.DeadlineExceeded), "embedding: context deadline exceeded"},
	} {
		if got := told(tc.err); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.err, got, tc.want)
		}
	}
}
