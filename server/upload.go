package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/documents"
)

// UploadReport is what became of the files of an upload.
type UploadReport struct {
	Documents []StoredDocument  `json:"documents"`
	Skipped   []SkippedDocument `json:"skipped" doc:"What is no document now; one of that name from before is as it was"`
}

// The data of an upload's events. The others are Problem and an empty object.
type (
	// UploadProgress is that of progress.
	UploadProgress struct {
		Document string `json:"document"`
		Done     int    `json:"done" doc:"Passages that are embedded"`
		Total    int    `json:"total" doc:"Passages that it was cut into"`
	}
	// StoredDocument is that of document.
	StoredDocument struct {
		ID       string   `json:"id"`
		Title    string   `json:"title"`
		Passages int      `json:"passages"`
		Warnings []string `json:"warnings" doc:"What of the file could not be read"`
	}
	// SkippedDocument is that of skipped.
	SkippedDocument struct {
		Document string `json:"document"`
		Reason   string `json:"reason"`
	}
)

const (
	maxFiles   = 100              // of one upload
	maxUpload  = 2                // times the size of the largest file: all files of one upload
	uploadTime = 10 * time.Minute // for the body to arrive
)

// upload is a file that was sent: read into a document, or why it was not.
type upload struct {
	name     string
	content  []byte
	document *retrieval.Document // read already, or nil
	warnings []string
	skipped  string
}

// readFile reads the file that is the whole body.
func (s *Server) readFile(w http.ResponseWriter, r *http.Request, name string) ([]upload, error) {
	d, err := s.library()
	if err != nil {
		return nil, err
	}
	if why := badName(name); why != "" {
		p := problem(http.StatusUnprocessableEntity, "name", "the name of the document "+why)
		p.Errors = []*huma.ErrorDetail{{Location: "path.name", Message: why}}
		return nil, p
	}
	content, err := io.ReadAll(http.MaxBytesReader(w, r.Body, d.maxBytes()))
	if err != nil {
		return nil, bodyProblem(err, d.maxBytes())
	}
	// What its kind or size rules out is told as such before anything else is said.
	document, warnings, err := s.parse(r.Context(), d, name, content)
	u := upload{name: name, document: &document, warnings: warnings}
	if err != nil {
		if p := unreadable(name, err); p.Status != http.StatusUnprocessableEntity || !streams(r) {
			return nil, p
		}
		u.skipped = err.Error()
	}
	return []upload{u}, nil
}

// parse reads one file after the other, since one may take much memory to be read.
func (s *Server) parse(ctx context.Context, d *Documents, name string, content []byte) (retrieval.Document, []string, error) {
	select {
	case s.reading <- struct{}{}:
	case <-ctx.Done():
		return retrieval.Document{}, nil, context.Cause(ctx)
	}
	defer func() { <-s.reading }()
	return d.parse(ctx, name, content)
}

func streams(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// bodyProblem says why a body could not be read.
func bodyProblem(err error, limit int64) *Problem {
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return problem(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("what was sent is larger than the limit of %d MB", limit>>20))
	}
	return problem(http.StatusBadRequest, "body", "what was sent could not be read: "+err.Error())
}

// readForm reads the files of a form.
func (s *Server) readForm(w http.ResponseWriter, r *http.Request) ([]upload, error) {
	d, err := s.library()
	if err != nil {
		return nil, err
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "multipart/form-data" {
		return nil, problem(http.StatusUnsupportedMediaType, "format", "files are sent as multipart/form-data; or one file as it is, with PUT /api/documents/NAME")
	}
	limit := maxUpload * d.maxBytes()
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	form, err := r.MultipartReader()
	if err != nil {
		return nil, bodyProblem(err, limit)
	}
	var uploads []upload
	seen := make(map[string]bool)
	for {
		part, err := form.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, bodyProblem(err, limit)
		}
		if part.FileName() == "" {
			continue // a field
		}
		if len(uploads) == maxFiles {
			return nil, problem(http.StatusUnprocessableEntity, "too_many", fmt.Sprintf("more than %d files; send them in several uploads", maxFiles))
		}
		u, err := readPart(part, d.maxBytes())
		if err != nil {
			return nil, bodyProblem(err, limit)
		}
		if seen[u.name] && u.skipped == "" {
			u.skipped = "another file of this name was sent with it, and taken"
		}
		seen[u.name] = true
		uploads = append(uploads, u)
	}
	if len(uploads) == 0 {
		return nil, problem(http.StatusUnprocessableEntity, "no_file", "there is no file in the form")
	}
	return uploads, nil
}

