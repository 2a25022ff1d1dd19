package conversation_test

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/askback/askback/conversation"
)

func TestUsageOf(t *testing.T) {
	for _, c := range []struct {
		name string
		info map[string]any
		want conversation.Usage
	}{
		{"OpenAI, Ollama", map[string]any{"PromptTokens": 12, "CompletionTokens": 3, "TotalTokens": 15, "ReasoningTokens": 2}, conversation.Usage{Input: 12, Output: 3}},
		{"Anthropic", map[string]any{"InputTokens": 12, "OutputTokens": 3}, conversation.Usage{Input: 12, Output: 3}},
		{"Bedrock", map[string]any{"input_tokens": 12, "output_tokens": 3}, conversation.Usage{Input: 12, Output: 3}},
		{"Gemini", map[string]any{"input_tokens": int32(12), "output_tokens": int32(3), "PromptTokens": int32(12)}, conversation.Usage{Input: 12, Output: 3}},
		{"of JSON", map[string]any{"PromptTokens": 12.0, "CompletionTokens": int64(3)}, conversation.Usage{Input: 12, Output: 3}},
		{"a server that does not tell", map[string]any{"PromptTokens": 0, "CompletionTokens": 0}, conversation.Usage{}},
		{"one half", map[string]any{"CompletionTokens": 3}, conversation.Usage{Output: 3}},
		{"nonsense", map[string]any{"PromptTokens": "12", "CompletionTokens": -3}, conversation.Usage{}},
		{"nothing", nil, conversation.Usage{}},
	} {
		if got := conversation.UsageOf(c.info); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestMeterUsage(t *testing.T) {
	conversation.AddUsage(t.Context(), conversation.Usage{Input: 1}) // nobody counts
	outer, all := conversation.MeterUsage(t.Context())
	inner, own := conversation.MeterUsage(outer)
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() { conversation.AddUsage(outer, conversation.Usage{Input: 2, Output: 1}) })
	}
	calls.Wait()
	conversation.AddUsage(inner, conversation.Usage{Input: 7})
	if all() != (conversation.Usage{Input: 100, Output: 50}) || own() != (conversation.Usage{Input: 7}) {
		t.Errorf("counted %+v and inside it %+v", all(), own())
	}
	if text, _ := json.Marshal([]conversation.Usage{{}, {Input: 7}, {Input: 2, Output: 1}}); string(text) != `[{},{"input_tokens":7},{"input_tokens":2,"output_tokens":1}]` {
		t.Errorf("as JSON %s", text)
	}
}
