package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestKeyboard goes the whole way without a mouse.
func TestKeyboard(t *testing.T) {
	p := newPage(t, newSite(t), "/", desktop)
	// The input has the focus; the first stop of the page leads there as well.
	if got := eval[string](p, "document.activeElement.id"); got != "question" {
		t.Errorf("the focus is on %q at first", got)
	}
	if got := eval[string](p, "(() => { const e = document.querySelector('a, button, textarea'); e.focus(); return document.activeElement.id; })()"); got != "skip" {
		t.Errorf("the first stop is %q", got)
	}
	p.press("Enter")
	p.until("the input to have the focus", "document.activeElement.id === 'question'")
	p.ask(ambiguous)
	if got := eval[string](p, "document.activeElement.innerText"); !strings.Contains(got, "City 2") {
		t.Errorf("the focus is on %q, not on the first option", got)
	}
	p.press(kb.ArrowDown)
	if got := eval[string](p, "document.activeElement.innerText"); !strings.Contains(got, "Cargo 2") {
		t.Errorf("the arrow leads to %q", got)
	}
	p.press("Enter")
	p.over(2)
	if got := p.text(".turn:last-child .user-text"); got != "Cargo 2" {
		t.Errorf("Enter chose %q", got)
	}
	// A letter goes to the input, wherever the focus is; then a citation is opened and closed.
	p.press("x")
	if got := eval[string](p, "document.activeElement.id + document.querySelector('#question').value"); got != "questionx" {
		t.Errorf("a letter that is typed: %q", got)
	}
	eval[bool](p, "(document.querySelector('.turn:last-child button.cite').focus(), true)")
	p.press("Enter")
	p.until("the panel", "!document.querySelector('#panel').hidden && document.activeElement.closest('#panel')")
	p.press(kb.Escape)
	p.until("the panel to close", "document.querySelector('#panel').hidden && document.activeElement.matches('button.cite')")
	// What a screen reader was told.
	p.until("the answer to be told", "/It asks back.*€450/s.test(document.querySelector('#announcer').textContent)")
	// The menu of the conversation.
	eval[bool](p, "(document.querySelector('#bar-actions button').focus(), true)")
	p.press("Enter")
	p.until("the menu", "document.activeElement.matches('[role=menuitem]')")
	p.press(kb.ArrowUp)
	if got := eval[string](p, "document.activeElement.innerText"); got != "Delete" {
		t.Errorf("the last entry is %q", got)
	}
	p.press(kb.Escape)
	p.until("the menu to close", "!document.querySelector('.menu:popover-open') && document.activeElement.matches('#bar-actions button')")
}

// TestInputMethod composes text: Enter takes a suggestion and sends nothing.
func TestInputMethod(t *testing.T) {
	s := newSite(t)
	p := newPage(t, s, "/", desktop)
	p.write("東京")
	for _, init := range []string{"isComposing: true", "keyCode: 229"} {
		eval[bool](p, fmt.Sprintf("(() => { const e = new KeyboardEvent('keydown', {key: 'Enter', bubbles: true, cancelable: true, %s}); return document.querySelector('#question').dispatchEvent(e); })()", init))
	}
	eval[bool](p, "(() => { const e = new KeyboardEvent('keydown', {key: 'Enter', shiftKey: true, bubbles: true, cancelable: true}); return document.querySelector('#question').dispatchEvent(e); })()")
	if n := eval[int](p, "document.querySelectorAll('.turn').length"); n != 0 || s.count("POST turns") != 0 {
		t.Errorf("%d turns were sent while text was composed", n)
	}
	p.press("Enter")
	p.over(1)
}

