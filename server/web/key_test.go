package web_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/askback/askback/server"
	"github.com/askback/askback/server/keys"
)

// A person gives the key once, in a tab: it is in no address and in nothing that stays
// when the tab is closed, and can be forgotten. One that is revoked is asked for anew.
func TestKey(t *testing.T) {
	file := keys.File{Path: filepath.Join(t.TempDir(), "keys.json")}
	ada, adasKey, err := file.Create(keys.New{Name: "Ada", Tenant: "larkwheel"})
	if err != nil {
		t.Fatal(err)
	}
	ring, err := keys.Open(file.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := newSiteWith(t, func(o *server.Options) { o.Keys = ring })
	p := newTab(t, s, desktop)
	p.allow("401") // the browser tells of each
	enter := func(key string) {
		t.Helper()
		p.until("the question for a key", "document.querySelector('dialog[open] #dialog-input')?.type === 'password'")
		p.run(chromedp.SendKeys(chromedp.CSS("#dialog-input"), key))
		p.click("dialog .primary")
	}
	ready := func() {
		t.Helper()
		p.until("the page to be there", "document.body.dataset.ready === '' && document.querySelector('.sample')")
	}
	p.run(chromedp.Navigate(s.URL + "/"))
	p.until("the question for a key", "document.querySelector('dialog[open]')")
	p.accessible("asking for a key")
	enter(keys.Prefix + "wrong")
	p.until("what is wrong", "document.querySelector('dialog[open]')?.innerText.includes('not known')")
	p.click("dialog .quiet")
	p.until("the button that asks again", "document.querySelector('#key-again')")
	p.click("#key-again")
	enter(adasKey.Reveal())
	ready()
	p.ask("What does ERR-5172 mean?")
	if got := p.text(".reply-text"); !strings.Contains(got, "speed sensor") {
		t.Errorf("answer %q", got)
	}
	p.accessible("with a key")
	where := eval[string](p, "JSON.stringify([location.href, document.cookie, {...localStorage}, document.documentElement.outerHTML])")
	if strings.Contains(where, adasKey.Reveal()) {
		t.Error("the key is in the address, in a cookie, in what stays, or in the page")
	}
	if entries := eval[string](p, "JSON.stringify(performance.getEntries().map((e) => e.name))"); strings.Contains(entries, "askback_") {
		t.Errorf("the key was in an address: %s", entries)
	}
	p.run(chromedp.Navigate(s.URL + "/")) // the same tab
	ready()

	// The export, which a plain link could not get.
	id := eval[string](p, "document.querySelector('#conversations li').dataset.id")
	if got := eval[string](p, fmt.Sprintf("import('/assets/api.js').then(async (api) => { const o = URL.createObjectURL; let b; URL.createObjectURL = (x) => { b = x; return o(x); }; await api.conversations.save(%q); return b.text(); })", id)); !strings.Contains(got, "ERR-5172") {
		t.Errorf("export %.200q", got)
	}

	if _, err := file.Revoke(ada.ID); err != nil {
		t.Fatal(err)
	}
	_, second, err := file.Create(keys.New{Name: "Ada again", Tenant: "larkwheel"})
	if err != nil {
		t.Fatal(err)
	}
	p.until("the key to be refused", "fetch('/api/conversations', {headers: {Authorization: 'Bearer ' + sessionStorage['askback.key']}}).then((r) => window.refused = r.status === 401) && window.refused")
	p.write("And ERR-5171?")
	p.press("Enter")
	p.until("why another is needed", "document.querySelector('dialog[open]')?.innerText.includes('revoked')")
	enter(second.Reveal())
	p.over(1)

	p.click("#key")
	p.until("to be asked again", "document.querySelector('dialog[open] #dialog-input') && !document.querySelector('.turn')")
	if eval[bool](p, "'askback.key' in sessionStorage") {
		t.Error("the key is not forgotten")
	}
}
