package langchain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/schema"

	"github.com/askback/askback/conversation"
)

// ChatHistory is one conversation of a store as langchaingo's chat history.
// A human message opens a turn and the AI message after it closes it; since a
// conversation keeps whole turns, an open message is held until then.
type ChatHistory struct {
	// User is whose conversation it is; "" is nobody's in particular. Another
	// user's is conversation.ErrUser.
	User string

	store conversation.Store
	id    string
	open  string // a human message that waits for its reply
}

var _ schema.ChatMessageHistory = (*ChatHistory)(nil)

// NewChatHistory offers the conversation of that id to langchaingo.
func NewChatHistory(s conversation.Store, id string) *ChatHistory {
	return &ChatHistory{store: s, id: id}
}

// load gives the conversation, nil if there is none yet.
func (h *ChatHistory) load(ctx context.Context, last int) (*conversation.Conversation, error) {
	c, err := h.store.Load(ctx, h.id, last)
	switch {
	case errors.Is(err, conversation.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case c.User != h.User:
		return nil, fmt.Errorf("conversation %q: %w", h.id, conversation.ErrUser)
	}
	return c, nil
}

// Messages gives the dialogue, oldest first.
func (h *ChatHistory) Messages(ctx context.Context) ([]llms.ChatMessage, error) {
	c, err := h.load(ctx, conversation.All)
	if err != nil {
		return nil, err
	}
	messages := []llms.ChatMessage{}
	if c != nil {
		for _, m := range c.History() {
			if m.Role == conversation.User {
				messages = append(messages, llms.HumanChatMessage{Content: m.Text})
			} else {
				messages = append(messages, llms.AIChatMessage{Content: m.Text})
			}
		}
	}
	if h.open != "" {
		messages = append(messages, llms.HumanChatMessage{Content: h.open})
	}
	return messages, nil
}

// AddUserMessage opens a turn.
func (h *ChatHistory) AddUserMessage(_ context.Context, text string) error {
	if h.open != "" {
		return errors.New("two human messages in a row; a turn is a human message and its reply")
	}
	h.open = text
	return nil
}

// AddAIMessage closes the open turn and stores it.
func (h *ChatHistory) AddAIMessage(ctx context.Context, text string) error {
	if h.open == "" {
		return errors.New("a reply without a human message before it; a turn is a human message and its reply")
	}
	claim, err := h.store.Begin(ctx, conversation.Request{Conversation: h.id, User: h.User, Text: h.open, Last: 1})
	if err != nil {
		return err
	}
	defer claim.Release()
	c := claim.Conversation()
	c.Turns = append(c.Turns, conversation.Turn{
		Number: c.Next(), At: time.Now().UTC(),
		Text: h.open, Question: h.open, Kind: conversation.KindAnswer, Reply: text,
	})
	if err := claim.Commit(ctx, c); err != nil {
		return err
	}
	h.open = ""
	return nil
}

// AddMessage adds a human or an AI message; other kinds are refused.
func (h *ChatHistory) AddMessage(ctx context.Context, m llms.ChatMessage) error {
	switch m.GetType() {
	case llms.ChatMessageTypeHuman:
		return h.AddUserMessage(ctx, m.GetContent())
	case llms.ChatMessageTypeAI:
		return h.AddAIMessage(ctx, m.GetContent())
	}
	return fmt.Errorf("a message of type %q: a conversation holds human and AI messages only", m.GetType())
}

// Clear deletes the conversation.
func (h *ChatHistory) Clear(ctx context.Context) error {
	if _, err := h.load(ctx, 1); err != nil {
		return err
	}
	h.open = ""
	_, err := h.store.Delete(ctx, conversation.Filter{ID: h.id})
	return err
}

// SetMessages replaces the conversation's messages.
func (h *ChatHistory) SetMessages(ctx context.Context, messages []llms.ChatMessage) error {
	if err := h.Clear(ctx); err != nil {
		return err
	}
	for _, m := range messages {
		if err := h.AddMessage(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// Import copies a langchaingo chat history into the conversation of that id,
// which must not exist yet and becomes the user's.
func Import(ctx context.Context, from schema.ChatMessageHistory, to conversation.Store, id, user string) error {
	if _, err := to.Load(ctx, id, 1); !errors.Is(err, conversation.ErrNotFound) {
		if err == nil {
			err = errors.New("it exists already")
		}
		return fmt.Errorf("importing into conversation %q: %w", id, err)
	}
	messages, err := from.Messages(ctx)
	if err != nil {
		return fmt.Errorf("reading the chat history: %w", err)
	}
	h := NewChatHistory(to, id)
	h.User = user
	return h.SetMessages(ctx, messages)
}
