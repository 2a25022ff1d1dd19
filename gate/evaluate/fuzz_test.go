package evaluate

import (
	"strings"
	"testing"

	"github.com/askback/askback/gate"
)

// FuzzRead reads anything as a file of cases: whole cases, or an error that names the
// line.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"id":"a","question":"q","passages":[{"id":"1","title":"t","text":"x"}],"pre":0,"post":1,"options":[{"text":"o","passages":["1"]}]}`,
		`{"id":"a","question":"q","history":[{"role":"user","text":"u"}],"pre":null}` + "\n\n",
		"{\n}", "[]", `{"id":1}`, "\uFEFF{}", `{"id":"a","question":"q","pre":2}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cases, err := Read(strings.NewReader(text))
		if err != nil {
			if !strings.Contains(err.Error(), "line ") {
				t.Errorf("%q: %v does not name the line", text, err)
			}
			return
		}
		for _, c := range cases {
			for _, s := range []gate.Stage{gate.Pre, gate.Post} {
				if r := c.Request(s); r.Question == "" || s == gate.Pre && len(r.Passages) > 0 {
					t.Errorf("%q gives %+v", text, r)
				}
			}
		}
	})
}
