package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/pipeline"
)

// TurnResult is a turn's result: what pipeline.Record has, and the turn's id.
type TurnResult struct {
	ID string `json:"id" doc:"The turn's id, which is its message's key"`
	pipeline.Record
}

// The data of a stream's events. The others are gate.Decision, TurnResult,
// Problem and an empty object.
type (
	// TurnStarted is that of turn.
	TurnStarted struct {
		ID           string `json:"id"`
		Conversation string `json:"conversation"`
	}
	// TurnUnderstood is that of understood.
	TurnUnderstood struct {
		Question string `json:"question"`
	}
	// TurnRetrieved is that of retrieved.
	TurnRetrieved struct {
		Passages []pipeline.PassageTrace `json:"passages"`
	}
	// TurnDelta is that of delta.
	TurnDelta struct {
		Text string `json:"text"`
	}
)

// TurnMessage is what a user sends: text, a choice, or an edited question.
type TurnMessage struct {
	Text          string `json:"text,omitempty" doc:"The user's words"`
	Choice        string `json:"choice,omitempty" doc:"Id of the option that was clicked, instead of text"`
	Question      string `json:"question,omitempty" doc:"The question as understood, edited by the user: asked in its place, instead of text"`
	Clarification string `json:"clarification,omitempty" doc:"Id of the clarification that is replied to; if it waits no more that is a problem, and the reply is never taken for something else"`
	Key           string `json:"key,omitempty" maxLength:"200" pattern:"^([^.\\x00-\\x1F\\x7F-\\x9F][^\\x00-\\x1F\\x7F-\\x9F]*|[.][^.\\x00-\\x1F\\x7F-\\x9F][^\\x00-\\x1F\\x7F-\\x9F]*|[.][.][^\\x00-\\x1F\\x7F-\\x9F]+)?$" patternDescription:"without control characters, and not . or .." doc:"Names the message and its turn: sent again it is the same turn. Made up by the server if not given"`
}

var _ huma.Resolver = (*TurnMessage)(nil)

// TransformSchema implements huma.SchemaTransformer: null is nothing.
func (*TurnMessage) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	for _, p := range s.Properties {
		p.Nullable = true
	}
	return s
}

// Resolve implements huma.Resolver: a message says one thing.
func (m *TurnMessage) Resolve(huma.Context) []error {
	n := 0
	for _, s := range []string{m.Text, m.Choice, m.Question} {
		if s != "" {
			n++
		}
	}
	if n != 1 {
		return []error{&huma.ErrorDetail{Location: "body", Message: "give one of text, choice and question"}}
	}
	if m.Choice == "" && strings.TrimSpace(m.Text+m.Question) == "" {
		return []error{&huma.ErrorDetail{Location: "body.text", Message: pipeline.ErrEmpty.Error()}}
	}
	return nil
}

// InConversation is the part of a request that names a conversation.
type InConversation struct {
	Conversation string `path:"conversation" minLength:"1" maxLength:"1024" pattern:"^([^.\\x00-\\x1F\\x7F-\\x9F][^\\x00-\\x1F\\x7F-\\x9F]*|[.][^.\\x00-\\x1F\\x7F-\\x9F][^\\x00-\\x1F\\x7F-\\x9F]*|[.][.][^\\x00-\\x1F\\x7F-\\x9F]+)?$" patternDescription:"without control characters, and not . or .." doc:"Id of the conversation; who sends the first message chooses it"`
}

var _ huma.Resolver = (*InConversation)(nil)

// Resolve implements huma.Resolver.
func (c *InConversation) Resolve(huma.Context) []error {
	if err := conversation.CheckID(c.Conversation); err != nil {
		return []error{&huma.ErrorDetail{Location: "path.conversation", Message: err.Error()}}
	}
	return nil
}

// OfTurn is the part of a request that names a turn.
type OfTurn struct {
	InConversation
	Turn string `path:"turn" maxLength:"1024" doc:"Id of the turn"`
}

