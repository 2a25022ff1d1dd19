package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/conversation/postgres"
	"github.com/askback/askback/conversation/sqlite"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/internal/ollama"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/local"
	"github.com/askback/askback/retrieval/qdrant"
	"github.com/askback/askback/server"
	"github.com/askback/askback/server/tenant"
	"github.com/askback/askback/server/web"
)

// The services, as people know them.
const (
	serviceQdrant   = "Qdrant"
	serviceOllama   = "Ollama"
	servicePostgres = "PostgreSQL"
	serviceIndex    = "index"
	serviceStore    = "conversations"
	serviceDisk     = "disk"
)

const (
	// servingRetry is how long a call to Qdrant that fails is repeated while a
	// user waits for it.
	servingRetry = 3 * time.Second
	// openingTime is how long one attempt to open the documents is waited for
	// before it is said what is being done.
	openingTime = 2 * time.Second
)

// serveBackend opens what is served, as the flags say: the store and the documents
// each as soon as it can be had. What is open stays open while the rest is tried
// again.
type serveBackend struct {
	command *serveCommand
	err     io.Writer
	keyed   bool // there are keys, and so tenants

	assistant *assistant
	store     conversation.Store // what is served of the assistant's; used by open alone
	qdrant    *qdrant.Options    // nil if Qdrant is not used
	ollama    *ollama.Client     // nil if Ollama is not used
	documents *opening           // of the documents; nil while none is under way

	mu        sync.Mutex
	storeErr  error // why the store is not open
	knowledge knowledge
	apart     *tenant.Knowledge // the tenants' documents and those for everyone; nil without tenants
	done      int               // files of the folder that are read
	total     int
}

// opening is an attempt in the background.
type opening struct {
	ended chan struct{}
	err   error
}

// prepare makes what needs no service. An error is the user's to put right.
func (b *serveBackend) prepare() error {
	c := b.command
	a, err := newAssistant(b.err, setup{source: c.sourceFlags, gates: c.gateFlags, kept: c.storeFlags, wait: -1, serving: true, reading: b.reading})
	if err != nil {
		return err
	}
	b.assistant = a
	if b.qdrant, err = qdrantSettings(c.Index); err != nil {
		return err
	}
	if models := c.models(); len(models) > 0 {
		if b.ollama, err = ollama.New(c.OllamaHost, nil); err != nil {
			return c.gateFlags.serverFlags.usage(err)
		}
	}
	b.storeErr = errors.New("not tried yet")
	return nil
}

// models are those on the Ollama server, with whether questions are answered
// without them.
func (c *serveCommand) models() map[string]bool {
	optional := map[string]bool{strings.TrimPrefix(c.ClarifierModel, promptedPrefix): true}
	for _, name := range []string{c.ChatModel, c.EmbeddingModel} {
		optional[name] = false
	}
	for name := range optional {
		if name == "" || strings.HasPrefix(name, openAIPrefix) {
			delete(optional, name)
		}
	}
	return optional
}

// reading notes how far the reading of the folder is.
func (b *serveBackend) reading(done, total int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done, b.total = done, total
}

// open opens what is not open yet. What the user has to put right ends the
// attempts. What it gives with an error is served already.
func (b *serveBackend) open(ctx context.Context) (*server.Backend, error) {
	a := b.assistant
	var storeErr, documentsErr error
	var both sync.WaitGroup
	both.Go(func() { storeErr = b.openStore(ctx) })
	both.Go(func() { documentsErr = b.openDocuments(ctx) })
	both.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	served := &server.Backend{About: b.about()}
	if storeErr == nil {
		served.Store = b.store
	}
	for _, err := range []error{storeErr, documentsErr} {
		if err == nil {
			continue
		}
		if lasting(err) {
			return served, backoff.Permanent(err)
		}
		return served, named(err)
	}
	if err := b.assemble(); err != nil {
		return served, backoff.Permanent(err)
	}
	served.Pipeline, served.Documents = a.pipeline, b.library()
	return served, nil
}

// assemble makes the pipeline of what is open. With keys, nothing in it reaches
// further than a tenant.
func (b *serveBackend) assemble() (err error) {
	a := b.assistant
	var search searched = a.knowledge
	if b.keyed {
		b.apart = b.tenants()
		search = b.apart
	}
	if b.qdrant != nil {
		search = brokenSearch{newBreaker(serviceQdrant), search}
	}
	parts := a.parts
	parts.Store, parts.Retriever = b.store, search
	if model := b.command.ChatModel; model != "" && !strings.HasPrefix(model, openAIPrefix) {
		parts.Generator = brokenGenerator{newBreaker(serviceOllama), parts.Generator}
	}
	a.pipeline, err = pipeline.New(parts)
	return err
}

