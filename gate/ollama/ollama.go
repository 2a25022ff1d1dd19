package ollama

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strings"

	"github.com/ollama/ollama/api"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/gate/internal/reply"
	"github.com/askback/askback/internal/ollama"
)

// ErrReply says that a model's reply, asked for twice, was no clarification.
var ErrReply = reply.ErrReply

// Options say which model to ask, and how.
type Options struct {
	Host      string         // as OLLAMA_HOST is written; "": http://127.0.0.1:11434
	Model     string         // with the clarifier's adapter; required
	KeepAlive string         // how long it stays loaded, as in generation/ollama
	Settings  map[string]any // further options of the server, such as "num_thread"
	HTTP      *http.Client   // sends the requests; nil: http.DefaultClient
}

// Clarifier asks a model on a server. It is safe for concurrent use.
type Clarifier struct {
	client  *ollama.Client
	options Options
	keep    *api.Duration
}

var _ gate.Clarifier = (*Clarifier)(nil)

// New gives a clarifier. Options that make no sense are an error here; whether
// the server and the model are there shows in the first call.
func New(o Options) (*Clarifier, error) {
	if strings.TrimSpace(o.Model) == "" {
		return nil, errors.New("no clarifier model is named; set Model to one that askback clarifier install made")
	}
	keep, err := ollama.ParseKeepAlive(o.KeepAlive)
	if err != nil {
		return nil, err
	}
	client, err := ollama.New(o.Host, o.HTTP)
	if err != nil {
		return nil, err
	}
	return &Clarifier{client, o, keep}, nil
}

// Name tells clarifiers apart in a trace.
func (c *Clarifier) Name() string { return "ollama " + c.options.Model }

// Clarify asks the model. A reply that is cut or is no clarification is asked
// for once more, not quite at temperature 0, or it would come out the same; a
// second one is an error.
func (c *Clarifier) Clarify(ctx context.Context, r gate.Request) (gate.Verdict, error) {
	temperature, room := 0.0, min(maxPassages, maxPassage*len(r.Passages))
	for again := false; ; {
		said, err := c.ask(ctx, r, temperature, room)
		var clarification string
		var clear bool
		if err == nil {
			if clarification, clear, err = reply.Read(said.Text, reply.Said(r)); err == nil {
				return reply.Verdict(r, clarification, clear, score(said.Text, said.Logprobs), c.Name()), nil
			}
		}
		switch {
		case errors.Is(err, ollama.ErrTooLong) && room > leastRoom:
			room /= 2 // the passages must be shown shorter
		case again || !errors.Is(err, reply.ErrReply) && !errors.Is(err, ollama.ErrCut):
			return gate.Verdict{}, fmt.Errorf("asking %s whether to clarify: %w", c.options.Model, err)
		default:
			again, temperature = true, 0.3
		}
	}
}

func (c *Clarifier) ask(ctx context.Context, r gate.Request, temperature float64, room int) (ollama.Reply, error) {
	q := ollama.Chat{
		Model: c.options.Model, Messages: messages(r, room), Format: reply.Schema, KeepAlive: c.keep,
		// The server's own penalty for repetition would bend even what is most likely.
		Options: map[string]any{"temperature": temperature, "seed": 1, "repeat_penalty": 1}, Limit: reply.Limit, Logprobs: alternatives,
	}
	for k, v := range c.options.Settings {
		q.Options[k] = v
	}
	said, err := c.client.Chat(ctx, q, nil)
	conversation.AddUsage(ctx, conversation.Usage{Input: said.Prompt, Output: said.Generated})
	return said, err
}

// What a case shows, in bytes. The dialogue's last messages and the question
// are shown almost whole; passages share what room there is.
const (
	maxMessages = 16
	maxMessage  = 2000
	maxQuestion = 4000
	maxPassage  = 4000
	maxPassages = 32_000
	leastRoom   = 2000
)

// messages lays out a case as Granite's chat template does.
func messages(r gate.Request, room int) []api.Message {
	out := []api.Message{{Role: "system", Content: system(r, room)}}
	for _, m := range r.History[max(0, len(r.History)-maxMessages):] {
		role := "user"
		if m.Role == conversation.Assistant {
			role = "assistant"
		}
		out = append(out, api.Message{Role: role, Content: reply.Text(m.Text, maxMessage)})
	}
	return append(out, api.Message{Role: "user", Content: reply.Text(r.Question, maxQuestion)})
}

