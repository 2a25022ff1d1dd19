package openai

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/server/internal/plain"
)

// Extension is the field askback of a reply's message: the result in fields.
type Extension struct {
	Kind conversation.Kind `json:"kind"` // answer, clarification, no_answer
	// Conversation is the id under which the dialogue is kept. It is left out if the
	// same dialogue stands in a conversation that has gone on since.
	Conversation  string                `json:"conversation,omitempty"`
	Turn          int                   `json:"turn"`                    // its number
	Text          string                `json:"text"`                    // the message without sources, options and hint
	Question      string                `json:"question"`                // as understood
	Clarification string                `json:"clarification,omitempty"` // id of what waits for a reply
	Gate          gate.Stage            `json:"gate,omitempty"`          // that asked: pre or post
	Options       []conversation.Option `json:"options"`                 // with the ids of the passages they rest on
	Citations     []generation.Citation `json:"citations"`
	Assumption    string                `json:"assumption,omitempty"` // that the answer states
	Trace         *pipeline.Trace       `json:"trace,omitempty"`      // if asked for
}

func extension(r pipeline.Record, conversation string, trace bool) *Extension {
	e := &Extension{Kind: r.Kind, Conversation: conversation, Turn: r.Turn, Text: r.Text, Question: r.Question, Clarification: r.Clarification,
		Gate: r.Gate, Options: r.Options, Citations: r.Citations, Assumption: r.Assumption}
	if trace {
		e.Trace = &r.Trace
	}
	return e
}

// completion is a reply, or a chunk of one.
type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

type choice struct {
	Index        int     `json:"index"`
	Message      *reply  `json:"message,omitempty"`
	Delta        *delta  `json:"delta,omitempty"`
	Logprobs     any     `json:"logprobs"`
	FinishReason *string `json:"finish_reason"`
}

type reply struct {
	Role    string     `json:"role"`
	Content string     `json:"content"`
	Refusal *string    `json:"refusal"`
	Askback *Extension `json:"askback"`
}

type delta struct {
	Role    string     `json:"role,omitempty"`
	Content *string    `json:"content,omitempty"`
	Askback *Extension `json:"askback,omitempty"`
}

// usage is in tokens.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

// usageOf is what the turn's models counted, nil if none did.
func usageOf(u conversation.Usage) *usage {
	if u == (conversation.Usage{}) {
		return nil
	}
	return &usage{u.Input, u.Output, u.Input + u.Output}
}

func newCompletionID() string { return "chatcmpl-" + strings.ToLower(rand.Text()) }

var stop = "stop"

// turn is one request's way through the pipeline.
type turn struct {
	h       *handler
	w       http.ResponseWriter
	r       *request
	place   *place
	id      string
	created int64
	cancel  func() // stops the turn

	begun bool   // the stream has
	shown string // the answer so far
}

// step is an event of the pipeline, or its error.
type step struct {
	event pipeline.Event
	err   error
}

// run runs the turn and writes what comes of it. The turn has ended when run
// returns.
func (t *turn) run(ctx context.Context, p *pipeline.Pipeline, m pipeline.Message) {
	steps := make(chan step)
	go func() {
		defer close(steps)
		defer func() {
			if p := recover(); p != nil {
				t.h.o.Log.Error("a turn panicked", "panic", p, "stack", string(debug.Stack()))
				steps <- step{err: errors.New("the turn panicked; the server's log says where")}
			}
		}()
		for e, err := range p.Stream(ctx, m) {
			steps <- step{e, err}
		}
	}()
	var result pipeline.Result
	var failed error
	beat := time.NewTicker(t.h.o.Heartbeat)
	defer beat.Stop()
	for open := true; open; {
		select {
		case s, more := <-steps:
			open = more
			switch e := s.event.(type) {
			case pipeline.Delta:
				t.shown += e.Text
				if t.r.stream {
					t.send(t.chunk(&delta{Content: &e.Text}, nil))
				}
			case pipeline.Finished:
				result = e.Result
			}
			if s.err != nil {
				failed = s.err
			}
		case <-beat.C:
			if t.r.stream {
				t.write(": waiting\n\n")
			}
		}
	}
	if failed == nil && result == nil {
		failed = errors.New("the turn ended without a result")
	}
	if failed != nil {
		t.fail(ctx, failed)
		return
	}
	t.finish(ctx, result.Record())
}

// fail ends the reply with an error.
func (t *turn) fail(ctx context.Context, failed error) {
	shown := t.shown
	if !t.r.stream { // the client has seen nothing of it
		shown = ""
	}
	if _, err := t.place.close(ctx, t.r.text, shown); err != nil {
		t.h.o.Log.Warn("a conversation is not kept by its dialogue", "error", err)
	}
	e := t.h.fault(failed)
	switch {
	case !t.begun:
		e.write(t.w)
	default:
		t.send(map[string]*Error{"error": e}) // and no [DONE]
	}
}

// finish ends the reply.
func (t *turn) finish(ctx context.Context, r pipeline.Record) {
	text := plain.Text(r)
	user := t.r.text
	id, err := t.place.close(ctx, user, text)
	if err != nil {
		t.h.o.Log.Warn("a conversation is not kept by its dialogue", "error", err)
	}
	about, used := extension(r, id, t.r.ask.Trace), usageOf(r.Trace.Usage())
	if !t.r.stream {
		writeJSON(t.w, http.StatusOK, completion{t.id, "chat.completion", t.created, t.h.o.Model,
			[]choice{{Message: &reply{Role: "assistant", Content: text, Askback: about}, FinishReason: &stop}}, used})
		return
	}
	rest, ok := strings.CutPrefix(text, t.shown)
	if !ok { // never: what is streamed is the text's beginning
		t.send(map[string]*Error{"error": t.h.fault(fmt.Errorf("what was streamed is not the answer's beginning"))})
		return
	}
	if rest != "" {
		t.send(t.chunk(&delta{Content: &rest}, nil))
	}
	t.send(t.chunk(&delta{Askback: about}, &stop))
	if t.r.usage && used != nil {
		t.send(completion{t.id, "chat.completion.chunk", t.created, t.h.o.Model, []choice{}, used})
	}
	t.write("data: [DONE]\n\n")
}

func (t *turn) chunk(d *delta, finish *string) completion {
	return completion{t.id, "chat.completion.chunk", t.created, t.h.o.Model, []choice{{Delta: d, FinishReason: finish}}, nil}
}

// begin sends the stream's head and its first chunk.
func (t *turn) begin() {
	if t.begun {
		return
	}
	t.begun = true
	head := t.w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-store")
	head.Set("X-Accel-Buffering", "no")
	t.w.WriteHeader(http.StatusOK)
	none := ""
	t.send(t.chunk(&delta{Role: "assistant", Content: &none}, nil))
}

// send sends a chunk.
func (t *turn) send(v any) {
	t.begin()
	data, err := json.Marshal(v)
	if err != nil {
		t.h.o.Log.Error("a chunk cannot be written as JSON", "error", err)
		t.cancel()
		return
	}
	t.write("data: " + string(data) + "\n\n")
}

// write writes to the stream. When the client has gone the turn is stopped.
func (t *turn) write(s string) {
	t.begin()
	_, err := t.w.Write([]byte(s))
	if err == nil {
		err = http.NewResponseController(t.w).Flush()
	}
	if err != nil {
		t.cancel()
	}
}
