package server

import (
	"cmp"
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/askback/askback/retrieval/documents"
)

// About is what the page tells about the server.
type About struct {
	Sources    string     `json:"sources" doc:"What is answered from, in a line"`
	Clarifier  string     `json:"clarifier" doc:"What decides whether to ask back"`
	Models     Models     `json:"models"`
	Thresholds Thresholds `json:"thresholds"`
	Samples    []Sample   `json:"samples" doc:"Questions to try"`
}

// Models are the names of the models that serve; null is the part that is built in.
type Models struct {
	Chat      *string `json:"chat" doc:"Writes the answers; null: sentences picked from the sources"`
	Embedding *string `json:"embedding" doc:"Embeds passages and questions; null: the one that is built in"`
	Clarifier *string `json:"clarifier" doc:"Judges what the built-in clarifier is unsure of; null: nothing does"`
}

// Thresholds are the scores, 0 to 1, from which the gates ask.
type Thresholds struct {
	Pre  float64 `json:"pre" doc:"Of gate 1, before retrieval"`
	Post float64 `json:"post" doc:"Of gate 2, after it"`
}

// Sample is a question to try.
type Sample struct {
	Question string `json:"question"`
	Shows    string `json:"shows" doc:"What it shows"`
}

// AboutDocuments say what can be done with documents.
type AboutDocuments struct {
	Writable bool     `json:"writable" doc:"They can be uploaded and removed"`
	Why      string   `json:"why,omitempty" doc:"Why not, or what becomes of them"`
	Types    []string `json:"types" doc:"Ends of names of the formats that are read"`
	MaxBytes int64    `json:"max_bytes" doc:"Size of the largest file"`
}

// AboutServer is all that is told about the server.
type AboutServer struct {
	Version string `json:"version"`
	About
	Documents AboutDocuments `json:"documents"`
	Services  []Service      `json:"services"`
}

func (s *Server) registerAbout() {
	handle(s, huma.Operation{OperationID: "about", Method: http.MethodGet, Path: "/api/about", Tags: []string{"about"},
		Summary: "What is served, and the state of what it depends on"},
		func(ctx context.Context, _ *struct{}) (*struct{ Body AboutServer }, error) {
			out := AboutServer{Version: cmp.Or(s.o.Version, "0"), Services: s.readiness(ctx).Services}
			out.Documents.Types = documents.Extensions()
			s.mu.Lock()
			if b := s.backend; b != nil {
				out.About = b.About
				out.Documents = b.Documents.about()
			}
			s.mu.Unlock()
			out.Samples = append([]Sample{}, out.Samples...)
			return &struct{ Body AboutServer }{out}, nil
		})
}