func TestSmallestPhone(t *testing.T) {
	s := newSite(t)
	p := newPage(t, s, "/", look{width: 320, height: 568, touch: true})
	fits := func(state string) {
		t.Helper()
		p.picture(state)
		if wide := eval[int](p, "Math.max(document.documentElement.scrollWidth, document.querySelector('#scroller').scrollWidth) - innerWidth"); wide > 0 {
			t.Errorf("%s: %d pixels too wide", state, wide)
		}
	}
	fits("empty")
	p.click("#side-open")
	p.until("the list", "document.activeElement.id === 'side-close'")
	p.press(kb.Escape)
	p.until("the list to close", "document.activeElement.id === 'side-open'")
	p.ask(ambiguous)
	fits("asks")
	p.click(".option:first-child")
	p.over(2)
	s.writer.set(rich+" "+strings.Repeat("verylongword", 30), 0)
	p.ask("What does ERR-5172 mean?")
	fits("answer")
	p.click(".turn:last-child .why")
	p.until("the panel", "document.querySelector('#panel .gate')")
	fits("why")
}

// TestRightToLeft shows each text in the direction of its own language.
func TestRightToLeft(t *testing.T) {
	s := newSite(t)
	s.writer.set("الإيداع **200** يورو. [1]\n\n- للمدينة\n- للشحن\n\nEnglish after it.", 0)
	p := newPage(t, s, "/", desktop)
	p.write("ما هو مبلغ إيداع الإيجار؟")
	if got := eval[string](p, "getComputedStyle(document.querySelector('#question')).direction"); got != "rtl" {
		t.Errorf("the input is %s", got)
	}
	p.press("Enter")
	p.over(1)
	if p.text(".asks-text") != "" {
		p.ask("فقط أجب")
	}
	for selector, want := range map[string]string{
		".turn:first-child .user-text": "rtl", ".reply-text p:first-child": "rtl", ".reply-text ul": "rtl", ".reply-text > p:last-child": "ltr", "body": "ltr",
	} {
		if got := eval[string](p, fmt.Sprintf("(e => e ? getComputedStyle(e).direction : 'missing')(document.querySelector(%q))", selector)); got != want {
			t.Errorf("%s is %s, want %s", selector, got, want)
		}
	}
	p.picture("rtl")
}

func TestTheme(t *testing.T) {
	s := newSite(t)
	p := newPage(t, s, "/", desktop)
	dark := func() bool {
		return eval[bool](p, "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).every((c) => c < 60)")
	}
	if dark() {
		t.Error("dark where the system is light")
	}
	p.click("#theme")
	if !dark() || eval[string](p, "document.querySelector('#theme').getAttribute('aria-pressed')") != "true" {
		t.Error("light after the switch")
	}
	p.run(chromedp.Reload())
	p.until("the page to be there", "document.body.dataset.ready === ''")
	if !dark() {
		t.Error("the choice was forgotten")
	}
	p.click("#theme")
	if dark() {
		t.Error("dark after the switch back")
	}
	p.look(look{width: desktop.width, height: desktop.height, dark: true})
	if !dark() {
		t.Error("light where the system is dark")
	}
}

