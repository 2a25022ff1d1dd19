package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/ollama/ollama/api"
	"github.com/tmc/langchaingo/llms"

	"github.com/askback/askback/internal/ollama"
)

// The faults of a server that a caller may want to tell apart.
var (
	ErrUnreachable = ollama.ErrUnreachable // no server answers
	ErrNoModel     = ollama.ErrNoModel     // the server does not have the model
	ErrTooLong     = ollama.ErrTooLong     // the prompt is longer than the model can read
	ErrCut         = ollama.ErrCut         // the reply ended without its end mark
)

// Options say which model to ask, and how.
type Options struct {
	Host      string         // as OLLAMA_HOST is written; "": http://127.0.0.1:11434
	Model     string         // such as "granite4:micro"; required
	KeepAlive string         // how long the model stays loaded: "300" (seconds), "5m", "0", "-1" for good; "": the server's default
	Think     string         // for a model that can think: "" not at all, "auto", "low", "medium", "high"; thoughts are kept apart
	Context   int            // tokens of prompt and answer together (num_ctx); 0: as much as the prompt needs, up to what the model can read
	Limit     int            // tokens of an answer at most, if the call sets none; 0: 1024
	Settings  map[string]any // further options of the server, such as "num_thread"
	HTTP      *http.Client   // sends the requests; nil: http.DefaultClient
}

// Model is a model on a server. It is safe for concurrent use.
type Model struct {
	client  *ollama.Client
	options Options
	keep    *api.Duration
}

var _ llms.Model = (*Model)(nil)

// New gives a model. Options that make no sense are an error here; whether the
// server and the model are there shows in the first call.
func New(o Options) (*Model, error) {
	if strings.TrimSpace(o.Model) == "" {
		return nil, errors.New("no Ollama model is named; set Model, such as granite4:micro")
	}
	switch o.Think {
	case "", "none", "auto", "low", "medium", "high":
	default:
		return nil, fmt.Errorf("think %q cannot be read; want none, auto, low, medium or high", o.Think)
	}
	keep, err := ollama.ParseKeepAlive(o.KeepAlive)
	if err != nil {
		return nil, err
	}
	client, err := ollama.New(o.Host, o.HTTP)
	if err != nil {
		return nil, err
	}
	return &Model{client, o, keep}, nil
}

// schemaKey is where WithSchema keeps its schema in the options' metadata.
const schemaKey = "ollama_schema"

// WithSchema holds the reply to a JSON schema. The server builds the text by
// it, but a reply that runs out of tokens is cut all the same: read it with
// care.
func WithSchema(schema json.RawMessage) llms.CallOption {
	return func(o *llms.CallOptions) {
		if o.Metadata == nil {
			o.Metadata = map[string]any{}
		}
		o.Metadata[schemaKey] = schema
	}
}

// GenerateContent asks the model. The choice's GenerationInfo holds
// PromptTokens, CompletionTokens and TotalTokens; thoughts are in its
// ReasoningContent. A reply that ran into the limit has the stop reason
// "length".
func (m *Model) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	var o llms.CallOptions
	for _, set := range options {
		set(&o)
	}
	q, err := m.request(messages, o)
	if err != nil {
		return nil, err
	}
	reply, err := m.client.Chat(ctx, q, stream(ctx, o))
	if err != nil {
		return nil, err
	}
	stop := "stop"
	if reply.Stopped {
		stop = "length"
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{
		Content: reply.Text, StopReason: stop, ReasoningContent: reply.Thinking,
		GenerationInfo: map[string]any{
			"PromptTokens": reply.Prompt, "CompletionTokens": reply.Generated, "TotalTokens": reply.Prompt + reply.Generated,
		},
	}}}, nil
}

// Call asks with one prompt.
func (m *Model) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, prompt, options...)
}

// stream passes the pieces of a reply on to the caller's functions.
func stream(ctx context.Context, o llms.CallOptions) func(text, thinking string) error {
	if o.StreamingFunc == nil && o.StreamingReasoningFunc == nil {
		return nil
	}
	return func(text, thinking string) error {
		if o.StreamingReasoningFunc != nil {
			if err := o.StreamingReasoningFunc(ctx, []byte(thinking), []byte(text)); err != nil {
				return err
			}
		}
		if o.StreamingFunc != nil && text != "" {
			return o.StreamingFunc(ctx, []byte(text))
		}
		return nil
	}
}

