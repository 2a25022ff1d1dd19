package web_test

import (
	"strings"
	"testing"
	"time"
)

// rich is an answer with all that the page can show of Markdown.
const rich = `Both plans include **repairs**, and differ in the rest: [1]

| Plan | Price | Bikes |
|:-----|------:|:-----:|
| Day | €19 | 1 |
| Month | €189 | up to 2 |

1. Choose a plan in the app.
2. Collect the bike:
   - with your *card*
   - and the code ` + "`RENT-24`" + `

> The deposit is held, not taken.

` + "```text\nPLAN month --bikes 2\n```" + `

More is at https://example.org/plans.`

// TestLooks walks through the states of the page, looks for faults of
// accessibility in each, and keeps a picture of it.
func TestLooks(t *testing.T) {
	s := newSite(t)
	for _, l := range []struct {
		name string
		look look
		axe  bool
	}{
		{"desktop-light", desktop, true},
		{"desktop-dark", look{width: desktop.width, height: desktop.height, dark: true}, false},
		{"phone-light", phone, false},
		{"phone-dark", look{phone.width, phone.height, true, true}, true},
	} {
		t.Run(l.name, func(t *testing.T) {
			p := newPage(t, s, "/", l.look)
			state := func(name string) {
				t.Helper()
				p.picture(name)
				if wide := eval[int](p, "document.documentElement.scrollWidth - innerWidth"); wide > 0 {
					t.Errorf("%s: %d pixels too wide", name, wide)
				}
				if l.axe {
					p.accessible(name)
				}
			}
			state("1-empty")
			p.ask(ambiguous)
			state("2-asks")
			p.click(".turn:first-child .why")
			p.until("the panel", "document.querySelector('#panel .gate')")
			state("3-why-it-asked")
			p.slide("post", "0.95")
			p.until("the effect", "document.querySelector('.outcome')")
			state("4-playground")
			p.press("\x1b")
			p.click(".option:first-child")
			p.over(2)
			state("5-answer")
			p.click(".turn:last-child .source")
			p.until("the passage", "document.querySelector('#panel mark')")
			state("6-passage")
			p.press("\x1b")

			s.writer.set(rich, 0)
			p.ask("What does ERR-5172 mean?")
			s.writer.set("", 0)
			eval[bool](p, "(document.querySelector('.turn:last-child').scrollIntoView(), true)")
			state("7-markdown")
			s.writer.set(strings.Repeat(long+" ", 5), 150*time.Millisecond)
			p.write("Can I leave the bike out in the rain?")
			p.press("Enter")
			p.until("the answer to begin", "document.querySelector('.turn:last-child .reply-text').innerText.includes('five')")
			p.picture("8-writing")
			p.click("#stop")
			p.over(4)
			s.writer.set("", 0)
			state("9-stopped")
			p.ask("What is the capital of Portugal?")
			p.click(".turn:last-child .why")
			p.until("the panel", "document.querySelector('#panel .gate')")
			state("10-no-answer")
			p.press("\x1b")

			if l.look.touch {
				p.click("#side-open")
				p.until("the list", "document.body.classList.contains('side-open')")
				state("11-list")
			}
			p.click("#documents-button")
			p.until("the documents", "document.querySelectorAll('.documents li').length > 5")
			state("12-documents")
			p.press("\x1b")
			p.click("#bar-actions button")
			p.until("the menu", "document.querySelector('.menu:popover-open')")
			state("13-menu")
			p.click(".menu:popover-open .danger-text")
			p.until("the question", "document.querySelector('dialog[open]')")
			state("14-delete")
			p.click("dialog .danger")
			p.until("the conversation to be gone", "location.pathname === '/' && document.querySelectorAll('.turn').length === 0")
		})
	}
}
