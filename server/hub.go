package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/askback/askback/pipeline"
)

// hub runs turns. Each runs on its own, and its events are kept, so that any
// number of readers can follow it, come back, or leave.
type hub struct {
	s *Server

	mu      sync.Mutex
	closed  bool
	turns   map[turnID]*turn
	running sync.WaitGroup
	active  int // turns that run
}

// maxKept is how many finished turns are kept in memory at most.
const maxKept = 1024

// turnID names a turn over all conversations.
type turnID struct{ user, conversation, turn string }

// turn is one that runs, or ran a while ago.
type turn struct {
	turnID
	message pipeline.Message
	stop    context.CancelCauseFunc

	mu      sync.Mutex
	before  int // events that are not kept: those that the reader of a stored turn has
	events  []event
	more    chan struct{} // closed when an event is added, and replaced
	result  *TurnResult   // once it ended well
	problem *Problem      // once it ended otherwise
	ended   time.Time
}

// event is an event as it is sent; its number is its place in the turn, from 1.
type event struct {
	name string
	data []byte // JSON
}

func newHub(s *Server) *hub { return &hub{s: s, turns: map[turnID]*turn{}} }

// start gives the message's turn: the one that runs or ran, or a new one.
func (h *hub) start(ctx context.Context, p *pipeline.Pipeline, m pipeline.Message) (*turn, error) {
	id := turnID{m.User, m.Conversation, m.Key}
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.turns[id]; t != nil && !t.failed() {
		if t.message.Text != m.Text || t.message.Choice != m.Choice {
			return nil, pipeline.ErrKey
		}
		return t, nil
	}
	if err := h.room(); err != nil {
		return nil, err
	}
	if err := h.s.AllowTurn(ctx); err != nil {
		return nil, err
	}
	h.forget(time.Now())
	ctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	t := &turn{turnID: id, message: m, stop: stop, more: make(chan struct{})}
	h.turns[id] = t
	h.active++
	t.add("turn", TurnStarted{ID: m.Key, Conversation: m.Conversation})
	h.running.Go(func() {
		ctx, cancel := context.WithTimeoutCause(ctx, h.s.o.TurnLimit, errLate)
		defer cancel()
		defer stop(nil)
		h.run(ctx, p, t)
		h.mu.Lock()
		h.active--
		h.mu.Unlock()
	})
	return t, nil
}

// run runs a turn to its end.
func (h *hub) run(ctx context.Context, p *pipeline.Pipeline, t *turn) {
	result, err := h.follow(ctx, p, t)
	var end *Problem
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
			err = cause
		}
		end = h.s.problemOf(ctx, err)
	}
	t.end(result, end)
}

// follow turns the pipeline's events into those of the turn.
func (h *hub) follow(ctx context.Context, p *pipeline.Pipeline, t *turn) (result *TurnResult, err error) {
	defer func() {
		if r := recover(); r != nil {
			h.s.log.Error("a turn panicked", "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("the turn failed: %v", r)
		}
	}()
	for e, err := range p.Stream(ctx, t.message) {
		if err != nil {
			return nil, err
		}
		switch e := e.(type) {
		case pipeline.Waiting:
			t.add("waiting", struct{}{})
		case pipeline.Understood:
			t.add("understood", TurnUnderstood{e.Question})
		case pipeline.Retrieved:
			t.add("retrieved", TurnRetrieved{append([]pipeline.PassageTrace{}, e.Passages...)})
		case pipeline.Decided:
			t.add("decided", e.Decision)
		case pipeline.Delta:
			t.add("delta", TurnDelta{e.Text})
		case pipeline.Finished:
			result = &TurnResult{ID: t.turnID.turn, Record: e.Result.Record()}
		}
	}
	if result == nil {
		return nil, errors.New("the turn ended without a result")
	}
	return result, nil
}

// add adds an event.
func (t *turn) add(name string, data any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.append(name, data)
}

func (t *turn) append(name string, data any) {
	t.events = append(t.events, encode(name, data))
	close(t.more)
	t.more = make(chan struct{})
}

func encode(name string, data any) event {
	b, err := json.Marshal(data)
	if err != nil { // no type of ours that is sent can fail
		b, _ = json.Marshal(problem(500, "failed", err.Error()))
		name = "error"
	}
	return event{name, b}
}

// end ends the turn with a result or a problem.
func (t *turn) end(r *TurnResult, p *Problem) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.result, t.problem, t.ended = r, p, time.Now()
	if p != nil {
		t.append("error", p)
	} else {
		t.append("result", r)
	}
	t.append("end", struct{}{})
}

// failed reports whether the turn ended without a result.
func (t *turn) failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.problem != nil
}

// runs reports whether the turn has not ended.
func (t *turn) runs() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended.IsZero()
}

// since gives the events after the first n, whether the turn has ended, and a
// channel that is closed when there are more.
func (t *turn) since(n int) (events []event, ended bool, more <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.events[min(max(n-t.before, 0), len(t.events)):], !t.ended.IsZero(), t.more
}

// wait waits for the turn's end.
func (t *turn) wait(ctx context.Context) (*TurnResult, error) {
	for {
		t.mu.Lock()
		result, p, ended, more := t.result, t.problem, !t.ended.IsZero(), t.more
		t.mu.Unlock()
		switch {
		case p != nil:
			return nil, p
		case ended:
			return result, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// find is the turn of that id, or nil.
func (h *hub) find(id turnID) *turn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.turns[id]
}

// drop forgets the turns of a conversation, and gives them.
func (h *hub) drop(user, conversation string) (dropped []*turn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, t := range h.turns {
		if id.user == user && id.conversation == conversation {
			dropped = append(dropped, t)
			delete(h.turns, id)
		}
	}
	return dropped
}

// forget drops turns that ended long ago, and the oldest if there are too many.
// It is called with h.mu held.
func (h *hub) forget(now time.Time) {
	var oldest *turn
	var when time.Time
	ended := 0
	for id, t := range h.turns {
		t.mu.Lock()
		at := t.ended
		t.mu.Unlock()
		switch {
		case at.IsZero():
		case now.Sub(at) > h.s.o.Keep:
			delete(h.turns, id)
		default:
			if ended++; oldest == nil || at.Before(when) {
				oldest, when = t, at
			}
		}
	}
	if ended >= maxKept {
		delete(h.turns, oldest.turnID)
	}
}

// close takes no more turns, waits for those that run until ctx is done, and then
// stops them.
func (h *hub) close(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	done := make(chan struct{})
	go func() {
		h.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	h.mu.Lock()
	for _, t := range h.turns {
		t.stop(errShutdown)
	}
	h.mu.Unlock()
	select {
	case <-done:
		return nil
	case <-time.After(5 * time.Second):
		return errors.New("a turn did not stop within 5 seconds")
	}
}
