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
		use            gate.SecondUse
	}{
		{"sure that it is clear", gate.Post, &scripted{verdict: unsure(.1)}, &scripted{verdict: unsure(.9)}, .1, 0, gate.SecondSpared},
		{"sure that it is not", gate.Post, &scripted{verdict: unsure(.7)}, &scripted{verdict: unsure(.1)}, .7, 0, gate.SecondSpared},
		{"unsure: the second decides", gate.Post, &scripted{verdict: unsure(.5)}, &scripted{verdict: unsure(.9)}, .9, 1, gate.SecondAsked},
		{"no band at this gate", gate.Pre, &scripted{verdict: unsure(.5)}, &scripted{verdict: unsure(.9)}, .5, 0, gate.SecondSpared},
		{"the second fails: the screen's stands", gate.Post, &scripted{verdict: unsure(.5)}, &scripted{err: errors.New("down")}, .5, 1, gate.SecondFailed},
		{"the screen fails: the second decides", gate.Post, &scripted{err: errors.New("down")}, &scripted{verdict: unsure(.9)}, .9, 1, gate.SecondAsked},
		{"the second's threshold is mapped to the screen's", gate.Post, &scripted{verdict: unsure(.5), threshold: .6}, &scripted{verdict: unsure(.9), threshold: .8}, .8, 1, gate.SecondAsked},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v, err := gate.Cascade{Screen: tc.screen, Second: tc.second, Bands: bands}.Clarify(t.Context(), gate.Request{Stage: tc.stage})
			if err != nil || math.Abs(v.Score-tc.score) > 1e-9 || tc.second.calls != tc.calls || v.Second != tc.use || (v.SecondError != "") != (tc.use == gate.SecondFailed) {
				t.Errorf("score %v (error %v) after %d calls of the second, which was %s (%s); want %v after %d, %s", v.Score, err, tc.second.calls, v.Second, v.SecondError, tc.score, tc.calls, tc.use)
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

// banded is a screen that was calibrated with a band.
type banded struct{ *scripted }

func (banded) Band(s gate.Stage) (gate.Band, bool) {
	return gate.Band{Low: .2, High: .4}, s == gate.Pre
}

func TestCascadeTakesTheScreensBand(t *testing.T) {
	second := &scripted{verdict: unsure(.9)}
	c := gate.Cascade{Screen: banded{&scripted{verdict: unsure(.3)}}, Second: second}
	for stage, want := range map[gate.Stage]gate.SecondUse{gate.Pre: gate.SecondAsked, gate.Post: gate.SecondSpared} {
		if v, err := c.Clarify(t.Context(), gate.Request{Stage: stage}); err != nil || v.Second != want {
			t.Errorf("gate %s: the second is %s (error %v), want %s", stage, v.Second, err, want)
		}
	}
	c.Bands = map[gate.Stage]gate.Band{gate.Pre: {}} // a band of one's own comes first
	if v, err := c.Clarify(t.Context(), gate.Request{Stage: gate.Pre}); err != nil || v.Second != gate.SecondSpared {
		t.Errorf("the second is %s, error %v", v.Second, err)
	}
	if b := gate.DefaultBand(.5); b.Low >= .5 || b.High <= .5 || b.High >= 1 || b.Low <= 0 {
		t.Errorf("default band %+v", b)
	}
}

// A second clarifier that hangs costs its limit once; the screen's verdict
// stands, and so it does under the gate's own limit.
func TestCascadeWithASlowSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second := &scripted{delay: time.Hour}
		c := gate.Cascade{Screen: &scripted{verdict: unsure(.5)}, Second: gate.NewBreaker(second, time.Minute), Limit: 3 * time.Second,
			Bands: map[gate.Stage]gate.Band{gate.Post: {Low: .3, High: .7}}}
		for _, want := range []struct {
			wait, took time.Duration
			calls      int
			says       string
		}{{0, 3 * time.Second, 1, "longer than 3s"}, {time.Second, 0, 1, "not asked for another"}, {time.Hour, 3 * time.Second, 2, "longer than 3s"}} {
			time.Sleep(want.wait)
			start := time.Now()
			d, err := gate.Gate{Clarifier: c}.Decide(t.Context(), gate.Request{Stage: gate.Post}, gate.Budget{})
			if err != nil || d.Score != .5 || d.Second != gate.SecondFailed || !strings.Contains(d.SecondError, want.says) || second.calls != want.calls {
				t.Errorf("%+v, error %v after %d calls; want %q after %d", d, err, second.calls, want.says, want.calls)
			}
			if took := time.Since(start); took != want.took {
				t.Errorf("took %v, want %v", took, want.took)
			}
		}
		c.Limit, c.Second = 0, second
		d, err := gate.Gate{Clarifier: c, Policy: gate.Policy{TimeLimit: 2 * time.Second}}.Decide(t.Context(), gate.Request{Stage: gate.Post}, gate.Budget{})
		if err != nil || d.Reason == gate.ReasonTimeLimit || d.Second != gate.SecondFailed {
			t.Errorf("under the gate's limit: %+v, error %v", d, err)
		}
	})
}

// A caller that leaves is no failure of the clarifier.
func TestBreakerKnowsWhoLeft(t *testing.T) {
	second := &scripted{delay: time.Hour}
	b := gate.NewBreaker(second, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Clarify(ctx, gate.Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	second.delay = 0
	if _, err := b.Clarify(t.Context(), gate.Request{}); err != nil {
		t.Errorf("it rests: %v", err)
	}
}
