package evaluate

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
)

// Prediction is what a clarifier said about one case at one gate.
type Prediction struct {
	ID       string                `json:"id"`
	Gate     gate.Stage            `json:"gate"`
	Score    float64               `json:"score"`
	Asked    bool                  `json:"asked"`
	Question string                `json:"question"` // the clarification, "" if it did not ask
	Options  []conversation.Option `json:"options"`
	Ms       float64               `json:"ms"`
	Label    *int                  `json:"label,omitempty"`
	Kind     string                `json:"kind,omitempty"`
	// Readings are the options that the case wants, for judging those given.
	Readings []conversation.Option `json:"readings,omitempty"`
}

// Run gives a prediction for each case at each of the gates, in order; a case
// without a label at a gate is left out of it. A clarifier that fails ends the
// run with an error naming the case.
func Run(ctx context.Context, g gate.Gate, cases []Case, gates ...gate.Stage) iter.Seq2[Prediction, error] {
	return func(yield func(Prediction, error) bool) {
		for _, s := range gates {
			for _, c := range cases {
				ask, ok := c.Label(s)
				if !ok {
					continue
				}
				d, err := g.Decide(ctx, c.Request(s), gate.Budget{})
				if err == nil && d.Error != "" {
					err = fmt.Errorf("the clarifier failed: %s", d.Error)
				}
				if err != nil {
					yield(Prediction{}, fmt.Errorf("case %s at gate %s: %w", c.ID, s, err))
					return
				}
				label := 0
				if ask {
					label = 1
				}
				p := Prediction{ID: c.ID, Gate: s, Score: d.Score, Asked: d.Ask, Options: []conversation.Option{},
					Ms: float64(d.Elapsed) / float64(time.Millisecond), Label: &label, Kind: c.Kind}
				if d.Ask && ask {
					p.Readings = c.Options
				}
				if d.Ask {
					p.Question, p.Options = d.Verdict.Clarification, append(p.Options, d.Verdict.Options...)
				}
				if !yield(p, nil) {
					return
				}
			}
		}
	}
}

// Report holds the measures of one gate.
type Report struct {
	Gate       gate.Stage `json:"gate"`
	Threshold  float64    `json:"threshold"`
	Cases      int        `json:"cases"`
	Asking     int        `json:"asking"`      // cases that should be asked
	Accuracy   float64    `json:"accuracy"`    // right decisions of all
	Recall     float64    `json:"recall"`      // asked, of those that should be
	Precision  float64    `json:"precision"`   // rightly asked, of those asked; 0 if none was
	OverAsking float64    `json:"over_asking"` // asked, of those that are clear
	AUC        float64    `json:"auc"`         // that an asking case scores above a clear one; ties count half
	// CalibrationError is how far scores are from the share of asking cases,
	// on average over ten bins of the score, weighed by their cases.
	CalibrationError float64 `json:"calibration_error"`
	// OptionPrecision is the share of given options that stand for a reading of
	// the case, each reading counting once; OptionRecall the share of readings
	// that were given. Both over the rightly asked cases whose readings are tied
	// to passages and that were given options: OptionCases of them.
	OptionPrecision float64 `json:"option_precision"`
	OptionRecall    float64 `json:"option_recall"`
	OptionCases     int     `json:"option_cases"`
	MedianMs        float64 `json:"median_ms"` // of a decision
	ByKind          []Kind  `json:"by_kind,omitempty"`
}

// Kind is how one kind of case fared.
type Kind struct {
	Kind  string `json:"kind"`
	Cases int    `json:"cases"`
	Asked int    `json:"asked"`
	Right int    `json:"right"`
}

