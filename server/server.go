package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"go.opentelemetry.io/otel/metric"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/server/keys"
)

// Backend is what is served.
type Backend struct {
	Pipeline  *pipeline.Pipeline
	Store     conversation.Store // the pipeline's
	Documents *Documents         // nil: none can be looked at, uploaded or removed
	About     About              // for the page
}

// Check looks whether one service works.
type Check struct {
	Name     string // of the service, as people know it: "Ollama", "PostgreSQL"
	Run      func(context.Context) error
	Optional bool // questions are answered without it, if not as well
}

// Options for a server. Only Open is required.
type Options struct {
	// Open opens what is served. It runs in the background and is tried again,
	// with back-off, while it fails; meanwhile the server is alive and says which
	// service it waits for (see ServiceError). What it gives along with an error is
	// served meanwhile: a Backend with a Store alone makes conversations readable.
	// An error of backoff.Permanent ends it, see Server.Failed.
	Open func(context.Context) (*Backend, error)
	// Checks are asked for /readyz, and when a turn fails, to name what is down.
	Checks []Check
	// Blame says which service an error of a turn or a request comes from, as in
	// Check.Name; "" if it does not tell. nil: the checks alone tell.
	Blame func(error) string
	// Keys are the keys that the server is used with; whose a request is, is told by
	// its key. What HandlePublic serves, and whether the server is alive and ready, is
	// told without one. nil: everybody is let in. With keys, the backend's store and
	// documents have to be those of server/tenant, which keep tenants apart.
	Keys *keys.Ring
	// User says whose request it is where there are no keys. nil: nobody's in
	// particular. An error is answered with 401.
	User func(*http.Request) (string, error)
	// Limits are how much one key or address may ask for.
	Limits Limits
	// Origins are the sites whose pages may use the API, such as
	// https://chat.example.com. nil: the server's own alone.
	Origins []string
	// Hosts are the names that a request may be sent to, without port. On a
	// loopback address this keeps pages of other sites from reaching the server by
	// a name of theirs. nil: any.
	Hosts []string
	Log   *slog.Logger // for a line a request too; nil: slog.Default()
	// Meter takes what the server measures. nil: nothing is measured.
	//
	//	askback.http.duration   seconds of a request, by http.route (the template of its path, or other),
	//	                        http.request.method and askback.status: 2xx, ...
	//	askback.http.active     requests that are being answered, by http.route
	//	askback.turns.active    turns that run or wait
	//	askback.errors          errors of turns and requests, by askback.service, as in Check.Name;
	//	                        askback if none is to blame
	//	askback.uploads         files, by askback.upload: stored, skipped or failed
	Meter metric.MeterProvider

	// Version is the program's, for the API's description.
	Version string
	// Heartbeat is the time between two comments in a stream. 0: 10 s.
	Heartbeat time.Duration
	// Keep is how long a finished turn's events are kept in memory. 0: 5 min.
	Keep time.Duration
	// MaxTurns is how many turns may run or wait at once, over all
	// conversations. 0: 256.
	MaxTurns int
	// BodyTime is how long the body of a request may take to arrive; uploads have
	// longer. 0: 30 s.
	BodyTime time.Duration
	// TurnLimit is how long a turn may take. 0: 30 min.
	TurnLimit time.Duration
}

// Server serves a pipeline.
type Server struct {
	o       Options
	log     *slog.Logger
	mux     *http.ServeMux // everything
	ops     *http.ServeMux // the API's operations
	api     huma.API
	hub     *hub
	measure instruments

	doors                    map[string]door // by pattern; the others are private
	turns, uploads, failures *limiter

	stop context.CancelFunc
	open sync.WaitGroup // the goroutine that opens the backend

	checks  checks
	writing chan struct{} // held by who changes a document
	reading chan struct{} // held by who reads a file before that

	mu      sync.Mutex
	backend *Backend
	openErr error // why the backend is not (all) there
	failed  chan error
}

