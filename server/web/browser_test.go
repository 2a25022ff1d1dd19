package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"go.uber.org/goleak"
)

// browser is one Chromium for all tests, started by the first.
var browser struct {
	sync.Once
	ctx  context.Context
	stop func()
	err  error
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(stopsBrowser{m}) }

// stopsBrowser ends the browser after the tests.
type stopsBrowser struct{ *testing.M }

func (m stopsBrowser) Run() int {
	code := m.M.Run()
	if browser.stop != nil {
		browser.stop()
	}
	return code
}

func startBrowser() {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, // a fresh --user-data-dir comes by itself
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("force-color-profile", "srgb"))
	if path := os.Getenv("ASKBACK_TEST_CHROMIUM"); path != "" {
		options = append(options, chromedp.ExecPath(path))
	}
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stop := chromedp.NewContext(allocator)
	browser.ctx, browser.err = ctx, chromedp.Do(ctx)
	browser.stop = func() { stop(); stopAllocator() }
}

// page is a tab in a browser profile of its own.
type page struct {
	t    *testing.T
	site *site
	ctx  context.Context

	mu      sync.Mutex
	faults  []string // errors in the console, and requests to other hosts
	allowed []*regexp.Regexp
}

// look is how the page is looked at.
type look struct {
	width, height int64
	dark, touch   bool
}

var (
	desktop = look{width: 1280, height: 820}
	phone   = look{width: 390, height: 844, touch: true}
)

// newPage opens a tab on a path of the site. When the test ends there must have
// been no error in its console and no request to another host.
func newPage(t *testing.T, s *site, path string, l look) *page {
	t.Helper()
	p := newTab(t, s, l)
	p.open(path)
	return p
}

// newTab is newPage with nothing in the tab yet.
func newTab(t *testing.T, s *site, l look) *page {
	t.Helper()
	browser.Do(startBrowser)
	if browser.err != nil {
		t.Fatalf("starting Chromium: %v; install it with server/web/browsersetup", browser.err)
	}
	ctx, cancel := chromedp.NewContext(browser.ctx, chromedp.WithNewBrowserContext())
	ctx, cancelTime := context.WithTimeout(ctx, 10*time.Minute)
	p := &page{t: t, site: s, ctx: ctx}
	own, _ := url.Parse(s.URL)
	console := chromedp.Console(ctx)
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		for m, err := range console {
			if err != nil {
				return
			}
			if m.IsException() || m.Type == "error" || m.Type == "warning" || m.Type == "assert" {
				p.fault(fmt.Sprintf("%s %s", m, m.URL))
			}
		}
	}()
	err := chromedp.Listen(ctx, func(event any) {
		e, ok := event.(*network.EventRequestWillBeSent)
		if !ok {
			return
		}
		u, err := url.Parse(e.Request.URL)
		if err != nil || u.Host != own.Host && u.Scheme != "data" && u.Scheme != "blob" && u.Scheme != "about" {
			p.fault("request to another host: " + e.Request.URL)
		}
	})
	if err != nil {
		t.Fatalf("starting Chromium: %v; install it with server/web/browsersetup", err)
	}
	t.Cleanup(func() {
		cancelTime()
		cancel()
		<-listening
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, f := range p.faults {
			allowed := false
			for _, a := range p.allowed {
				allowed = allowed || a.MatchString(f)
			}
			if !allowed {
				t.Errorf("the browser's console: %s", f)
			}
		}
	})
	call(p, network.Enable, network.EnableParams{})
	p.look(l)
	return p
}

func (p *page) fault(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, text)
}

// allow says what the console may say in this test.
func (p *page) allow(pattern string) { p.allowed = append(p.allowed, regexp.MustCompile(pattern)) }

func (p *page) look(l look) {
	p.t.Helper()
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: l.height, DeviceScaleFactor: 1, Mobile: l.touch})
	call(p, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: l.touch})
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// call runs a command of the browser's protocol.
func call[P, R any](p *page, command cdp.Command[P, R], params P) {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, command, params); err != nil {
		p.t.Fatal(err)
	}
}

