package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/tmc/langchaingo/llms"

	"github.com/askback/askback/gate"
	"github.com/askback/askback/internal/ollama"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/minilm"
)

// doctorCommand checks what the settings name.
type doctorCommand struct {
	JSON    bool          `name:"json" help:"Print the checks as JSON."`
	Timeout time.Duration `help:"Time for each check; loading a model takes some of it." default:"2m"`
	sourceFlags
	gateFlags
	storeFlags
	waitFlags
}

// finding is one thing that was looked at.
type finding struct {
	Name  string `json:"name"`
	State string `json:"state"` // ok, note, warning or failed
	Found string `json:"found"`
	Do    string `json:"do,omitempty"` // what to do about it
}

const (
	stateOK      = "ok"
	stateNote    = "note"
	stateWarning = "warning"
	stateFailed  = "failed"
)

// Run makes the checks in the order in which a fault in one explains the next.
// A failed one makes the exit code 1.
func (c *doctorCommand) Run(ctx context.Context, io streams, program *kong.Context) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	d := &doctor{doctorCommand: c, ctx: ctx, out: io.out, errOut: io.err}
	d.settings()
	d.unknown(variables(program.Model))
	screen := d.embedded()
	if d.usesServer() {
		d.server()
	}
	embedder := d.embeddingModel()
	d.chatModel()
	d.clarifierModel(screen)
	d.index(embedder)
	d.conversations()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if c.JSON {
		out := json.NewEncoder(io.out)
		out.SetIndent("", "  ")
		if err := out.Encode(d.checks); err != nil {
			return err
		}
	}
	for _, k := range d.checks {
		if k.State == stateFailed {
			return outcome(exitFailed)
		}
	}
	return nil
}

// doctor makes the checks and reports each as it is made.
type doctor struct {
	*doctorCommand
	ctx         context.Context
	out, errOut io.Writer
	checks      []finding
	client      *ollama.Client
	down        bool // the server does not answer: what needs it is not tried
	own         *minilm.Embedder
}

func (d *doctor) report(name, state, found, do string) {
	k := finding{name, state, found, do}
	d.checks = append(d.checks, k)
	if d.JSON {
		return
	}
	s := styleFor(d.out)
	mark := map[string]string{stateOK: "ok   ", stateNote: "     ", stateWarning: s.ask("warn "), stateFailed: s.ask("FAIL ")}[state]
	fmt.Fprintf(d.out, "%s %-16s %s\n", mark, name, found)
	if do != "" {
		fmt.Fprintf(d.out, "      %-16s -> %s\n", "", do)
	}
}

// limited is the time for one check.
func (d *doctor) limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(d.ctx, d.Timeout)
}

// settings looks for values in .env that are not read as they were written.
func (d *doctor) settings() {
	data, err := os.ReadFile(".env")
	if errors.Is(err, os.ErrNotExist) {
		d.report("settings", stateNote, "no .env here; the environment and flags count", "")
		return
	}
	if err != nil {
		d.report("settings", stateFailed, err.Error(), "make .env readable, or remove it")
		return
	}
	pitfalls := envPitfalls(string(data))
	for _, p := range pitfalls {
		d.report("settings", stateWarning, fmt.Sprintf(".env line %d, %s: %s", p.line, p.name, p.why), p.do)
	}
	if len(pitfalls) == 0 {
		d.report("settings", stateOK, ".env is read as it is written", "")
	}
}

// unknown looks for settings that there are none of, such as misspelt ones.
func (d *doctor) unknown(known []string) {
	unknown := unknownSettings(os.Environ(), known)
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		found, do := unknownSetting(name, unknown[name])
		d.report("settings", stateWarning, found, do)
	}
}

// embedded loads the parts that need no server.
func (d *doctor) embedded() gate.Clarifier {
	own, err := minilm.New()
	if err != nil {
		d.report("encoder", stateFailed, err.Error(), "the program is damaged; build it again")
		return nil
	}
	d.own = own
	screen, err := d.clarifier()
	if err != nil {
		d.report("clarifier", stateFailed, err.Error(), "name another adapter with --adapter, or none")
		return nil
	}
	d.trial("clarifier", screen.Name(), screen)
	return screen
}

func (d *doctor) usesServer() bool {
	for _, m := range []string{d.ChatModel, d.EmbeddingModel, strings.TrimPrefix(d.ClarifierModel, promptedPrefix)} {
		if m != "" && !strings.HasPrefix(m, openAIPrefix) {
			return true
		}
	}
	return d.OllamaHost != ""
}

// server asks the Ollama server for its version.
func (d *doctor) server() {
	client, err := ollama.New(d.OllamaHost, nil)
	if err != nil {
		d.down = true
		d.report("ollama", stateFailed, err.Error(), "mend ASKBACK_OLLAMA_HOST or OLLAMA_HOST")
		return
	}
	d.client = client
	if _, err := ollama.ParseKeepAlive(d.KeepAlive); err != nil {
		d.report("keep-alive", stateFailed, err.Error(), "mend ASKBACK_KEEP_ALIVE or OLLAMA_KEEP_ALIVE")
	}
	ctx, cancel := context.WithTimeout(d.ctx, min(d.Timeout, 10*time.Second))
	defer cancel()
	version, err := client.Version(ctx)
	if err != nil {
		d.down = true
		d.report("ollama", stateFailed, err.Error(), fmt.Sprintf("start it (ollama serve), or set OLLAMA_HOST if it is not at %s", client.Host()))
		return
	}
	d.report("ollama", stateOK, fmt.Sprintf("version %s at %s", version, client.Host()), "")
}

