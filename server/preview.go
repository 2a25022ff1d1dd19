package server

import (
	"context"
	"fmt"
	"math"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/pipeline"
)

type previewInput struct {
	OfTurn
	Body struct {
		Pre  *float64 `json:"pre_threshold,omitempty" minimum:"0" maximum:"2" doc:"Score from which gate 1 asks; above 1 it never does. Not given: as it is"`
		Post *float64 `json:"post_threshold,omitempty" minimum:"0" maximum:"2" doc:"The same of gate 2"`
	}
}

func (s *Server) registerPreview() {
	handle(s, huma.Operation{OperationID: "preview-turn", Method: http.MethodPost, Path: "/api/conversations/{conversation}/turns/{turn}/preview", Tags: []string{"turns"},
		Summary:     "What a turn would have been with other thresholds",
		Description: "Runs the turn's message again over the conversation as it was before it. Nothing is stored. A turn without an id is named by its number."},
		s.previewTurn)
}

func (s *Server) previewTurn(ctx context.Context, in *previewInput) (*struct{ Body pipeline.Record }, error) {
	if err := unlimited(control(ctx)); err != nil { // a model may take its time
		return nil, err
	}
	b, err := s.Backend()
	if err != nil {
		return nil, err
	}
	c, _, err := s.own(ctx, in.Conversation, conversation.All)
	if err != nil {
		return nil, err
	}
	t, ok := findTurn(c, in.Turn)
	if !ok {
		return nil, problem(http.StatusNotFound, "not_found", fmt.Sprintf("conversation %q has no turn %q", in.Conversation, in.Turn))
	}
	if err := s.AllowTurn(ctx); err != nil {
		return nil, err
	}
	end, err := s.BeginTurn()
	if err != nil {
		return nil, err
	}
	defer end()
	policy := b.Pipeline.Policy()
	policy.PreThreshold = threshold(in.Body.Pre, policy.PreThreshold)
	policy.PostThreshold = threshold(in.Body.Post, policy.PostThreshold)
	r, err := b.Pipeline.Replay(ctx, c, t.Number, policy)
	if err != nil {
		return nil, err
	}
	return &struct{ Body pipeline.Record }{r.Record()}, nil
}

// threshold is a threshold as a policy has it, where 0 is the default.
func threshold(given *float64, otherwise float64) float64 {
	switch {
	case given == nil:
		return otherwise
	case *given == 0:
		return math.SmallestNonzeroFloat64
	}
	return *given
}
