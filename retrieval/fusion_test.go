package retrieval

import (
	"math"
	"testing"
)

func TestFuse(t *testing.T) {
	place := func(r int) float64 { return 1 / float64(FusionK+r) }
	one := place(1)
	type ranking = Ranking[string]
	for _, test := range []struct {
		name     string
		rankings []ranking
		want     []Fused[string]
	}{
		{"nothing", nil, nil},
		{"empty ones", []ranking{{}, {Weight: 3}}, nil},
		{"one keeps its order", []ranking{{Items: []string{"b", "a"}}}, []Fused[string]{{"b", 1}, {"a", place(2) / one}}},
		{"an empty one counts for nothing", []ranking{{Items: []string{"a"}}, {}}, []Fused[string]{{"a", 1}}},
		{"agreement wins", []ranking{{Items: []string{"a", "b"}}, {Items: []string{"c", "b"}}},
			[]Fused[string]{{"b", 2 * place(2) / (2 * one)}, {"a", 0.5}, {"c", 0.5}}},
		{"weights", []ranking{{Items: []string{"a", "b"}, Weight: 1}, {Items: []string{"b", "a"}, Weight: 3}},
			[]Fused[string]{{"b", (place(2) + 3*one) / (4 * one)}, {"a", (one + 3*place(2)) / (4 * one)}}},
		{"a repetition does not count", []ranking{{Items: []string{"a", "a", "b"}}}, []Fused[string]{{"a", 1}, {"b", place(2) / one}}},
	} {
		got := Fuse(test.rankings...)
		same := len(got) == len(test.want)
		for i := 0; same && i < len(got); i++ {
			same = got[i].Item == test.want[i].Item && math.Abs(got[i].Score-test.want[i].Score) < 1e-12
		}
		if !same {
			t.Errorf("%s\n got %v\nwant %v", test.name, got, test.want)
		}
	}
}
