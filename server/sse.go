package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/askback/askback/gate"
)

// patience is how long a client may take nothing of a stream before it is given up.
// It can come back. Tests change it.
var patience = time.Minute

// eventStream writes server-sent events.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buffer  bytes.Buffer
}

// openStream begins a stream. The time limits of the server's requests and
// responses do not hold for it; a writer that cannot lift them, or that holds back
// what is written, is an error, since the stream would be cut without a word.
func openStream(w http.ResponseWriter) (*eventStream, error) {
	e := &eventStream{w: w, control: http.NewResponseController(w)}
	if err := unlimited(e.control); err != nil {
		return nil, err
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no") // nginx
	return e, nil
}

// unlimited lifts the time limits of a request that may take long.
func unlimited(c *http.ResponseController) error {
	if err := errors.Join(c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Time{})); err != nil {
		return fmt.Errorf("this response cannot be kept open; the handler around the server must give http.ResponseController its writer by Unwrap: %w", err)
	}
	return nil
}

// comment says that the stream is alive.
func (e *eventStream) comment() error {
	e.buffer.WriteString(":\n\n")
	return e.flush()
}

// What is sent goes in pieces: no more than so much is gathered of a turn's events, so
// that a reader holds no second copy of the turn, and only so much has to be taken within
// patience, so that a reader who is slow is not held for one who takes nothing.
const (
	gathered = 64 << 10
	taken    = 8 << 10
)

// event adds an event, which flush sends if there was no need to send it already. An
// event without a number has number 0.
func (e *eventStream) event(number int, ev event) (err error) {
	if number > 0 {
		e.buffer.WriteString("id: " + strconv.Itoa(number) + "\n")
	}
	e.buffer.WriteString("event: " + ev.name + "\ndata: ")
	if e.buffer.Len()+len(ev.data) <= gathered {
		e.buffer.Write(ev.data) // JSON on one line
	} else if err = e.flush(); err == nil {
		err = e.send(ev.data)
	}
	e.buffer.WriteString("\n\n")
	return err
}

// flush sends what was added.
func (e *eventStream) flush() error {
	defer e.buffer.Reset()
	return e.send(e.buffer.Bytes())
}

func (e *eventStream) send(b []byte) error {
	for piece := range slices.Chunk(b, taken) {
		if err := e.control.SetWriteDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		if _, err := e.w.Write(piece); err != nil {
			return err
		}
		if err := e.control.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// stream sends a turn's events after the first n until its end, or until the
// client is gone. The turn goes on without it.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, t *turn, n int) {
	e, err := openStream(w)
	if err != nil {
		write(w, s.problemOf(r.Context(), err))
		return
	}
	beat := time.NewTicker(s.o.Heartbeat)
	defer beat.Stop()
	if err := e.comment(); err != nil {
		s.cut(r, err)
		return
	}
	for {
		events, ended, more := t.since(n)
		for _, ev := range events {
			n++
			if err := e.event(n, ev); err != nil {
				s.cut(r, err)
				return
			}
		}
		if err := e.flush(); err != nil {
			s.cut(r, err)
			return
		}
		if ended {
			return
		}
		select {
		case <-more:
		case <-beat.C:
			err = e.comment()
		case <-r.Context().Done():
			return
		}
		if err != nil {
			s.cut(r, err)
			return
		}
	}
}

// cut notes that a stream was not sent to its end.
func (s *Server) cut(r *http.Request, err error) {
	if errors.Is(err, http.ErrNotSupported) {
		s.log.Error("a stream cannot be sent", "path", r.URL.Path, "error", err)
		panic(http.ErrAbortHandler)
	}
	s.log.Debug("the reader of a stream left", "path", r.URL.Path, "error", err)
}

// await sends a turn's result when it is there.
func (s *Server) await(w http.ResponseWriter, r *http.Request, t *turn) {
	control := http.NewResponseController(w)
	if err := unlimited(control); err != nil {
		write(w, s.problemOf(r.Context(), err))
		return
	}
	result, err := t.wait(r.Context())
	if r.Context().Err() != nil {
		return // nobody is there any more
	}
	if err != nil {
		write(w, s.problemOf(r.Context(), err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(result)
}

// eventSchema describes a stream of a turn's events.
func (s *Server) eventSchema() *huma.Schema {
	empty := func() *huma.Schema { return &huma.Schema{Type: huma.TypeObject} }
	data := map[string]*huma.Schema{
		"turn": s.schema(TurnStarted{}, ""), "waiting": empty(), "understood": s.schema(TurnUnderstood{}, ""),
		"retrieved": s.schema(TurnRetrieved{}, ""), "decided": s.schema(gate.Decision{}, ""), "delta": s.schema(TurnDelta{}, ""),
		"result": s.schema(TurnResult{}, ""), "error": s.schema(Problem{}, ""), "end": empty(),
	}
	return eventsSchema(data)
}

// eventsSchema describes a stream of events by the schemas of their data.
func eventsSchema(data map[string]*huma.Schema) *huma.Schema {
	var one []*huma.Schema
	for _, name := range slices.Sorted(maps.Keys(data)) {
		one = append(one, &huma.Schema{Title: name, Type: huma.TypeObject, Properties: map[string]*huma.Schema{
			"id":    {Type: huma.TypeInteger, Description: "The event's number, from 1"},
			"event": {Type: huma.TypeString, Enum: []any{name}},
			"data":  data[name],
		}, Required: []string{"event", "data"}})
	}
	return &huma.Schema{Type: huma.TypeString, Description: "Server-sent events; each of them, parsed, is one of x-events",
		Extensions: map[string]any{"x-events": one}}
}
