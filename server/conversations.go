package server

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/pipeline"
)

// ConversationInfo tells of a conversation in a list.
type ConversationInfo struct {
	ID      string    `json:"id"`
	Title   string    `json:"title" doc:"The name it was given, or its first question"`
	Changed time.Time `json:"changed" doc:"When its last turn was stored"`
	Turns   int       `json:"turns" doc:"How many it has"`
	Pending bool      `json:"pending" doc:"A clarification waits for a reply"`
	Running bool      `json:"running" doc:"A turn runs"`
}

// ConversationView is a conversation with its turns.
type ConversationView struct {
	ID      string           `json:"id"`
	Title   string           `json:"title"`
	Earlier int              `json:"earlier" doc:"How many turns there are before the first of these"`
	Turns   []TurnView       `json:"turns" doc:"Oldest first"`
	Pending *pipeline.Record `json:"pending" doc:"The clarification that waits for a reply, or null"`
	Running *string          `json:"running" doc:"Id of the turn that runs, or null"`
	Open    *OpenTurn        `json:"open" doc:"The message that is being answered, or was when its server ended, or null"`
}

// TransformSchema implements huma.SchemaTransformer.
func (ConversationView) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return nullable(s, "pending", "open")
}

// TurnView is a turn that was stored.
type TurnView struct {
	ID      string            `json:"id" doc:"Empty for a message without a key"`
	Number  int               `json:"number" doc:"From 1"`
	At      time.Time         `json:"at" doc:"When it ended"`
	Text    string            `json:"text" doc:"The user's words"`
	Kind    conversation.Kind `json:"kind" enum:"answer,clarification,no_answer,partial"`
	Result  *pipeline.Record  `json:"result" doc:"Null if the turn was broken off"`
	Partial string            `json:"partial,omitempty" doc:"What was shown of the answer before the turn was broken off"`
}

// TransformSchema implements huma.SchemaTransformer.
func (TurnView) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return nullable(s, "result")
}

// OpenTurn is a turn that has not ended.
type OpenTurn struct {
	ID   string    `json:"id" doc:"Empty for a message without a key"`
	Text string    `json:"text" doc:"The user's words"`
	At   time.Time `json:"at" doc:"When it began"`
}

func (s *Server) registerConversations() {
	tags := []string{"conversations"}
	handle(s, huma.Operation{OperationID: "list-conversations", Method: http.MethodGet, Path: "/api/conversations", Tags: tags,
		Summary: "List conversations, the last changed first", Description: "If there are more, Askback-Next is the cursor of the next part."},
		s.listConversations)
	handle(s, huma.Operation{OperationID: "get-conversation", Method: http.MethodGet, Path: "/api/conversations/{conversation}", Tags: tags,
		Summary: "Read a conversation"},
		s.getConversation)
	handle(s, huma.Operation{OperationID: "rename-conversation", Method: http.MethodPatch, Path: "/api/conversations/{conversation}", Tags: tags,
		Summary: "Give a conversation a title", Description: "With an empty one its first question is its title again."},
		s.renameConversation)
	handle(s, huma.Operation{OperationID: "delete-conversation", Method: http.MethodDelete, Path: "/api/conversations/{conversation}", Tags: tags,
		Summary: "Delete a conversation with everything that is kept of it", Description: "A turn that runs in it is stopped.", DefaultStatus: http.StatusNoContent},
		s.deleteConversation)
	handle(s, huma.Operation{OperationID: "export-conversation", Method: http.MethodGet, Path: "/api/conversations/{conversation}/export", Tags: tags,
		Summary: "Everything that is kept of a conversation", Description: "In the form of askback conversations export."},
		s.exportConversation)
}

// own reads the last turns of a conversation of the user.
func (s *Server) own(ctx context.Context, id string, last int) (*conversation.Conversation, conversation.Store, error) {
	store, err := s.store()
	if err != nil {
		return nil, nil, err
	}
	c, err := store.Load(ctx, id, last)
	switch {
	case err != nil:
		return nil, nil, err
	case c.User != User(ctx):
		return nil, nil, fmt.Errorf("conversation %q: %w", id, conversation.ErrUser)
	}
	return c, store, nil
}

