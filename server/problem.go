package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"syscall"

	"github.com/danielgtaylor/huma/v2"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/server/tenant"
)

// Problem is an error as RFC 9457 has it.
type Problem struct {
	Title   string              `json:"title" doc:"The status in words"`
	Status  int                 `json:"status" doc:"The HTTP status"`
	Code    string              `json:"code" doc:"What kind of problem it is, in a word for programs: busy, stopped, settled, unavailable, full, not_found, ..."`
	Detail  string              `json:"detail" doc:"What is wrong, and what to do about it"`
	Service string              `json:"service,omitempty" doc:"The service that is down"`
	Errors  []*huma.ErrorDetail `json:"errors,omitempty" doc:"What is wrong in the request, and where"`

	retry int // seconds after which trying again makes sense; 0 if it does not
}

var _ huma.StatusError = (*Problem)(nil)

func (p *Problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return problemType }

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	if p.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retry))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="askback"`)
	}
	return h
}

const problemType = "application/problem+json"

func problem(status int, code, detail string) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

// write sends a problem as the whole response.
func write(w http.ResponseWriter, p *Problem) {
	for name, values := range p.GetHeaders() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client is gone if that fails
}

// deny sends a problem that comes before any handler, in the form that the client of
// the path knows.
func deny(w http.ResponseWriter, r *http.Request, p *Problem) {
	if !strings.HasPrefix(r.URL.Path, "/v1/") {
		write(w, p)
		return
	}
	kind := "invalid_request_error"
	switch {
	case p.Status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case p.Status == http.StatusUnauthorized:
		kind = "authentication_error"
	case p.Status >= http.StatusInternalServerError:
		kind = "server_error"
	}
	for name, values := range p.GetHeaders() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": p.Detail, "type": kind, "param": nil, "code": p.Code}})
}

var (
	errStopped  = errors.New("the turn was stopped; what was shown of its answer is kept")
	errShutdown = errors.New("the server is shutting down; send the message again")
	errLate     = errors.New("the turn took too long and was stopped")
	errMany     = errors.New("too many turns are running; try again soon")
)

// kinds are the errors that have a status of their own. The first that fits counts.
var kinds = []struct {
	err    error
	status int
	code   string
	retry  int
}{
	{errStopped, http.StatusConflict, "stopped", 0},
	{errElsewhere, http.StatusConflict, "elsewhere", 0},
	{errShutdown, http.StatusServiceUnavailable, "shutdown", 2},
	{errLate, http.StatusGatewayTimeout, "late", 0},
	{errMany, http.StatusServiceUnavailable, "busy", 2},
	{conversation.ErrBusy, http.StatusConflict, "busy", 2},
	{conversation.ErrLost, http.StatusConflict, "lost", 1},
	{tenant.ErrLongID, http.StatusUnprocessableEntity, "invalid", 0},
	{conversation.ErrUser, http.StatusForbidden, "user", 0},
	{conversation.ErrNotFound, http.StatusNotFound, "not_found", 0},
	{pipeline.ErrSettled, http.StatusConflict, "settled", 0},
	{pipeline.ErrKey, http.StatusConflict, "key", 0},
	{pipeline.ErrNoPending, http.StatusConflict, "no_pending", 0},
	{pipeline.ErrNoOption, http.StatusUnprocessableEntity, "no_option", 0},
	{pipeline.ErrEmpty, http.StatusUnprocessableEntity, "empty", 0},
	{pipeline.ErrTooLong, http.StatusRequestEntityTooLarge, "too_long", 0},
	{conversation.ErrFull, http.StatusInsufficientStorage, "full", 10},
	{retrieval.ErrFull, http.StatusInsufficientStorage, "full", 10},
	{syscall.ENOSPC, http.StatusInsufficientStorage, "full", 10},
}

// unavailable marks an error as one of a service, unless it is.
func unavailable(err error) error {
	var service *ServiceError
	if err == nil || errors.As(err, &service) {
		return err
	}
	return &ServiceError{Err: err}
}

// problemOf says what an error means to a client. One that is no kind of its own
// comes from a service that is down, if a check says so.
func (s *Server) problemOf(ctx context.Context, err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			if k.status == http.StatusInsufficientStorage { // the operator's to put right
				s.failedBy(ctx, "disk")
				s.log.Error("there is no room left", "error", err)
			}
			p := problem(k.status, k.code, err.Error())
			p.retry = k.retry
			return p
		}
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) { // nobody is there who reads it
		return problem(http.StatusServiceUnavailable, "left", "the client left before the end")
	}
	var service *ServiceError
	if !errors.As(err, &service) {
		if service = s.down(ctx, err); service == nil {
			s.failedBy(ctx, "")
			s.log.Error("a request failed", "error", err)
			return problem(http.StatusInternalServerError, "failed", err.Error())
		}
	}
	s.failedBy(ctx, service.Service)
	p = problem(http.StatusServiceUnavailable, "unavailable", err.Error())
	p.Service, p.retry = service.Service, service.RetryAfter()
	return p
}
