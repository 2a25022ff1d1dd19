package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/askback/askback/gate"
	"github.com/askback/askback/gate/lora"
	ollamagate "github.com/askback/askback/gate/ollama"
	"github.com/askback/askback/gate/prompted"
	"github.com/askback/askback/generation"
	ollamachat "github.com/askback/askback/generation/ollama"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/pipeline/langchain"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/minilm"
	ollamaembed "github.com/askback/askback/retrieval/ollama"
)

// serverFlags choose the model server.
type serverFlags struct {
	OllamaHost string `help:"Ollama server that runs the models named here." env:"ASKBACK_OLLAMA_HOST,OLLAMA_HOST" placeholder:"URL"`
	KeepAlive  string `help:"How long the server keeps a model loaded: seconds (300), a duration (5m), 0 to unload at once, -1 for good." env:"ASKBACK_KEEP_ALIVE,OLLAMA_KEEP_ALIVE" placeholder:"TIME"`
}

// chatFlags choose the model that writes the answers.
type chatFlags struct {
	ChatModel string `help:"Model on the Ollama server that writes the answers, or openai:NAME for one behind OPENAI_BASE_URL and OPENAI_API_KEY. Default: sentences picked from the sources, without a model." placeholder:"MODEL"`
}

// embeddingFlags choose the model that embeds.
type embeddingFlags struct {
	EmbeddingModel string `help:"Model on the Ollama server that embeds passages and questions. Default: the embedded one." placeholder:"MODEL"`
}

// clarifierFlags choose a second clarifier for what the embedded one is unsure of.
type clarifierFlags struct {
	ClarifierModel   string        `help:"Clarifier model on the Ollama server, for questions that the embedded clarifier is unsure of; or prompted:MODEL for any chat model." placeholder:"MODEL"`
	ClarifierTimeout time.Duration `help:"Time for the clarifier model; after it the embedded clarifier decides alone." default:"20s"`
	PreBand          string        `help:"Scores at gate 1 that go to the clarifier model. Default: calibrated." placeholder:"LOW,HIGH"`
	PostBand         string        `help:"Scores at gate 2 that go to the clarifier model. Default: calibrated." placeholder:"LOW,HIGH"`
}

// textEmbedder is what an index is made with.
type textEmbedder interface {
	retrieval.Embedder
	Identity() string // vectors of two identities cannot be compared
	Count(text string) int
}

// open opens the embedder that the flags name; own is the embedded one.
func (f embeddingFlags) open(ctx context.Context, server serverFlags, own *minilm.Embedder) (textEmbedder, error) {
	if f.EmbeddingModel == "" {
		return own, nil
	}
	if strings.HasPrefix(f.EmbeddingModel, openAIPrefix) {
		return nil, usagef("the embedding model %q: embedding goes through Ollama only; name one of its models, or leave the setting out for the embedded one", f.EmbeddingModel)
	}
	e, err := ollamaembed.New(ctx, ollamaembed.Options{Host: server.OllamaHost, Model: f.EmbeddingModel, KeepAlive: server.KeepAlive})
	if err != nil {
		return nil, server.usage(err)
	}
	return e, nil
}

// usage names the setting that is wrong.
func (f serverFlags) usage(err error) error {
	for part, setting := range map[string]string{"keep-alive ": "ASKBACK_KEEP_ALIVE or OLLAMA_KEEP_ALIVE (--keep-alive)", "ollama host ": "ASKBACK_OLLAMA_HOST or OLLAMA_HOST (--ollama-host)"} {
		if strings.HasPrefix(err.Error(), part) {
			return usagef("%s: %w", setting, err)
		}
	}
	return err
}

// openAIPrefix marks a model of an OpenAI-compatible server, and promptedPrefix
// a clarifier that is any chat model with a prompt.
const (
	openAIPrefix   = "openai:"
	promptedPrefix = "prompted:"
)