// readPart reads one file of a form. The error is that of the connection.
func readPart(part *multipart.Part, limit int64) (upload, error) {
	u := upload{name: part.FileName()}
	if why := badName(u.name); why != "" {
		u.name = visible(u.name)
		u.skipped = "its name " + why
		return u, nil
	}
	content, err := io.ReadAll(io.LimitReader(part, limit+1))
	if err != nil {
		return u, err
	}
	if u.content = content; int64(len(content)) > limit {
		u.content, u.skipped = nil, fmt.Sprintf("larger than the limit of %d MB", limit>>20)
	}
	return u, nil
}

// maxName is the longest name of a document, in bytes.
const maxName = 512

// badName says what is wrong with the name of an upload, in words that follow "its
// name", or nothing. A name may have folders.
func badName(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > maxName:
		return fmt.Sprintf("is longer than %d bytes", maxName)
	case !utf8.ValidString(name):
		return "is not valid UTF-8"
	case strings.ContainsFunc(name, hidden):
		return "holds characters that are not seen"
	case strings.Contains(name, `\`):
		return `holds a backslash; folders are separated by /`
	case !fs.ValidPath(name) || name == ".":
		return "is no path inside a folder, such as guides/battery.md"
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") {
			return "begins with a dot, as hidden files do"
		}
		if strings.TrimSpace(part) != part {
			return "begins or ends with a space"
		}
	}
	return ""
}

// hidden reports whether a character of a name is not seen, or changes how others
// are. Those that join letters are needed to write some languages.
func hidden(r rune) bool {
	const nonJoiner, joiner = '\u200C', '\u200D'
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != nonJoiner && r != joiner || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
}

// visible is a name that can be shown in a message.
func visible(name string) string {
	name = strings.Map(func(r rune) rune {
		if hidden(r) {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(name, "\uFFFD"))
	if r := []rune(name); len(r) > 80 {
		name = string(r[:80]) + "…"
	}
	return name
}

// parse reads a file as the files of a folder are read.
func (d *Documents) parse(ctx context.Context, name string, content []byte) (retrieval.Document, []string, error) {
	o := d.Read
	o.MaxFileSize = d.maxBytes()
	return documents.Parse(ctx, name, content, o)
}

// put makes the file a document. The error is one of the index; what is wrong with
// the file is told in the upload.
func (d *Documents) put(ctx context.Context, u *upload, progress func(UploadProgress)) (StoredDocument, error) {
	if u.skipped == "" && u.document == nil {
		document, warnings, err := d.parse(ctx, u.name, u.content)
		if err := ctx.Err(); err != nil {
			return StoredDocument{}, err
		}
		u.document, u.warnings, u.content = &document, warnings, nil
		if err != nil {
			u.skipped = err.Error()
		}
	}
	if u.skipped != "" {
		return StoredDocument{}, nil
	}
	stored, err := d.Library.Documents(ctx)
	if err != nil {
		return StoredDocument{}, err
	}
	if fingerprint, ok := stored[u.name]; ok {
		if p := (*Problem)(nil); errors.As(d.fixed(u.name, fingerprint), &p) {
			u.skipped = p.Detail
			return StoredDocument{}, nil
		}
	}
	one := func(yield func(retrieval.Document, error) bool) { yield(*u.document, nil) }
	for input := range retrieval.Inputs(one, d.Chunk) {
		passages, err := input.Passages()
		if err != nil {
			return StoredDocument{}, err
		}
		total, done := len(passages), 0
		progress(UploadProgress{u.name, 0, total})
		ctx := context.WithValue(ctx, embeddedKey{}, func(n int) {
			done += n
			progress(UploadProgress{u.name, min(done, total), total})
		})
		err = d.Library.Replace(ctx, input.Document, retrieval.UploadMark+input.Fingerprint, passages)
		if errors.Is(err, retrieval.ErrInvalid) {
			u.skipped = err.Error()
			return StoredDocument{}, nil
		}
		if err != nil {
			return StoredDocument{}, err
		}
		return StoredDocument{ID: input.Document, Title: u.document.Title, Passages: total, Warnings: append([]string{}, u.warnings...)}, nil
	}
	return StoredDocument{}, nil
}

type embeddedKey struct{}

// Counted is the embedder, and tells an upload how many of its passages have been
// embedded. It is for the index that documents are uploaded into.
func Counted(e retrieval.Embedder) retrieval.Embedder { return counted{e} }

type counted struct{ retrieval.Embedder }

// EmbedDocuments implements retrieval.Embedder.
func (c counted) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := c.Embedder.EmbedDocuments(ctx, texts)
	if tell, ok := ctx.Value(embeddedKey{}).(func(int)); ok && err == nil {
		tell(len(texts))
	}
	return vectors, err
}

// receive takes an upload and tells what became of it.
func (s *Server) receive(w http.ResponseWriter, r *http.Request, accept string, d *Documents, read func(http.ResponseWriter, *http.Request) ([]upload, error)) {
	control := http.NewResponseController(w)
	err := unlimited(control)
	if err == nil {
		err = control.SetReadDeadline(time.Now().Add(uploadTime))
	}
	var uploads []upload
	if err == nil {
		if uploads, err = read(w, r); err != nil {
			s.uploaded(r.Context(), "failed")
		}
	}
	if err == nil {
		err = unlimited(control)
	}
	if err != nil {
		write(w, s.problemOf(r.Context(), err))
		return
	}
	if !strings.Contains(accept, "text/event-stream") {
		report := UploadReport{Documents: []StoredDocument{}, Skipped: []SkippedDocument{}}
		err := s.putAll(r.Context(), d, uploads, func(_ string, data any) {
			switch data := data.(type) {
			case StoredDocument:
				report.Documents = append(report.Documents, data)
			case SkippedDocument:
				report.Skipped = append(report.Skipped, data)
			}
		})
		if err != nil {
			write(w, s.problemOf(r.Context(), err))
			return
		}
		if r.Method == http.MethodPut && len(report.Skipped) > 0 { // it became one meanwhile
			write(w, problem(http.StatusConflict, "of_folder", report.Skipped[0].Reason))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(report)
		return
	}
	s.streamUpload(w, r, d, uploads)
}

// putAll makes documents of the files, one after the other.
func (s *Server) putAll(ctx context.Context, d *Documents, uploads []upload, tell func(name string, data any)) error {
	free, err := s.write(ctx)
	if err != nil {
		return err
	}
	defer free()
	for i := range uploads {
		u := &uploads[i]
		stored, err := d.put(ctx, u, func(p UploadProgress) { tell("progress", p) })
		switch {
		case err != nil:
			s.uploaded(ctx, "failed")
			return err
		case u.skipped != "":
			s.uploaded(ctx, "skipped")
			tell("skipped", SkippedDocument{u.name, retrieval.CleanText(u.skipped)})
		default:
			s.uploaded(ctx, "stored")
			tell("document", stored)
		}
		*u = upload{} // so that memory does not hold it to the end
	}
	return nil
}

// streamUpload does the same and sends events meanwhile.
func (s *Server) streamUpload(w http.ResponseWriter, r *http.Request, d *Documents, uploads []upload) {
	e, err := openStream(w)
	if err != nil {
		write(w, s.problemOf(r.Context(), err))
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	events := make(chan event)
	go func() {
		defer close(events)
		tell := func(name string, data any) {
			select {
			case events <- encode(name, data):
			case <-ctx.Done():
			}
		}
		if err := s.putAll(ctx, d, uploads, tell); err != nil {
			tell("error", s.problemOf(ctx, err))
		}
		tell("end", struct{}{})
	}()
	beat := time.NewTicker(s.o.Heartbeat)
	defer beat.Stop()
	err = e.comment()
	for n := 1; err == nil; {
		select {
		case ev, ok := <-events:
			if !ok {
				return
			}
			if err = e.event(n, ev); err == nil {
				err = e.flush()
			}
			n++
		case <-beat.C:
			err = e.comment()
		}
	}
	cancel()
	for range events { // until the change is undone
	}
	s.cut(r, err)
}

// uploadSchema describes the events of an upload.
func (s *Server) uploadSchema() *huma.Schema {
	return eventsSchema(map[string]*huma.Schema{
		"progress": s.schema(UploadProgress{}, ""), "document": s.schema(StoredDocument{}, ""), "skipped": s.schema(SkippedDocument{}, ""),
		"error": s.schema(Problem{}, ""), "end": {Type: huma.TypeObject},
	})
}
