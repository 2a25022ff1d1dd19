package langchain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/askback/askback/pipeline"
)

// Model is a pipeline as a langchaingo model: the last human message is the
// turn, and the reply is the text to show. The dialogue is kept in the
// pipeline's conversation, so earlier messages of the prompt are not read.
type Model struct {
	// User is who writes; "" is nobody in particular.
	User string

	p            *pipeline.Pipeline
	conversation string
}

var _ llms.Model = Model{}

// NewModel makes a model whose turns belong to the conversation of that id.
func NewModel(p *pipeline.Pipeline, conversation string) Model {
	return Model{p: p, conversation: conversation}
}

// GenerateContent runs one turn. A streaming function gets an answer's text
// piece by piece, and a clarification whole. The kind of the result and the
// flat record stand in the choice's GenerationInfo under "kind" and "record", and
// what models read and wrote for the turn under PromptTokens, CompletionTokens and
// TotalTokens, if any was asked.
func (m Model) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	var o llms.CallOptions
	for _, set := range options {
		set(&o)
	}
	if len(o.Tools) > 0 || len(o.Functions) > 0 {
		return nil, errors.New("a pipeline calls no tools; take Tools and Functions out of the call")
	}
	text, err := lastHuman(messages)
	if err != nil {
		return nil, err
	}
	send := func(s string) error {
		if o.StreamingFunc == nil || s == "" {
			return nil
		}
		return o.StreamingFunc(ctx, []byte(s))
	}
	streamed := false
	for e, err := range m.p.Stream(ctx, pipeline.Message{Conversation: m.conversation, User: m.User, Text: text}) {
		if err != nil {
			return nil, err
		}
		switch e := e.(type) {
		case pipeline.Delta:
			streamed = true
			if err := send(e.Text); err != nil {
				return nil, fmt.Errorf("the streaming function failed: %w", err)
			}
		case pipeline.Finished:
			r := e.Result.Record()
			if !streamed {
				if err := send(r.Text); err != nil {
					return nil, fmt.Errorf("the streaming function failed: %w", err)
				}
			}
			info := r.Trace.Usage().Info()
			info["kind"], info["record"] = string(r.Kind), r
			return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: r.Text, StopReason: "stop", GenerationInfo: info}}}, nil
		}
	}
	return nil, errors.New("the turn ended without a result")
}

// Call runs one turn on a prompt of text.
func (m Model) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, prompt, options...)
}

func lastHuman(messages []llms.MessageContent) (string, error) {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role != llms.ChatMessageTypeHuman {
			continue
		}
		var b strings.Builder
		for _, part := range messages[i].Parts {
			t, ok := part.(llms.TextContent)
			if !ok {
				return "", fmt.Errorf("a message part of type %T: only text is understood", part)
			}
			b.WriteString(t.Text)
		}
		return b.String(), nil
	}
	return "", errors.New("the prompt holds no human message")
}
