package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/pipeline"
)

// Backend is what answers.
type Backend struct {
	Pipeline *pipeline.Pipeline
	Store    conversation.Store // the pipeline's
}

// Options for a handler. Only Backend is required.
type Options struct {
	// Backend gives what answers now. An error is answered with 503.
	Backend func() (Backend, error)
	// User says whose request it is, "" if nobody's in particular; then a request
	// may say it in askback.user. nil: nobody's.
	User func(*http.Request) string
	// Allow counts a turn that is about to begin against what its caller may ask for.
	// Its error is answered with 429, and with the Retry-After that it has if it is an
	// http.Header's giver (GetHeaders). nil: all may.
	Allow func(context.Context) error
	// Begin counts a turn that runs, until end is called, against how many may. Its
	// error is answered with 429. nil: any number.
	Begin func() (end func(), err error)
	// Blame says which service a turn's error comes from, "" if none; then the error
	// is 503 instead of 500. nil: none.
	Blame func(error) string
	// Model is the name of the one model. "": DefaultModel.
	Model string
	// MaxBody is the largest request, in bytes. 0: 4 MiB.
	MaxBody int64
	// Heartbeat is how long a stream may be silent. 0: 10 s.
	Heartbeat time.Duration
	Log       *slog.Logger // nil: slog.Default()
}

// DefaultModel is the name of the model, unless Options say otherwise.
const DefaultModel = "askback"

// handler serves /v1/.
type handler struct {
	o       Options
	busy    busy
	started int64 // Unix time, as the model's date
}

// New gives the handler of all paths under /v1/.
func New(o Options) http.Handler {
	o.Model = cmp.Or(o.Model, DefaultModel)
	o.MaxBody = cmp.Or(o.MaxBody, 4<<20)
	o.Heartbeat = cmp.Or(o.Heartbeat, 10*time.Second)
	o.Log = cmp.Or(o.Log, slog.Default())
	h := &handler{o: o, started: time.Now().Unix()}
	return http.HandlerFunc(h.route)
}

// route is a mux whose faults are OpenAI's.
func (h *handler) route(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimSuffix(r.URL.Path, "/")
	method, serve := http.MethodGet, h.models
	switch id, one := strings.CutPrefix(path, "/v1/models/"); {
	case path == "/v1/chat/completions":
		method, serve = http.MethodPost, h.complete
	case path == "/v1/models":
	case one:
		serve = func(w http.ResponseWriter, r *http.Request) { h.model(w, id) }
	default:
		refuse(http.StatusNotFound, "", "not_found", fmt.Sprintf("there is no %s here; there are /v1/chat/completions and /v1/models", r.URL.Path)).write(w)
		return
	}
	if r.Method != method && (method != http.MethodGet || r.Method != http.MethodHead) {
		w.Header().Set("Allow", method)
		refuse(http.StatusMethodNotAllowed, "", "method_not_allowed", fmt.Sprintf("%s takes %s, not %s", r.URL.Path, method, r.Method)).write(w)
		return
	}
	serve(w, r)
}

// Model is what is told of a model.
type Model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func (h *handler) own() Model { return Model{h.o.Model, "model", h.started, "askback"} }

func (h *handler) models(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, struct {
		Object string  `json:"object"`
		Data   []Model `json:"data"`
	}{"list", []Model{h.own()}})
}

func (h *handler) model(w http.ResponseWriter, id string) {
	if id != h.o.Model {
		h.noModel(id).write(w)
		return
	}
	writeJSON(w, http.StatusOK, h.own())
}

func (h *handler) noModel(id string) *Error {
	return refuse(http.StatusNotFound, "model", "model_not_found", fmt.Sprintf("the model %q is not served here; the model is %q", id, h.o.Model))
}

