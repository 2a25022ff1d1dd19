package web_test

import (
	"testing"
)

func TestLooks(t *testing.T) {
	s := newSite(t)
	for _, l := range []struct {
		name string
		look look
	}{
		{"desktop-light", desktop}, {"phone-dark", look{phone.width, phone.height, true, true}},
	} {
		t.Run(l.name, func(t *testing.T) {
			p := newPage(t, s, "/", l.look)
			p.picture("empty")
			p.ask("What is the rental deposit?")
			p.picture("asks")
			p.press("1")
			p.over(2)
			p.picture("answer")
			p.click(".turn:last-child .why")
			p.picture("why")
			p.press("\x1b")
			p.click(".turn:last-child .source")
			p.picture("passage")
		})
	}
}