func (p *page) run(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.picture("failed")
		p.t.Fatalf("%v", err)
	}
}

func (p *page) open(path string) {
	p.t.Helper()
	p.run(chromedp.Navigate(p.site.URL + path))
	p.until("the page to be there", `document.querySelector('#question') !== null && document.body.dataset.ready === ''`)
}

// eval gives the value of an expression; a promise is waited for.
func eval[T any](p *page, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.picture("failed")
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits for an expression to be true.
func (p *page) until(what, expression string) {
	p.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		ok, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if ok && err == nil {
			return
		}
		if time.Now().After(deadline) || p.ctx.Err() != nil {
			p.picture("failed")
			text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body.innerText"))
			p.t.Fatalf("waited in vain for %s (%s), last error %v; the page says:\n%s", what, expression, err, text)
		}
		time.Sleep(25 * time.Millisecond)
	}
}

// text is what an element says, "" if there is none.
func (p *page) text(selector string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
}

func (p *page) click(selector string) {
	p.t.Helper()
	p.until(selector, fmt.Sprintf("document.querySelector(%q)?.checkVisibility({visibilityProperty: true})", selector))
	p.run(chromedp.Click(chromedp.CSS(selector)))
}

// write puts text in the input, as a person types it.
func (p *page) write(text string) {
	p.t.Helper()
	p.run(chromedp.SendKeys(chromedp.CSS("#question"), text))
}

// press presses a key as a person does: what a page makes of the key keeps its
// character from being typed.
func (p *page) press(key string) {
	p.t.Helper()
	if key != "Enter" {
		p.run(chromedp.KeyEvent(key))
		return
	}
	event := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "Enter", Code: "Enter", Text: "\r", WindowsVirtualKeyCode: 13, NativeVirtualKeyCode: 13}
	call(p, input.DispatchKeyEvent, event)
	event.Type, event.Text = input.DispatchKeyEventTypeKeyUp, ""
	call(p, input.DispatchKeyEvent, event)
}

// ask writes a question, sends it, and waits until its turn is over.
func (p *page) ask(text string) {
	p.t.Helper()
	n := eval[int](p, "document.querySelectorAll('.turn').length")
	p.write(text)
	p.press("Enter")
	p.over(n + 1)
}

// over waits until that many turns are there and none runs.
func (p *page) over(turns int) {
	p.t.Helper()
	p.until(fmt.Sprintf("turn %d to be over", turns), fmt.Sprintf("document.querySelectorAll('.turn').length === %d && !document.querySelector('[aria-busy]') && document.querySelector('#stop').hidden", turns))
}

// picture keeps a screenshot.
func (p *page) picture(name string) {
	p.t.Helper()
	folder := os.Getenv("ASKBACK_SCREENSHOTS")
	if folder == "" {
		folder = p.t.ArtifactDir()
	}
	time.Sleep(250 * time.Millisecond) // movements end
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Logf("no screenshot: %v", err)
		return
	}
	name = strings.ReplaceAll(p.t.Name(), "/", "-") + "-" + name + ".png"
	if err := errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(filepath.Join(folder, name), png, 0o644)); err != nil {
		p.t.Errorf("keeping a screenshot: %v", err)
	}
}

// accessible looks for serious faults of accessibility.
func (p *page) accessible(state string) {
	p.t.Helper()
	eval[int](p, axe(p.t)+";0")
	found := eval[json.RawMessage](p, `axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) => v.id + ': ' + v.help + '\n' + v.nodes.map((n) => '    ' + n.html.slice(0, 160) + ' ' + n.any.map((a) => a.message).join(' ')).join('\n')))`)
	var faults []string
	if err := json.Unmarshal(found, &faults); err != nil {
		p.t.Fatal(err)
	}
	for _, f := range faults {
		p.t.Errorf("%s: %s", state, f)
	}
}
