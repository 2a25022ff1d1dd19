package mcp_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/askback/askback/server/mcp"
)

// over is the error of a caller that is over its limit.
type over struct{ error }

func (over) GetHeaders() http.Header { return http.Header{"Retry-After": {"7"}} }

// Over HTTP, what costs something is counted however its method is written, and what is
// too large is not read.
func TestLimits(t *testing.T) {
	none := func(context.Context) (mcp.Backend, error) { return mcp.Backend{}, errors.New("nothing here") }
	counted := 0
	h := mcp.New(mcp.Options{Backend: none, AnyHost: true, MaxBody: 1 << 10, Allow: func(context.Context) error {
		counted++
		return over{errors.New("too many")}
	}}).HTTP()
	for _, c := range []struct {
		name, body string
		limited    bool
		status     int
	}{
		{"a call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"x"}}}`, true, 429},
		{"escaped", `{"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{}}`, true, 429},
		{"twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping"}`, true, 429},
		{"in other letters", `{"jsonrpc":"2.0","id":1,"method":"tools/call","Method":"ping"}`, true, 429},
		{"in a batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/call"}]`, true, 429},
		{"a session", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, true, 429},
		{"a question", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"method":"tools/call"}}`, false, 0},
		{"too large", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 2<<10) + `"}}`, false, 413},
	} {
		counted = 0
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(c.body))
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Session-Id": {"none"}}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if (counted > 0) != c.limited || c.status != 0 && w.Code != c.status || c.limited && w.Header().Get("Retry-After") != "7" {
			t.Errorf("%s: counted %d times, %d %s", c.name, counted, w.Code, w.Body)
		}
	}
}
