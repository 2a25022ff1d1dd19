package stopwatch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		<-ctx.Done()
		if took := time.Since(began); took != time.Second || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("ended after %v with %v", took, ctx.Err())
		}
	})
}

// Waits do not count, also those at the same time, of contexts that stand on it.
func TestWaitsDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		inner, cancelInner := context.WithCancel(ctx)
		defer cancelInner()
		time.Sleep(600 * time.Millisecond)
		one, two := Pause(inner), Pause(ctx)
		time.Sleep(time.Minute)
		one()
		time.Sleep(time.Minute)
		if end, ok := ctx.Deadline(); !ok || time.Until(end) != 400*time.Millisecond {
			t.Errorf("the deadline is in %v; 400 ms are left", time.Until(end))
		}
		two()
		<-inner.Done()
		if took := time.Since(began); took != 2*time.Minute+time.Second {
			t.Errorf("ended after %v, want two minutes of waiting and a second", took)
		}
		for _, c := range []context.Context{ctx, inner} {
			if !errors.Is(c.Err(), context.DeadlineExceeded) {
				t.Errorf("error %v, want context.DeadlineExceeded", c.Err())
			}
		}
	})
}

// The end of the parent, or the caller's, ends it also while it waits.
func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		ctx, cancel := WithTimeout(parent, time.Hour)
		defer cancel()
		resume := Pause(ctx)
		if at, _ := ctx.Deadline(); time.Until(at) != time.Second {
			t.Errorf("the deadline is in %v, the parent's in a second", time.Until(at))
		}
		<-ctx.Done()
		resume()
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("error %v, want the parent's", ctx.Err())
		}
		ctx, cancel = WithTimeout(t.Context(), time.Hour)
		cancel()
		<-ctx.Done()
		Pause(ctx)()
		if !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("error %v, want context.Canceled", ctx.Err())
		}
	})
	Pause(t.Context())() // there is no limit: nothing happens
}
