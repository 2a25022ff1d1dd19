package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/internal/stopwatch"
)

// Policy is when a gate may ask, in plain values. The zero value is the
// default policy.
type Policy struct {
	// PreThreshold and PostThreshold are the scores, 0 to 1, from which gate 1
	// and gate 2 ask. 0 takes the clarifier's own calibrated threshold (see
	// Calibrated), or DefaultThreshold if it has none. A threshold above 1
	// switches the gate off.
	PreThreshold, PostThreshold float64
	// MaxInARow is how many clarifications may follow each other without an
	// answer between, both gates together. 0 means 2; negative means none.
	MaxInARow int
	// TimeLimit bounds each gate. When it is over, or the clarifier fails, the
	// turn proceeds without asking and the decision says so. The time in which the
	// embedded clarifier waits for a core that other turns use does not count.
	// 0 means 5 s.
	TimeLimit time.Duration
	// Expire is how long a clarification waits for its reply. A message after
	// that is a question of its own. 0 means as long as it takes.
	Expire time.Duration
}

// DefaultThreshold is used for a clarifier without calibrated thresholds.
const DefaultThreshold = 0.5

// Calibrated is implemented by a clarifier that knows from which score on it
// is sure enough to ask at each gate.
type Calibrated interface {
	Threshold(s Stage) float64
}

// Budget is what the policy needs to know about the conversation.
type Budget struct {
	InARow int                    // clarifications since the last answer
	Asked  []conversation.Pending // every clarification shown in this conversation
}

// Decision is what a gate decided and why. It is part of the turn's trace.
type Decision struct {
	Stage     Stage         `json:"stage"`
	Ask       bool          `json:"ask"`
	Score     float64       `json:"score"`
	Threshold float64       `json:"threshold"`
	Reason    Reason        `json:"reason"`
	Error     string        `json:"error,omitempty"` // why the clarifier gave no verdict
	Elapsed   time.Duration `json:"elapsed_ns"`
	Verdict   Verdict       `json:"-"`
	Clarifier string        `json:"clarifier,omitempty"`
	// Second says what became of a cascade's second clarifier, and SecondError
	// why it failed.
	Second      SecondUse `json:"second,omitempty"`
	SecondError string    `json:"second_error,omitempty"`
}

// Reason says in one word or two why a gate decided as it did.
type Reason string

// The reasons of a decision.
const (
	ReasonClear       Reason = "clear"             // the score is below the threshold
	ReasonUnclear     Reason = "unclear"           // the score reaches the threshold: ask
	ReasonBudget      Reason = "budget spent"      // enough clarifications in a row
	ReasonRepeat      Reason = "asked before"      // the same clarification was shown already
	ReasonTimeLimit   Reason = "time limit"        // the clarifier took too long; proceeded
	ReasonFailed      Reason = "failed"            // the clarifier failed; proceeded
	ReasonNoClarifier Reason = "no clarifier"      // none is configured
	ReasonAimed       Reason = "search aimed"      // the search found what the question is about
	ReasonNoChoice    Reason = "nothing to choose" // the options are not what is open, or the question was settled just now
	ReasonNoWords     Reason = "nothing to ask"    // the clarifier would ask but wrote no clarification
)

// Gate is a clarifier under a policy.
type Gate struct {
	Clarifier Clarifier // nil: never asks
	Policy    Policy
}

// Decide runs the clarifier on r, without what in it speaks to the assistant, and
// applies the policy. A clarifier that
// fails or is late never fails the turn; only ctx being done is an error.
func (g Gate) Decide(ctx context.Context, r Request, b Budget) (d Decision, err error) {
	d = Decision{Stage: r.Stage, Threshold: g.Threshold(r.Stage)}
	start := time.Now()
	defer func() { d.Elapsed = time.Since(start) }()
	if g.Clarifier == nil {
		d.Reason = ReasonNoClarifier
		return d, nil
	}
	if limit := g.MaxInARow(); b.InARow >= limit {
		d.Reason = ReasonBudget
		return d, nil
	}
	v, err := g.clarify(ctx, asData(r))
	if ctx.Err() != nil {
		return d, ctx.Err()
	}
	if err != nil {
		d.Reason, d.Error = ReasonFailed, err.Error()
		if errors.Is(err, context.DeadlineExceeded) {
			d.Reason = ReasonTimeLimit
		}
		return d, nil
	}
	d.Score, d.Verdict, d.Clarifier = v.Score, v, v.Clarifier
	d.Second, d.SecondError = v.Second, v.SecondError
	switch {
	case v.Score < d.Threshold:
		d.Reason = ReasonClear
	case v.Clarification == "":
		d.Reason = ReasonNoWords
	case conversation.Repeats(b.Asked, v.Clarification, v.Options):
		d.Reason = ReasonRepeat
	default:
		d.Ask, d.Reason = true, ReasonUnclear
	}
	return d, nil
}

// clarify runs the clarifier under the time limit. A clarifier that ignores
// its context is left behind: the turn does not wait for it.
func (g Gate) clarify(ctx context.Context, r Request) (Verdict, error) {
	limit := g.Policy.TimeLimit
	if limit == 0 {
		limit = 5 * time.Second
	}
	ctx, cancel := stopwatch.WithTimeout(ctx, limit)
	defer cancel()
	type outcome struct {
		v   Verdict
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- outcome{err: fmt.Errorf("clarifier panicked: %v", p)}
			}
		}()
		v, err := g.Clarifier.Clarify(ctx, r)
		done <- outcome{v, err}
	}()
	select {
	case o := <-done:
		if o.err == nil && !(o.v.Score >= 0 && o.v.Score <= 1) {
			return Verdict{}, fmt.Errorf("clarifier gave the score %v; it must be between 0 and 1", o.v.Score)
		}
		return o.v, o.err
	case <-ctx.Done():
		return Verdict{}, ctx.Err()
	}
}

// Threshold is the score from which on the gate asks.
func (g Gate) Threshold(s Stage) float64 {
	t := g.Policy.PreThreshold
	if s == Post {
		t = g.Policy.PostThreshold
	}
	if t > 0 {
		return t
	}
	if c, ok := g.Clarifier.(Calibrated); ok {
		return c.Threshold(s)
	}
	return DefaultThreshold
}

// MaxInARow is how many clarifications may follow each other.
func (g Gate) MaxInARow() int {
	if g.Policy.MaxInARow == 0 {
		return 2
	}
	return max(g.Policy.MaxInARow, 0)
}