// cursor is a place in the list of conversations: after the one that changed then.
type cursor struct {
	changed time.Time
	id      string
}

func (c cursor) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", c.changed.UnixNano(), c.id))
}

func parseCursor(text string) (c cursor, err error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	at, id, found := strings.Cut(string(b), " ")
	n, bad := strconv.ParseInt(at, 10, 64)
	if err != nil || !found || bad != nil {
		return c, &Problem{Title: http.StatusText(http.StatusUnprocessableEntity), Status: http.StatusUnprocessableEntity, Code: "invalid", Detail: "the cursor is none that Askback-Next gave",
			Errors: []*huma.ErrorDetail{{Location: "query.cursor", Message: "not a cursor", Value: text}}}
	}
	return cursor{time.Unix(0, n).UTC(), id}, nil
}

// before reports whether the conversation comes before the place.
func (c cursor) before(i conversation.Info) bool {
	return i.Changed.After(c.changed) || i.Changed.Equal(c.changed) && i.ID <= c.id
}

type listInput struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"How many at most"`
	Cursor string `query:"cursor" maxLength:"4096" doc:"Those after this place, which Askback-Next gave"`
}

type listOutput struct {
	Next string `header:"Askback-Next" doc:"Cursor of the next part; not there if this is the last"`
	Body []ConversationInfo
}

func (s *Server) listConversations(ctx context.Context, in *listInput) (*listOutput, error) {
	store, err := s.store()
	if err != nil {
		return nil, err
	}
	var after cursor
	if in.Cursor != "" {
		if after, err = parseCursor(in.Cursor); err != nil {
			return nil, err
		}
	}
	out := &listOutput{Body: []ConversationInfo{}}
	user := User(ctx)
	// Again, and more at once, if others' conversations, or those that changed at the
	// same moment, filled what was read.
	for limit := in.Limit + 1; ; limit *= 2 {
		f := conversation.Filter{User: user, Limit: limit}
		if after.id != "" {
			f.Before = after.changed.Add(time.Microsecond) // stores round to it
		}
		read := 0
		last := after
		for i, err := range store.List(ctx, f) {
			if err != nil {
				return nil, err
			}
			read++
			if after.id != "" && after.before(i) {
				continue
			}
			if i.User == user {
				if len(out.Body) == in.Limit {
					out.Next = last.String()
					return out, nil
				}
				out.Body = append(out.Body, ConversationInfo{i.ID, i.Title, i.Changed, i.Turns, i.Pending, i.Running})
			}
			last = cursor{i.Changed, i.ID}
		}
		if read < f.Limit {
			return out, nil
		}
		after = last
	}
}

type getInput struct {
	InConversation
	Last   int `query:"last" minimum:"1" maximum:"200" default:"50" doc:"How many turns at most"`
	Before int `query:"before" minimum:"1" doc:"The turns before the one of this number"`
}

func (s *Server) getConversation(ctx context.Context, in *getInput) (*struct{ Body ConversationView }, error) {
	c, store, err := s.own(ctx, in.Conversation, in.Last)
	if err != nil {
		return nil, err
	}
	if in.Before > 0 && in.Before < c.Next() {
		end := in.Before - 1
		if first := max(0, end-in.Last); first < c.Earlier {
			if c, err = store.Load(ctx, in.Conversation, c.Next()-1-first); err != nil {
				return nil, err
			}
		}
		c.Turns = c.Before(in.Before)
		if n := len(c.Turns) - in.Last; n > 0 {
			c.Turns, c.Earlier = c.Turns[n:], c.Earlier+n
		}
	}
	v := ConversationView{ID: c.ID, Title: c.Title, Earlier: c.Earlier, Turns: make([]TurnView, len(c.Turns))}
	for i, t := range c.Turns {
		v.Turns[i] = viewTurn(c.ID, t)
	}
	if c.Open != nil {
		v.Open = &OpenTurn{c.Open.Key, c.Open.Text, c.Open.At}
		if t := s.hub.find(turnID{c.User, c.ID, c.Open.Key}); t != nil && t.runs() {
			v.Running = &c.Open.Key
		} else if runs, err := running(ctx, store, c.ID); err != nil {
			return nil, err
		} else if runs {
			v.Running = &c.Open.Key
		}
	}
	if c.Pending != nil {
		b, err := s.Backend()
		if err == nil {
			p, err := b.Pipeline.Pending(ctx, c.ID, c.User)
			if err != nil {
				return nil, err
			}
			if p != nil {
				r := p.Record()
				v.Pending = &r
			}
		}
	}
	return &struct{ Body ConversationView }{v}, nil
}

// running reports whether a turn of the conversation runs, in any process.
func running(ctx context.Context, store conversation.Store, id string) (runs bool, err error) {
	for i, err := range store.List(ctx, conversation.Filter{ID: id}) {
		if err != nil {
			return false, err
		}
		runs = i.Running
	}
	return runs, nil
}

// viewTurn is a stored turn as it is shown.
func viewTurn(id string, t conversation.Turn) TurnView {
	v := TurnView{ID: t.Key, Number: t.Number, At: t.At, Text: t.Text, Kind: t.Kind}
	if t.Kind == conversation.KindPartial {
		v.Partial = t.Reply
		return v
	}
	r := record(id, t)
	v.Result = &r
	return v
}

// record is what was kept with a turn, or what can be said of one that another
// program stored.
func record(id string, t conversation.Turn) pipeline.Record {
	var r pipeline.Record
	if json.Unmarshal(t.Detail, &r) != nil || r.Result() == nil {
		r = (&pipeline.NoAnswer{Turn: pipeline.Turn{Conversation: id, Number: t.Number, Text: t.Reply, Question: t.Question}}).Record()
		r.Kind = t.Kind
	}
	return r
}

type renameInput struct {
	InConversation
	Body struct {
		Title string `json:"title" maxLength:"200"`
	}
}

// Renamed is what became of a conversation's title.
type Renamed struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

func (s *Server) renameConversation(ctx context.Context, in *renameInput) (*struct{ Body Renamed }, error) {
	_, store, err := s.own(ctx, in.Conversation, 1)
	if err != nil {
		return nil, err
	}
	if err := store.Rename(ctx, in.Conversation, in.Body.Title); err != nil {
		return nil, err
	}
	c, err := store.Load(ctx, in.Conversation, 1)
	if err != nil {
		return nil, err
	}
	return &struct{ Body Renamed }{Renamed{c.ID, c.Title}}, nil
}

func (s *Server) deleteConversation(ctx context.Context, in *struct{ InConversation }) (*struct{}, error) {
	_, store, err := s.own(ctx, in.Conversation, 1)
	if err != nil {
		return nil, err
	}
	for _, t := range s.hub.drop(User(ctx), in.Conversation) {
		t.stop(errStopped)
		if _, err := t.wait(ctx); ctx.Err() != nil {
			return nil, err
		}
	}
	n, err := store.Delete(ctx, conversation.Filter{ID: in.Conversation})
	if err == nil && n == 0 {
		err = fmt.Errorf("conversation %q: %w", in.Conversation, conversation.ErrNotFound)
	}
	return nil, err
}

type exportOutput struct {
	Disposition string `header:"Content-Disposition"`
	Body        []*conversation.Conversation
}

func (s *Server) exportConversation(ctx context.Context, in *struct{ InConversation }) (*exportOutput, error) {
	c, _, err := s.own(ctx, in.Conversation, conversation.All)
	if err != nil {
		return nil, err
	}
	return &exportOutput{Disposition: `attachment; filename="conversation.json"`, Body: []*conversation.Conversation{c}}, nil
}

// find gives the turn of that id, or of that number, of a conversation.
func findTurn(c *conversation.Conversation, id string) (conversation.Turn, bool) {
	number, _ := strconv.Atoi(id)
	var numbered *conversation.Turn
	for i := len(c.Turns) - 1; i >= 0; i-- {
		if t := c.Turns[i]; t.Key == id {
			return t, true
		} else if t.Number == number {
			numbered = &t
		}
	}
	return *cmp.Or(numbered, &conversation.Turn{}), numbered != nil
}