// New makes a server and begins to open its backend.
func New(o Options) (*Server, error) {
	if o.Open == nil {
		return nil, errors.New("a server needs Options.Open, which gives what is served")
	}
	o.Heartbeat = cmp.Or(o.Heartbeat, 10*time.Second)
	o.Keep = cmp.Or(o.Keep, 5*time.Minute)
	o.MaxTurns = cmp.Or(o.MaxTurns, 256)
	o.BodyTime = cmp.Or(o.BodyTime, 30*time.Second)
	o.TurnLimit = cmp.Or(o.TurnLimit, 30*time.Minute)
	o.Limits.Turns, o.Limits.Uploads = cmp.Or(o.Limits.Turns, defaultTurns), cmp.Or(o.Limits.Uploads, defaultUploads)
	for _, origin := range o.Origins {
		if err := http.NewCrossOriginProtection().AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("Options.Origins: %w", err)
		}
	}
	s := &Server{o: o, log: cmp.Or(o.Log, slog.Default()), mux: http.NewServeMux(), ops: http.NewServeMux(), doors: map[string]door{},
		turns: newLimiter(o.Limits.Turns), uploads: newLimiter(o.Limits.Uploads), failures: newLimiter(failures),
		openErr: unavailable(errors.New("the server is starting")), failed: make(chan error, 1)}
	s.hub = newHub(s)
	if err := s.instrument(o.Meter); err != nil {
		return nil, fmt.Errorf("Options.Meter: %w", err)
	}
	s.api = humago.New(s.ops, config(o.Version))
	s.registerTurns()
	s.registerConversations()
	s.registerPreview()
	s.registerDocuments()
	s.registerAbout()
	s.registerHealth()
	api := s.problems(s.ops)
	for p := range apiPatterns {
		s.mux.Handle(p, api)
	}
	s.doors["/healthz"], s.doors["/readyz"] = public, public
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.open.Go(func() { s.opening(ctx) })
	return s, nil
}

// apiPatterns are those that the API's operations are under.
var apiPatterns = map[string]bool{"/api/": true, "/openapi.json": true, "/healthz": true, "/readyz": true}

// Handle serves something else on the same port. The pattern is http.ServeMux's. It is
// called before Handler.
func (s *Server) Handle(pattern string, h http.Handler) { s.handleAt(private, pattern, h) }

// HandlePublic is Handle for what is shown without a key, such as a page that asks
// for one.
func (s *Server) HandlePublic(pattern string, h http.Handler) { s.handleAt(public, pattern, h) }

// HandleMetrics is Handle for what is told of all tenants together, which takes a key
// that was made for it.
func (s *Server) HandleMetrics(pattern string, h http.Handler) { s.handleAt(metrics, pattern, h) }

func (s *Server) handleAt(d door, pattern string, h http.Handler) {
	s.doors[pattern] = d
	s.mux.Handle(pattern, h)
}

// Backend is what is served, or an error that says why nothing is yet.
func (s *Server) Backend() (*Backend, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.backend == nil || s.backend.Pipeline == nil {
		return nil, s.openErr
	}
	return s.backend, nil
}

// store is the store of conversations, which may be there before the rest.
func (s *Server) store() (conversation.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.backend == nil || s.backend.Store == nil {
		return nil, s.openErr
	}
	return s.backend.Store, nil
}

// Failed gives the error of Options.Open that ended the attempts, if one does.
func (s *Server) Failed() <-chan error { return s.failed }

// opening opens the backend, again and again until it is there.
func (s *Server) opening(ctx context.Context) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 250*time.Millisecond, 10*time.Second
	said := ""
	for {
		b, err := s.o.Open(ctx)
		if err == nil && (b == nil || b.Pipeline == nil || b.Store == nil) {
			err = backoff.Permanent(errors.New("Options.Open gave no error and neither all that is served"))
		}
		s.mu.Lock()
		if b != nil {
			s.backend = b
		}
		s.openErr = unavailable(err)
		s.mu.Unlock()
		var permanent *backoff.PermanentError
		switch {
		case err == nil || ctx.Err() != nil:
			return
		case errors.As(err, &permanent):
			s.failed <- permanent.Unwrap()
			return
		}
		level := slog.LevelWarn
		if err.Error() == said { // once is enough
			level = slog.LevelDebug
		}
		said = err.Error()
		s.log.Log(ctx, level, "not ready; trying again", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause.NextBackOff()):
		}
	}
}

// Close takes no more turns, lets those that run end until ctx is done, and then
// stops them. It does not close what Options.Open opened.
func (s *Server) Close(ctx context.Context) error {
	s.stop()
	s.open.Wait()
	return s.hub.close(ctx)
}

// ServiceError says that a service does not work.
type ServiceError struct {
	Service string // as in Check.Name; "" if it is not known which
	Err     error
	Retry   time.Duration // until trying again makes sense; 0: not known
}

func (e *ServiceError) Error() string {
	if e.Service == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%s: %v", e.Service, e.Err)
}

// RetryAfter is the time until trying again makes sense, in whole seconds, as the header
// has it.
func (e *ServiceError) RetryAfter() int {
	if e.Retry <= 0 {
		return 5
	}
	return int(math.Ceil(e.Retry.Seconds()))
}

// Unwrap gives what the service said.
func (e *ServiceError) Unwrap() error { return e.Err }
