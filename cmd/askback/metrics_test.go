package main

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/pipeline/telemetry"
)

func TestMetrics(t *testing.T) {
	metrics, _, page, err := newMetrics()
	if err != nil {
		t.Fatal(err)
	}
	metrics.Models = telemetry.Models{"gate pre": {Name: "clear-1b", Provider: "ollama"}}
	metrics.Observe(t.Context(), pipeline.Outcome{Result: &pipeline.NoAnswer{}, Elapsed: 8e6, Trace: pipeline.Trace{
		Gates:  []gate.Decision{{Stage: gate.Pre, Reason: gate.ReasonClear, Second: gate.SecondSpared}},
		Stages: []pipeline.StageTime{{Name: "gate pre", Elapsed: 7e6, Usage: conversation.Usage{Input: 900, Output: 6}}},
	}})
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range []string{
		`askback_turns_total{askback_result="no_answer"} 1`,
		`askback_gate_decisions_total{askback_decision="proceed",askback_gate="pre",askback_reason="clear"} 1`,
		`askback_clarifier_second_total{askback_gate="pre",askback_use="spared"} 1`,
		`askback_stage_duration_seconds_bucket{askback_stage="gate pre",le="0.01"} 1`,
		`askback_turn_duration_seconds_count{askback_result="no_answer"} 1`,
		`gen_ai_client_token_usage_sum{askback_stage="gate pre",gen_ai_operation_name="chat",gen_ai_provider_name="ollama",gen_ai_request_model="clear-1b",gen_ai_token_type="input"} 900`,
		`gen_ai_client_token_usage_bucket{askback_stage="gate pre",gen_ai_operation_name="chat",gen_ai_provider_name="ollama",gen_ai_request_model="clear-1b",gen_ai_token_type="output",le="16"} 1`,
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
