package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/server"
)

// TestDashboard looks for each metric and label of the dashboard on the page that
// Prometheus reads.
func TestDashboard(t *testing.T) {
	data, err := os.ReadFile("../../docs/grafana/askback.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(data, &board); err != nil {
		t.Fatal(err)
	}
	metrics, meter, page, err := newMetrics()
	if err != nil {
		t.Fatal(err)
	}
	metrics.Observe(t.Context(), &pipeline.Answer{Turn: pipeline.Turn{Trace: pipeline.Trace{
		Reply:  &pipeline.ReplyTrace{Kind: conversation.ReplyJustAnswer},
		Gates:  []gate.Decision{{Stage: gate.Pre, Ask: true, Reason: gate.ReasonUnclear, Second: gate.SecondSpared}},
		Stages: []pipeline.StageTime{{Name: "retrieve", Elapsed: 7e6}},
	}}}, nil, 8e6)
	for _, err := range []error{errors.New("no"), context.Canceled, conversation.ErrBusy} {
		metrics.Observe(t.Context(), nil, err, 8e6)
	}
	s, err := server.New(server.Options{Open: func(context.Context) (*server.Backend, error) {
		return &server.Backend{Pipeline: new(pipeline.Pipeline), Store: conversation.NewMemory(), Documents: new(server.Documents)}, nil
	}, Meter: meter, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	for status := 0; status != http.StatusUnsupportedMediaType; time.Sleep(time.Millisecond) { // an upload that fails, once it is open
		r, err := http.Post(web.URL+"/api/documents", "text/plain", strings.NewReader("no form"))
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if status = r.StatusCode; status != http.StatusServiceUnavailable && status != http.StatusUnsupportedMediaType {
			t.Fatal(r.Status)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	s.Blame(errors.New("no"))
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	shown := w.Body.String()
	name := regexp.MustCompile(`\b(?:askback|go|process)_[a-z_]+\b`)
	value := regexp.MustCompile(`(askback_[a-z]+)=~?"([^"]+)"`)
	used := map[string]bool{}
	for _, p := range board.Panels {
		for _, q := range p.Targets {
			for _, n := range name.FindAllString(q.Expr+" "+q.LegendFormat, -1) {
				used[n] = true
				if !regexp.MustCompile(`(?m)(^|[{,])` + n + `[ {=]`).MatchString(shown) {
					t.Errorf("%s: there is no %s at /metrics", p.Title, n)
				}
			}
			for _, m := range value.FindAllStringSubmatch(q.Expr, -1) {
				for v := range strings.SplitSeq(m[2], "|") {
					if label := m[1] + `="` + v + `"`; !strings.Contains(shown, label) {
						t.Errorf("%s: there is no %s at /metrics", p.Title, label)
					}
				}
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (askback_\S+) (\S+)`).FindAllStringSubmatch(shown, -1) {
		if n := m[1]; !used[n] && !used[n+"_bucket"] {
			t.Errorf("the dashboard does not show %s", n)
		}
	}
}
