package server_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/documents"
	"github.com/askback/askback/retrieval/local"
	"github.com/askback/askback/retrieval/retrievertest"
	"github.com/askback/askback/server"
)

// library is a server whose documents are in an index.
type library struct {
	*bench
	index    *local.Index
	embedder *retrievertest.Embedder
}

// openLibrary starts one that holds leave.md, from a folder if d names one.
func openLibrary(t *testing.T, d server.Documents) *library {
	t.Helper()
	l := &library{embedder: new(retrievertest.Embedder)}
	var err error
	if l.index, err = local.Open(t.Context(), local.Options{Embedder: server.Counted(l.embedder)}); err != nil {
		t.Fatal(err)
	}
	one := func(yield func(retrieval.Document, error) bool) {
		doc, _, err := documents.Parse(t.Context(), "leave.md", []byte("# Leave\n\nEmployees have 28 days."), documents.Options{})
		yield(doc, err)
	}
	if _, err := retrieval.Sync(t.Context(), l.index, retrieval.Inputs(one, d.Chunk), retrieval.SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	d.Library = l.index
	store := conversation.NewMemory()
	p, err := pipeline.New(pipeline.Parts{Retriever: l.index, Generator: &writer{pieces: []string{"x"}}, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	l.bench = newBench(t, &writer{}, store, func(o *server.Options, _ *http.Server) {
		o.Heartbeat = 20 * time.Millisecond
		o.Open = func(context.Context) (*server.Backend, error) {
			return &server.Backend{Pipeline: p, Store: store, Documents: &d}, nil
		}
	})
	return l
}

// list gives the documents, each as id/title/passages and what can be done.
func (l *library) list() string {
	l.t.Helper()
	var list []server.Document
	if r := l.get("GET", "/api/documents", nil, &list); r.StatusCode != http.StatusOK {
		l.t.Errorf("the list: %s", r.Status)
	}
	var out []string
	for _, d := range list {
		line := fmt.Sprintf("%s/%s/%d", d.ID, d.Title, d.Passages)
		if d.Uploaded {
			line += " uploaded"
		}
		if d.Removable {
			line += " removable"
		}
		out = append(out, line)
	}
	return strings.Join(out, ", ")
}

// found gives the documents of what is found.
func (l *library) found(text string) string {
	l.t.Helper()
	passages, err := l.index.Retrieve(l.t.Context(), retrieval.Query{Texts: []string{text}})
	if err != nil {
		l.t.Fatal(err)
	}
	if len(passages) == 0 {
		return ""
	}
	return passages[0].Document + ": " + passages[0].Text
}

func at(name string) string { return "/api/documents/" + url.PathEscape(name) }

func docx(t *testing.T, name, content string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create(name)
	if err == nil {
		_, err = io.WriteString(f, content)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A file is put, found, replaced and removed; what a citation names is opened.
func TestDocuments(t *testing.T) {
	l := openLibrary(t, server.Documents{})
	if got, want := l.list(), "leave.md/Leave/1 removable"; got != want {
		t.Errorf("at first %q, want %q", got, want)
	}
	for _, step := range []struct{ name, content, title, list, found string }{
		{"guides/tyres.md", "# Tyres\n\nThe pressure is 4 bar.", "Tyres",
			"guides/tyres.md/Tyres/1 uploaded removable, leave.md/Leave/1 removable", "guides/tyres.md: The pressure is 4 bar."},
		{"guides/tyres.md", "# Tyres\n\nThe pressure is 5 bar.", "Tyres",
			"guides/tyres.md/Tyres/1 uploaded removable, leave.md/Leave/1 removable", "guides/tyres.md: The pressure is 5 bar."},
		{"leave.md", "# Absence\n\nThe pressure is off.", "Absence",
			"guides/tyres.md/Tyres/1 uploaded removable, leave.md/Absence/1 uploaded removable", "guides/tyres.md: The pressure is 5 bar."},
		{"Größe 休暇 👩‍🔧 .txt", "The saddle is 80 cm high.", "Größe 休暇 👩‍🔧",
			"Größe 休暇 👩‍🔧 .txt/Größe 休暇 👩‍🔧/1 uploaded removable, guides/tyres.md/Tyres/1 uploaded removable, leave.md/Absence/1 uploaded removable", "guides/tyres.md: The pressure is 5 bar."},
	} {
		var report server.UploadReport
		r := l.get("PUT", at(step.name), step.content, &report)
		if r.StatusCode != http.StatusOK || len(report.Documents) != 1 || report.Documents[0].ID != step.name || report.Documents[0].Title != step.title || report.Documents[0].Passages != 1 {
			t.Errorf("%s: %s %+v", step.name, r.Status, report)
		}
		if got := l.list(); got != step.list {
			t.Errorf("after %s\n got %q\nwant %q", step.name, got, step.list)
		}
		if got := l.found("pressure bar"); got != step.found {
			t.Errorf("after %s: found %q, want %q", step.name, got, step.found)
		}
	}

	passages, err := l.index.Retrieve(t.Context(), retrieval.Query{Texts: []string{"pressure bar"}, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	var p server.Passage
	if r := l.get("GET", "/api/passages/"+passages[0].ID, nil, &p); r.StatusCode != http.StatusOK || p.Document != "guides/tyres.md" || p.Title != "Tyres" || p.Text != "The pressure is 5 bar." || p.Source != "guides/tyres.md#tyres" {
		t.Errorf("the passage: %s %+v", r.Status, p)
	}

	for _, step := range []struct {
		name   string
		status int
	}{{"guides/tyres.md", 204}, {"guides/tyres.md", 404}, {"nothing", 404}, {"Größe 休暇 👩‍🔧 .txt", 204}, {"leave.md", 204}} {
		if r := l.get("DELETE", at(step.name), nil, nil); r.StatusCode != step.status {
			t.Errorf("removing %s: %s, want %d", step.name, r.Status, step.status)
		}
	}
	if got := l.list(); got != "" {
		t.Errorf("at last %q", got)
	}
	var gone server.Problem
	if r := l.get("GET", "/api/passages/"+passages[0].ID, nil, &gone); r.StatusCode != 404 || gone.Code != "not_found" {
		t.Errorf("a passage that is gone: %s %+v", r.Status, gone)
	}
}

// What cannot be taken is refused with the reason, and loses nothing.
func TestUploadRefused(t *testing.T) {
	l := openLibrary(t, server.Documents{Read: documents.Options{MaxFileSize: 1 << 20}})
	bomb := docx(t, "word/document.xml", "<document><body><p><r><t>"+strings.Repeat("bomb ", 1<<19)+"</t></r></p></body></document>")
	for _, test := range []struct {
		name, content string
		status        int
		code, why     string
	}{
		{"leave.md", "", 422, "unreadable", "leave.md: empty"},
		{"leave.md", " \n\t\n", 422, "unreadable", "no text found"},
		{"leave.md", "\x89PNG\r\n\x1a\n", 415, "format", "not a text file: image/png"},
		{"leave.exe", "MZ\x90\x00\x03\x00\x00\x00\x04\x00\x00\x00\xff\xff\x00\x00\xb8\x00\x00", 415, "format", "not a text file"},
		{"leave.xlsx", docx(t, "xl/workbook.xml", "<x/>"), 415, "format", "a spreadsheet"},
		{"leave.md", strings.Repeat("a", 1<<20+1), 413, "too_large", "larger than the limit of 1 MB"},
		{"leave.docx", bomb, 413, "too_large", "unpacked, it is larger than the limit"},
		{"leave.docx", "PK\x03\x04broken", 422, "unreadable", "a damaged archive"},
		{"leave.json", "{", 422, "unreadable", "not valid JSON"},
		{"../leave.md", "x", 422, "name", "is no path inside a folder"},
		{"a/../leave.md", "x", 422, "name", "is no path inside a folder"},
		{"/leave.md", "x", 422, "name", "is no path inside a folder"},
		{"a//leave.md", "x", 422, "name", "is no path inside a folder"},
		{"leave.md/", "x", 422, "name", "is no path inside a folder"},
		{`..\leave.md`, "x", 422, "name", "holds a backslash"},
		{".env", "x", 422, "name", "begins with a dot"},
		{"a/.git/b", "x", 422, "name", "begins with a dot"},
		{"leave\x00.md", "x", 422, "name", "characters that are not seen"},
		{"leave\n.md", "x", 422, "name", "characters that are not seen"},
		{"gpj\u202Edm.exe", "x", 422, "name", "characters that are not seen"},
		{" leave.md", "x", 422, "name", "begins or ends with a space"},
		{"caf\xe9.md", "x", 422, "name", "is not valid UTF-8"},
		{strings.Repeat("a", 513), "x", 422, "name", "is longer than 512 bytes"},
		{strings.Repeat("a", 2000), "x", 422, "invalid", "expected length <= 1024"},
	} {
		var p server.Problem
		r := l.get("PUT", at(test.name), test.content, &p)
		if r.StatusCode != test.status || p.Code != test.code || !strings.Contains(p.Detail, test.why) || r.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%.30q: %s %+v; want %d %s %q", test.name, r.Status, p, test.status, test.code, test.why)
		}
	}
	if got, want := l.list(), "leave.md/Leave/1 removable"; got != want {
		t.Errorf("afterwards %q, want %q", got, want)
	}
	if got := l.found("days"); got != "leave.md: Employees have 28 days." {
		t.Errorf("afterwards found %q", got)
	}
	if n := len(l.embedder.Embedded()); n != 1 {
		t.Errorf("%d texts were embedded, want that of the start alone", n)
	}
}

type file struct{ name, content string }

// form makes a form of files.
func form(t *testing.T, files ...file) (body, kind string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.WriteField("note", "a field that is no file")
	for _, f := range files {
		h := textproto.MIMEHeader{}
		h.Set("Content-Disposition", `form-data; name="files"; filename="`+f.name+`"`)
		part, err := w.CreatePart(h)
		if err == nil {
			_, err = io.WriteString(part, f.content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

var some = []file{
	{"a.md", "# Apples\n\nApples are red."},
	{"leave.md", ""},
	{"photo.png", "\x89PNG\r\n\x1a\n"},
	{"big.txt", strings.Repeat("a", 1<<20+1)},
	{"../../b.csv", "name,price\nbell,12\n"},
	{"a.md", "# Other\n\napples"},
	{"x\u202Egpj.exe", "x"},
}

const (
	someStored  = "a.md/Apples/1, b.csv/B/1"
	someSkipped = "leave.md: empty; photo.png: not a text file: image/png; big.txt: larger than the limit of 1 MB; " +
		"a.md: another file of this name was sent with it, and taken; x\uFFFDgpj.exe: its name holds characters that are not seen"
	someList = "a.md/Apples/1 uploaded removable, b.csv/B/1 uploaded removable, leave.md/Leave/1 removable"
)

// Of several files each is taken or skipped on its own.
func TestUploadSeveral(t *testing.T) {
	l := openLibrary(t, server.Documents{Read: documents.Options{MaxFileSize: 1 << 20}})
	body, kind := form(t, some...)
	var report server.UploadReport
	r := l.get("POST", "/api/documents", body, &report, "Content-Type", kind)
	var stored, skipped []string
	for _, d := range report.Documents {
		stored = append(stored, fmt.Sprintf("%s/%s/%d", d.ID, d.Title, d.Passages))
	}
	for _, d := range report.Skipped {
		skipped = append(skipped, d.Document+": "+d.Reason)
	}
	if r.StatusCode != 200 || strings.Join(stored, ", ") != someStored || strings.Join(skipped, "; ") != someSkipped {
		t.Errorf("%s\nstored  %q\nskipped %q", r.Status, stored, skipped)
	}
	if got := l.list(); got != someList {
		t.Errorf("afterwards %q", got)
	}

	var many []file
	for i := range 101 {
		many = append(many, file{fmt.Sprintf("%d.md", i), "x"})
	}
	for name, send := range map[string]struct {
		body, kind string
		status     int
		why        string
	}{
		"no form":    {"x", "text/plain", 415, "multipart/form-data"},
		"no files":   {"--x--\r\n", "multipart/form-data; boundary=x", 422, "no file"},
		"no limits":  {"x", "multipart/form-data", 400, "could not be read"},
		"cut":        {body[:len(body)/3], kind, 400, "could not be read"},
		"too many":   {"", "", 422, "more than 100 files"},
		"too much":   {"", "", 413, "larger than the limit of 2 MB"},
		"not a body": {"", "multipart/form-data; boundary=x", 400, "could not be read"},
	} {
		switch name {
		case "too many":
			send.body, send.kind = form(t, many...)
		case "too much":
			send.body, send.kind = form(t, file{"a", strings.Repeat("a", 1<<20)}, file{"b", strings.Repeat("a", 1<<20)})
		}
		var p server.Problem
		if r := l.get("POST", "/api/documents", send.body, &p, "Content-Type", send.kind); r.StatusCode != send.status || !strings.Contains(p.Detail, send.why) {
			t.Errorf("%s: %s %+v; want %d %q", name, r.Status, p, send.status, send.why)
		}
	}
	if got := l.list(); got != someList {
		t.Errorf("afterwards %q", got)
	}
}

// The stream tells how far an upload is, and what became of each file.
func TestUploadStream(t *testing.T) {
	l := openLibrary(t, server.Documents{Read: documents.Options{MaxFileSize: 1 << 20}})
	long := "# Long\n"
	for i := range 200 {
		long += fmt.Sprintf("\n## Part %d\n\nThis is item %d.\n", i, i)
	}
	l.embedder.Err = func(string) error { time.Sleep(time.Millisecond); return nil }
	body, kind := form(t, append(slices.Clone(some[:4]), file{"long.md", long})...)
	names, comments, last := "", 0, ""
	for e := range events(t, l.do(t.Context(), "POST", "/api/documents", body, "Content-Type", kind, "Accept", asStream)) {
		switch {
		case e.name == "comment":
			comments++
			continue
		case e.id != strings.Count(names, " ")+1:
			t.Errorf("event %d after%s", e.id, names)
		}
		names += " " + e.name
		if e.name == "progress" {
			last = string(e.data)
		}
		if e.name == "skipped" && strings.Contains(string(e.data), "big") && string(e.data) != `{"document":"big.txt","reason":"larger than the limit of 1 MB"}` {
			t.Errorf("skipped %s", e.data)
		}
	}
	if want := " progress progress document skipped skipped skipped progress progress progress progress progress document end"; names != want {
		t.Errorf("events%s\nwant%s", names, want)
	}
	if want := `{"document":"long.md","done":200,"total":200}`; last != want {
		t.Errorf("the last progress is %s, want %s", last, want)
	}
	if comments < 2 {
		t.Errorf("%d comments: the stream looked dead", comments)
	}

	// One file: what its kind forbids is a status, what is wrong in it is told.
	if r := l.do(t.Context(), "PUT", at("p.png"), "\x89PNG\r\n\x1a\n", "Accept", asStream); r.StatusCode != 415 {
		t.Errorf("a picture: %s", r.Status)
	}
	names = ""
	for e := range events(t, l.do(t.Context(), "PUT", at("leave.md"), "", "Accept", asStream)) {
		if e.name != "comment" {
			names += " " + e.name + string(e.data)
		}
	}
	if want := ` skipped{"document":"leave.md","reason":"empty"} end{}`; names != want {
		t.Errorf("an empty file: %s", names)
	}
}

// An upload that fails, or whose sender leaves, changes nothing.
func TestUploadBrokenOff(t *testing.T) {
	l := openLibrary(t, server.Documents{})
	l.embedder.Err = func(string) error { return errors.New("the embedder is broken") }
	var p server.Problem
	if r := l.get("PUT", at("leave.md"), "# New\n\ntext", &p); r.StatusCode != 500 || !strings.Contains(p.Detail, "the embedder is broken") {
		t.Errorf("%s %+v", r.Status, p)
	}
	names := ""
	for e := range events(t, l.do(t.Context(), "PUT", at("leave.md"), "# New\n\ntext", "Accept", asStream)) {
		if e.name != "comment" {
			names += " " + e.name
		}
	}
	if names != " progress error end" {
		t.Errorf("events%s", names)
	}

	ctx, leave := context.WithCancel(t.Context())
	started, once, slow := make(chan struct{}), sync.Once{}, atomic.Bool{}
	slow.Store(true)
	l.embedder.Err = func(string) error {
		once.Do(func() { close(started) })
		if slow.Load() {
			time.Sleep(50 * time.Millisecond)
		}
		return nil
	}
	faults := strings.Count(l.log.String(), "level=ERROR")
	go func() { <-started; leave() }()
	r, err := http.NewRequestWithContext(ctx, "PUT", l.URL+at("leave.md"), strings.NewReader("# New\n\n"+strings.Repeat("many words\n\n", 10_000)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Client().Do(r); !errors.Is(err, context.Canceled) {
		t.Errorf("the request: %v", err)
	}
	slow.Store(false)
	// The next one waits until the index is free, and then is the only one.
	if r := l.get("PUT", at("next.md"), "next", nil); r.StatusCode != 200 {
		t.Errorf("the next: %s", r.Status)
	}
	if n := strings.Count(l.log.String(), "level=ERROR"); n != faults { // that someone leaves is no fault of the server
		t.Errorf("logged:\n%s", l.log)
	}
	if got, want := l.list(), "leave.md/Leave/1 removable, next.md/Next/1 uploaded removable"; got != want {
		t.Errorf("afterwards %q, want %q", got, want)
	}
}

// Documents of a folder are changed there; what is uploaded stands beside them,
// and the next time the folder is read it is still there.
func TestDocumentsOfFolder(t *testing.T) {
	l := openLibrary(t, server.Documents{Folder: "the folder guides"})
	for _, send := range []struct {
		method, name string
		status       int
	}{{"PUT", "leave.md", 409}, {"DELETE", "leave.md", 409}, {"PUT", "own.md", 200}, {"PUT", "own.md", 200}, {"PUT", "other.md", 200}, {"DELETE", "other.md", 204}} {
		body := any("text of my own")
		if send.method == "DELETE" {
			body = nil
		}
		text, err := io.ReadAll(l.do(t.Context(), send.method, at(send.name), body).Body)
		r := l.do(t.Context(), "GET", "/api/documents", nil)
		if err != nil || send.status == 409 && !strings.Contains(string(text), "leave.md is a file of the folder guides: change it there") {
			t.Errorf("%s %s: %s %s", send.method, send.name, r.Status, text)
		}
	}
	if got, want := l.list(), "leave.md/Leave/1, own.md/Own/1 uploaded removable"; got != want {
		t.Errorf("afterwards %q, want %q", got, want)
	}
	none := func(func(retrieval.Input, error) bool) {}
	report, err := retrieval.Sync(t.Context(), l.index, none, retrieval.SyncOptions{})
	if err != nil || !slices.Equal(report.Deleted, []string{"leave.md"}) {
		t.Errorf("the next start: %+v, %v", report, err)
	}
	if got := l.list(); got != "own.md/Own/1 uploaded removable" {
		t.Errorf("after the next start %q", got)
	}
}

func TestDocumentsReadOnly(t *testing.T) {
	l := openLibrary(t, server.Documents{ReadOnly: "documents are ingested from elsewhere"})
	body, kind := form(t, some...)
	for _, send := range []struct{ method, path, body, kind string }{
		{"PUT", at("a.md"), "x", "text/plain"}, {"POST", "/api/documents", body, kind}, {"DELETE", at("leave.md"), "", ""},
	} {
		var p server.Problem
		if r := l.get(send.method, send.path, send.body, &p, "Content-Type", send.kind); r.StatusCode != 409 || p.Code != "read_only" || p.Detail != "documents are ingested from elsewhere" {
			t.Errorf("%s %s: %s %+v", send.method, send.path, r.Status, p)
		}
	}
	if got := l.list(); got != "leave.md/Leave/1" {
		t.Errorf("afterwards %q", got)
	}
	var about server.AboutServer
	l.get("GET", "/api/about", nil, &about)
	if about.Documents.Writable || about.Documents.Why == "" || about.Documents.MaxBytes != server.DefaultMaxUpload {
		t.Errorf("about %+v", about.Documents)
	}
}