func (s *Server) registerTurns() {
	stream := &huma.MediaType{Schema: s.eventSchema()}
	start := huma.Operation{OperationID: "start-turn", Method: http.MethodPost, Path: "/api/conversations/{conversation}/turns", Tags: []string{"turns"},
		Summary:     "Send a message, and get its turn",
		Description: "With Accept: text/event-stream the turn's events as they happen, otherwise its result. The turn goes on if the connection is lost. The header Askback-Turn gives its id.",
		Responses: map[string]*huma.Response{"200": {Description: "The turn", Content: map[string]*huma.MediaType{
			"application/json": {Schema: s.schema(TurnResult{}, "TurnResult")}, "text/event-stream": stream,
		}, Headers: map[string]*huma.Header{"Askback-Turn": {Description: "The turn's id", Schema: &huma.Schema{Type: "string"}}}}}}
	handle(s, start, func(ctx context.Context, in *struct {
		InConversation
		Accept string `header:"Accept" hidden:"true"`
		Body   TurnMessage
	}) (*huma.StreamResponse, error) {
		b, err := s.Backend()
		if err != nil {
			return nil, err
		}
		m := in.Body
		if m.Key == "" {
			m.Key = rand.Text()
		}
		t, err := s.hub.start(ctx, b.Pipeline, pipeline.Message{Conversation: in.Conversation, User: User(ctx),
			Text: m.Text + m.Question, Choice: m.Choice, Clarification: m.Clarification, Key: m.Key})
		if err != nil {
			return nil, err
		}
		return &huma.StreamResponse{Body: func(c huma.Context) {
			r, w := humago.Unwrap(c)
			w.Header().Set("Askback-Turn", m.Key)
			if strings.Contains(in.Accept, "text/event-stream") {
				s.stream(w, r, t, 0)
				return
			}
			s.await(w, r, t)
		}}, nil
	})
	// What Resolve checks, for the description: it says so in better words.
	var one []*huma.Schema
	ways := []string{"text", "choice", "question"}
	for _, way := range ways {
		this := &huma.Schema{Required: []string{way}, Properties: map[string]*huma.Schema{}}
		for _, other := range ways {
			this.Properties[other] = &huma.Schema{MaxLength: new(0)} // or null
		}
		this.Properties[way] = &huma.Schema{Type: huma.TypeString, Pattern: `[^\s]`}
		one = append(one, this)
	}
	body := s.api.OpenAPI().Paths[start.Path].Post.RequestBody.Content["application/json"]
	body.Schema = &huma.Schema{AllOf: []*huma.Schema{body.Schema, {OneOf: one}}}

	follow := huma.Operation{OperationID: "follow-turn", Method: http.MethodGet, Path: "/api/conversations/{conversation}/turns/{turn}/events", Tags: []string{"turns"},
		Summary:     "Follow a turn that runs or has run",
		Description: "The turn's events after the one that Last-Event-ID names, from the beginning without it. Never runs a turn again.",
		Responses: map[string]*huma.Response{
			"200": {Description: "The turn's events", Content: map[string]*huma.MediaType{"text/event-stream": stream}},
			"204": {Description: "The client has them all"},
		}}
	handle(s, follow, func(ctx context.Context, in *struct {
		OfTurn
		Last int `header:"Last-Event-ID" minimum:"0" maximum:"2147483647" doc:"Number of the last event that the client has"`
	}) (*huma.StreamResponse, error) {
		t, after, err := s.attach(ctx, turnID{User(ctx), in.Conversation, in.Turn}, in.Last)
		if err != nil {
			return nil, err
		}
		return &huma.StreamResponse{Body: func(c huma.Context) {
			r, w := humago.Unwrap(c)
			if _, ended, _ := t.since(0); ended && after > 0 && after == t.count() {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			s.stream(w, r, t, after)
		}}, nil
	})

	stop := huma.Operation{OperationID: "stop-turn", Method: http.MethodDelete, Path: "/api/conversations/{conversation}/turns/{turn}", Tags: []string{"turns"},
		Summary:     "Stop a turn",
		Description: "The model stops too. What was shown of the answer is kept. A turn that has ended stays as it is.", DefaultStatus: http.StatusNoContent}
	handle(s, stop, func(ctx context.Context, in *struct{ OfTurn }) (*struct{}, error) {
		return nil, s.stopTurn(ctx, turnID{User(ctx), in.Conversation, in.Turn})
	})
}

// count is the number of events so far.
func (t *turn) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.before + len(t.events)
}

