package gate_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
)

// scripted gives the same verdict each time and counts its calls.
type scripted struct {
	verdict   gate.Verdict
	err       error
	delay     time.Duration
	panics    bool
	deaf      bool // does not listen to its context
	threshold float64
	calls     int
}

func (s *scripted) Clarify(ctx context.Context, _ gate.Request) (gate.Verdict, error) {
	s.calls++
	if s.panics {
		panic("out of memory")
	}
	if s.deaf {
		time.Sleep(s.delay)
		return s.verdict, s.err
	}
	select {
	case <-time.After(s.delay):
		return s.verdict, s.err
	case <-ctx.Done():
		return gate.Verdict{}, ctx.Err()
	}
}

func (s *scripted) Threshold(gate.Stage) float64 {
	if s.threshold == 0 {
		return gate.DefaultThreshold
	}
	return s.threshold
}

func unsure(score float64) gate.Verdict {
	return gate.Verdict{Score: score, Clarification: "Which plan?", Options: []conversation.Option{
		{ID: "1", Text: "Basic", Passages: []string{"p1"}}, {ID: "2", Text: "Plus", Passages: []string{"p2"}}}}
}

func TestDecide(t *testing.T) {
	shown := conversation.Pending{ID: "c1", Text: "Which plan?", Options: unsure(1).Options}
	for _, tc := range []struct {
		name      string
		clarifier gate.Clarifier
		policy    gate.Policy
		budget    gate.Budget
		ask       bool
		reason    gate.Reason
	}{
		{"below the threshold", &scripted{verdict: unsure(.49)}, gate.Policy{}, gate.Budget{}, false, gate.ReasonClear},
		{"at the threshold", &scripted{verdict: unsure(.5)}, gate.Policy{}, gate.Budget{}, true, gate.ReasonUnclear},
		{"the clarifier's own threshold", &scripted{verdict: unsure(.5), threshold: .8}, gate.Policy{}, gate.Budget{}, false, gate.ReasonClear},
		{"the policy's threshold comes first", &scripted{verdict: unsure(.5), threshold: .8}, gate.Policy{PostThreshold: .4}, gate.Budget{}, true, gate.ReasonUnclear},
		{"switched off", &scripted{verdict: unsure(1)}, gate.Policy{PostThreshold: 1.1}, gate.Budget{}, false, gate.ReasonClear},
		{"one in a row", &scripted{verdict: unsure(1)}, gate.Policy{}, gate.Budget{InARow: 1}, true, gate.ReasonUnclear},
		{"two in a row are enough", &scripted{verdict: unsure(1)}, gate.Policy{}, gate.Budget{InARow: 2}, false, gate.ReasonBudget},
		{"none at all", &scripted{verdict: unsure(1)}, gate.Policy{MaxInARow: -1}, gate.Budget{}, false, gate.ReasonBudget},
		{"never the same twice", &scripted{verdict: unsure(1)}, gate.Policy{}, gate.Budget{Asked: []conversation.Pending{shown}}, false, gate.ReasonRepeat},
		{"nothing to ask", &scripted{verdict: gate.Verdict{Score: 1}}, gate.Policy{}, gate.Budget{}, false, gate.ReasonNoWords},
		{"fails", &scripted{err: errors.New("no weights")}, gate.Policy{}, gate.Budget{}, false, gate.ReasonFailed},
		{"panics", &scripted{panics: true}, gate.Policy{}, gate.Budget{}, false, gate.ReasonFailed},
		{"not a number", &scripted{verdict: unsure(math.NaN())}, gate.Policy{}, gate.Budget{}, false, gate.ReasonFailed},
		{"over 1", &scripted{verdict: unsure(1.5)}, gate.Policy{}, gate.Budget{}, false, gate.ReasonFailed},
		{"none", nil, gate.Policy{}, gate.Budget{}, false, gate.ReasonNoClarifier},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, err := gate.Gate{Clarifier: tc.clarifier, Policy: tc.policy}.Decide(t.Context(), gate.Request{Stage: gate.Post}, tc.budget)
			if err != nil || d.Ask != tc.ask || d.Reason != tc.reason {
				t.Errorf("ask %v because %q (error %v), want %v because %q", d.Ask, d.Reason, err, tc.ask, tc.reason)
			}
		})
	}
}

