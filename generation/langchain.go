package generation

import (
	"context"
	"errors"
	"strings"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/retrieval"
	"github.com/tmc/langchaingo/llms"
)

// NotFoundText is what a generator under AsModel says when the passages do
// not hold the answer.
const NotFoundText = "The sources do not hold an answer to this question."

// AsModel gives a generator as a langchaingo model. Its question is the last
// human message, the dialogue is what stands before it, and passages finds
// what it is answered from. System messages and options other than the
// streaming function have nothing to act on. The choice's GenerationInfo holds
// the answer (an *Answer) under "answer", and, if a model was asked for it,
// PromptTokens, CompletionTokens and TotalTokens.
func AsModel(g Generator, passages func(ctx context.Context, question string) ([]retrieval.Passage, error)) llms.Model {
	return asModel{g, passages}
}

type asModel struct {
	generator Generator
	passages  func(context.Context, string) ([]retrieval.Passage, error)
}

// GenerateContent implements llms.Model.
func (m asModel) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	var o llms.CallOptions
	for _, set := range options {
		set(&o)
	}
	r, err := requestOf(messages)
	if err != nil {
		return nil, err
	}
	if r.Passages, err = m.passages(ctx, r.Question); err != nil {
		return nil, err
	}
	var answer *Answer
	metered, used := conversation.MeterUsage(ctx)
	for e, err := range m.generator.Generate(metered, r) {
		if err != nil {
			return nil, err
		}
		if answer = e.Done; answer != nil && !answer.Found {
			e.Delta = NotFoundText
		}
		if e.Delta != "" && o.StreamingFunc != nil {
			if err := o.StreamingFunc(ctx, []byte(e.Delta)); err != nil {
				return nil, err
			}
		}
	}
	if answer == nil {
		return nil, ErrCut
	}
	text := answer.Text
	if !answer.Found {
		text = NotFoundText
	}
	info := used().Info()
	info["answer"] = answer
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: text, StopReason: "stop", GenerationInfo: info}}}, nil
}

// Call implements llms.Model.
func (m asModel) Call(ctx context.Context, question string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, question, options...)
}

// requestOf reads the question and the dialogue from langchaingo's messages.
func requestOf(messages []llms.MessageContent) (Request, error) {
	last := len(messages) - 1
	for last >= 0 && messages[last].Role != llms.ChatMessageTypeHuman && messages[last].Role != llms.ChatMessageTypeGeneric {
		last--
	}
	if last < 0 {
		return Request{}, errors.New("the messages hold no question; the last human message is taken for it")
	}
	r := Request{Question: textOf(messages[last])}
	for _, m := range messages[:last] {
		switch m.Role {
		case llms.ChatMessageTypeHuman, llms.ChatMessageTypeGeneric:
			r.History = append(r.History, conversation.Message{Role: conversation.User, Text: textOf(m)})
		case llms.ChatMessageTypeAI:
			r.History = append(r.History, conversation.Message{Role: conversation.Assistant, Text: textOf(m)})
		}
	}
	return r, nil
}

func textOf(m llms.MessageContent) string {
	var parts []string
	for _, p := range m.Parts {
		if t, ok := p.(llms.TextContent); ok {
			parts = append(parts, t.Text)
		}
	}
	return strings.Join(parts, "\n")
}
