package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// policy is what a page of ours may load: what the server itself gives.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler is the whole server: the API, and what was given to Handle.
func (s *Server) Handler() http.Handler {
	foreign := http.NewCrossOriginProtection()
	foreign.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		deny(w, r, problem(http.StatusForbidden, "cross_origin", "a page of another site may not do this"))
	}))
	for _, origin := range s.o.Origins {
		_ = foreign.AddTrustedOrigin(origin) // New has looked at it
	}
	return s.observed(headers(s.hosts(s.origins(foreign.Handler(s.users(s.controls(s.mux)))))))
}

// headers sets those of every response.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		if strings.HasPrefix(r.URL.Path, "/api/") {
			h.Set("Cache-Control", "no-store")
		}
		next.ServeHTTP(w, r)
	})
}

// hosts refuses requests to other names than Options.Hosts.
func (s *Server) hosts(next http.Handler) http.Handler {
	if s.o.Hosts == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if host = strings.Trim(host, "[]"); !slices.ContainsFunc(s.o.Hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
			deny(w, r, problem(http.StatusMisdirectedRequest, "host", fmt.Sprintf("this server is not %q; it answers as %s", r.Host, strings.Join(s.o.Hosts, ", "))))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// controls limits the time that a request's body may take to arrive, and hands the
// control of the connection on to the operations.
func (s *Server) controls(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		r = r.WithContext(context.WithValue(r.Context(), controlKey{}, c))
		var limit time.Time
		if r.ContentLength != 0 { // -1 if it is not known
			limit = time.Now().Add(s.o.BodyTime)
			r.Body = &timedBody{r.Body, c}
		}
		_ = c.SetReadDeadline(limit) // where it matters, unlimited fails too
		next.ServeHTTP(w, r)
	})
}

// timedBody lifts the limit of its time once it is there. Left alone, the limit
// would end the request's context when it is over, however far the answer is.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

type controlKey struct{}

// control is the control of the connection that a request came by.
func control(ctx context.Context) *http.ResponseController {
	return ctx.Value(controlKey{}).(*http.ResponseController)
}

// problems answers what no operation is there for with a problem.
func (s *Server) problems(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		probe := &discard{header: http.Header{}}
		h.ServeHTTP(probe, r)
		if allow := probe.header.Get("Allow"); allow != "" {
			w.Header().Set("Allow", allow)
			write(w, problem(http.StatusMethodNotAllowed, "method", fmt.Sprintf("%s is not possible here; possible are %s", r.Method, allow)))
			return
		}
		write(w, problem(http.StatusNotFound, "not_found", fmt.Sprintf("there is no %s; the API is described at /openapi.json", r.URL.Path)))
	})
}

// discard is a response that nobody gets.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

// decode reads JSON, and says where it is broken.
func decode(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		line, column := position(data, syntax.Offset)
		return fmt.Errorf("not JSON: line %d, column %d: %w", line, column, err)
	case errors.As(err, &kind):
		line, column := position(data, kind.Offset)
		return fmt.Errorf("line %d, column %d: %w", line, column, err)
	}
	return err
}

// position is where the byte of that offset stands, both from 1.
func position(data []byte, offset int64) (line, column int) {
	before := data[:min(max(offset, 1), int64(len(data)))]
	return 1 + bytes.Count(before, []byte("\n")), max(1, len(before)-1-bytes.LastIndexByte(before, '\n'))
}
