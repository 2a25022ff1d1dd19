package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/ollama/ollama/api"
)

// Chat is a request for a reply.
type Chat struct {
	Model     string
	Messages  []api.Message
	Format    json.RawMessage // a JSON schema, or "json"; nil: free text
	Think     string          // "", "none": not at all; "auto", "low", "medium", "high": if the model can
	KeepAlive *api.Duration   // nil: the server's default
	Options   map[string]any  // of the server; num_ctx and num_predict are set from Window and Limit
	Limit     int             // tokens of the reply at most; 0: DefaultLimit
	Window    int             // tokens of prompt and reply together (num_ctx); 0: as much as the prompt needs
	Logprobs  int             // how many alternatives to tell for each token, with their probabilities; 0: none
}

// DefaultLimit is the longest reply, in tokens, when a request names none. A
// model that repeats itself without end is stopped by it.
const DefaultLimit = 1024

// Reply is what a model said, whole.
type Reply struct {
	Text      string
	Thinking  string
	Stopped   bool // it ran into the limit and is not finished
	Logprobs  []api.Logprob
	Prompt    int           // tokens of the prompt
	Generated int           // tokens of the reply
	Load      time.Duration // loading the model
	Evaluate  time.Duration // reading the prompt
	Generate  time.Duration // writing the reply
}

// Chat asks for a reply. each is called with the pieces of the text and of the
// thinking as they come, and may be nil; an error of its own ends the request
// and is returned as it is.
//
// A prompt that does not fit is never cut: num_ctx is sized to it, up to what
// the model can read, and beyond that the error is ErrTooLong. A reply without
// its end mark is ErrCut.
func (c *Client) Chat(ctx context.Context, q Chat, each func(text, thinking string) error) (Reply, error) {
	if ctx.Err() != nil {
		return Reply{}, ctx.Err()
	}
	info, err := c.Model(ctx, q.Model)
	if err != nil {
		return Reply{}, err
	}
	limit := q.Limit
	if limit <= 0 {
		limit = DefaultLimit
	}
	window := q.Window
	if window <= 0 {
		window = c.window(q.Model, tokens(q)+limit, info.Context)
	}
	for {
		reply, started, err := c.chat(ctx, q, info, limit, window, each)
		wider := 2 * window
		if info.Context > 0 {
			wider = min(wider, info.Context)
		}
		if !errors.Is(err, ErrTooLong) || started || q.Window > 0 || wider <= window || wider > maxWindow {
			return reply, err
		}
		window = c.window(q.Model, wider, info.Context) // the estimate was short
	}
}

func (c *Client) chat(ctx context.Context, q Chat, info Info, limit, window int, each func(text, thinking string) error) (r Reply, started bool, err error) {
	no, streams, options := false, each != nil, map[string]any{}
	maps.Copy(options, q.Options)
	options["num_ctx"], options["num_predict"] = window, limit
	// Without a reader of the pieces none are asked for: a server of version 0.17
	// that streams may hang for good when its caller leaves at the wrong moment.
	request := &api.ChatRequest{
		Model: q.Model, Messages: q.Messages, Stream: &streams, Format: q.Format, KeepAlive: q.KeepAlive, Options: options,
		Truncate: &no, Shift: &no, Logprobs: q.Logprobs > 0, TopLogprobs: q.Logprobs,
	}
	if info.Thinks { // asking a model that cannot think is refused, even for not thinking
		request.Think = thinkValue(q.Think)
	}
	var text, thinking strings.Builder
	var stopped error // by each, or by us
	pieces, done := 0, false
	err = again(func() bool { return !started }, func() error {
		return c.api.Chat(ctx, request, func(p api.ChatResponse) error {
			started = true
			// A server that does not keep to the limit is broken, or no Ollama.
			if pieces++; pieces > 2*limit+64 {
				stopped = fmt.Errorf("ollama at %s went on after the %d tokens that were asked for", c.host, limit)
				return stopped
			}
			text.WriteString(p.Message.Content)
			thinking.WriteString(p.Message.Thinking)
			r.Logprobs = append(r.Logprobs, p.Logprobs...)
			if p.Done {
				done = true
				r.Stopped = p.DoneReason == "length"
				r.Prompt, r.Generated = p.PromptEvalCount, p.EvalCount
				r.Load, r.Evaluate, r.Generate = p.LoadDuration, p.PromptEvalDuration, p.EvalDuration
			}
			if each != nil && p.Message.Content+p.Message.Thinking != "" {
				stopped = each(p.Message.Content, p.Message.Thinking)
			}
			return stopped
		})
	})
	r.Text, r.Thinking = text.String(), thinking.String()
	switch {
	case ctx.Err() != nil:
		return r, started, ctx.Err()
	case stopped != nil:
		return r, started, stopped
	case err != nil:
		return r, started, c.explain(ctx, q.Model, err)
	case !done:
		return r, started, fmt.Errorf("%w: ollama at %s closed the stream, as it does when a model repeats itself; ask again, and see its log if it happens often", ErrCut, c.host)
	}
	return r, started, nil
}

func thinkValue(s string) *api.ThinkValue {
	switch s {
	case "", "none":
		return &api.ThinkValue{Value: false}
	case "low", "medium", "high":
		return &api.ThinkValue{Value: s}
	}
	return &api.ThinkValue{Value: true}
}

const (
	minWindow = 4096
	maxWindow = 1 << 20
)

// window gives the num_ctx for a need of that many tokens. It grows in powers
// of two and never shrinks while the program runs, since a server loads the
// model anew for each other value.
func (c *Client) window(model string, need, most int) int {
	size := minWindow
	for size < need && size < maxWindow {
		size *= 2
	}
	if most > 0 {
		size = min(size, most)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	size = max(size, c.windows[model])
	c.windows[model] = size
	return size
}

// tokens estimates how many tokens a prompt has, rather too many than too few:
// three bytes each in Latin script, two elsewhere, and a few for each message's
// frame.
func tokens(q Chat) int {
	n := 64
	for _, m := range q.Messages {
		ascii := 0
		for i := range len(m.Content) {
			if m.Content[i] < 0x80 {
				ascii++
			}
		}
		n += 8 + ascii/3 + (len(m.Content)-ascii)/2
	}
	return n
}
