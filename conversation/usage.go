package conversation

import (
	"context"
	"sync"
)

// Usage is how many tokens language models read and wrote. 0 is not known, as for
// work that no model did.
type Usage struct {
	Input  int `json:"input_tokens,omitempty"`
	Output int `json:"output_tokens,omitempty"`
}

// Plus is the usage of both together.
func (u Usage) Plus(v Usage) Usage { return Usage{u.Input + v.Input, u.Output + v.Output} }

// UsageOf reads the usage of one call of a langchaingo model from the
// GenerationInfo of its response, by the names that its models have for it.
func UsageOf(info map[string]any) Usage {
	count := func(names ...string) int {
		for _, name := range names {
			n := 0
			switch v := info[name].(type) {
			case int:
				n = v
			case int32:
				n = int(v)
			case int64:
				n = int(v)
			case float64: // of JSON
				n = int(v)
			}
			if n > 0 {
				return n
			}
		}
		return 0
	}
	return Usage{count("PromptTokens", "InputTokens", "input_tokens"), count("CompletionTokens", "OutputTokens", "output_tokens")}
}

// Info is the usage as the GenerationInfo of a langchaingo model tells it; empty if
// nothing is known.
func (u Usage) Info() map[string]any {
	if u == (Usage{}) {
		return map[string]any{}
	}
	return map[string]any{"PromptTokens": u.Input, "CompletionTokens": u.Output, "TotalTokens": u.Input + u.Output}
}

type meterKey struct{}

// meter sums up usage, also of calls at the same time.
type meter struct {
	mu   sync.Mutex
	used Usage
}

// MeterUsage gives a context that sums up the usage of the models that are asked
// with it, by AddUsage, and used, which tells the sum until then. A context in it
// with a meter of its own is not counted.
//
// It goes with the context and not with results, so that calls are counted whose
// result came to nothing: one that failed, was unfit and repeated, or lost a cascade.
func MeterUsage(ctx context.Context) (metered context.Context, used func() Usage) {
	m := &meter{}
	return context.WithValue(ctx, meterKey{}, m), func() Usage {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.used
	}
}

// AddUsage tells the context's meter, if it has one, of a call of a model. Whatever
// asks a model for a turn calls it once a call: a generator, clarifier, Reader.
func AddUsage(ctx context.Context, u Usage) {
	m, ok := ctx.Value(meterKey{}).(*meter)
	if !ok {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used = m.used.Plus(u)
}
