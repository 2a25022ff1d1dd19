package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// Scope is the name of the instrumentation scope.
const Scope = "github.com/askback/askback/server"

// instruments are what the server measures itself with, see Options.Meter.
type instruments struct {
	requests        metric.Float64Histogram
	active          metric.Int64UpDownCounter
	errors, uploads metric.Int64Counter
}

// instrument makes the instruments.
func (s *Server) instrument(provider metric.MeterProvider) error {
	if provider == nil {
		provider = noop.NewMeterProvider()
	}
	meter := provider.Meter(Scope)
	var errs [5]error
	s.measure.requests, errs[0] = meter.Float64Histogram("askback.http.duration", metric.WithUnit("s"), metric.WithDescription("Time of an HTTP request."),
		metric.WithExplicitBucketBoundaries(.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300))
	s.measure.active, errs[1] = meter.Int64UpDownCounter("askback.http.active", metric.WithUnit("{request}"), metric.WithDescription("HTTP requests that are being answered."))
	s.measure.errors, errs[2] = meter.Int64Counter("askback.errors", metric.WithUnit("{error}"), metric.WithDescription("Errors of turns and requests, by the service that they come from."))
	s.measure.uploads, errs[3] = meter.Int64Counter("askback.uploads", metric.WithUnit("{file}"), metric.WithDescription("Uploaded files, by what became of them."))
	_, errs[4] = meter.Int64ObservableUpDownCounter("askback.turns.active", metric.WithUnit("{turn}"), metric.WithDescription("Turns that run or wait."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			s.hub.mu.Lock()
			defer s.hub.mu.Unlock()
			o.Observe(int64(s.hub.active))
			return nil
		}))
	return errors.Join(errs[:]...)
}

// failedBy counts an error that comes from a service, or, without its name, from
// within.
func (s *Server) failedBy(ctx context.Context, service string) {
	s.measure.errors.Add(ctx, 1, metric.WithAttributes(attribute.String("askback.service", cmp.Or(service, "askback"))))
}

// Blame is Options.Blame, and counts the error. It is for what Handle serves.
func (s *Server) Blame(err error) string {
	service := ""
	if s.o.Blame != nil {
		service = s.o.Blame(err)
	}
	s.failedBy(context.Background(), service)
	return service
}

// uploaded counts a file, by what became of it: stored, skipped or failed.
func (s *Server) uploaded(ctx context.Context, became string) {
	s.measure.uploads.Add(ctx, 1, metric.WithAttributes(attribute.String("askback.upload", became)))
}

// visit is a request as it is counted and logged.
type visit struct{ id, tenant string }

type visitKey struct{}

// RequestID is the id of the request that the context belongs to, as the header
// X-Request-Id of its response and the log have it; "" without one.
func RequestID(ctx context.Context) string {
	if v, ok := ctx.Value(visitKey{}).(*visit); ok {
		return v.id
	}
	return ""
}

// statusLeft is that of a request whose client left before there was a response, as
// nginx has it.
const statusLeft = 499

// observed counts and logs each request, by the pattern of its route and never by its
// path, which names conversations and documents, and of which there is no end.
func (s *Server) observed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		v := &visit{id: requestID(r)}
		w.Header().Set("X-Request-Id", v.id)
		pattern, route := s.route(r)
		where := attribute.String("http.route", route)
		ctx := context.WithValue(r.Context(), visitKey{}, v)
		s.measure.active.Add(ctx, 1, metric.WithAttributes(where))
		out := &statusWriter{ResponseWriter: w}
		ended := false
		defer func() {
			status := out.status
			switch {
			case status != 0:
			case !ended: // a panic
				status = http.StatusInternalServerError
			case ctx.Err() != nil:
				status = statusLeft
			default:
				status = http.StatusOK
			}
			elapsed := time.Since(began)
			s.measure.active.Add(ctx, -1, metric.WithAttributes(where))
			s.measure.requests.Record(ctx, elapsed.Seconds(), metric.WithAttributes(where,
				attribute.String("http.request.method", method(r)), attribute.String("askback.status", strconv.Itoa(status/100)+"xx")))
			level := slog.LevelInfo
			switch {
			case s.doors[pattern] == metrics || route == "/healthz" || route == "/readyz": // they are asked for again and again
				level = slog.LevelDebug
			case status >= http.StatusInternalServerError:
				level = slog.LevelWarn
			}
			attrs := []slog.Attr{slog.String("request", v.id), slog.String("method", method(r)), slog.String("route", route), slog.Int("status", status), slog.Duration("elapsed", elapsed)}
			if v.tenant != "" {
				attrs = append(attrs, slog.String("tenant", v.tenant))
			}
			s.log.LogAttrs(ctx, level, "request", attrs...)
		}()
		next.ServeHTTP(out, r.WithContext(ctx))
		ended = true
	})
}

// route gives the pattern that a request is served by, and the template of its path:
// "other" for what nothing is there for.
func (s *Server) route(r *http.Request) (pattern, path string) {
	_, pattern = s.mux.Handler(r)
	path = pattern
	if apiPatterns[pattern] {
		_, path = s.ops.Handler(r)
	}
	if _, rest, ok := strings.Cut(path, " "); ok {
		path = rest
	}
	return pattern, cmp.Or(path, "other")
}

// method is a request's, if it is one of HTTP's own.
func method(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return r.Method
	}
	return "other"
}

var goodID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// requestID is the id that a proxy in front has given a request, or a new one.
func requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); goodID.MatchString(id) {
		return id
	}
	return rand.Text()
}

// statusWriter remembers a response's status, 0 before there is one.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	w.status = cmp.Or(w.status, http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// FlushError is for http.ResponseController.
func (w *statusWriter) FlushError() error {
	err := http.NewResponseController(w.ResponseWriter).Flush()
	if err == nil {
		w.status = cmp.Or(w.status, http.StatusOK)
	}
	return err
}

// Flush implements http.Flusher.
func (w *statusWriter) Flush() { _ = w.FlushError() }

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
