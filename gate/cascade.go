package gate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Cascade lets a costly clarifier see only what a cheap one is unsure of. The
// screen reads every turn; a score inside its band goes to Second, whose
// verdict then stands. If Second fails or is late the screen's verdict stands,
// and says so.
type Cascade struct {
	Screen Clarifier
	Second Clarifier // nil: the screen alone
	// Bands are the scores of the screen that are handed on, by gate: from Low
	// up to, not including, High. A gate without one takes the band that the
	// screen was calibrated with (see Banded), or hands nothing on.
	Bands map[Stage]Band
	// Limit is how long Second may take; 0: as long as the gate.
	Limit time.Duration
}

// Band is a range of scores, Low <= score < High.
type Band struct{ Low, High float64 }

func (b Band) holds(score float64) bool { return score >= b.Low && score < b.High }

// Banded is implemented by a clarifier that knows in which range of scores it
// is unsure at a gate.
type Banded interface {
	Band(s Stage) (Band, bool)
}

// DefaultBand is a range of scores around a threshold for a screen that was
// not calibrated with one: wide below it, since a screen that is tuned to ask
// rarely misses much.
func DefaultBand(threshold float64) Band {
	return Band{Low: 0.4 * threshold, High: (1 + threshold) / 2}
}

// SecondUse says what became of a cascade's second clarifier in a decision.
type SecondUse string

// The uses of a second clarifier. Without one it is "".
const (
	SecondSpared SecondUse = "spared" // the screen was sure: a call was saved
	SecondAsked  SecondUse = "asked"  // its verdict stands
	SecondFailed SecondUse = "failed" // it failed or was late: the screen's verdict stands
)

// Clarify asks the screen and, where it is unsure, the second clarifier.
func (c Cascade) Clarify(ctx context.Context, r Request) (Verdict, error) {
	v, err := c.Screen.Clarify(ctx, r)
	if c.Second == nil || ctx.Err() != nil {
		return v, err
	}
	if err == nil && !c.unsure(r.Stage, v.Score) {
		v.Second = SecondSpared
		return v, nil
	}
	second, err2 := c.second(ctx, r)
	switch {
	case ctx.Err() != nil:
		return Verdict{}, ctx.Err()
	case err2 == nil:
		second = rescale(second, c, r.Stage)
		second.Second = SecondAsked
		if second.RuledOut == nil { // what the screen alone can tell
			second.RuledOut = v.RuledOut
		}
		if second.Unclear == nil {
			second.Unclear = v.Unclear
		}
		return second, nil
	case err != nil:
		return Verdict{}, fmt.Errorf("both clarifiers failed: %w; %w", err, err2)
	}
	v.Second, v.SecondError = SecondFailed, err2.Error()
	return v, nil
}

// unsure reports whether a score of the screen's is inside its band.
func (c Cascade) unsure(s Stage, score float64) bool {
	band, ok := c.Bands[s]
	if b, banded := c.Screen.(Banded); !ok && banded {
		band, ok = b.Band(s)
	}
	return ok && band.holds(score)
}

// second asks the second clarifier within its limit, which leaves time for the
// screen's verdict to be given.
func (c Cascade) second(ctx context.Context, r Request) (Verdict, error) {
	limit := c.Limit
	if end, ok := ctx.Deadline(); ok {
		if left := time.Until(end) * 9 / 10; limit <= 0 || left < limit {
			limit = left
		}
	}
	own := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		own, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	v, err := c.Second.Clarify(own, r)
	switch {
	case err != nil && own.Err() != nil && ctx.Err() == nil:
		return v, fmt.Errorf("it took longer than %v: %w", limit.Round(time.Millisecond), err)
	case err == nil && !(v.Score >= 0 && v.Score <= 1):
		return v, fmt.Errorf("it gave the score %v; it must be between 0 and 1", v.Score)
	}
	return v, err
}

// Threshold is the screen's calibrated threshold, since the policy applies one
// threshold to a gate whoever decided.
func (c Cascade) Threshold(s Stage) float64 { return threshold(c.Screen, s) }

func threshold(c Clarifier, s Stage) float64 {
	if k, ok := c.(Calibrated); ok {
		return k.Threshold(s)
	}
	return DefaultThreshold
}

// rescale maps the second clarifier's score so that its own threshold falls on
// the screen's: piecewise linear, 0 and 1 stay.
func rescale(v Verdict, c Cascade, s Stage) Verdict {
	from, to := threshold(c.Second, s), threshold(c.Screen, s)
	if from <= 0 || from >= 1 || from == to {
		return v
	}
	if v.Score >= from {
		v.Score = to + (v.Score-from)*(1-to)/(1-from)
	} else {
		v.Score = v.Score * to / from
	}
	return v
}

// Breaker lets a clarifier rest after it has failed: for a while it fails at
// once instead of being asked, so that a server that is down or hangs costs its
// time limit once and not in every turn.
type Breaker struct {
	clarifier Clarifier
	rest      time.Duration

	mu    sync.Mutex
	until time.Time
	err   error
}

// NewBreaker lets c rest for that long after a failure; 0 means 30 s.
func NewBreaker(c Clarifier, rest time.Duration) *Breaker {
	if rest <= 0 {
		rest = 30 * time.Second
	}
	return &Breaker{clarifier: c, rest: rest}
}

// Clarify asks the clarifier unless it rests.
func (b *Breaker) Clarify(ctx context.Context, r Request) (Verdict, error) {
	b.mu.Lock()
	until, last := b.until, b.err
	b.mu.Unlock()
	if left := time.Until(until); left > 0 {
		return Verdict{}, fmt.Errorf("not asked for another %v after: %w", left.Round(time.Second), last)
	}
	v, err := b.clarifier.Clarify(ctx, r)
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) { // the caller left; that is no failure
		b.mu.Lock()
		b.until, b.err = time.Now().Add(b.rest), err
		b.mu.Unlock()
	}
	return v, err
}

// Threshold is the clarifier's own.
func (b *Breaker) Threshold(s Stage) float64 { return threshold(b.clarifier, s) }