// attach finds the turn to follow, and the number of events that the client has
// of it.
func (s *Server) attach(ctx context.Context, id turnID, last int) (*turn, int, error) {
	if t := s.hub.find(id); t != nil {
		if last > t.count() { // of an earlier run of the same message
			last = 0
		}
		return t, last, nil
	}
	told := &turn{turnID: id, more: make(chan struct{}), before: last}
	stored, err := s.stored(ctx, id)
	switch {
	case errors.Is(err, errElsewhere):
		if last == 0 {
			told.add("turn", TurnStarted{id.turn, id.conversation})
		}
		go s.watch(ctx, told)
	case err != nil:
		return nil, 0, err
	default:
		if err := stored.replay(told); err != nil {
			return nil, 0, err
		}
	}
	return told, last, nil
}

// errElsewhere says that a turn runs in another process.
var errElsewhere = errors.New("the turn runs in another process of the server, which has to be asked to stop it")

// watch waits, as long as there is a reader, for a turn that runs in another
// process, and gives what it stores.
func (s *Server) watch(ctx context.Context, told *turn) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(300 * time.Millisecond):
		}
		stored, err := s.stored(ctx, told.turnID)
		if errors.Is(err, errElsewhere) {
			continue
		}
		if err == nil {
			err = stored.replay(told)
		}
		if err != nil {
			told.end(nil, s.problemOf(ctx, err))
		}
		return
	}
}

// stored finds a turn in the store.
func (s *Server) stored(ctx context.Context, id turnID) (*storedTurn, error) {
	store, err := s.store()
	if err != nil {
		return nil, err
	}
	for _, last := range []int{0, conversation.All} { // nearly always it is one of the last
		c, err := store.Load(ctx, id.conversation, last)
		switch {
		case err != nil:
			return nil, err
		case c.User != id.user:
			return nil, fmt.Errorf("conversation %q: %w", id.conversation, conversation.ErrUser)
		}
		for i := len(c.Turns) - 1; i >= 0; i-- {
			if c.Turns[i].Key == id.turn {
				return &storedTurn{c.Turns[i]}, nil
			}
		}
		if c.Open != nil && c.Open.Key == id.turn {
			switch runs, err := running(ctx, store, c.ID); {
			case err != nil:
				return nil, err
			case runs:
				return nil, errElsewhere
			}
			return nil, problem(http.StatusConflict, "broken_off", "the turn was broken off when its server ended; send its message again")
		}
		if c.Earlier == 0 {
			break
		}
	}
	return nil, problem(http.StatusNotFound, "not_found", fmt.Sprintf("conversation %q has no turn %q; send its message again", id.conversation, id.turn))
}

// storedTurn is a turn as the store keeps it.
type storedTurn struct{ conversation.Turn }

// result is the turn's result, or nil if it was broken off.
func (t storedTurn) result() (*TurnResult, error) {
	if t.Kind == conversation.KindPartial {
		return nil, nil
	}
	r := &TurnResult{ID: t.Key}
	if err := json.Unmarshal(t.Detail, &r.Record); err != nil {
		return nil, fmt.Errorf("reading turn %d: %w", t.Number, err)
	}
	return r, nil
}

// replay tells a turn's events from what is stored. A client that has a part of them
// gets the result alone, since the pieces of the answer are not kept.
func (t storedTurn) replay(told *turn) error {
	r, err := t.result()
	if err != nil {
		return err
	}
	var broken *Problem
	if told.count() == 0 {
		told.add("turn", TurnStarted{t.Key, told.conversation})
		if r != nil {
			told.add("understood", TurnUnderstood{r.Question})
			told.add("retrieved", TurnRetrieved{r.Trace.Passages})
			for _, d := range r.Trace.Gates {
				told.add("decided", d)
			}
		}
		if t.Kind == conversation.KindAnswer || r == nil && t.Reply != "" {
			told.add("delta", TurnDelta{t.Reply})
		}
	}
	if r == nil {
		broken = problem(http.StatusConflict, "broken_off", "the turn was broken off; send its message again")
	}
	told.end(r, broken)
	return nil
}

// stopTurn stops a turn, and waits until it has ended.
func (s *Server) stopTurn(ctx context.Context, id turnID) error {
	t := s.hub.find(id)
	if t == nil {
		_, err := s.stored(ctx, id)
		return err
	}
	t.stop(errStopped)
	_, err := t.wait(ctx)
	if p := (*Problem)(nil); errors.As(err, &p) {
		return nil
	}
	return err
}