// system is what the template says before the dialogue: the documents, if there
// are any, in Granite's own words.
func system(r gate.Request, room int) string {
	if r.Stage != gate.Post || len(r.Passages) == 0 {
		return "You are a helpful assistant. Please ensure responses are professional, accurate, and safe."
	}
	var b strings.Builder
	b.WriteString("You are a helpful assistant with access to the following documents. You may use one or more documents to assist with the user query.\n\n" +
		"You are given a list of documents within <documents></documents> XML tags:\n<documents>")
	limit := min(maxPassage, room/len(r.Passages))
	for i, p := range r.Passages {
		text := reply.Text(p.Text, limit)
		if title := reply.Text(p.Title, maxMessage); title != "" {
			text = title + "\n" + text
		}
		fmt.Fprintf(&b, "\n{\"text\": %s, \"doc_id\": \"%d\"}", quote(text), i+1)
	}
	b.WriteString("\n</documents>\n\nWrite the response to the user's input by strictly aligning with the facts in the provided documents. " +
		"If the information needed to answer the question is not available in the documents, inform the user that the question cannot be answered based on the available data.")
	return b.String()
}

// tag matches the tags that hold the list of documents, and what ends any.
var tag = regexp.MustCompile(`(?i)^<\s*(?:/|documents?\b)`)

// quote writes a JSON string as the template's tojson does, without escaping
// other alphabets, but so that no text can end the list of documents.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == '<' && tag.MatchString(s[i:]):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// alternatives is how many tokens are told for each place of the reply.
const alternatives = 10

// score gives the probability that the reply would not have been CLEAR, from
// the probabilities of the tokens in its place: at each token, as long as what
// was said so far could become CLEAR, that of the alternatives that still can.
// Without probabilities it is not a number.
func score(text string, tokens []api.Logprob) float64 {
	start := valueStart(text)
	if start < 0 || len(tokens) == 0 {
		return math.NaN()
	}
	said, pClear, read := "", 1.0, false
	for _, t := range tokens {
		at := len(said)
		said += t.Token
		if len(said) <= start {
			continue
		}
		skip := max(0, start-at) // what the token has of the frame
		before := ""             // what was said of the value until here
		if at > start {
			before = said[start:at]
		}
		if !strings.HasPrefix(reply.Clear, before) || before == reply.Clear {
			break
		}
		can, total := 0.0, 0.0
		for _, a := range candidates(t) {
			p := math.Exp(a.Logprob)
			if len(a.Token) < skip || a.Token[:skip] != t.Token[:skip] {
				continue // written otherwise, and worth too little to follow
			}
			total += p
			if v := before + a.Token[skip:]; strings.HasPrefix(reply.Clear, v) || strings.HasPrefix(v, reply.Clear) {
				can += p
			}
		}
		if total <= 0 {
			return math.NaN()
		}
		if rest := 1 - total; rest > 0 && len(t.TopLogprobs) == 0 { // told of the one token alone
			total = 1
			if can == 0 {
				can = rest
			}
		}
		pClear *= can / total
		read = true
	}
	if !read || !strings.HasPrefix(said, text[:start]) {
		return math.NaN()
	}
	return 1 - pClear
}

// candidates are a token's alternatives, itself among them.
func candidates(t api.Logprob) []api.TokenLogprob {
	for _, a := range t.TopLogprobs {
		if a.Token == t.Token {
			return t.TopLogprobs
		}
	}
	return append([]api.TokenLogprob{t.TokenLogprob}, t.TopLogprobs...)
}

// valueStart is where the clarification's text begins in a reply that is one
// plain object, or -1.
func valueStart(text string) int {
	key := strings.Index(text, `"clarification"`)
	if key < 0 || strings.TrimLeft(text[:key], " \t\r\n{") != "" {
		return -1
	}
	at := key + len(`"clarification"`)
	rest := strings.TrimLeft(text[at:], " \t\r\n:")
	if !strings.HasPrefix(rest, `"`) {
		return -1
	}
	return len(text) - len(rest) + 1
}