// Measure reports on the labelled predictions of one gate.
func Measure(s gate.Stage, threshold float64, predictions []Prediction) Report {
	r := Report{Gate: s, Threshold: threshold}
	var asked, hits, falseAsks, right int
	var scored []Prediction
	kinds := map[string]*Kind{}
	var ms []float64
	var given, fitting, readings int
	for _, p := range predictions {
		if p.Gate != s || p.Label == nil {
			continue
		}
		scored = append(scored, p)
		ms = append(ms, p.Ms)
		want := *p.Label == 1
		k := kinds[p.Kind]
		if k == nil {
			k = &Kind{Kind: p.Kind}
			kinds[p.Kind] = k
		}
		k.Cases++
		if want {
			r.Asking++
		}
		if p.Asked {
			asked++
			k.Asked++
			if want {
				hits++
			} else {
				falseAsks++
			}
		}
		if wanted := tied(p.Readings); p.Asked && want && len(p.Options) > 0 && len(wanted) > 0 {
			r.OptionCases++
			given += len(p.Options)
			readings += len(wanted)
			fitting += matches(p.Options, wanted)
		}
		if p.Asked == want {
			right++
			k.Right++
		}
	}
	r.Cases = len(scored)
	ratio := func(a, b int) float64 {
		if b == 0 {
			return 0
		}
		return float64(a) / float64(b)
	}
	r.Accuracy, r.Recall = ratio(right, r.Cases), ratio(hits, r.Asking)
	r.Precision, r.OverAsking = ratio(hits, asked), ratio(falseAsks, r.Cases-r.Asking)
	r.AUC, r.CalibrationError = auc(scored), calibrationError(scored)
	r.OptionPrecision, r.OptionRecall = ratio(fitting, given), ratio(fitting, readings)
	if len(ms) > 0 {
		slices.Sort(ms)
		r.MedianMs = ms[len(ms)/2]
	}
	for _, k := range kinds {
		if k.Kind != "" {
			r.ByKind = append(r.ByKind, *k)
		}
	}
	slices.SortFunc(r.ByKind, func(a, b Kind) int { return b.Cases - a.Cases })
	return r
}

// tied are the options that name passages.
func tied(options []conversation.Option) []conversation.Option {
	return slices.DeleteFunc(slices.Clone(options), func(o conversation.Option) bool { return len(o.Passages) == 0 })
}

// matches counts the options that share a passage with a reading, each reading
// matched once.
func matches(options, readings []conversation.Option) int {
	readings = slices.Clone(readings)
	n := 0
	for _, o := range options {
		k := slices.IndexFunc(readings, func(r conversation.Option) bool {
			return slices.ContainsFunc(o.Passages, func(id string) bool { return slices.Contains(r.Passages, id) })
		})
		if k >= 0 {
			readings = slices.Delete(readings, k, k+1)
			n++
		}
	}
	return n
}

// calibrationError is the expected calibration error over ten bins of equal width.
func calibrationError(ps []Prediction) float64 {
	const bins = 10
	var scores, labels [bins]float64
	for _, p := range ps {
		b := max(0, min(bins-1, int(p.Score*bins)))
		scores[b] += p.Score
		labels[b] += float64(*p.Label)
	}
	sum := 0.0
	for b := range bins {
		sum += math.Abs(scores[b] - labels[b])
	}
	return sum / float64(max(1, len(ps)))
}

// auc is the area under the ROC curve, by ranks (Mann-Whitney U); ties count
// half. 0 if one of the classes is empty.
func auc(ps []Prediction) float64 {
	ps = slices.Clone(ps)
	slices.SortFunc(ps, func(a, b Prediction) int {
		switch {
		case a.Score < b.Score:
			return -1
		case a.Score > b.Score:
			return 1
		}
		return 0
	})
	var rankSum float64
	var pos, neg int
	for i := 0; i < len(ps); {
		j := i
		for j < len(ps) && ps[j].Score == ps[i].Score {
			j++
		}
		mid := float64(i+j+1) / 2 // ranks are from 1
		for _, p := range ps[i:j] {
			if *p.Label == 1 {
				rankSum += mid
				pos++
			} else {
				neg++
			}
		}
		i = j
	}
	if pos == 0 || neg == 0 {
		return 0
	}
	return (rankSum - float64(pos*(pos+1))/2) / float64(pos*neg)
}
