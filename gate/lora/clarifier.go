package lora

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"slices"

	"github.com/askback/askback/gate"
	"github.com/askback/askback/internal/encoder"
)

// Clarifier is the embedded clarifier. It is safe for concurrent use.
type Clarifier struct {
	model    *encoder.Model
	embedder *encoder.Embedder // of the base, to see what the dialogue bears on
	adapter  *encoder.Adapter
	heads    *heads
	config   config
}

var (
	_ gate.Clarifier  = (*Clarifier)(nil)
	_ gate.Calibrated = (*Clarifier)(nil)
)

// config is clarifier.json, which describes an adapter beside its weights.
type config struct {
	Version     int    `json:"version"`
	Name        string `json:"name"`
	Base        string `json:"base"`
	Fingerprint string `json:"base_fingerprint"`
	Joint       int    `json:"joint_layers"` // top layers that read all segments together
	Budget      struct {
		History         int `json:"history"`
		Question        int `json:"question"`
		PassageHistory  int `json:"passage_history"`
		PassageQuestion int `json:"passage_question"`
		Passage         int `json:"passage"`
	} `json:"tokens"`
	Prefix map[string]string `json:"prefix"` // of a user's turn, an assistant's, and the question
	// Decision is fitted to the adapter; a gate without one decides by the
	// model's own logit.
	Decision map[gate.Stage]decision `json:"decision"`
}

// decision is a logistic regression over the features of a gate.
type decision struct {
	Features  []string  `json:"features"`
	Mean      []float64 `json:"mean"`
	Scale     []float64 `json:"scale"`
	Weights   []float64 `json:"weights"`
	Bias      float64   `json:"bias"`
	Threshold float64   `json:"threshold"` // from which probability on to ask

	// Band holds the probabilities between "sure it is clear" and "sure it is not".
	Band *[2]float64 `json:"band,omitempty"`
}

// score gives the probability that asking is right.
func (d decision) score(fs []Feature) float64 {
	z := d.Bias
	for i, f := range fs {
		z += d.Weights[i] * (f.Value - d.Mean[i]) / d.Scale[i]
	}
	return sigmoid(z)
}

//go:embed adapter
var embedded embed.FS

// embeddedAdapter is the adapter that the program carries.
func embeddedAdapter() fs.FS {
	sub, err := fs.Sub(embedded, "adapter")
	if err != nil {
		panic(err) // the folder is compiled in
	}
	return sub
}

// New makes a clarifier of an adapter's folder: adapter_config.json and
// adapter_model.safetensors as PEFT writes them, heads.safetensors and
// clarifier.json (training/README.md describes them). nil is the adapter that
// the program carries. An adapter that does not fit the embedded base is
// refused with an error that says why.
func New(adapter fs.FS) (*Clarifier, error) {
	model, err := encoder.MiniLM()
	if err != nil {
		return nil, err
	}
	if adapter == nil {
		adapter = embeddedAdapter()
	}
	c := &Clarifier{model: model, embedder: encoder.NewEmbedder(model)}
	if err := c.load(adapter); err != nil {
		return nil, fmt.Errorf("loading the clarifier's adapter: %w", err)
	}
	return c, nil
}

func (c *Clarifier) load(adapter fs.FS) error {
	data, err := fs.ReadFile(adapter, "clarifier.json")
	if err != nil {
		return err
	}
	in := json.NewDecoder(bytes.NewReader(data))
	if err := in.Decode(&c.config); err != nil {
		return fmt.Errorf("clarifier.json: %w", err)
	}
	base := c.model.Config()
	switch {
	case c.config.Version != 2:
		return fmt.Errorf("clarifier.json: version %d; this program reads version 2", c.config.Version)
	case c.config.Fingerprint != "" && c.config.Fingerprint != base.Fingerprint:
		return fmt.Errorf("it was trained on the base %s (%s), but the base here is %s (%s)",
			c.config.Base, c.config.Fingerprint, base.Name, base.Fingerprint)
	case c.config.Joint < 0 || c.config.Joint > base.Layers:
		return fmt.Errorf("clarifier.json: joint_layers is %d; the base has %d layers", c.config.Joint, base.Layers)
	}
	b := c.config.Budget
	if b.History <= 0 || b.Question <= 0 || b.PassageHistory <= 0 || b.PassageQuestion <= 0 || b.Passage <= 0 ||
		b.History+b.Question+2 > base.MaxTokens || b.PassageHistory+b.PassageQuestion+b.Passage+3 > base.MaxTokens {
		return fmt.Errorf("clarifier.json: the token budgets %+v do not fit the base's %d tokens", b, base.MaxTokens)
	}
	for _, s := range []gate.Stage{gate.Pre, gate.Post} {
		d, ok := c.config.Decision[s]
		if !ok {
			continue
		}
		if err := d.check(s); err != nil {
			return fmt.Errorf("clarifier.json: decision %s: %w", s, err)
		}
	}
	if c.adapter, err = c.model.LoadAdapter(adapter); err != nil {
		return err
	}
	weights, err := fs.ReadFile(adapter, "heads.safetensors")
	if err != nil {
		return err
	}
	if c.heads, err = readHeads(weights, base.Hidden); err != nil {
		return fmt.Errorf("heads.safetensors: %w", err)
	}
	return nil
}

