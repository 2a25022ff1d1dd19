package web_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hostile is markup that would run a script, load a picture or change the page.
const hostile = `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script><svg onload="window.pwned=1"><iframe src="javascript:parent.pwned=1"></iframe>` +
	`<style>*{display:none}</style> [click](javascript:window.pwned=1) ![pixel](https://elsewhere.example/pixel.png) <a href="javascript:pwned=1">a</a> "><b id=injected>`

// TestMarkupIsText puts markup into everything that is shown: the user's words,
// a title, a document's name, title and text, and the model's answer.
func TestMarkupIsText(t *testing.T) {
	s := newSite(t)
	p := newPage(t, s, "/", desktop)
	harmless := func(where string) {
		t.Helper()
		time.Sleep(100 * time.Millisecond)
		if eval[bool](p, "'pwned' in window || document.querySelector('#injected, iframe, object, embed, style, main img, aside img, nav img, main script') !== null") {
			t.Errorf("%s: markup became elements", where)
		}
		for _, link := range eval[[]string](p, "[...document.querySelectorAll('a')].map((a) => a.getAttribute('href'))") {
			if strings.HasPrefix(strings.ToLower(strings.TrimSpace(link)), "javascript:") {
				t.Errorf("%s: a link to %q", where, link)
			}
		}
	}
	upload(t, s, "evil<b id=injected>.md", "# Lockers "+hostile+"\n\n## Opening a locker "+hostile+"\n\nA locker opens with the code. "+hostile+"\n")
	s.writer.set("Here it is: "+hostile+" **bold "+hostile+"** [1] | [2]\n\n| "+hostile+" | b |\n|---|---|\n| c | d |", 0)
	p.ask("How do I open a locker? " + hostile)
	harmless("question and answer")
	if got := p.text(".user-text"); !strings.Contains(got, `<img src=x onerror="window.pwned=1">`) {
		t.Errorf("the user's words are shown as %q", got)
	}
	if got := p.text(".reply-text"); !strings.Contains(got, "<script>window.pwned=1</script>") {
		t.Errorf("the answer is shown as %q", got)
	}
	p.click(".turn:last-child .source")
	p.until("the passage", "document.querySelector('#panel .passage-text').innerText.includes('A locker opens')")
	harmless("passage")
	p.press("\x1b")
	p.click(".why")
	p.until("the panel", "document.querySelector('#panel .passage-row')")
	harmless("why")
	p.press("\x1b")
	p.click("#documents-button")
	p.until("the document", "document.querySelector('#panel').innerText.includes('evil<b')")
	harmless("documents")
	p.press("\x1b")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, s.URL+"/api/conversations/"+p.conversation(), strings.NewReader(`{"title": "<img src=x onerror=pwned=1><b id=injected>"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if response, err := http.DefaultClient.Do(r); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("renaming: %v %v", response, err)
	}
	p.open("/c/" + p.conversation())
	p.over(1)
	if got := p.text("#title"); !strings.Contains(got, "<b id=injected>") {
		t.Errorf("the title is shown as %q", got)
	}
	harmless("title")
}

func upload(t *testing.T, s *site, name, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL+"/api/documents/"+strings.NewReplacer("<", "%3C", ">", "%3E", " ", "%20").Replace(name), strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("uploading %s: %v %v", name, response, err)
	}
	_ = response.Body.Close()
}

// shown is what the renderer makes of a text, as HTML without attributes that
// are the same everywhere.
const shown = `import('/assets/markdown.js').then(({render}) => {
	const e = document.createElement('div');
	render(e, %s, {cite: (n) => n <= 3 ? Object.assign(document.createElement('sup'), {textContent: n}) : null});
	return e.innerHTML.replace(/ (dir|tabindex|role|aria-label|scope|target|rel)="[^"]*"/g, '');
})`

func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

func TestMarkdown(t *testing.T) {
	p := newPage(t, newSite(t), "/", desktop)
	for _, c := range []struct{ text, want string }{
		{"plain", "<p>plain</p>"},
		{"two\nlines", "<p>two<br>lines</p>"},
		{"one\n\ntwo", "<p>one</p><p>two</p>"},
		{"cited [1], twice [1][2], both [1, 2], none [9]", "<p>cited <sup>1</sup>, twice <sup>1</sup><sup>2</sup>, both <sup>1</sup><sup>2</sup>, none [9]</p>"},
		{"**strong** *em* _em_ __strong__ ~~struck~~", "<p><strong>strong</strong> <em>em</em> <em>em</em> <strong>strong</strong> <s>struck</s></p>"},
		{"**a *b* c** and ***", "<p><strong>a <em>b</em> c</strong> and ***</p>"},
		{"snake_case_name 2*3*4 a * b * c", "<p>snake_case_name 2<em>3</em>4 a * b * c</p>"},
		{"`code <b>` and ``a`b``, not `closed", "<p><code>code &lt;b&gt;</code> and <code>a`b</code>, not `closed</p>"},
		{`\*not em\* \[1]`, "<p>*not em* [1]</p>"},
		{"# One\n### Three #\ntext", "<h3>One</h3><h5>Three</h5><p>text</p>"},
		{"- a\n- b\n  - c\n- d", `<ul><li><p class="tight">a</p></li><li><p class="tight">b</p><ul><li><p class="tight">c</p></li></ul></li><li><p class="tight">d</p></li></ul>`},
		{"3. a\n4. b", `<ol start="3"><li><p class="tight">a</p></li><li><p class="tight">b</p></li></ol>`},
		{"text\n- a\n- b", `<p>text</p><ul><li><p class="tight">a</p></li><li><p class="tight">b</p></li></ul>`},
		{"1. a\n\n2. b", `<ol><li><p class="tight">a</p></li><li><p class="tight">b</p></li></ol>`},
		{"| a | b |\n|---|--:|\n| 1 | 2 |\nend", `<div class="table"><table><thead><tr><th>a</th><th class="end">b</th></tr></thead><tbody><tr><td>1</td><td class="end">2</td></tr></tbody></table></div><p>end</p>`},
		{"a | b\nnot a table", "<p>a | b<br>not a table</p>"},
		{"> quoted\n> more\n\nnot", "<blockquote><p>quoted<br>more</p></blockquote><p>not</p>"},
		{"```go\nx := <-c\n```\nafter", "<pre><code>x := &lt;-c</code></pre><p>after</p>"},
		{"```\nnever closed", "<pre><code>never closed</code></pre>"},
		{"a\n\n---\n\nb", "<p>a</p><hr><p>b</p>"},
		{"[text](https://example.org/a_(b)) <https://example.org> https://example.org/x.", `<p><a href="https://example.org/a_(b)">text</a> <a href="https://example.org/">https://example.org</a> <a href="https://example.org/x">https://example.org/x</a>.</p>`},
		{"[x](javascript:alert(1)) [y](//evil.example) [z](data:text/html,x)", "<p><span>x</span> <span>y</span> <span>z</span></p>"},
		{"![picture](https://example.org/p.png)", `<p><a href="https://example.org/p.png">picture</a></p>`},
		{"<b>bold</b> &amp; <script>x</script>", "<p>&lt;b&gt;bold&lt;/b&gt; &amp;amp; &lt;script&gt;x&lt;/script&gt;</p>"},
		{"שלום **עולם**", "<p>שלום <strong>עולם</strong></p>"},
		{"", ""},
	} {
		if got := eval[string](p, fmt.Sprintf(shown, quoted(c.text))); got != c.want {
			t.Errorf("%q is shown as\n\t%s\nwant\n\t%s", c.text, got, c.want)
		}
	}
}