// find looks a model up on the server.
func (d *doctor) find(name, model string) (ollama.Info, bool) {
	if d.down {
		d.report(name, stateFailed, model+": not looked for, since the server does not answer", "")
		return ollama.Info{}, false
	}
	ctx, cancel := d.limited()
	defer cancel()
	info, err := d.client.Model(ctx, model)
	switch {
	case errors.Is(err, ollama.ErrNoModel):
		do := "ollama pull " + model
		if name == "clarifier model" && !strings.HasPrefix(d.ClarifierModel, promptedPrefix) {
			do = "make it with askback clarifier install, or get it with ollama pull " + model
		}
		d.report(name, stateFailed, model+" is not on the server", do)
		return info, false
	case err != nil:
		d.report(name, stateFailed, err.Error(), "")
		return info, false
	}
	return info, true
}

// described is what a model is, in a line.
func described(info ollama.Info) string {
	parts := []string{info.Name}
	for _, p := range []string{info.Size, info.Quantization} {
		if p != "" && p != "unknown" {
			parts = append(parts, p)
		}
	}
	if info.Context > 0 {
		parts = append(parts, fmt.Sprintf("reads %d tokens", info.Context))
	}
	return strings.Join(parts, ", ")
}

// leastContext is what gate 2 and the answers need to read six passages.
const leastContext = 4096

func (d *doctor) reads(name string, info ollama.Info) {
	switch {
	case !info.Completes:
		d.report(name, stateFailed, described(info)+", but does not write text", "name a chat model")
	case info.Context > 0 && info.Context < leastContext:
		d.report(name, stateWarning, described(info), fmt.Sprintf("six passages and a dialogue need up to %d tokens: take a model that reads more", leastContext))
	default:
		d.report(name, stateOK, described(info), "")
	}
}

func (d *doctor) chatModel() {
	switch {
	case d.ChatModel == "":
		d.report("answers", stateNote, "picked from the sources, without a model; ASKBACK_CHAT_MODEL names one", "")
	case strings.HasPrefix(d.ChatModel, openAIPrefix):
		d.remote("chat model", d.ChatModel)
	default:
		if info, ok := d.find("chat model", d.ChatModel); ok {
			d.reads("chat model", info)
		}
	}
}

// remote tries a model of an OpenAI-compatible server, which tells nothing of
// itself.
func (d *doctor) remote(name, model string) {
	m, err := d.model(model)
	if err == nil {
		ctx, cancel := d.limited()
		defer cancel()
		_, err = llms.GenerateFromSinglePrompt(ctx, m, "Reply with OK.")
	}
	if err != nil {
		d.report(name, stateFailed, err.Error(), "check OPENAI_BASE_URL, OPENAI_API_KEY and the model's name")
		return
	}
	d.report(name, stateOK, model+" replies", "")
}

// embeddingModel gives the embedder in use, or nil if it cannot be had.
func (d *doctor) embeddingModel() textEmbedder {
	if d.EmbeddingModel == "" {
		if d.own == nil {
			return nil
		}
		return d.own
	}
	if strings.HasPrefix(d.EmbeddingModel, openAIPrefix) {
		d.report("embedding model", stateFailed, d.EmbeddingModel+": only models on an Ollama server embed here", "name one of these, such as nomic-embed-text, or none")
		return nil
	}
	info, ok := d.find("embedding model", d.EmbeddingModel)
	if !ok {
		return nil
	}
	ctx, cancel := d.limited()
	defer cancel()
	e, err := d.embeddingFlags.open(ctx, d.serverFlags, d.own)
	if err != nil {
		d.report("embedding model", stateFailed, err.Error(), "name an embedding model, such as nomic-embed-text")
		return nil
	}
	found := described(info)
	if s, ok := e.(interface{ Dimension() int }); ok {
		found += fmt.Sprintf(", vectors of %d numbers", s.Dimension())
	}
	d.report("embedding model", stateOK, found, "")
	return e
}

// clarifierModel looks the second clarifier up and tries it.
func (d *doctor) clarifierModel(screen gate.Clarifier) {
	if d.ClarifierModel == "" {
		return
	}
	name := strings.TrimPrefix(d.ClarifierModel, promptedPrefix)
	switch {
	case name == "":
		d.report("clarifier model", stateFailed, d.ClarifierModel+" names no model", "write "+promptedPrefix+"MODEL")
		return
	case strings.HasPrefix(d.ClarifierModel, openAIPrefix):
		d.report("clarifier model", stateFailed, d.ClarifierModel+" is a chat model, which needs a prompt to judge", "write "+promptedPrefix+d.ClarifierModel)
		return
	case !strings.HasPrefix(name, openAIPrefix):
		info, ok := d.find("clarifier model", name)
		if !ok {
			return
		}
		d.reads("clarifier model", info)
	}
	second, err := d.second(d.serverFlags)
	if err != nil {
		d.report("clarifier model", stateFailed, err.Error(), "")
		return
	}
	d.trial("clarifier model", d.ClarifierModel, second)
}