func TestDecideProceedsWhenLate(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			g := gate.Gate{Clarifier: &scripted{verdict: unsure(1), delay: time.Minute, deaf: deaf}, Policy: gate.Policy{TimeLimit: time.Second}}
			d, err := g.Decide(t.Context(), gate.Request{Stage: gate.Pre}, gate.Budget{})
			if err != nil || d.Ask || d.Reason != gate.ReasonTimeLimit {
				t.Errorf("ask %v because %q, error %v; want to proceed because of the time limit", d.Ask, d.Reason, err)
			}
			if took := time.Since(start); took != time.Second || d.Elapsed != time.Second {
				t.Errorf("took %v (recorded %v), want the limit of 1 s", took, d.Elapsed)
			}
			time.Sleep(2 * time.Minute) // let the clarifier that was left behind end
		})
	}
}

func TestDecideStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := gate.Gate{Clarifier: &scripted{delay: time.Hour}}.Decide(ctx, gate.Request{}, gate.Budget{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled: a cancelled turn is not a clear question", err)
	}
}

func TestCascade(t *testing.T) {
	bands := map[gate.Stage]gate.Band{gate.Post: {Low: .3, High: .7}}
	for _, tc := range []struct {
		name           string
		stage          gate.Stage
		screen, second *scripted
		score          float64
		calls          int
	}{
		{"sure that it is clear", gate.Post, &scripted{verdict: unsure(.1)}, &scripted{verdict: unsure(.9)}, .1, 0},
		{"sure that it is not", gate.Post, &scripted{verdict: unsure(.7)}, &scripted{verdict: unsure(.1)}, .7, 0},
		{"unsure: the second decides", gate.Post, &scripted{verdict: unsure(.5)}, &scripted{verdict: unsure(.9)}, .9, 1},
		{"no band at this gate", gate.Pre, &scripted{verdict: unsure(.5)}, &scripted{verdict: unsure(.9)}, .5, 0},
		{"the second fails: the screen's stands", gate.Post, &scripted{verdict: unsure(.5)}, &scripted{err: errors.New("down")}, .5, 1},
		{"the screen fails: the second decides", gate.Post, &scripted{err: errors.New("down")}, &scripted{verdict: unsure(.9)}, .9, 1},
		{"the second's threshold is mapped to the screen's", gate.Post, &scripted{verdict: unsure(.5), threshold: .6}, &scripted{verdict: unsure(.9), threshold: .8}, .8, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v, err := gate.Cascade{Screen: tc.screen, Second: tc.second, Bands: bands}.Clarify(t.Context(), gate.Request{Stage: tc.stage})
			if err != nil || math.Abs(v.Score-tc.score) > 1e-9 || tc.second.calls != tc.calls {
				t.Errorf("score %v (error %v) after %d calls of the second, want %v after %d", v.Score, err, tc.second.calls, tc.score, tc.calls)
			}
		})
	}
	_, err := gate.Cascade{Screen: &scripted{err: errors.New("one")}, Second: &scripted{err: errors.New("two")}}.Clarify(t.Context(), gate.Request{})
	if err == nil || !strings.Contains(err.Error(), "one") || !strings.Contains(err.Error(), "two") {
		t.Errorf("error %v, want both named", err)
	}
	v, err := gate.Cascade{Screen: &scripted{verdict: unsure(.5)}, Bands: bands}.Clarify(t.Context(), gate.Request{Stage: gate.Post})
	if err != nil || v.Score != .5 {
		t.Errorf("without a second: %v, %v", v.Score, err)
	}
}
