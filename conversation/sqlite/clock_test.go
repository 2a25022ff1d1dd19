package sqlite

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/askback/askback/conversation"
)

// TestClockJumps sets the clock forth and back by hours in the middle of turns: a
// conversation is not blocked for longer than a lease, a turn that was overtaken finds
// its claim lost, and none is stored twice.
func TestClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{time.Hour, -time.Hour, 1000 * time.Hour, -1000 * time.Hour} {
		t.Run(jump.String(), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "c.db")
			// A long lease, so that no renewal comes between.
			slow, other := open(t, path, Options{Lease: time.Minute}), open(t, path, Options{Lease: time.Minute, Wait: 5 * time.Second})
			ask := func(s *Store, key string) conversation.Claim {
				t.Helper()
				c, err := s.Begin(t.Context(), conversation.Request{Conversation: "c", Key: key, Text: key})
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			commit := func(c conversation.Claim, key string) error {
				next := c.Conversation()
				next.Turns = append(next.Turns, conversation.Turn{Number: len(next.Turns) + 1, At: now(), Key: key, Text: key, Question: key, Kind: conversation.KindAnswer, Reply: "the answer to " + key})
				return c.Commit(t.Context(), next)
			}
			overtaken := ask(slow, "first")
			now = func() time.Time { return time.Now().Add(jump) }
			t.Cleanup(func() { now = time.Now })
			if err := commit(ask(other, "second"), "second"); err != nil {
				t.Error(err)
			}
			if err := commit(overtaken, "first"); !errors.Is(err, conversation.ErrLost) {
				t.Errorf("the turn that was overtaken: %v", err)
			}
			overtaken.Release()
			if err := commit(ask(slow, "first"), "first"); err != nil {
				t.Errorf("sent again: %v", err)
			}
			c, err := slow.Load(t.Context(), "c", conversation.All)
			if err != nil {
				t.Fatal(err)
			}
			count := map[string]int{}
			for _, turn := range c.Turns {
				if turn.Reply != "" {
					count[turn.Text]++
				}
			}
			if count["first"] != 1 || count["second"] != 1 {
				t.Errorf("answers %v, turns %+v", count, c.Turns)
			}
		})
	}
}