// trialCases are one question that is clear and one that is not, for a trial.
var trialCases = []struct {
	request gate.Request
	ask     bool
}{
	{gate.Request{Stage: gate.Pre, Question: "How many days of annual leave do full-time employees have?"}, false},
	{gate.Request{Stage: gate.Post, Question: "How long does charging take?", Passages: []retrieval.Passage{
		{ID: "1", Title: "Charging time: Cargo 2", Text: "Charging an empty Cargo 2 battery takes 6 hours."},
		{ID: "2", Title: "Charging time: City 2", Text: "Charging an empty City 2 battery takes 4 hours."},
	}}, true},
}

// trial runs a clarifier on both and tells how it judged and how long it took.
func (d *doctor) trial(name, what string, c gate.Clarifier) {
	g := gate.Gate{Clarifier: c, Policy: gate.Policy{TimeLimit: d.Timeout}}
	right, slowest := 0, time.Duration(0)
	for _, k := range trialCases {
		decision, err := g.Decide(d.ctx, k.request, gate.Budget{})
		if err != nil {
			return // the caller was interrupted
		}
		if decision.Error != "" {
			do := "the embedded clarifier decides alone until this works"
			if decision.Reason == gate.ReasonTimeLimit {
				do = "give it more time (--timeout), a smaller model, or a GPU"
			}
			d.report(name, stateFailed, fmt.Sprintf("%s: its trial failed: %s", what, decision.Error), do)
			return
		}
		if decision.Ask == k.ask {
			right++
		}
		slowest = max(slowest, decision.Elapsed)
	}
	found := fmt.Sprintf("%s: trial of a clear and an unclear question, %d of %d right, %v at most", what, right, len(trialCases), slowest.Round(time.Millisecond))
	switch limit := d.ClarifierTimeout; {
	case right < len(trialCases):
		d.report(name, stateWarning, found, "measure it before you rely on it: askback eval CASES")
	case name == "clarifier model" && limit > 0 && slowest > limit:
		d.report(name, stateWarning, found, fmt.Sprintf("that is over its time limit of %v: raise --clarifier-timeout, or keep the model loaded with --keep-alive=-1", limit))
	default:
		d.report(name, stateOK, found, "")
	}
}

// index opens what is answered from, with the embedder in use.
func (d *doctor) index(embedder textEmbedder) {
	server, err := qdrantSettings(d.Index)
	switch {
	case err != nil:
		d.report("index", stateFailed, err.Error(), "")
		return
	case server == nil && d.Index == "":
		d.report("index", stateNote, "none is named; a folder (--docs) or the sample is indexed in memory", "")
		return
	case embedder == nil:
		d.report("index", stateFailed, "not opened, since its embedder cannot be had", "")
		return
	}
	ctx, cancel := d.limited()
	defer cancel()
	name, do := d.Index, "ingest anew with this embedder (--rebuild), or set the one that the index was made with"
	var k knowledge
	if server != nil {
		server.ReadyWait = d.limit()
		name, do = qdrantName(*server), "check QDRANT_ADDR, QDRANT_API_KEY, QDRANT_TLS and that the server runs"
		k, err = openQdrant(ctx, d.errOut, *server, embedder, embedder.Identity())
	} else if _, statErr := os.Stat(d.Index); statErr != nil {
		d.report("index", stateWarning, d.Index+" is not there yet", "fill it with: askback ingest DIR --index "+d.Index)
		return
	} else {
		k, err = openIndex(ctx, d.errOut, d.Index, false, embedder, embedder.Identity())
	}
	if err != nil {
		d.report("index", stateFailed, err.Error(), do)
		return
	}
	defer k.Close()
	documents, err := k.Documents(ctx)
	if err != nil {
		d.report("index", stateFailed, err.Error(), do)
		return
	}
	if len(documents) == 0 {
		d.report("index", stateWarning, name+" holds nothing yet", "fill it with askback ingest DIR")
		return
	}
	d.report("index", stateOK, fmt.Sprintf("%s: %s, made with the embedder in use", name, counted(len(documents), "document")), "")
}

// conversations opens the store.
func (d *doctor) conversations() {
	if d.Store == "" {
		d.report("conversations", stateNote, "in memory; --store keeps them", "")
		return
	}
	ctx, cancel := d.limited()
	defer cancel()
	name := d.Store
	if strings.Contains(name, "://") {
		name = "the store" // a URL may hold a password
	}
	store, err := d.storeFlags.open(ctx)
	if err != nil {
		d.report("conversations", stateFailed, err.Error(), "check --store (ASKBACK_STORE)")
		return
	}
	_ = store.Close()
	d.report("conversations", stateOK, name+" can be opened", "")
}
