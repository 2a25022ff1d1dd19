package evaluate

import (
	"context"
	"fmt"
	"iter"
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
	MedianMs   float64    `json:"median_ms"`   // of a decision
	ByKind     []Kind     `json:"by_kind,omitempty"`
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
	r.AUC = auc(scored)
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
