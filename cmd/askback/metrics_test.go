package main

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/askback/askback/gate"
	"github.com/askback/askback/pipeline"
)

func TestMetrics(t *testing.T) {
	metrics, _, page, err := newMetrics()
	if err != nil {
		t.Fatal(err)
	}
	metrics.Observe(t.Context(), &pipeline.NoAnswer{Turn: pipeline.Turn{Trace: pipeline.Trace{
		Gates:  []gate.Decision{{Stage: gate.Pre, Reason: gate.ReasonClear, Second: gate.SecondSpared}},
		Stages: []pipeline.StageTime{{Name: "gate pre", Elapsed: 7e6}},
	}}}, nil, 8e6)
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range []string{
		`askback_turns_total{askback_result="no_answer"} 1`,
		`askback_gate_decisions_total{askback_decision="proceed",askback_gate="pre",askback_reason="clear"} 1`,
		`askback_clarifier_second_total{askback_gate="pre",askback_use="spared"} 1`,
		`askback_stage_duration_seconds_bucket{askback_stage="gate pre",le="0.01"} 1`,
		`askback_turn_duration_seconds_count{askback_result="no_answer"} 1`,
		"go_goroutines",
	} {
		if !strings.Contains(w.Body.String(), line) {
			t.Errorf("the page does not hold %s", line)
		}
	}
	if t.Failed() {
		t.Log(w.Body.String())
	}
}