// complete answers POST /v1/chat/completions.
func (h *handler) complete(w http.ResponseWriter, r *http.Request) {
	q, e := read(r, h.o.MaxBody)
	if e == nil && q.model != "" && q.model != h.o.Model {
		e = h.noModel(q.model)
	}
	user := ""
	if e == nil {
		user, e = h.user(r, q)
	}
	if e != nil {
		e.write(w)
		return
	}
	b, err := h.o.Backend()
	if err != nil {
		unavailable(err).write(w)
		return
	}
	if e := h.admit(r.Context()); e != nil {
		e.write(w)
		return
	}
	if h.o.Begin != nil {
		end, err := h.o.Begin()
		if err != nil {
			busy := refuse(http.StatusTooManyRequests, "", "busy", err.Error())
			busy.retry = 2
			busy.write(w)
			return
		}
		defer end()
	}
	// The answer may take as long as it takes.
	if err := http.NewResponseController(w).SetWriteDeadline(time.Time{}); err != nil {
		h.o.Log.Error("the time to write cannot be lifted; something wraps the response and hides its deadline", "error", err)
		refuse(http.StatusInternalServerError, "", "no_deadline", fmt.Sprintf("this server would cut long answers: %v", err)).write(w)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	p, err := h.busy.open(ctx, b.Store, user, q.ask.Conversation, q.dialogue)
	if err != nil {
		h.fault(err).write(w)
		return
	}
	t := &turn{h: h, w: w, r: q, place: p, id: newCompletionID(), created: time.Now().Unix(), cancel: cancel}
	t.run(ctx, b.Pipeline, pipeline.Message{Conversation: p.id, Text: q.text, Choice: q.ask.Choice, Clarification: q.ask.Clarification, User: user, Key: q.ask.Key})
}

// admit counts the turn.
func (h *handler) admit(ctx context.Context) *Error {
	if h.o.Allow == nil {
		return nil
	}
	err := h.o.Allow(ctx)
	if err == nil {
		return nil
	}
	e := refuse(http.StatusTooManyRequests, "", "rate", err.Error())
	var told interface{ GetHeaders() http.Header }
	if errors.As(err, &told) {
		e.retry, _ = strconv.Atoi(told.GetHeaders().Get("Retry-After"))
	}
	return e
}

// user says whose request it is.
func (h *handler) user(r *http.Request, q *request) (string, *Error) {
	known := ""
	if h.o.User != nil {
		known = h.o.User(r)
	}
	if claimed := q.ask.User; known != "" && claimed != "" && claimed != known {
		return "", refuse(http.StatusForbidden, "askback.user", "user", fmt.Sprintf("the request is not %q's", claimed))
	}
	return cmp.Or(known, q.ask.User), nil
}

// Error is an error as OpenAI's API has it.
type Error struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`

	status, retry int
}

// refuse makes an error.
func refuse(status int, param, code, message string) *Error {
	e := &Error{Message: message, Type: "invalid_request_error", Code: &code, status: status}
	if param != "" {
		e.Param = &param
	}
	switch {
	case status == http.StatusTooManyRequests:
		e.Type = "rate_limit_error"
	case status >= http.StatusInternalServerError:
		e.Type = "server_error"
	}
	return e
}

// unavailable says that something is down for the time being.
func unavailable(err error) *Error {
	e := refuse(http.StatusServiceUnavailable, "", "unavailable", err.Error())
	e.retry = 5
	var told interface{ RetryAfter() int } // in seconds
	if errors.As(err, &told) {
		e.retry = told.RetryAfter()
	}
	return e
}

func (e *Error) write(w http.ResponseWriter) {
	if e.retry > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(e.retry))
	}
	writeJSON(w, e.status, map[string]*Error{"error": e})
}

// faults are the errors of a turn that the client can mend. Of their status clients
// read whether to try again by themselves: they do after 409 and 429.
var faults = []struct {
	err         error
	status      int
	param, code string
	retry       int
}{
	{conversation.ErrBusy, http.StatusTooManyRequests, "", "busy", 2},
	{conversation.ErrLost, http.StatusConflict, "", "lost", 1},
	{conversation.ErrUser, http.StatusForbidden, "askback.conversation", "user", 0},
	{pipeline.ErrSettled, http.StatusBadRequest, "askback.clarification", "settled", 0},
	{pipeline.ErrKey, http.StatusBadRequest, "askback.key", "key", 0},
	{pipeline.ErrNoPending, http.StatusBadRequest, "askback.choice", "no_pending", 0},
	{pipeline.ErrNoOption, http.StatusBadRequest, "askback.choice", "no_option", 0},
	{pipeline.ErrEmpty, http.StatusBadRequest, "messages", "empty", 0},
	{pipeline.ErrTooLong, http.StatusBadRequest, "messages", "string_above_max_length", 0},
}

// fault says what an error of a turn means.
func (h *handler) fault(err error) *Error {
	for _, f := range faults {
		if errors.Is(err, f.err) {
			e := refuse(f.status, f.param, f.code, err.Error())
			e.retry = f.retry
			return e
		}
	}
	if !errors.Is(err, context.Canceled) {
		h.o.Log.Error("a turn failed", "error", err)
	}
	if h.o.Blame != nil {
		if service := h.o.Blame(err); service != "" {
			if !strings.Contains(err.Error(), service) {
				err = fmt.Errorf("%s: %w", service, err)
			}
			return unavailable(err)
		}
	}
	return refuse(http.StatusInternalServerError, "", "failed", err.Error())
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client is gone if that fails
}