// TestMarkdownOfAnything renders texts made of Markdown's marks by chance: it
// never fails, never takes long, makes no element that it should not, and shows
// a text that comes in pieces as the same text that comes at once.
func TestMarkdownOfAnything(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	pieces := []string{"a", "b c", " ", "\n", "\n\n", "*", "**", "_", "__", "`", "```", "~~", "[", "]", "(", ")", "[1]", "[x](", "https://e.example/", "javascript:", "<", ">", "&", "|", "---", "|---|\n", "- ", "1. ", "  ", "    ", "> ", "# ", "\\", "!", "\t", "\r\n", "שלום", "日本", "😀", "\u202e", "<script>", "onerror="}
	texts := []string{strings.Repeat("*", 5000), strings.Repeat("[", 5000), strings.Repeat("`a ``b ", 800), strings.Repeat("> ", 3000), strings.Repeat("- ", 3000), strings.Repeat("|", 3000) + "\n" + strings.Repeat("|-", 1500), strings.Repeat("_a", 3000), strings.Repeat("[a](", 2000), strings.Repeat("https://", 2000)}
	for range 400 {
		var b strings.Builder
		for range 1 + r.IntN(40) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		texts = append(texts, b.String())
	}
	p := newPage(t, newSite(t), "/", desktop)
	all, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	faults := eval[[]string](p, fmt.Sprintf(`import('/assets/markdown.js').then(({render}) => {
		const allowed = new Set('P BR STRONG EM S CODE PRE H3 H4 H5 H6 UL OL LI BLOCKQUOTE HR TABLE THEAD TBODY TR TH TD DIV A SPAN SUP'.split(' '));
		const faults = [];
		for (const text of %s) {
			const whole = document.createElement('div'), grown = document.createElement('div');
			const options = {cite: (n) => Object.assign(document.createElement('sup'), {textContent: n})};
			const start = performance.now();
			try {
				render(whole, text, options);
				if (text.length < 500) for (let i = 1; i <= text.length; i += 3) render(grown, text.slice(0, i), options);
				render(grown, text, options);
			} catch (e) { faults.push(JSON.stringify(text.slice(0, 200)) + ': ' + e); continue; }
			const took = performance.now() - start;
			if (took > 3000) faults.push(JSON.stringify(text.slice(0, 60)) + ' took ' + took + ' ms');
			if (whole.innerHTML !== grown.innerHTML) faults.push(JSON.stringify(text.slice(0, 200)) + ' differs when it comes in pieces');
			for (const e of whole.querySelectorAll('*')) {
				if (!allowed.has(e.tagName)) faults.push(JSON.stringify(text.slice(0, 200)) + ' makes ' + e.tagName);
				for (const a of e.attributes) if (a.name.startsWith('on') || (a.name === 'href' && !/^(https?|mailto):/.test(a.value))) faults.push(JSON.stringify(text.slice(0, 200)) + ' makes ' + a.name + '=' + a.value);
			}
		}
		return faults;
	})`, all))
	for _, f := range faults {
		t.Error(f)
	}
}

