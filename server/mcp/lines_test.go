package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/server/internal/fakes"
	"github.com/askback/askback/server/mcp"
)

// TestLines sends lines that are no messages between those of a client: each is
// refused, and a call that is under way gets its result all the same.
func TestLines(t *testing.T) {
	long := strings.Repeat("x", 17<<20)
	for name, c := range map[string]struct {
		version, line string
		code          int
		id            any
	}{
		"an empty batch":             {"2025-11-25", `[]`, -32600, nil},
		"an empty batch where known": {"2025-03-26", `[]`, -32600, nil},
		"a batch":                    {"2025-11-25", `[{"jsonrpc":"2.0","id":7,"method":"ping"}]`, -32600, nil},
		"a batch with an id twice":   {"2025-03-26", `[{"jsonrpc":"2.0","id":7,"method":"ping"},{"jsonrpc":"2.0","id":7,"method":"ping"}]`, -32600, nil},
		"no JSON":                    {"2025-11-25", `hello`, -32700, nil},
		"half a message":             {"2025-11-25", `{"jsonrpc":"2.0","id":7,`, -32700, nil},
		"two messages":               {"2025-11-25", `{"jsonrpc":"2.0","id":7,"method":"ping"} {"jsonrpc":"2.0","id":8,"method":"ping"}`, -32700, nil},
		"bytes":                      {"2025-11-25", "\xff\xfe\x00", -32700, nil},
		"a number":                   {"2025-11-25", `5`, -32600, nil},
		"null":                       {"2025-11-25", `null`, -32600, nil},
		"an object":                  {"2025-11-25", `{}`, -32600, nil},
		"another version":            {"2025-11-25", `{"jsonrpc":"1.0","id":7,"method":"ping"}`, -32600, 7.0},
		"an id that is none":         {"2025-11-25", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, -32600, nil},
		"a very long line":           {"2025-11-25", long, -32600, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := fakes.Pipeline(conversation.NewMemory(), &fakes.Quoter{})
			if err != nil {
				t.Fatal(err)
			}
			refused := make(chan struct{})
			b := newBench(t, mcp.Options{Backend: func(ctx context.Context) (mcp.Backend, error) {
				<-refused // the call is under way when the line comes
				return mcp.Backend{Pipeline: p, Retriever: fakes.Shelf{}}, nil
			}})
			in, say := io.Pipe()
			hear, out := io.Pipe()
			ended := make(chan error, 1)
			go func() { ended <- b.Stream(t.Context(), in, out) }()
			answers := bufio.NewReader(hear)
			answer := func() (m struct {
				ID     any
				Result json.RawMessage
				Error  struct {
					Code    int
					Message string
				}
			}) {
				line, err := answers.ReadString('\n')
				if err != nil || json.Unmarshal([]byte(line), &m) != nil {
					t.Fatalf("%q, %v", line, err)
				}
				return m
			}
			fmt.Fprintf(say, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`+"\n", c.version)
			if m := answer(); m.ID != 1.0 || m.Result == nil {
				t.Fatalf("%+v", m)
			}
			fmt.Fprintln(say, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			fmt.Fprintln(say, "")
			fmt.Fprintln(say, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search","arguments":{"query":"deposit"}}}`)
			fmt.Fprintln(say, c.line)
			if m := answer(); m.Error.Code != c.code || m.Error.Message == "" || m.ID != c.id {
				t.Errorf("%+v", m)
			}
			close(refused)
			if m := answer(); m.ID != 2.0 || m.Result == nil {
				t.Errorf("the call that was under way: %+v", m)
			}
			fmt.Fprintln(say, `{"jsonrpc":"2.0","id":"last","method":"ping"}`)
			if m := answer(); m.ID != "last" || m.Result == nil {
				t.Errorf("a call after it: %+v", m)
			}
			say.Close()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
