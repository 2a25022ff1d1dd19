package langchain

import (
	"context"
	"fmt"

	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/memory"
	"github.com/tmc/langchaingo/schema"

	"github.com/askback/askback/pipeline"
)

// The keys of a Chain's inputs and outputs.
const (
	// InputKey holds the user's message, a string.
	InputKey = "question"
	// ConversationKey may hold the id of the conversation, a string; without it
	// the chain's own conversation is used.
	ConversationKey = "conversation"
	// UserKey may hold who writes, and MessageKey the message's key, strings: see
	// pipeline.Message.
	UserKey    = "user"
	MessageKey = "key"
	// OutputKey holds the text to show: the answer, the clarification, or that
	// the sources do not hold it.
	OutputKey = "text"
	// ResultKey holds the pipeline.Result, for a type switch.
	ResultKey = "result"
)

// Chain is a pipeline as a langchaingo chain. It keeps the dialogue itself, in
// the pipeline's conversation store, so its memory is empty.
type Chain struct {
	p            *pipeline.Pipeline
	conversation string
}

var _ chains.Chain = Chain{}

// NewChain makes a chain whose turns belong to the conversation of that id.
func NewChain(p *pipeline.Pipeline, conversation string) Chain { return Chain{p, conversation} }

// Call runs one turn. Asking back is data, not an error: see ResultKey.
func (c Chain) Call(ctx context.Context, inputs map[string]any, _ ...chains.ChainCallOption) (map[string]any, error) {
	m := pipeline.Message{Conversation: c.conversation}
	for name, field := range map[string]*string{InputKey: &m.Text, ConversationKey: &m.Conversation, UserKey: &m.User, MessageKey: &m.Key} {
		v, there := inputs[name]
		if !there && name != InputKey {
			continue
		}
		text, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("chain input %q: got %T, want a string", name, v)
		}
		*field = text
	}
	r, err := c.p.Ask(ctx, m)
	if err != nil {
		return nil, err
	}
	return map[string]any{OutputKey: r.Record().Text, ResultKey: r}, nil
}

// GetMemory gives an empty memory: the pipeline keeps the conversation.
func (c Chain) GetMemory() schema.Memory { return memory.NewSimple() }

// GetInputKeys names the input that a chain before this one must give.
func (c Chain) GetInputKeys() []string { return []string{InputKey} }

// GetOutputKeys names what the chain gives.
func (c Chain) GetOutputKeys() []string { return []string{OutputKey, ResultKey} }
