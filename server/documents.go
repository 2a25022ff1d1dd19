package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/documents"
)

// Documents are what is answered from. They can be looked at and, unless they are
// read-only, uploaded and removed: in the index alone, never in a folder.
type Documents struct {
	Library retrieval.Library
	Chunk   retrieval.ChunkOptions // as all that the library holds is cut
	Read    documents.Options      // MaxFileSize 0 means DefaultMaxUpload
	// ReadOnly says why no document can be uploaded or removed; "" if they can.
	ReadOnly string
	// Folder is where the documents are from that are brought up to date with a
	// folder at each start; "" if none are. These can be neither replaced nor
	// removed here, since the next start would undo it; what is uploaded stands
	// beside them.
	Folder string
	// Note tells of what is uploaded, such as that it is gone when the server ends.
	Note string
}

// DefaultMaxUpload is the size in bytes of the largest file that is taken if
// Documents names none.
const DefaultMaxUpload = 32 << 20

func (d *Documents) maxBytes() int64 {
	if d.Read.MaxFileSize > 0 {
		return d.Read.MaxFileSize
	}
	return DefaultMaxUpload
}

// about says what can be done with them; without any, nothing can.
func (d *Documents) about() AboutDocuments {
	a := AboutDocuments{Types: documents.Extensions()}
	switch {
	case d == nil:
		a.Why = "no documents can be looked at here"
	case d.ReadOnly != "":
		a.MaxBytes, a.Why = d.maxBytes(), d.ReadOnly
	default:
		a.MaxBytes, a.Why, a.Writable = d.maxBytes(), d.Note, true
	}
	return a
}

// Document is one that is answered from.
type Document struct {
	ID        string `json:"id" doc:"Its name, or its path in the folder that it is from"`
	Title     string `json:"title" doc:"What it calls itself"`
	Passages  int    `json:"passages" doc:"How many pieces it was cut into"`
	Uploaded  bool   `json:"uploaded" doc:"It was uploaded here"`
	Removable bool   `json:"removable" doc:"It can be removed, or replaced by another of its name"`
}

