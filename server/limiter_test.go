package server

import (
	"fmt"
	"testing"
	"time"
)

// However many callers there are, few are kept; those that are over their limit stay
// so while there is room.
func TestLimiterMemory(t *testing.T) {
	now := time.Unix(0, 0)
	l := newLimiter(60)
	l.now = func() time.Time { return now }
	for range l.burst {
		if _, ok := l.take("greedy"); !ok {
			t.Fatal("refused within the limit")
		}
	}
	for i := range 5 * maxCallers {
		if i%1000 == 0 {
			now = now.Add(100 * time.Millisecond)
		}
		l.take(fmt.Sprint(i))
		if len(l.callers) > maxCallers {
			t.Fatalf("%d callers are kept", len(l.callers))
		}
		if i == 100 {
			if _, ok := l.take("greedy"); ok {
				t.Error("over the limit and let in")
			}
		}
	}
	if newLimiter(-1) != nil {
		t.Error("no limit is one")
	}
	l = newLimiter(60)
	l.now = func() time.Time { return now }
	for range 30 {
		l.take("a")
	}
	if wait, ok := l.take("a"); ok || wait <= 0 || wait > time.Second {
		t.Errorf("wait %v, %v", wait, ok)
	}
	now = now.Add(time.Second)
	if _, ok := l.take("a"); !ok {
		t.Error("refused after the wait")
	}
}
