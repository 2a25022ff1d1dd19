package tenant

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/askback/askback/conversation"
)

// ErrLongID says that a conversation's id leaves no room for its tenant's name.
var ErrLongID = fmt.Errorf("the conversation's id is too long; it may have %d bytes", maxID)

// maxID is the longest id that a tenant may give. A tenant's name and the separator
// have room beside it in what a store takes.
const maxID = 900

// separator is between a tenant and an id. No tenant's name holds it.
const separator = "/"

// Conversations gives each tenant a part of the store: the conversations of the tenant
// larkwheel are larkwheel/ID in it and larkwheel's. Users in requests and filters are
// not looked at: the context's tenant is the user.
func Conversations(s conversation.Store) conversation.Store { return &conversations{s} }

type conversations struct{ store conversation.Store }

// Begin implements conversation.Store.
func (c *conversations) Begin(ctx context.Context, r conversation.Request) (conversation.Claim, error) {
	name, err := needed(ctx)
	if err != nil {
		return nil, err
	}
	if len(r.Conversation) > maxID {
		return nil, ErrLongID
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	r.User, r.Conversation = name, name+separator+r.Conversation
	inner, err := c.store.Begin(ctx, r)
	if err != nil {
		return nil, outside(name, r.Conversation, err)
	}
	return &claim{inner, name}, nil
}

// claim is one of a tenant's conversation.
type claim struct {
	conversation.Claim
	tenant string
}

// Conversation implements conversation.Claim.
func (c *claim) Conversation() *conversation.Conversation {
	return shown(c.tenant, c.Claim.Conversation())
}

// Commit implements conversation.Claim.
func (c *claim) Commit(ctx context.Context, next *conversation.Conversation) error {
	kept := *next
	kept.ID = c.tenant + separator + next.ID
	return outside(c.tenant, kept.ID, c.Claim.Commit(ctx, &kept))
}

// shown is a conversation as its tenant knows it.
func shown(name string, c *conversation.Conversation) *conversation.Conversation {
	c.ID = strings.TrimPrefix(c.ID, name+separator)
	return c
}

// outside is an error as the tenant may see it.
func outside(name, id string, err error) error {
	for _, kind := range []error{conversation.ErrNotFound, conversation.ErrUser} {
		if errors.Is(err, kind) { // of the two, the one that tells nothing
			return fmt.Errorf("conversation %q: %w", strings.TrimPrefix(id, name+separator), conversation.ErrNotFound)
		}
	}
	return err
}

// Load implements conversation.Store.
func (c *conversations) Load(ctx context.Context, id string, last int) (*conversation.Conversation, error) {
	name, err := needed(ctx)
	if err != nil {
		return nil, err
	}
	if len(id) > maxID {
		return nil, outside(name, id, conversation.ErrNotFound)
	}
	found, err := c.store.Load(ctx, name+separator+id, last)
	if err == nil && found.User != name {
		err = conversation.ErrUser
	}
	if err != nil {
		return nil, outside(name, id, err)
	}
	return shown(name, found), nil
}

// Rename implements conversation.Store.
func (c *conversations) Rename(ctx context.Context, id, title string) error {
	name, err := needed(ctx)
	if err != nil {
		return err
	}
	if _, err := c.Load(ctx, id, 1); err != nil {
		return err
	}
	return outside(name, id, c.store.Rename(ctx, name+separator+id, title))
}

// List implements conversation.Store.
func (c *conversations) List(ctx context.Context, f conversation.Filter) iter.Seq2[conversation.Info, error] {
	return func(yield func(conversation.Info, error) bool) {
		name, err := needed(ctx)
		if err != nil {
			yield(conversation.Info{}, err)
			return
		}
		f := f
		f.User = name
		if f.ID != "" {
			f.ID = name + separator + f.ID
		}
		// What is of the tenant's name and none of its ids is passed over; if that
		// leaves too few, all are read.
		for given, wanted := 0, f.Limit; ; f.Limit = 0 {
			read, own := 0, 0
			for info, err := range c.store.List(ctx, f) {
				if err != nil {
					yield(conversation.Info{}, err)
					return
				}
				read++
				id, ok := strings.CutPrefix(info.ID, name+separator)
				if !ok || info.User != name {
					continue
				}
				if own++; own <= given {
					continue // in the pass before
				}
				info.ID = id
				if given++; !yield(info, nil) || given == wanted {
					return
				}
			}
			if f.Limit == 0 || read < f.Limit {
				return
			}
		}
	}
}

// Delete implements conversation.Store.
func (c *conversations) Delete(ctx context.Context, f conversation.Filter) (int, error) {
	name, err := needed(ctx)
	if err != nil {
		return 0, err
	}
	if f.IsZero() {
		return 0, errors.New("deleting conversations: the filter leaves all of them; name an id, a user or an age")
	}
	f.User = name
	if f.ID != "" {
		f.ID = name + separator + f.ID
	}
	return c.store.Delete(ctx, f)
}

// Close implements conversation.Store.
func (c *conversations) Close() error { return c.store.Close() }
