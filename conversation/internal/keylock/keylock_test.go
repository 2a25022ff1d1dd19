package keylock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Set
		unlock, err := s.Lock(t.Context(), "a", 10)
		if err != nil {
			t.Fatal(err)
		}
		var order []int
		for i := range 5 {
			go func() {
				unlock, err := s.Lock(t.Context(), "a", 10)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, i)
				unlock()
			}()
			synctest.Wait()
		}
		unlock()
		synctest.Wait()
		for i, got := range order {
			if got != i {
				t.Fatalf("order %v, want 0 to 4", order)
			}
		}
		if len(order) != 5 || len(s.lines) != 0 {
			t.Fatalf("order %v, %d lines left", order, len(s.lines))
		}
	})
}

func TestWhoGivesUpLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Set
		unlock, _ := s.Lock(t.Context(), "a", 10)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Lock(ctx, "a", 10); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error %v, want the deadline", err)
		}
		other, err := s.Lock(t.Context(), "b", 10) // other names are free
		if err != nil {
			t.Fatal(err)
		}
		other()
		unlock()
		unlock, err = s.Lock(t.Context(), "a", 10)
		if err != nil {
			t.Fatal(err)
		}
		unlock()
	})
}

func TestTheLineIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Set
		unlock, _ := s.Lock(t.Context(), "a", 1)
		go func() {
			unlock, err := s.Lock(t.Context(), "a", 1)
			if err != nil {
				t.Error(err)
				return
			}
			unlock()
		}()
		synctest.Wait()
		if _, err := s.Lock(t.Context(), "a", 1); !errors.Is(err, ErrFull) {
			t.Errorf("a second that waits: %v, want ErrFull", err)
		}
		unlock()
		synctest.Wait()
		if _, err := s.Lock(t.Context(), "a", 0); err != nil {
			t.Errorf("a free lock: %v", err)
		}
	})
}