func TestConversations(t *testing.T) {
	s := newSite(t)
	p := newPage(t, s, "/", desktop)
	p.ask("What does ERR-5172 mean?")
	first := p.conversation()
	p.click("#new")
	p.ask("Can I leave the bike out in the rain?")
	p.until("both in the list", "document.querySelectorAll('#conversations li').length === 2")

	// Back and forward, as the browser has it.
	p.run(chromedp.NavigateBack())
	p.run(chromedp.NavigateBack())
	p.until("the first one", fmt.Sprintf("location.pathname === '/c/%s' && document.querySelector('.user-text')?.innerText.includes('ERR-5172')", first))
	p.run(chromedp.NavigateForward())
	p.run(chromedp.NavigateForward())
	p.until("the second one", "document.querySelector('.user-text')?.innerText.includes('rain')")

	// A click in the list, and a new name.
	p.click(fmt.Sprintf("#conversations li[data-id='%s'] a", first))
	p.until("the first one", "document.querySelector('.user-text')?.innerText.includes('ERR-5172')")
	p.over(1)
	p.click("#bar-actions button")
	p.click(".menu:popover-open .menu-item")
	p.until("the question", "document.querySelector('#dialog-input')")
	p.run(chromedp.SendKeys(chromedp.CSS("#dialog-input"), "The error code"))
	p.click("dialog .primary")
	p.until("the new name", "document.querySelector('#title').innerText === 'The error code' && document.querySelector('#conversations').innerText.includes('The error code') && document.title.startsWith('The error code')")

	// The export is a download of everything.
	p.click("#bar-actions button")
	if got := eval[string](p, "fetch(document.querySelector('.menu:popover-open a').href).then((r) => r.text())"); !strings.Contains(got, "ERR-5172") {
		t.Errorf("export: %.200q", got)
	}
	p.press(kb.Escape)

	// Deleting asks first.
	p.click("#bar-actions button")
	p.click(".menu:popover-open .danger-text")
	p.click("dialog .quiet")
	if got := p.text("#title"); got != "The error code" {
		t.Errorf("after thinking better of it: %q", got)
	}
	p.click("#bar-actions button")
	p.click(".menu:popover-open .danger-text")
	p.click("dialog .danger")
	p.until("it to be gone", "location.pathname === '/' && document.querySelectorAll('#conversations li').length === 1")
	p.allow("404")
	p.open("/c/" + first)
	p.until("the note", "document.querySelector('.gone')")
}

func TestEditUnderstood(t *testing.T) {
	p := newPage(t, newSite(t), "/", desktop)
	p.ask(ambiguous)
	p.press("1")
	p.over(2)
	p.click(".turn:last-child .understood button")
	p.until("the question to be editable", "document.activeElement.matches('.edit textarea')")
	p.press(kb.Escape)
	p.click(".turn:last-child .understood button")
	eval[bool](p, "(document.querySelector('.edit textarea').select(), true)")
	p.run(chromedp.SendKeys(chromedp.CSS(".edit textarea"), "What is the rental deposit for a Cargo 2?"))
	p.press("Enter")
	p.over(3)
	if got := p.text(".turn:last-child .reply-text"); !strings.Contains(got, "€450") {
		t.Errorf("answer to the edited question: %q", got)
	}
}

// TestDraft keeps what is being written over a reload.
func TestDraft(t *testing.T) {
	p := newPage(t, newSite(t), "/", desktop)
	p.write("half a quest")
	p.run(chromedp.Reload())
	p.until("the page to be there", "document.body.dataset.ready === ''")
	if got := eval[string](p, "document.querySelector('#question').value"); got != "half a quest" {
		t.Errorf("after a reload: %q", got)
	}
}

func TestCopy(t *testing.T) {
	p := newPage(t, newSite(t), "/", desktop)
	p.ask("What does ERR-5172 mean?")
	eval[bool](p, "(window.copied = '', navigator.clipboard.writeText = async (t) => { window.copied = t; }, true)")
	p.click(".actions button[aria-label=Copy]")
	p.until("it to be told", "document.querySelector('#announcer').innerText.includes('Copied')")
	if got := eval[string](p, "window.copied"); !strings.Contains(got, "speed sensor") || !strings.Contains(got, "[1]") {
		t.Errorf("copied %q", got)
	}
}

// TestOtherWindow looks again at a conversation that went on in another window.
func TestOtherWindow(t *testing.T) {
	s := newSite(t)
	p := newPage(t, s, "/", desktop)
	p.ask("What does ERR-5172 mean?")
	q := newPage(t, s, "/c/"+p.conversation(), desktop)
	q.over(1)
	q.ask("Can I leave the bike out in the rain?")
	eval[bool](p, "document.dispatchEvent(new Event('visibilitychange'))")
	p.over(2)
	if got := p.text(".turn:last-child .user-text"); !strings.Contains(got, "rain") {
		t.Errorf("after a look back: %q", got)
	}
}
