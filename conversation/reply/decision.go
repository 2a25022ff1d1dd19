package reply

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/askback/askback/conversation"
)

// decision is fitted to replies that the heads were not trained on: a logistic
// regression for each option, whether it is meant, and one over the kinds.
type decision struct {
	Option struct {
		Features []string  `json:"features"`
		Weights  []float64 `json:"weights"`
		Bias     float64   `json:"bias"`
	} `json:"option"`
	Kind struct {
		Features []string    `json:"features"`
		Weights  [][]float64 `json:"weights"` // by kind, then by feature
		Bias     []float64   `json:"bias"`
	} `json:"kind"`

	// Aside is the probability from which a change of topic that is not the most
	// likely kind makes the clarification be shown again; Topic the one from which
	// the reply is taken for a change of topic, if that is the most likely kind.
	Aside float64 `json:"aside"`
	Topic float64 `json:"topic"`
	// Sure is the probability from which nobody else need be asked.
	Sure float64 `json:"sure"`
	// Choose is the least probability of an option that is chosen. Below it the words
	// are kept as a detail, and reach the search.
	Choose float64 `json:"choose"`
	// Meant is the probability from which one of several options is meant.
	Meant float64 `json:"meant"`
}

// check makes sure that the regressions are for the features that are computed.
func (d *decision) check(kinds []conversation.ReplyKind) error {
	for _, k := range []conversation.ReplyKind{conversation.ReplyChoice, conversation.ReplyNewQuestion} {
		if !slices.Contains(kinds, k) {
			return fmt.Errorf("the kind %s is missing", k)
		}
	}
	o := optionFeatures(0, conversation.Option{}, conversation.Folded{})
	k := kindFeatures(conversation.Pending{}, "", conversation.Folded{}, kinds, make([]float64, len(kinds)), nil)
	if err := same(d.Option.Features, o); err != nil {
		return err
	}
	if err := same(d.Kind.Features, k); err != nil {
		return err
	}
	if len(d.Option.Weights) != len(o) || len(d.Kind.Weights) != len(kinds) || len(d.Kind.Bias) != len(kinds) {
		return errors.New("weights are missing; fit it again with training/replies/decision.py")
	}
	for i, w := range d.Kind.Weights {
		if len(w) != len(k) {
			return fmt.Errorf("the kind %s has %d weights, want %d", kinds[i], len(w), len(k))
		}
	}
	return nil
}

func same(names []string, fs []feature) error {
	if len(names) != len(fs) {
		return fmt.Errorf("it has %d features, want %d; fit it again with training/replies/decision.py", len(names), len(fs))
	}
	for i, f := range fs {
		if names[i] != f.name {
			return fmt.Errorf("feature %d is %q, want %q; fit it again with training/replies/decision.py", i, names[i], f.name)
		}
	}
	return nil
}

// feature is one number that the decision rests on.
type feature struct {
	name  string
	value float64
}

func dot(weights []float64, fs []feature, bias float64) float64 {
	for i, f := range fs {
		bias += weights[i] * f.value
	}
	return bias
}

func optionFeatures(logit float64, o conversation.Option, rules conversation.Folded) []feature {
	is := func(options []conversation.Option) bool {
		return slices.ContainsFunc(options, func(x conversation.Option) bool { return x.ID == o.ID })
	}
	chosen := is(rules.Chosen)
	alone := chosen && rules.Kind == conversation.ReplyChoice
	return []feature{
		{"logit", logit},
		{"chosen by the rules", boolean(chosen)},
		{"the rules' choice", boolean(alone)},
		{"by similarity", boolean(alone && rules.Rule == "similarity")},
		{"ruled out by the rules", boolean(is(rules.Excluded))},
	}
}

// ruleNames are the rules that a regression tells apart.
var ruleNames = []string{"text", "all", "question", "detail", "similarity", "none", "none, with a detail", "explain", "between",
	"phrase", "cancel", "proposal", "says nothing"}

