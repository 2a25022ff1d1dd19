package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/retrieval"
)

// verificationCase is a question whose answer to "must one ask?" is plain.
type verificationCase struct {
	name    string
	request gate.Request
	ask     bool
}

func said(turns ...string) []conversation.Message {
	var out []conversation.Message
	for i, text := range turns {
		role := conversation.User
		if i%2 == 1 {
			role = conversation.Assistant
		}
		out = append(out, conversation.Message{Role: role, Text: text})
	}
	return out
}

func sources(texts ...string) []retrieval.Passage {
	var out []retrieval.Passage
	for i, text := range texts {
		out = append(out, retrieval.Passage{ID: fmt.Sprint(i + 1), Text: text})
	}
	return out
}

// verificationCases are six that are clear and six that are not, at both gates;
// each clear one has an unclear twin.
var verificationCases = []verificationCase{
	{"a whole question", gate.Request{Stage: gate.Pre, Question: "What is the capital of Australia?"}, false},
	{"a pronoun for nothing", gate.Request{Stage: gate.Pre, Question: "Can you tell me when it was founded?"}, true},
	{"a pronoun for what was said", gate.Request{Stage: gate.Pre, Question: "And when was it founded?",
		History: said("Who runs the Lindqvist Observatory?", "The Lindqvist Observatory is run by the University of Umeå.")}, false},
	{"the other of three", gate.Request{Stage: gate.Pre, Question: "What about the other one?",
		History: said("Which ferries go to Holm Island?", "Three ferries go there: the Tern, the Skua and the Petrel.")}, true},
	{"one answer", gate.Request{Stage: gate.Post, Question: "How long is the warranty of the Cargo 2?",
		Passages: sources("The Cargo 2 has a warranty of 3 years.", "The City 2 has a warranty of 2 years.")}, false},
	{"two models", gate.Request{Stage: gate.Post, Question: "How long is the warranty?",
		Passages: sources("The Cargo 2 has a warranty of 3 years.", "The City 2 has a warranty of 2 years.")}, true},
	{"the plan is known", gate.Request{Stage: gate.Post, Question: "How much storage do I get?",
		History:  said("I am on the Team plan of Fernbox.", "Thanks, I will keep the Team plan in mind."),
		Passages: sources("On the Solo plan of Fernbox, storage is 50 GB.", "On the Team plan of Fernbox, storage is 1 TB.")}, false},
	{"two plans", gate.Request{Stage: gate.Post, Question: "How much storage do I get?",
		Passages: sources("On the Solo plan of Fernbox, storage is 50 GB.", "On the Team plan of Fernbox, storage is 1 TB.")}, true},
	{"all agree", gate.Request{Stage: gate.Post, Question: "Which day is the library closed?",
		Passages: sources("The main library is closed on Mondays.", "The branch library at the harbour is closed on Mondays as well.")}, false},
	{"two places", gate.Request{Stage: gate.Post, Question: "When does the library open?",
		Passages: sources("The main library opens at 9 a.m.", "The branch library at the harbour opens at 11 a.m.")}, true},
	{"one release", gate.Request{Stage: gate.Post, Question: "Which port does Quillmail 5 listen on by default?",
		Passages: sources("Quillmail 4 listens on port 8025 by default.", "Quillmail 5 listens on port 2525 by default.")}, false},
	{"two senses", gate.Request{Stage: gate.Post, Question: "How old is Mercury?",
		Passages: sources("Mercury, the planet, formed about 4.5 billion years ago.", "Mercury Couriers, the parcel service, was founded 12 years ago.")}, true},
}

// verdict is how a case went.
type verdict struct {
	verificationCase
	asks    bool
	score   float64
	err     error
	elapsed time.Duration
}

func (v verdict) right() bool { return v.err == nil && v.asks == v.ask }

// verification is how all of them went.
type verification []verdict

// verify asks a clarifier all cases. If the first two fail there is no model to
// speak of, and that is the error.
func verify(ctx context.Context, c gate.Clarifier, limit time.Duration, log io.Writer) (verification, error) {
	bar := progress(log, len(verificationCases), "verifying")
	defer func() { _ = bar.Finish() }()
	var out verification
	for i, k := range verificationCases {
		limited, cancel := context.WithTimeout(ctx, limit)
		start := time.Now()
		r, err := c.Clarify(limited, k.request)
		cancel()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil && i == 1 && out[0].err != nil {
			return nil, err
		}
		out = append(out, verdict{k, r.Clarification != "", r.Score, err, time.Since(start)})
		_ = bar.Add(1)
	}
	return out, nil
}

func (v verification) count(of func(verdict) bool) (n int) {
	for _, x := range v {
		if of(x) {
			n++
		}
	}
	return n
}

// right counts those of one kind that went right.
func (v verification) right(ask bool) int {
	return v.count(func(x verdict) bool { return x.right() && x.ask == ask })
}

// leastRight is how many of the twelve a clarifier must get right. One that
// tosses a coin reaches it in one of fourteen trials.
const leastRight = 9

// objection says why the clarifier is of no use, or nothing.
func (v verification) objection() string {
	clear, unclear := v.right(false), v.right(true)
	asked := v.count(func(x verdict) bool { return x.err == nil && x.asks })
	failed := v.count(func(x verdict) bool { return x.err != nil })
	switch {
	case asked == 0 && failed == 0:
		return "it never asks, whatever it is shown"
	case asked == len(v):
		return "it always asks, whatever it is shown"
	case clear+unclear < leastRight:
		return fmt.Sprintf("it got %d of %d built-in cases right (%d failed), which is no better than chance", clear+unclear, len(v), failed)
	}
	return ""
}

// print writes the table.
func (v verification) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "case\tgate\tshould\tdid\tscore\tseconds\t")
	word := map[bool]string{true: "ask", false: "answer"}
	for _, x := range v {
		did, mark := word[x.asks], ""
		if x.err != nil {
			did = "failed"
		}
		if !x.right() {
			mark = "wrong"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.2f\t%.1f\t%s\n", x.name, x.request.Stage, word[x.ask], did, x.score, x.elapsed.Seconds(), mark)
	}
	_ = t.Flush()
	unclear := v.count(func(x verdict) bool { return x.ask })
	fmt.Fprintf(w, "right: %d of %d (clear %d of %d, unclear %d of %d)\n", v.count(verdict.right), len(v),
		v.right(false), len(v)-unclear, v.right(true), unclear)
	for _, x := range v {
		if x.err != nil {
			fmt.Fprintf(w, "%s: %v\n", x.name, x.err)
			break // the others say the same
		}
	}
}