// model opens a chat model by its name. Nothing is sent yet.
func (f serverFlags) model(name string) (llms.Model, error) {
	if remote, ok := strings.CutPrefix(name, openAIPrefix); ok {
		m, err := openai.New(openai.WithModel(remote)) // reads OPENAI_BASE_URL and OPENAI_API_KEY
		if err != nil {
			return nil, usagef("the model %s: %w; set OPENAI_BASE_URL and OPENAI_API_KEY (any text, if the server wants none)", name, err)
		}
		return m, nil
	}
	m, err := ollamachat.New(ollamachat.Options{Host: f.OllamaHost, Model: name, KeepAlive: f.KeepAlive})
	if err != nil {
		return nil, f.usage(err)
	}
	return m, nil
}

// wire sets what writes the answers. A chat model also reads the replies and the
// follow-ups that the rules are unsure of.
func (f chatFlags) wire(parts *pipeline.Parts, server serverFlags, own *minilm.Embedder) error {
	if f.ChatModel == "" {
		parts.Generator = generation.Extractive{Embedder: own}
		return nil
	}
	m, err := server.model(f.ChatModel)
	if err != nil {
		return err
	}
	reader, err := langchain.NewReader(m)
	if err != nil {
		return err
	}
	parts.Generator, parts.Rewriter = generation.Model{LLM: m}, reader
	parts.Readers = append(parts.Readers, reader)
	return nil
}

// second opens the clarifier model that the flags name, or nil.
func (f clarifierFlags) second(server serverFlags) (gate.Clarifier, error) {
	if f.ClarifierModel == "" {
		return nil, nil
	}
	if name, ok := strings.CutPrefix(f.ClarifierModel, promptedPrefix); ok {
		m, err := server.model(name)
		if err != nil {
			return nil, err
		}
		o := prompted.Options{Name: "prompted " + name}
		if !strings.HasPrefix(name, openAIPrefix) {
			o.Call = []llms.CallOption{ollamachat.WithSchema(prompted.Schema)}
		}
		return prompted.New(m, o)
	}
	if strings.HasPrefix(f.ClarifierModel, openAIPrefix) {
		return nil, usagef("the clarifier model %q: the published clarifier is asked through Ollama; for any other model write %s%s", f.ClarifierModel, promptedPrefix, f.ClarifierModel)
	}
	c, err := ollamagate.New(ollamagate.Options{Host: server.OllamaHost, Model: f.ClarifierModel, KeepAlive: server.KeepAlive})
	if err != nil {
		return nil, server.usage(err)
	}
	return c, nil
}

// cascade puts the clarifier model behind the embedded clarifier, if one is named.
func (f gateFlags) cascade(screen *lora.Clarifier) (gate.Clarifier, error) {
	second, err := f.second(f.serverFlags)
	if err != nil || second == nil {
		return screen, err
	}
	c := gate.Cascade{Screen: screen, Second: gate.NewBreaker(second, 0), Limit: f.ClarifierTimeout, Bands: map[gate.Stage]gate.Band{}}
	for stage, flag := range map[gate.Stage]string{gate.Pre: f.PreBand, gate.Post: f.PostBand} {
		if flag != "" {
			if c.Bands[stage], err = parseBand(flag); err != nil {
				return nil, usagef("--%s-band: %w", stage, err)
			}
			continue
		}
		if _, calibrated := screen.Band(stage); !calibrated {
			c.Bands[stage] = gate.DefaultBand(screen.Threshold(stage))
		}
	}
	return c, nil
}

// parseBand reads LOW,HIGH.
func parseBand(s string) (gate.Band, error) {
	low, high, ok := strings.Cut(s, ",")
	l, err1 := strconv.ParseFloat(strings.TrimSpace(low), 64)
	h, err2 := strconv.ParseFloat(strings.TrimSpace(high), 64)
	if !ok || err1 != nil || err2 != nil || !(l >= 0 && l <= h && h <= maxThreshold) {
		return gate.Band{}, fmt.Errorf("%q is no range of scores; write LOW,HIGH, such as 0.2,0.8", s)
	}
	return gate.Band{Low: l, High: h}, nil
}
