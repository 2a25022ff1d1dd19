package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
)

// Pending gives the clarification that waits for a reply in a conversation, as
// it was shown, so that it can be shown again: when a page is loaded anew, or
// the program is started again. It is nil if none waits.
func (p *Pipeline) Pending(ctx context.Context, id, user string) (*Clarification, error) {
	if id == "" {
		id = DefaultConversation
	}
	c, err := p.parts.Store.Load(ctx, id, 20)
	switch {
	case errors.Is(err, conversation.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case c.User != user:
		return nil, fmt.Errorf("conversation %q: %w", id, conversation.ErrUser)
	case c.Pending == nil || p.expired(c.Pending):
		return nil, nil
	}
	for _, turn := range slices.Backward(c.Turns) {
		var r Record
		if turn.Kind != conversation.KindClarification || json.Unmarshal(turn.Detail, &r) != nil || r.Clarification != c.Pending.ID {
			continue
		}
		return r.Result().(*Clarification), nil
	}
	return &Clarification{ // it was shown too long ago to have its trace at hand
		Turn: Turn{Conversation: id, Text: c.Pending.Text, Question: c.Pending.Question},
		ID:   c.Pending.ID, Gate: gate.Stage(c.Pending.Gate), Options: c.Pending.Options,
	}, nil
}