// check makes sure that the regression is for the features that are computed.
func (d decision) check(s gate.Stage) error {
	want := features(gate.Request{Stage: s}, reading{})
	if len(d.Features) != len(want) || len(d.Mean) != len(want) || len(d.Scale) != len(want) || len(d.Weights) != len(want) {
		return fmt.Errorf("it has %d features, want %d; fit it again with training/decision.py", len(d.Features), len(want))
	}
	for i, f := range want {
		if d.Features[i] != f.Name {
			return fmt.Errorf("feature %d is %q, want %q; fit it again with training/decision.py", i, d.Features[i], f.Name)
		}
		if !(math.Abs(d.Scale[i]) > 0) {
			return fmt.Errorf("the scale of %q is %v", f.Name, d.Scale[i])
		}
	}
	if b := d.Band; b != nil && !(b[0] >= 0 && b[0] <= b[1] && b[1] <= 1) {
		return fmt.Errorf("the band is %v to %v; want 0 <= low <= high <= 1", b[0], b[1])
	}
	return nil
}

// Threshold is the score from which on the clarifier is sure enough to ask,
// calibrated on the validation cases for few needless questions.
func (c *Clarifier) Threshold(s gate.Stage) float64 {
	if d, ok := c.config.Decision[s]; ok {
		return d.Threshold
	}
	return gate.DefaultThreshold
}

// Band is the range of scores in which the clarifier is not sure, measured on
// the validation and calibration cases: below it few were to be asked about,
// above it few were clear. ok is false for an adapter that was not measured.
func (c *Clarifier) Band(s gate.Stage) (b gate.Band, ok bool) {
	d := c.config.Decision[s]
	if d.Band == nil {
		return gate.Band{}, false
	}
	return gate.Band{Low: d.Band[0], High: d.Band[1]}, true
}

// Name tells adapters apart in a trace.
func (c *Clarifier) Name() string { return c.config.Name }

// Clarify reads r and says how likely it is that answering would be a guess,
// and what to ask.
func (c *Clarifier) Clarify(ctx context.Context, r gate.Request) (gate.Verdict, error) {
	r = c.withoutPreamble(r)
	x, err := c.read(ctx, r)
	if err != nil {
		return gate.Verdict{}, err
	}
	v := gate.Verdict{Score: c.score(r, x), Clarifier: c.config.Name}
	if math.IsNaN(v.Score) {
		return gate.Verdict{}, fmt.Errorf("the adapter %q gives no number as its score: its weights are broken", c.config.Name)
	}
	switch {
	case r.Stage == gate.Pre && (aimed(r.Question) || !inEnglish(r.Question)):
		v.Score = min(v.Score, certain)
	case r.Stage == gate.Post && !inEnglish(r.Question) && x.plain == nil:
		v.Score = min(v.Score, certain)
	case r.Stage == gate.Pre && c.garbled(r.Question):
		v.Score = max(v.Score, hopeless)
	case r.Stage == gate.Post && len(r.Passages) < 2: // nothing to choose between
		v.Score = min(v.Score, certain)
		return v, nil
	}
	if r.Stage == gate.Post {
		v.RuledOut = ruledOut(r)
	}
	if x.plain != nil {
		v.Score = max(v.Score, plainScore)
	}
	for _, m := range x.unclear {
		v.Unclear = append(v.Unclear, m.text)
	}
	if p := pronouns.FindString(r.Question); len(v.Unclear) == 0 && p != "" && r.Stage == gate.Pre && len(r.History) == 0 {
		v.Unclear = []string{p}
	}
	v.Clarification, v.Options = phrase(r, x)
	return v, nil
}

func (c *Clarifier) score(r gate.Request, x reading) float64 {
	if d, ok := c.config.Decision[r.Stage]; ok {
		return d.score(features(r, x))
	}
	if r.Stage == gate.Pre {
		return sigmoid(x.gate1)
	}
	return sigmoid(x.gate2)
}

// Features gives what the decision on r rests on, for fitting it.
func (c *Clarifier) Features(ctx context.Context, r gate.Request) ([]Feature, error) {
	r = c.withoutPreamble(r)
	x, err := c.read(ctx, r)
	if err != nil {
		return nil, err
	}
	askable := x.askable()
	if r.Stage == gate.Pre {
		askable = signsOfUnclear(r, x)
	}
	return append(features(r, x), Feature{askableName, boolean(askable)}), nil
}

// askableName is the name of the last number that Features gives: whether there
// is anything to ask. It is no part of the decision, but a threshold counts only
// cases in which it is 1.
const askableName = "askable"

// read runs the model on r.
func (c *Clarifier) read(ctx context.Context, r gate.Request) (reading, error) {
	segments := c.segments(r)
	pre, err := c.forward(ctx, segments[:1])
	if err != nil {
		return reading{}, err
	}
	if len(segments) == 1 {
		return read(r, segments, pre, nil), nil
	}
	post, err := c.forward(ctx, segments)
	if err != nil {
		return reading{}, err
	}
	x := read(r, segments, pre, &post)
	alone := gate.Request{Stage: gate.Pre, History: r.History, Question: r.Question}
	x.unclearAlone = signsOfUnclear(alone, x) && c.score(alone, x) >= c.Threshold(gate.Pre)
	x.plain, err = c.plain(ctx, r)
	return x, err
}

func (c *Clarifier) forward(ctx context.Context, segments []segment) (output, error) {
	sequences, first := make([]encoder.Sequence, len(segments)), make([]int, len(segments))
	for i, s := range segments {
		sequences[i], first[i] = s.Sequence, max(0, slices.Index(s.Types, 1))
	}
	states, err := c.model.Forward(ctx, sequences, encoder.Options{Adapter: c.adapter, Joint: c.config.Joint})
	if err != nil {
		return output{}, err
	}
	return c.heads.apply(states, first), nil
}
