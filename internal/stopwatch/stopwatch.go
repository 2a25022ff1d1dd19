// Package stopwatch limits work by the time in which it runs: the time in which it
// waits in line for what others use does not count. Under load a limit meant for work
// that hangs would otherwise end work that had not begun.
package stopwatch

import (
	"context"
	"sync"
	"time"
)

// A watch is a context that ends when its time is used up.
type watch struct {
	context.Context // the parent
	done            chan struct{}

	mu      sync.Mutex
	left    time.Duration // at since
	since   time.Time
	waiting int // waits under way; time is used up while there are none
	timer   *time.Timer
	err     error // why it ended
}

type key struct{}

// WithTimeout is context.WithTimeout, but for the waits that Pause tells of. Their time
// does not count, so that Deadline moves with them.
func WithTimeout(parent context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	w := &watch{Context: parent, done: make(chan struct{}), left: limit, since: time.Now()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(limit, w.timeIsUp)
	stop := context.AfterFunc(parent, func() { w.end(parent.Err()) })
	return w, func() {
		stop()
		w.end(context.Canceled)
	}
}

// Pause tells that what works under ctx waits in line, until resume is called, once.
// Without a limit of this package in ctx it does nothing.
func Pause(ctx context.Context) (resume func()) {
	w, ok := ctx.Value(key{}).(*watch)
	if !ok {
		return func() {}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting++; w.waiting == 1 {
		w.timer.Stop()
		w.left -= time.Since(w.since)
	}
	return w.resume
}

func (w *watch) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting--; w.waiting == 0 && w.err == nil {
		w.since = time.Now()
		w.timer.Reset(max(0, w.left))
	}
}

// timeIsUp ends the work, unless it began to wait in this moment.
func (w *watch) timeIsUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == 0 {
		w.endLocked(context.DeadlineExceeded)
	}
}

func (w *watch) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endLocked(err)
}

func (w *watch) endLocked(err error) {
	if w.err == nil {
		w.err = err
		w.timer.Stop()
		close(w.done)
	}
}

// Deadline is when the time is up if there is no further wait.
func (w *watch) Deadline() (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from := w.since
	if w.waiting > 0 {
		from = time.Now()
	}
	end := from.Add(w.left)
	if parents, ok := w.Context.Deadline(); ok && parents.Before(end) {
		return parents, true
	}
	return end, true
}

func (w *watch) Done() <-chan struct{} { return w.done }

func (w *watch) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *watch) Value(k any) any {
	if k == (key{}) {
		return w
	}
	return w.Context.Value(k)
}
