package reply

import (
	"math"
	"strings"

	"github.com/askback/askback/gate"
)

// The scores of a verdict whose model tells no probabilities.
const (
	ScoreAsk   = 0.8
	ScoreClear = 0.1
)

// Verdict makes a verdict of what Read gave. score is the probability that
// asking is right, or NaN if it is not known.
func Verdict(r gate.Request, clarification string, clear bool, score float64, by string) gate.Verdict {
	if math.IsNaN(score) {
		score = ScoreAsk
		if clear {
			score = ScoreClear
		}
	}
	v := gate.Verdict{Score: min(1, max(0, score)), Clarifier: by}
	if clear {
		return v
	}
	v.Clarification = clarification
	if r.Stage == gate.Post {
		v.Options = options(clarification, r.Passages)
	}
	return v
}

// Said is all that the user wrote.
func Said(r gate.Request) string {
	var b strings.Builder
	for _, m := range r.History {
		b.WriteString(m.Text)
		b.WriteByte('\n')
	}
	b.WriteString(r.Question)
	return b.String()
}