// searched is what is answered from.
func (b *serveBackend) searched() tenant.Store {
	if b.apart != nil {
		return b.apart
	}
	return b.assistant.knowledge
}

// openStore opens where conversations are kept.
func (b *serveBackend) openStore(ctx context.Context) error {
	b.mu.Lock()
	failed := b.storeErr
	b.mu.Unlock()
	if failed == nil {
		return nil
	}
	err := b.assistant.openStore(ctx)
	if err == nil {
		b.store, err = withBreaker(b.assistant.store)
	}
	if err == nil && b.keyed {
		b.store = tenant.Conversations(b.store)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.storeErr = err
	return err
}

// withBreaker puts a breaker before a store on a server.
func withBreaker(s conversation.Store) (conversation.Store, error) {
	switch s := s.(type) {
	case *postgres.Store:
		return brokenStore{newBreaker(servicePostgres), s}, nil
	case *sqlite.Store, *conversation.Memory:
		return s, nil
	}
	return nil, fmt.Errorf("whether a store of the type %T needs a circuit breaker is not known; say so in withBreaker", s)
}

// openDocuments opens what is answered from, in the background, since reading
// documents may take long.
func (b *serveBackend) openDocuments(ctx context.Context) error {
	b.mu.Lock()
	there := b.knowledge != nil
	b.mu.Unlock()
	if there {
		b.documents = nil // it ended between two attempts
		return nil
	}
	if b.documents == nil {
		o := &opening{ended: make(chan struct{})}
		b.documents = o
		go func() {
			defer close(o.ended)
			o.err = b.openKnowledge(ctx)
		}()
	}
	select {
	case <-b.documents.ended:
		err := b.documents.err
		b.documents = nil
		return err
	case <-time.After(openingTime):
	case <-ctx.Done():
		return ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	what := "the documents are being opened"
	if b.total > 0 {
		what = fmt.Sprintf("the documents are being read: %d of %d files", b.done, b.total)
	}
	return &server.ServiceError{Service: serviceIndex, Err: errors.New(what)}
}

func (b *serveBackend) openKnowledge(ctx context.Context) error {
	a := b.assistant
	if a.embedder == nil {
		if err := a.openEmbedder(ctx); err != nil {
			if b.ollama != nil && !errors.Is(err, errUsage) {
				return &server.ServiceError{Service: serviceOllama, Err: err}
			}
			return err
		}
		a.embedder = countedEmbedder{a.embedder}
	}
	a.documents, a.try = nil, nil
	if err := a.openKnowledge(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.knowledge = a.knowledge
	return nil
}

// countedEmbedder tells an upload how far it is.
type countedEmbedder struct{ textEmbedder }

// EmbedDocuments implements retrieval.Embedder.
func (c countedEmbedder) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	return server.Counted(c.textEmbedder).EmbedDocuments(ctx, texts)
}

// lasting reports whether an error stays until the user has put it right: what was
// given is wrong, or a server refuses it.
func lasting(err error) bool {
	for _, k := range []error{errUsage, qdrant.ErrDenied, qdrant.ErrMismatch, qdrant.ErrVersion, qdrant.ErrPlaintextKey, postgres.ErrDenied} {
		if errors.Is(err, k) {
			return true
		}
	}
	return blamed(err) == ""
}

// blamed is the service that an error comes from, "" if it does not tell.
func blamed(err error) string {
	var service *server.ServiceError
	if errors.As(err, &service) {
		return service.Service
	}
	for _, k := range []struct {
		err     error
		service string
	}{
		{qdrant.ErrUnavailable, serviceQdrant}, {qdrant.ErrDenied, serviceQdrant}, {qdrant.ErrMismatch, serviceQdrant},
		{ollama.ErrUnreachable, serviceOllama}, {ollama.ErrNoModel, serviceOllama},
		{postgres.ErrUnavailable, servicePostgres}, {postgres.ErrDenied, servicePostgres},
		{local.ErrLocked, serviceIndex}, {sqlite.ErrLocked, serviceStore},
		{conversation.ErrFull, serviceDisk}, {retrieval.ErrFull, serviceDisk}, {syscall.ENOSPC, serviceDisk},
	} {
		if errors.Is(err, k.err) {
			return k.service
		}
	}
	return ""
}

// named names the service in an error.
func named(err error) error {
	if service := blamed(err); service != "" && !errors.As(err, new(*server.ServiceError)) {
		return &server.ServiceError{Service: service, Err: err}
	}
	return err
}

// library is what is answered from, as it can be looked at and changed.
func (b *serveBackend) library() *server.Documents {
	a := b.assistant
	d := &server.Documents{Library: b.searched(), Chunk: cutting(a.embedder), Read: reading()}
	d.Read.MaxFileSize = server.DefaultMaxUpload
	if a.source.Docs != "" || b.apart != nil {
		d.Folder = b.where()
	}
	if b.qdrant == nil && a.source.Index == "" {
		d.Note = "uploaded documents are kept in memory, and gone when the server ends; start it with --index FILE to keep them"
	}
	return d
}

// about tells the page what is served.
func (b *serveBackend) about() server.About {
	a := b.assistant
	name := func(model string) *string {
		if model == "" {
			return nil
		}
		return &model
	}
	out := server.About{
		Sources: b.sources(), Clarifier: a.clarifierName,
		Models: server.Models{Chat: name(a.source.ChatModel), Embedding: name(a.source.EmbeddingModel), Clarifier: name(a.gates.ClarifierModel)},
	}
	g := gate.Gate{Clarifier: a.parts.Clarifier, Policy: a.parts.Policy}
	out.Thresholds = server.Thresholds{Pre: g.Threshold(gate.Pre), Post: g.Threshold(gate.Post)}
	if b.documents == nil {
		for _, s := range a.try {
			out.Samples = append(out.Samples, server.Sample{Question: s.text, Shows: s.shows})
		}
	}
	return out
}

// sources says what is answered from: what is loaded, or, before it is, what the
// settings name.
func (b *serveBackend) sources() string {
	b.mu.Lock()
	there := b.knowledge != nil
	b.mu.Unlock()
	switch s := b.assistant.source; {
	case there:
		return b.assistant.sources
	case b.qdrant != nil:
		return qdrantName(*b.qdrant)
	default:
		return cmp.Or(s.Docs, s.Index, "the sample knowledge base")
	}
}

// close releases what is open.
func (b *serveBackend) close() {
	if b.assistant == nil {
		return
	}
	if b.documents != nil {
		<-b.documents.ended // its context has ended
	}
	if b.apart != nil {
		_ = b.apart.Close()
	}
	b.assistant.close()
}

// checks look at the services that the flags name.
func (b *serveBackend) checks() []server.Check {
	var checks []server.Check
	if b.command.Store != "" && strings.Contains(b.command.Store, "://") {
		checks = append(checks, server.Check{Name: servicePostgres, Run: b.checkStore})
	}
	if b.qdrant != nil {
		checks = append(checks, server.Check{Name: serviceQdrant, Run: b.checkQdrant})
	}
	if b.ollama != nil {
		check := server.Check{Name: serviceOllama, Optional: true, Run: b.checkOllama}
		for _, optional := range b.command.models() {
			check.Optional = check.Optional && optional
		}
		checks = append(checks, check)
	}
	return checks
}

func (b *serveBackend) checkStore(ctx context.Context) error {
	b.mu.Lock()
	err := b.storeErr
	b.mu.Unlock()
	if err != nil {
		return err
	}
	if s, ok := b.assistant.store.(interface{ Ping(context.Context) error }); ok {
		return s.Ping(ctx)
	}
	return nil
}

func (b *serveBackend) checkQdrant(ctx context.Context) error {
	b.mu.Lock()
	k := b.knowledge
	b.mu.Unlock()
	if s, ok := k.(*qdrant.Store); ok {
		return s.Ping(ctx)
	}
	o := *b.qdrant
	o.ReadyWait = -1
	_, err := qdrant.WaitReady(ctx, o)
	return err
}

func (b *serveBackend) checkOllama(ctx context.Context) error {
	if _, err := b.ollama.Version(ctx); err != nil {
		return err
	}
	for model := range b.command.models() {
		b.ollama.Forget(model)
		if _, err := b.ollama.Model(ctx, model); err != nil {
			return err
		}
	}
	return nil
}

// handlers are what is served beside the API.
func (b *serveBackend) handlers(s *server.Server, log *slog.Logger) {
	s.HandlePublic("/", web.Handler()) // which asks for the key
	b.protocols(s, log)
}