func kindFeatures(p conversation.Pending, reply string, rules conversation.Folded, kinds []conversation.ReplyKind, logits, options []float64) []feature {
	var fs []feature
	for i, s := range softmax(logits) {
		fs = append(fs, feature{"log " + string(kinds[i]), math.Log(max(s, 1e-6))})
	}
	for _, k := range kinds {
		fs = append(fs, feature{"rules: " + string(k), boolean(rules.Kind == k)})
	}
	for _, r := range ruleNames {
		fs = append(fs, feature{"by " + r, boolean(rules.Rule == r)})
	}
	first, second := missing+0.0, missing+0.0
	for _, v := range options {
		switch {
		case v > first:
			first, second = v, first
		case v > second:
			second = v
		}
	}
	n := len(strings.Fields(reply))
	return append(fs,
		feature{"first option", first},
		feature{"second option", second},
		feature{"asks", boolean(strings.ContainsAny(reply, "?？"))},
		feature{"no options", boolean(len(p.Options) == 0)},
		feature{"short", boolean(n <= 3)},
		feature{"long", boolean(n > 8)},
		feature{"the rules' choice alone", boolean(rules.Kind == conversation.ReplyChoice && rules.Detail == "")},
	)
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// weigh gives the log-odds that each option is meant, and the probability of each
// kind, 0 for those that are not possible.
func (r *Reader) weigh(p conversation.Pending, reply string, rules conversation.Folded, kinds, options []float64) (meant, share []float64) {
	d := &r.config.Decision
	for i, l := range options {
		meant = append(meant, dot(d.Option.Weights, optionFeatures(l, p.Options[i], rules), d.Option.Bias))
	}
	fs := kindFeatures(p, reply, rules, r.config.Kinds, kinds, meant)
	logits := make([]float64, len(r.config.Kinds))
	for i, k := range r.config.Kinds {
		logits[i] = dot(d.Kind.Weights[i], fs, d.Kind.Bias[i])
		if !possible(k, len(p.Options)) {
			logits[i] = math.Inf(-1)
		}
	}
	return meant, softmax(logits)
}

// possible says whether a reply to a clarification with n options can be of a kind.
func possible(k conversation.ReplyKind, n int) bool {
	switch k {
	case conversation.ReplyChoice, conversation.ReplyNone:
		return n > 0
	case conversation.ReplyAll:
		return n > 1
	case conversation.ReplySeveral:
		return n > 2
	}
	return true
}

// decide gives the reading: the most likely kind, but for what may be a change of
// topic.
func (r *Reader) decide(p conversation.Pending, reply string, rules conversation.Folded, kinds, options []float64) conversation.Reading {
	meant, share := r.weigh(p, reply, rules, kinds, options)
	d := &r.config.Decision
	best, topic := 0, slices.Index(r.config.Kinds, conversation.ReplyNewQuestion)
	for i, s := range share {
		if s > share[best] {
			best = i
		}
	}
	out := conversation.Reading{Kind: r.config.Kinds[best], Unsure: share[best] < d.Sure}
	first := p.Asked <= 1
	switch {
	case best == topic && share[topic] < d.Topic && first, best != topic && share[topic] >= d.Aside && first:
		return conversation.Reading{Kind: conversation.ReplyUnclear, Unsure: true}
	case share[topic] >= d.Aside && !first: // it was said again
		out.Kind = conversation.ReplyNewQuestion
	}

	order := make([]int, len(meant))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case meant[a] > meant[b]:
			return -1
		case meant[a] < meant[b]:
			return 1
		}
		return 0
	})
	// A choice of the wrong option is worse than a detail.
	if out.Kind == conversation.ReplyChoice && sigmoid(meant[order[0]]) < d.Choose {
		out.Kind, out.Unsure = conversation.ReplyDetail, true
	}
	likely := 0 // options that are likely to be meant
	for _, i := range order {
		if sigmoid(meant[i]) >= d.Meant {
			likely++
		}
	}
	switch out.Kind {
	case conversation.ReplyChoice:
		order = order[:1]
	case conversation.ReplySeveral:
		order = order[:min(max(2, likely), len(order)-1)]
	case conversation.ReplyAll:
		order = order[:0]
	case conversation.ReplyUnclear:
		if likely < 2 || likely == len(order) && rules.Kind != conversation.ReplyUnclear {
			likely = 0
		}
		order = order[:likely]
	default:
		order = order[:0]
	}
	slices.Sort(order)
	for _, i := range order {
		out.Options = append(out.Options, p.Options[i].ID)
	}
	if out.Kind == conversation.ReplyNone {
		for _, o := range rules.Excluded {
			out.Options = append(out.Options, o.ID)
		}
	}
	if keepsWords[out.Kind] && len(strings.Fields(rules.Detail)) >= fewWords {
		out.Detail = rules.Detail
	}
	return out
}

// A choice in one or two words of the user's own says nothing besides the choice;
// what is longer goes into the question beside it.
const fewWords = 3

var keepsWords = map[conversation.ReplyKind]bool{
	conversation.ReplyChoice: true, conversation.ReplySeveral: true, conversation.ReplyAll: true, conversation.ReplyNone: true,
}
