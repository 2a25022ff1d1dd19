package mcp_test

import (
	"path/filepath"
	"testing"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/conversation/postgres/postgrestest"
	"github.com/askback/askback/conversation/sqlite"
	"github.com/askback/askback/server/mcp"
)

// TestSharedStores asks one server and replies to another that shares its store: the
// clarification waits there, is settled once, and what was chosen holds on both.
func TestSharedStores(t *testing.T) {
	for name, place := range map[string]func(*testing.T) func() conversation.Store{
		"SQLite": func(t *testing.T) func() conversation.Store {
			path := filepath.Join(t.TempDir(), "c.db")
			return func() conversation.Store {
				s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				return s
			}
		},
		"PostgreSQL": func(t *testing.T) func() conversation.Store {
			where := postgrestest.URL(t)
			return func() conversation.Store { return postgrestest.Open(t, where) }
		},
	} {
		for _, version := range []string{sessions, alone} {
			t.Run(name+" "+version, func(t *testing.T) {
				open := place(t)
				a, b := newBenchOver(t, open(), mcp.Options{}), newBenchOver(t, open(), mcp.Options{})
				one, other := connect(t, transports["http"](t, a), version, nil, nil), connect(t, transports["http"](t, b), version, nil, nil)
				asked, text, failed := call[mcp.Result](t, one, "ask", map[string]any{"question": deposit})
				if failed || asked.Kind != conversation.KindClarification || len(asked.Options) != 2 {
					t.Fatalf("%+v, %s", asked, text)
				}
				answer, text, failed := call[mcp.Result](t, other, "ask", map[string]any{"question": "the second", "conversation": asked.Conversation})
				if failed || answer.Text != "The deposit is 450. [1]" || answer.Turn != 2 {
					t.Errorf("the reply: %+v, %s", answer, text)
				}
				again, text, failed := call[mcp.Result](t, one, "ask", map[string]any{"question": "And the deposit once more, what is the deposit?", "conversation": asked.Conversation})
				if failed || again.Kind != conversation.KindAnswer || again.Turn != 3 {
					t.Errorf("asked again: %+v, %s", again, text)
				}
				c, err := b.store.Load(t.Context(), asked.Conversation, conversation.All)
				if err != nil || len(c.Turns) != 3 || c.Pending != nil || len(c.Asked) != 1 || len(c.Asked[0].Chosen) != 1 || c.Asked[0].Chosen[0] != "Cargo" {
					t.Errorf("kept: %+v, %v", c, err)
				}
			})
		}
	}
}