// Passage is a piece of a document.
type Passage struct {
	ID       string            `json:"id"`
	Document string            `json:"document" doc:"Id of the document it is from"`
	Title    string            `json:"title" doc:"Title of the document and headings, outermost first, joined by ' > '"`
	Source   string            `json:"source" doc:"Where a person finds it: the document, with #heading, page or row where known"`
	Text     string            `json:"text"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// library gives the documents, if there are any yet.
func (s *Server) library() (*Documents, error) {
	b, err := s.Backend()
	if err != nil {
		return nil, err
	}
	if b.Documents == nil {
		return nil, problem(http.StatusNotFound, "no_documents", "the documents that are answered from cannot be looked at here")
	}
	return b.Documents, nil
}

// writable refuses changes to documents that are read-only.
func (d *Documents) writable() error {
	if d.ReadOnly != "" {
		return problem(http.StatusConflict, "read_only", d.ReadOnly)
	}
	return nil
}

// fixed says why a document that is stored with the fingerprint can be neither
// replaced nor removed, or nothing.
func (d *Documents) fixed(name, fingerprint string) error {
	if d.Folder == "" || retrieval.Uploaded(fingerprint) {
		return nil
	}
	return problem(http.StatusConflict, "of_folder", fmt.Sprintf("%s is a file of %s: change it there, and start again; or choose another name", name, d.Folder))
}

func (s *Server) registerDocuments() {
	s.writing, s.reading = make(chan struct{}, 1), make(chan struct{}, 1)
	handle(s, huma.Operation{OperationID: "list-documents", Method: http.MethodGet, Path: "/api/documents", Tags: []string{"documents"},
		Summary: "List the documents that are answered from"}, s.listDocuments)
	handle(s, huma.Operation{OperationID: "remove-document", Method: http.MethodDelete, Path: "/api/documents/{name}", Tags: []string{"documents"},
		Summary: "Remove a document", Description: "From the index alone. 409 if it cannot be.", DefaultStatus: http.StatusNoContent}, s.removeDocument)
	handle(s, huma.Operation{OperationID: "get-passage", Method: http.MethodGet, Path: "/api/passages/{id}", Tags: []string{"documents"},
		Summary: "Get the passage that a citation names"}, s.getPassage)

	reply := map[string]*huma.Response{"200": {Description: "What became of the files", Content: map[string]*huma.MediaType{
		"application/json":  {Schema: s.schema(UploadReport{}, "UploadReport")},
		"text/event-stream": {Schema: s.uploadSchema()},
	}}}
	const how = " With Accept: text/event-stream it tells how far it is: progress {document, done, total}, then document {id, title, passages, warnings} or skipped {document, reason} for each file, at last end {}."
	binary := &huma.Schema{Type: huma.TypeString, Format: "binary"}
	handle(s, huma.Operation{OperationID: "put-document", Method: http.MethodPut, Path: "/api/documents/{name}", Tags: []string{"documents"},
		Summary: "Upload a document", Responses: reply,
		Description: "The body is the file. A document of that name is replaced in one step, once the new one is read and embedded; if that fails, it stays. 413 if the file is too large, 415 if it is of a kind that is not read, 422 if there is no text in it." + how,
	}, func(ctx context.Context, in *struct {
		NamedDocument
		Accept string `header:"Accept" hidden:"true"`
	}) (*huma.StreamResponse, error) {
		return s.receiving(ctx, in.Accept, func(w http.ResponseWriter, r *http.Request) ([]upload, error) { return s.readFile(w, r, in.Name) })
	})
	handle(s, huma.Operation{OperationID: "upload-documents", Method: http.MethodPost, Path: "/api/documents", Tags: []string{"documents"},
		Summary: "Upload several documents", Responses: reply,
		Description: "Each file is a document of its name, as with PUT; one that cannot be read is skipped, and the others are taken." + how,
	}, func(ctx context.Context, in *struct {
		Accept string `header:"Accept" hidden:"true"`
	}) (*huma.StreamResponse, error) {
		return s.receiving(ctx, in.Accept, s.readForm)
	})
	// Described when they are registered already, since the handlers read the
	// bodies themselves.
	files := &huma.Schema{Type: huma.TypeObject, Required: []string{"files"}, Properties: map[string]*huma.Schema{
		"files": {Type: huma.TypeArray, Items: binary, MinItems: new(1), MaxItems: new(maxFiles)}}}
	paths := s.api.OpenAPI().Paths
	paths["/api/documents/{name}"].Put.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/octet-stream": {Schema: binary}}}
	paths["/api/documents"].Post.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"multipart/form-data": {Schema: files}}}
}

// receiving is the response to an upload whose files read gives.
func (s *Server) receiving(ctx context.Context, accept string, read func(http.ResponseWriter, *http.Request) ([]upload, error)) (*huma.StreamResponse, error) {
	d, err := s.library()
	if err == nil {
		err = d.writable()
	}
	if err == nil {
		err = s.allowUpload(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		r, w := humago.Unwrap(c)
		s.receive(w, r, accept, d, read)
	}}, nil
}

func (s *Server) listDocuments(ctx context.Context, _ *struct{}) (*struct{ Body []Document }, error) {
	d, err := s.library()
	if err != nil {
		return nil, err
	}
	list, err := d.Library.List(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Document, len(list))
	for i, k := range list {
		out[i] = Document{ID: k.ID, Title: k.Title, Passages: k.Passages, Uploaded: retrieval.Uploaded(k.Fingerprint),
			Removable: d.ReadOnly == "" && d.fixed(k.ID, k.Fingerprint) == nil}
		if k.Title == "" {
			out[i].Title = k.ID
		}
	}
	return &struct{ Body []Document }{out}, nil
}

// NamedDocument is the part of a request that names a document.
type NamedDocument struct {
	Name string `path:"name" maxLength:"1024" doc:"Its name; a slash in it is written as %2F"`
}

func (s *Server) removeDocument(ctx context.Context, in *NamedDocument) (*struct{}, error) {
	d, err := s.library()
	if err == nil {
		err = d.writable()
	}
	if err != nil {
		return nil, err
	}
	free, err := s.write(ctx)
	if err != nil {
		return nil, err
	}
	defer free()
	stored, err := d.Library.Documents(ctx)
	if err != nil {
		return nil, err
	}
	fingerprint, ok := stored[in.Name]
	if !ok {
		return nil, problem(http.StatusNotFound, "not_found", fmt.Sprintf("there is no document %q", in.Name))
	}
	if err := d.fixed(in.Name, fingerprint); err != nil {
		return nil, err
	}
	return nil, d.Library.Delete(ctx, in.Name)
}

// write waits until no other document is being changed, and gives what ends this
// change. One at a time is as fast as the embedder is.
func (s *Server) write(ctx context.Context) (free func(), err error) {
	select {
	case s.writing <- struct{}{}:
		return func() { <-s.writing }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *Server) getPassage(ctx context.Context, in *struct {
	ID string `path:"id" maxLength:"1024" doc:"Id of the passage, as citations and options name it"`
}) (*struct{ Body Passage }, error) {
	d, err := s.library()
	if err != nil {
		return nil, err
	}
	passages, err := d.Library.Get(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if len(passages) == 0 {
		return nil, problem(http.StatusNotFound, "not_found", fmt.Sprintf("there is no passage %q; its document may have been changed or removed since", in.ID))
	}
	p := passages[0]
	return &struct{ Body Passage }{Passage{ID: p.ID, Document: p.Document, Title: p.Title, Source: p.Source, Text: p.Text, Metadata: p.Metadata}}, nil
}

// unreadable is why nothing can be made of a file, as a problem.
func unreadable(name string, err error) *Problem {
	detail := name + ": " + err.Error()
	switch {
	case errors.Is(err, documents.ErrTooLarge):
		return problem(http.StatusRequestEntityTooLarge, "too_large", detail)
	case errors.Is(err, documents.ErrFormat):
		return problem(http.StatusUnsupportedMediaType, "format", detail)
	}
	return problem(http.StatusUnprocessableEntity, "unreadable", detail)
}