// request turns langchaingo's words into the server's.
func (m *Model) request(messages []llms.MessageContent, o llms.CallOptions) (ollama.Chat, error) {
	q := ollama.Chat{
		Model: m.options.Model, KeepAlive: m.keep, Think: m.options.Think, Window: m.options.Context, Limit: m.options.Limit,
		Options: map[string]any{},
	}
	for k, v := range m.options.Settings {
		q.Options[k] = v
	}
	if err := unsupported(o); err != nil {
		return q, err
	}
	if o.Model != "" {
		q.Model = o.Model
	}
	if o.MaxTokens > 0 {
		q.Limit = o.MaxTokens
	}
	q.Options["temperature"] = o.Temperature
	for name, v := range map[string]float64{"top_p": o.TopP, "repeat_penalty": o.RepetitionPenalty, "frequency_penalty": o.FrequencyPenalty, "presence_penalty": o.PresencePenalty} {
		if v != 0 {
			q.Options[name] = v
		}
	}
	for name, v := range map[string]int{"top_k": o.TopK, "seed": o.Seed} {
		if v != 0 {
			q.Options[name] = v
		}
	}
	if len(o.StopWords) > 0 {
		q.Options["stop"] = o.StopWords
	}
	if o.JSONMode || o.ResponseMIMEType == "application/json" {
		q.Format = json.RawMessage(`"json"`)
	}
	if schema, ok := o.Metadata[schemaKey].(json.RawMessage); ok {
		if !json.Valid(schema) {
			return q, errors.New("the schema for the reply is no JSON")
		}
		q.Format = schema
	}
	if t := llms.GetThinkingConfig(&o); t != nil {
		q.Think = string(t.Mode)
	}
	for _, message := range messages {
		read, err := messageOf(message)
		if err != nil {
			return q, err
		}
		q.Messages = append(q.Messages, read)
	}
	if len(q.Messages) == 0 {
		return q, errors.New("there is no message to reply to")
	}
	return q, nil
}

// unsupported names the first option that this adapter has no way to honour.
func unsupported(o llms.CallOptions) error {
	for name, set := range map[string]bool{
		"tools": len(o.Tools) > 0 || len(o.Functions) > 0, "more than one candidate": o.N > 1 || o.CandidateCount > 1,
		"a least length": o.MinLength > 0, "a length in characters (set MaxTokens)": o.MaxLength > 0,
		"the MIME type " + o.ResponseMIMEType: o.ResponseMIMEType != "" && o.ResponseMIMEType != "text/plain" && o.ResponseMIMEType != "application/json",
	} {
		if set {
			return fmt.Errorf("asking Ollama for %s is not supported here", name)
		}
	}
	return nil
}

var roles = map[llms.ChatMessageType]string{
	llms.ChatMessageTypeSystem: "system", llms.ChatMessageTypeHuman: "user", llms.ChatMessageTypeGeneric: "user", llms.ChatMessageTypeAI: "assistant",
}

func messageOf(m llms.MessageContent) (api.Message, error) {
	role, ok := roles[m.Role]
	if !ok {
		return api.Message{}, fmt.Errorf("a message of the role %q cannot be sent to Ollama here", m.Role)
	}
	out := api.Message{Role: role}
	var texts []string
	for _, part := range m.Parts {
		switch p := part.(type) {
		case llms.TextContent:
			texts = append(texts, p.Text)
		case llms.BinaryContent:
			if !strings.HasPrefix(p.MIMEType, "image/") {
				return out, fmt.Errorf("a part of type %s cannot be sent to Ollama; text and images can", p.MIMEType)
			}
			out.Images = append(out.Images, p.Data)
		default:
			return out, fmt.Errorf("a part of type %T cannot be sent to Ollama here; text and images can", part)
		}
	}
	out.Content = strings.Join(texts, "\n")
	return out, nil
}
