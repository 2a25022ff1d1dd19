package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/pipeline/telemetry"
	"github.com/askback/askback/server"
)

// exposed is the page that Prometheus reads, with each metric that there can be on it.
func exposed(t *testing.T) string {
	t.Helper()
	metrics, meter, page, err := newMetrics()
	if err != nil {
		t.Fatal(err)
	}
	metrics.Models = telemetry.Models{"generate": {Name: "larkwheel-7b", Provider: "ollama"}}
	metrics.Observe(t.Context(), pipeline.Outcome{Result: &pipeline.Answer{}, Elapsed: 8e6, Trace: pipeline.Trace{
		Reply:  &pipeline.ReplyTrace{Kind: conversation.ReplyJustAnswer},
		Gates:  []gate.Decision{{Stage: gate.Pre, Ask: true, Reason: gate.ReasonUnclear, Second: gate.SecondSpared}},
		Stages: []pipeline.StageTime{{Name: "generate", Elapsed: 7e6, Usage: conversation.Usage{Input: 900, Output: 60}}},
	}})
	for _, err := range []error{errors.New("no"), context.Canceled, conversation.ErrBusy} {
		metrics.Observe(t.Context(), pipeline.Outcome{Err: err, Elapsed: 8e6})
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
	return w.Body.String()
}

// board is the dashboard.
type board struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr, LegendFormat string }
	}
}

func readBoard(t *testing.T) (b board) {
	t.Helper()
	data, err := os.ReadFile("../../docs/grafana/askback.json")
	if err == nil {
		err = json.Unmarshal(data, &b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var (
	metricName = regexp.MustCompile(`\b(?:askback|gen_ai|go|process)_[a-z_]+\b`)
	metricType = regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)`)
)

// TestDashboard looks for each metric and label of the dashboard on the page that
// Prometheus reads.
func TestDashboard(t *testing.T) {
	shown := exposed(t)
	value := regexp.MustCompile(`((?:askback|gen_ai)_[a-z_]+)=~?"([^"]+)"`)
	for _, p := range readBoard(t).Panels {
		for _, q := range p.Targets {
			for _, n := range metricName.FindAllString(q.Expr+" "+q.LegendFormat, -1) {
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
}

// TestMetricsDocumented holds the table of docs/grafana/README.md to the page: each
// metric has a row, with its labels and with the panels that show it, or says why
// none does. The page must hold every instrument that the sources make.
func TestMetricsDocumented(t *testing.T) {
	shown := exposed(t)
	panels := map[string][]string{} // that show a metric
	for _, p := range readBoard(t).Panels {
		for _, q := range p.Targets {
			for _, n := range metricName.FindAllString(q.Expr, -1) {
				for _, suffix := range []string{"_bucket", "_sum", "_count"} {
					n = strings.TrimSuffix(n, suffix)
				}
				if !slices.Contains(panels[n], p.Title) {
					panels[n] = append(panels[n], p.Title)
				}
			}
		}
	}
	doc, err := os.ReadFile("../../docs/grafana/README.md")
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		labels, panels []string
		cell           string // where it is shown, as it stands
		found          bool
	}
	rows := map[string]*row{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_*]+)` \\|[^|]+\\|([^|]*)\\| ([^|]+) \\|$").FindAllStringSubmatch(string(doc), -1) {
		r := &row{cell: m[3]}
		for _, l := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(m[2], -1) {
			r.labels = append(r.labels, l[1])
		}
		slices.Sort(r.labels)
		rows[m[1]] = r
	}
	families := metricType.FindAllStringSubmatch(shown, -1)
	for _, f := range families {
		name, r, one := f[1], rows[f[1]], true
		for prefix, of := range rows {
			if start, ok := strings.CutSuffix(prefix, "*"); ok && strings.HasPrefix(name, start) {
				r, one = of, false
			}
		}
		if r == nil {
			t.Errorf("docs/grafana/README.md has no row for %s", name)
			continue
		}
		r.found = true
		r.panels = append(r.panels, panels[name]...)
		if !one {
			continue
		}
		var labels []string
		for _, sample := range regexp.MustCompile(`(?m)^`+name+`(?:_bucket|_sum|_count)?\{(.*)\} `).FindAllStringSubmatch(shown, -1) {
			for _, l := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(sample[1], -1) {
				if l[1] != "le" {
					labels = append(labels, l[1])
				}
			}
		}
		slices.Sort(labels)
		if labels = slices.Compact(labels); !slices.Equal(labels, r.labels) {
			t.Errorf("%s has the labels %q, docs/grafana/README.md says %q", name, labels, r.labels)
		}
	}
	for name, r := range rows {
		slices.Sort(r.panels)
		r.panels = slices.Compact(r.panels)
		said := strings.Split(r.cell, "; ")
		slices.Sort(said)
		switch {
		case !r.found:
			t.Errorf("docs/grafana/README.md has a row for %s, which is not at /metrics", name)
		case len(r.panels) == 0 && strings.HasPrefix(r.cell, "not shown: "):
		case !slices.Equal(r.panels, said):
			t.Errorf("%s is shown in %q, docs/grafana/README.md says %q", name, r.panels, said)
		}
	}
	made := regexp.MustCompile(`\.(?:Int64|Float64)\w*(?:Counter|Histogram|Gauge)\("([a-z_.]+)"`)
	instruments := 0
	for _, dir := range []string{"../../conversation", "../../gate", "../../generation", "../../pipeline", "../../retrieval", "../../server", "../../cmd"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for _, m := range made.FindAllStringSubmatch(string(source), -1) {
				instruments++
				if name := strings.ReplaceAll(m[1], ".", "_"); !slices.ContainsFunc(families, func(f []string) bool { return strings.HasPrefix(f[1], name) }) {
					t.Errorf("%s makes %s, which this test does not bring to /metrics", path, m[1])
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if instruments < 12 {
		t.Errorf("only %d instruments were found in the sources", instruments)
	}
}
