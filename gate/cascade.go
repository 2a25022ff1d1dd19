package gate

import (
	"context"
	"fmt"
)

// Cascade lets a costly clarifier see only what a cheap one is unsure of. The
// screen reads every turn; a score inside its band goes to Second, whose
// verdict then stands. If Second fails or is late the screen's verdict stands.
type Cascade struct {
	Screen Clarifier
	Second Clarifier // nil: the screen alone
	// Bands are the scores of the screen that are handed on, by gate: from Low
	// up to, not including, High. A gate without a band hands nothing on.
	Bands map[Stage]Band
}

// Band is a range of scores, Low <= score < High.
type Band struct{ Low, High float64 }

// Clarify asks the screen and, where it is unsure, the second clarifier.
func (c Cascade) Clarify(ctx context.Context, r Request) (Verdict, error) {
	v, err := c.Screen.Clarify(ctx, r)
	if c.Second == nil || ctx.Err() != nil {
		return v, err
	}
	if band, ok := c.Bands[r.Stage]; err == nil && (!ok || v.Score < band.Low || v.Score >= band.High) {
		return v, nil
	}
	second, err2 := c.Second.Clarify(ctx, r)
	switch {
	case err2 == nil:
		return rescale(second, c, r.Stage), nil
	case err != nil:
		return Verdict{}, fmt.Errorf("both clarifiers failed: %w; %w", err, err2)
	}
	v.Clarifier += " (second clarifier failed: " + err2.Error() + ")"
	return v, nil
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