// TestEvents reads server-sent events that come in any pieces.
func TestEvents(t *testing.T) {
	p := newPage(t, newSite(t), "/", desktop)
	const stream = ": beat\n\nid: 1\nevent: turn\ndata: {\"a\":1}\n\nid: 2\r\nevent: delta\r\ndata: {\"text\":\"é😀\\n\"}\r\n\r\nevent:delta\ndata:[1,\ndata:2]\n\nid: 4\nevent: cut\ndata: {}\n"
	const want = `[["1","turn",{"a":1}],["2","delta",{"text":"é😀\n"}],["","delta",[1,2]]]`
	for _, size := range []int{1, 2, 3, 7, 1000} {
		got := eval[string](p, fmt.Sprintf(`import('/assets/sse.js').then(async ({events}) => {
			const bytes = new TextEncoder().encode(%s), out = [];
			let at = 0;
			const stream = new ReadableStream({pull(c) { if (at >= bytes.length) c.close(); else c.enqueue(bytes.slice(at, at += %d)); }});
			for await (const e of events(stream)) out.push([e.id, e.event, e.data]);
			return JSON.stringify(out);
		})`, quoted(stream), size))
		if got != want {
			t.Errorf("in pieces of %d: %s", size, got)
		}
	}
}

// TestQuotes marks quotes in passages of all kinds.
func TestQuotes(t *testing.T) {
	p := newPage(t, newSite(t), "/", desktop)
	for _, c := range []struct{ passage, quote, want string }{
		{"The deposit is 200. It is held.", "The deposit is 200.", "The deposit is 200."},
		{"The **deposit**\nis 200. It is held.", "The deposit is 200.", "The depositis 200."}, // with a line break between
		{"| Bike | Price |\n|---|---|\n| City | 200 |", "City | 200", "City200"},
		{"- one\n- two", "one two", "onetwo"},
		{"It is held.", "not there", ""},
		{"押金是200元。会退还。", "押金是200元。", "押金是200元。"},
		{"x", "", ""},
	} {
		got := eval[string](p, fmt.Sprintf(`import('/assets/markdown.js').then(({render, markQuote}) => {
			const e = document.createElement('div');
			render(e, %s);
			markQuote(e, %s);
			return [...e.querySelectorAll('mark')].map((m) => m.textContent).join('');
		})`, quoted(c.passage), quoted(c.quote)))
		if got != c.want {
			t.Errorf("%q in %q: marked %q, want %q", c.quote, c.passage, got, c.want)
		}
	}
}

func TestHandler(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct {
		method, path string
		status       int
		kind         string
	}{
		{"GET", "/", 200, "text/html; charset=utf-8"},
		{"HEAD", "/c/x", 200, "text/html; charset=utf-8"},
		{"GET", "/c/", 404, ""},
		{"GET", "/c/x%2Fy", 200, "text/html; charset=utf-8"},
		{"GET", "/c/x/y", 404, ""},
		{"GET", "/assets/main.js", 200, "text/javascript; charset=utf-8"},
		{"GET", "/assets/style.css", 200, "text/css; charset=utf-8"},
		{"GET", "/favicon.ico", 200, "image/svg+xml"},
		{"GET", "/assets/", 404, ""},
		{"GET", "/web.go", 404, ""},
		{"POST", "/", 405, ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, s.URL+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != c.status || c.kind != "" && response.Header.Get("Content-Type") != c.kind {
			t.Errorf("%s %s: %d %s", c.method, c.path, response.StatusCode, response.Header.Get("Content-Type"))
		}
		if c.status != http.StatusOK {
			continue
		}
		if policy := response.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", c.path, policy)
		}
		r.Header.Set("If-None-Match", response.Header.Get("ETag"))
		if again, err := http.DefaultClient.Do(r); err != nil || again.StatusCode != http.StatusNotModified {
			t.Errorf("%s is sent again though it is the same", c.path)
		}
	}
}

// TestPreloads holds the page to asking for all of its modules at once.
func TestPreloads(t *testing.T) {
	page, err := os.ReadFile("index.html")
	if err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Glob("assets/*.js")
	if err != nil || len(modules) < 10 {
		t.Fatal(modules, err)
	}
	for _, m := range modules {
		if n := strings.Count(string(page), `"/`+filepath.ToSlash(m)+`"`); n != 1 {
			t.Errorf("index.html names %s %d times", m, n)
		}
	}
}
