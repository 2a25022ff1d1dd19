package web_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/chromedp/chromedp"
)

const ambiguous = "What is the rental deposit?" // asked back about: City 2 or Cargo 2

// TestAskBack walks the main way: a question that is asked back about, a click,
// an answer, its source, and why it went so.
func TestAskBack(t *testing.T) {
	s := newSite(t)
	p := newPage(t, s, "/", desktop)
	if n := eval[int](p, "document.querySelectorAll('.sample').length"); n < 5 {
		t.Errorf("%d samples", n)
	}
	p.ask(ambiguous)
	if got := p.text(".option:first-child .option-text"); got != "City 2" {
		t.Errorf("first option: %q", got)
	}
	if got := p.text(".option:first-child .option-source"); !strings.Contains(got, "Rental deposit: City 2") {
		t.Errorf("the option does not say what it rests on: %q", got)
	}
	if got := eval[string](p, "location.pathname"); !strings.HasPrefix(got, "/c/") {
		t.Errorf("the conversation has no address of its own: %q", got)
	}
	p.click(".option:nth-child(2)")
	p.over(2)
	if got := p.text(".turn:last-child .user-text"); got != "Cargo 2" {
		t.Errorf("the choice is shown as %q", got)
	}
	if got := p.text(".turn:last-child .understood-text"); !strings.Contains(got, "Cargo 2") || !strings.Contains(got, "deposit") {
		t.Errorf("understood as %q", got)
	}
	if got := p.text(".turn:last-child .reply-text"); !strings.Contains(got, "€450") {
		t.Errorf("answer %q", got)
	}
	if got := p.text(".option.chosen"); !strings.Contains(got, "Cargo 2") {
		t.Errorf("the chosen option is marked: %q", got)
	}
	if n := eval[int](p, "document.querySelectorAll('.option:enabled').length"); n != 0 {
		t.Errorf("%d options can be clicked that are settled", n)
	}

	p.click(".turn:last-child .reply-text button.cite")
	p.until("the quote to be marked", "document.querySelector('#panel mark')")
	if got := p.text("#panel mark"); !strings.Contains(got, "€450") {
		t.Errorf("marked: %q", got)
	}
	p.click("#panel button[aria-label=Close]")
	if got := eval[bool](p, "document.activeElement.classList.contains('cite')"); !got {
		t.Error("the focus is not back where the panel was opened from")
	}

	p.click(".turn:first-child .why")
	p.until("the panel", "!document.querySelector('#panel').hidden")
	if got := p.text("#panel h2"); got != "Why did it ask?" {
		t.Errorf("panel %q", got)
	}
	if got := p.text(".gate[data-stage=post] .gate-words"); !strings.Contains(got, "Asked back") {
		t.Errorf("gate 2: %q", got)
	}
	if n := eval[int](p, "document.querySelectorAll('#panel .passage-row').length"); n < 2 {
		t.Errorf("%d passages", n)
	}
	// The playground: had gate 2 never asked, it would have answered.
	p.slide("post", "1.01")
	p.until("the effect", "document.querySelector('.outcome.answer')")
	if got := p.text(".outcome"); !strings.Contains(got, "It would answer") || !strings.Contains(got, "€") {
		t.Errorf("effect: %q", got)
	}
	p.click(".playground .link")
	if got := p.text(".gate[data-stage=post] .gate-words"); !strings.Contains(got, "Asked back") {
		t.Errorf("after putting it back, gate 2: %q", got)
	}
	c, err := s.store.Load(t.Context(), p.conversation(), conversation.All)
	if err != nil || len(c.Turns) != 2 {
		t.Errorf("%d turns stored (%v); a preview stores none", len(c.Turns), err)
	}
	// What was chosen stays marked while the conversation goes on.
	p.press("\x1b")
	p.ask("What does ERR-5172 mean?")
	if got := p.text(".option.chosen"); !strings.Contains(got, "Cargo 2") {
		t.Errorf("the chosen option is marked no more: %q", got)
	}
	p.click(".turn:last-child .why")
	p.until("the panel", "!document.querySelector('#panel').hidden")
	// A passage opened from the panel leads back to it.
	p.click("#panel .passage-row")
	p.until("the passage", "document.querySelector('#panel .passage-text p')")
	p.click("#panel .back")
	p.until("the way back", "document.querySelector('#panel .gate')")
}

func (p *page) slide(stage, value string) {
	p.t.Helper()
	eval[bool](p, fmt.Sprintf("(() => { const i = document.querySelector('.gate[data-stage=%s] input'); i.value = %q; i.dispatchEvent(new Event('input', {bubbles: true})); return true; })()", stage, value))
}

func (p *page) conversation() string {
	p.t.Helper()
	return strings.TrimPrefix(eval[string](p, "location.pathname"), "/c/")
}

func TestReplyInOwnWords(t *testing.T) {
	p := newPage(t, newSite(t), "/", desktop)
	p.ask(ambiguous)
	p.ask("the cargo one please")
	if got := p.text(".turn:last-child .reply-text"); !strings.Contains(got, "€450") {
		t.Errorf("answer %q", got)
	}
	// A digit in the input is a choice as well.
	p.click("#new")
	p.ask(ambiguous)
	p.ask("1")
	if got := p.text(".turn:last-child .user-text"); got != "City 2" {
		t.Errorf("the choice is shown as %q", got)
	}
	// A clarification without options takes words.
	p.click("#new")
	p.ask("How long does it take?")
	if got := p.text(".turn:last-child .asks-text"); got == "" {
		t.Fatal("it did not ask")
	}
	p.click(".instead .link:nth-of-type(2)") // never mind
	p.over(2)
	if n := eval[int](p, "document.querySelectorAll('.waits').length"); n != 0 {
		t.Errorf("%d clarifications wait after it was dropped", n)
	}
}

const long = "One two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty, and so on to the end. [1]"

func TestStopAndRetry(t *testing.T) {
	s := newSite(t)
	s.writer.set(strings.Repeat("and three more, ", 200)+"the end", 100*time.Millisecond)
	p := newPage(t, s, "/", desktop)
	p.write("What does ERR-5172 mean?")
	p.press("Enter")
	p.until("the answer to begin", "document.querySelector('.reply-text')?.innerText.includes('three')")
	p.click("#stop")
	p.over(1)
	if got := p.text(".broken"); !strings.Contains(got, "Stopped") {
		t.Errorf("after Stop: %q", got)
	}
	if got := p.text(".reply-text"); !strings.Contains(got, "three") || strings.Contains(got, "the end") {
		t.Errorf("shown of the answer: %q", got)
	}
	s.writer.set("", 0)
	p.click(".broken button")
	p.over(2)
	if got := p.text(".turn:last-child .reply-text"); !strings.Contains(got, "speed") {
		t.Errorf("asked again: %q", got)
	}
	// A reload shows both as they were.
	p.open("/c/" + p.conversation())
	p.over(2)
	if got := p.text(".turn:first-child .broken"); !strings.Contains(got, "Stopped") {
		t.Errorf("after a reload: %q", got)
	}
}

func TestReloadDuringAnswer(t *testing.T) {
	s := newSite(t)
	s.writer.set(long, 200*time.Millisecond)
	p := newPage(t, s, "/", desktop)
	p.write("What does ERR-5172 mean?")
	p.press("Enter")
	p.until("the answer to begin", "document.querySelector('.reply-text')?.innerText.includes('three')")
	p.run(chromedp.Reload())
	p.until("the turn to be taken up", "document.querySelector('.turn [aria-busy]') && !document.querySelector('#stop').hidden")
	if got := p.text(".user-text"); got != "What does ERR-5172 mean?" {
		t.Errorf("the question is shown as %q", got)
	}
	p.over(1)
	if got, want := p.text(".reply-text"), strings.Replace(long, "[1]", "1", 1); got != want {
		t.Errorf("the answer is %q, want %q", got, want)
	}
	if n := s.count("POST turns"); n != 1 {
		t.Errorf("the message was sent %d times", n)
	}
	// The address alone shows the conversation to another browser.
	q := newPage(t, s, "/c/"+p.conversation(), desktop)
	q.over(1)
	if got := q.text(".reply-text"); !strings.Contains(got, "the end") {
		t.Errorf("another browser shows %q", got)
	}
}

func TestPendingAfterReload(t *testing.T) {
	p := newPage(t, newSite(t), "/", desktop)
	p.ask(ambiguous)
	p.open("/c/" + p.conversation())
	p.over(1)
	if n := eval[int](p, "document.querySelectorAll('.waits .option:enabled').length"); n != 2 {
		t.Fatalf("%d options after a reload", n)
	}
	p.press("2")
	p.over(2)
	if got := p.text(".turn:last-child .reply-text"); !strings.Contains(got, "€450") {
		t.Errorf("answer %q", got)
	}
}

// TestLateClick clicks an option of a clarification that was settled in another
// window.
func TestLateClick(t *testing.T) {
	s := newSite(t)
	p := newPage(t, s, "/", desktop)
	p.ask(ambiguous)
	q := newPage(t, s, "/c/"+p.conversation(), desktop)
	q.over(1)
	q.click(".option:nth-child(1)")
	q.over(2)
	p.allow("409")
	p.click(".option:nth-child(2)")
	p.until("the note", "document.querySelector('.notice')?.innerText.includes('settled already')")
	p.over(2)
	if got := p.text(".turn:last-child .reply-text"); !strings.Contains(got, "€200") {
		t.Errorf("the conversation was not brought up to date: %q", got)
	}
	if got := p.text(".option.chosen"); !strings.Contains(got, "City 2") {
		t.Errorf("marked as chosen: %q", got)
	}
}

// TestInterrupted breaks the stream off, again and again, before its end.
func TestInterrupted(t *testing.T) {
	s := newSite(t)
	p := newPage(t, s, "/", desktop)
	p.allow("ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_EMPTY_RESPONSE|ERR_CONNECTION|Failed to load resource")
	s.cut.Store(200)
	p.write("What does ERR-5172 mean?")
	p.press("Enter")
	// If nothing at all came through, the question is back in the input instead.
	p.until("the turn to be given up", "document.querySelector('.broken, .notice')")
	if got := p.text(".broken, .notice"); !strings.Contains(got, "Retry") {
		t.Errorf("shown: %q", got)
	}
	s.cut.Store(0)
	p.click(".broken button, .notice .quiet")
	p.over(1)
	if got := p.text(".reply-text"); !strings.Contains(got, "speed") {
		t.Errorf("after Retry: %q", got)
	}
	c, err := s.store.Load(t.Context(), p.conversation(), conversation.All)
	if err != nil || len(c.Turns) != 1 {
		t.Errorf("%d turns stored, %v; it was one question", len(c.Turns), err)
	}
	// One that breaks off a single time is taken up again without a word.
	s.writer.set(long, 100*time.Millisecond)
	s.cut.Store(3000)
	p.write("What is the rental deposit for the cargo bike?")
	p.press("Enter")
	p.until("the answer to begin", "document.querySelectorAll('.turn').length === 2 && document.querySelector('.turn:last-child .reply-text').innerText.includes('three')")
	s.CloseClientConnections()
	s.cut.Store(0)
	p.over(2)
	if got := p.text(".turn:last-child .reply-text"); strings.Count(got, "three") != 1 || !strings.Contains(got, "the end") {
		t.Errorf("taken up again: %q", got)
	}
}

func TestServiceDown(t *testing.T) {
	s := newSite(t)
	p := newPage(t, s, "/", desktop)
	p.ask("What does ERR-5172 mean?")
	s.fail(true)
	p.allow("503")
	const question = "Can I leave the bike out in the rain?"
	p.write(question)
	p.press("Enter")
	p.until("the banner", "document.querySelector('.banner')")
	p.until("the notice", "document.querySelector('.notice')")
	if got := p.text(".banner"); !strings.Contains(got, "Model server is not available") {
		t.Errorf("banner: %q", got)
	}
	if got := eval[string](p, "document.querySelector('#question').value"); got != question {
		t.Errorf("kept in the input: %q", got)
	}
	if got := p.text(".turn:first-child .reply-text"); !strings.Contains(got, "speed") {
		t.Errorf("the conversation cannot be read: %q", got)
	}
	p.picture("down")
	s.fail(false)
	p.click(".notice .quiet")
	p.over(2)
	if got := p.text(".turn:last-child .reply-text"); !strings.Contains(got, "rain") {
		t.Errorf("after Retry: %q", got)
	}
	if got := eval[string](p, "document.querySelector('#question').value"); got != "" {
		t.Errorf("left in the input: %q", got)
	}
	p.until("the banner to go", "!document.querySelector('.banner')")

	// The server itself is gone.
	s.gone.Store(true)
	p.allow("ERR_EMPTY_RESPONSE|ERR_CONNECTION")
	p.write("And in the snow?")
	p.press("Enter")
	p.until("the notice", "document.querySelector('.notice')?.innerText.includes('cannot be reached')")
	s.gone.Store(false)
	p.click(".notice .quiet")
	p.over(3)
}

// TestSentOnce sends by a double click, by a second Enter, and chooses twice.
func TestSentOnce(t *testing.T) {
	s := newSite(t)
	p := newPage(t, s, "/", desktop)
	p.write(ambiguous)
	p.run(chromedp.DoubleClick(chromedp.CSS("#send")))
	p.over(1)
	eval[bool](p, "(() => { const o = document.querySelector('.option'); o.click(); o.click(); document.querySelector('.option:nth-child(2)').click(); return true; })()")
	p.over(2)
	if n := s.count("POST turns"); n != 2 {
		t.Errorf("%d messages were sent, want 2", n)
	}
}

func TestUpload(t *testing.T) {
	s := newSite(t)
	p := newPage(t, s, "/", desktop)
	dir := t.TempDir()
	files := map[string]string{
		"lockers.md": "# Bicycle lockers\n\n## Opening a locker\n\nThe lockers behind the Ostby shop open with the code on your rental receipt.\n",
		"tool.exe":   "MZ\x90\x00\x03\x00\x00\x00\x04\x00\xff\xff\x00\x00\xb8\x00",
		"empty.txt":  "",
	}
	var paths []string
	for _, name := range []string{"lockers.md", "tool.exe", "empty.txt"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(files[name]), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	p.click("#documents-button")
	p.until("the list", "document.querySelectorAll('.documents li').length > 5")
	p.allow("415|422") // the browser tells of refused files
	p.run(chromedp.SetUploadFiles(chromedp.CSS("#files"), paths))
	p.until("all uploads to end", "document.querySelectorAll('.uploads .done').length === 1 && document.querySelectorAll('.uploads .skipped').length === 2")
	if got := p.text(".uploads .skipped"); !strings.Contains(got, "tool.exe") || !strings.Contains(got, "skipped: ") {
		t.Errorf("skipped: %q", got)
	}
	p.until("the new document in the list", "[...document.querySelectorAll('.documents li')].some((l) => l.innerText.includes('Bicycle lockers'))")
	p.picture("documents")
	p.press("\x1b")
	p.ask("How do I open a bicycle locker?")
	if got := p.text(".reply-text"); !strings.Contains(got, "receipt") {
		t.Errorf("answer from the new document: %q", got)
	}
	p.click(".source")
	p.until("the passage", "document.querySelector('#panel mark')")

	p.click("#documents-button")
	remove := "[aria-label='Remove Bicycle lockers']"
	p.click(remove)
	p.until("the question", "document.querySelector('dialog[open]')")
	p.click("dialog .quiet") // thought better of
	p.click(remove)
	p.click("dialog .danger")
	p.until("the document to go", fmt.Sprintf("!document.querySelector(%q)", remove))
	p.press("\x1b")
	p.allow("404")
	p.click(".source")
	p.until("the note", "document.querySelector('#panel')?.innerText.includes('no longer in the documents')")
}

// TestDrop drops a file on the page.
func TestDrop(t *testing.T) {
	p := newPage(t, newSite(t), "/", desktop)
	eval[bool](p, `(() => {
		const data = new DataTransfer();
		data.items.add(new File(['# Helmets\n\nA helmet is lent with every rental, free of charge.\n'], 'helmets.md', {type: 'text/markdown'}));
		for (const type of ['dragenter', 'dragover', 'drop']) document.body.dispatchEvent(new DragEvent(type, {dataTransfer: data, bubbles: true, cancelable: true}));
		return document.querySelector('#drop').hidden;
	})()`)
	p.until("the upload to end", "document.querySelector('.uploads .done')")
	if got := p.text(".uploads .done"); !strings.Contains(got, "1 passage") {
		t.Errorf("told: %q", got)
	}
}

// TestEarlierTurns opens a long conversation, which is read from its end, and reads
// what came before piece by piece, without losing its place.
func TestEarlierTurns(t *testing.T) {
	s := newSite(t)
	const turns = 120
	for n := 1; n <= turns; n++ {
		claim, err := s.store.Begin(t.Context(), conversation.Request{Conversation: "long", Text: fmt.Sprintf("question %d", n)})
		if err != nil {
			t.Fatal(err)
		}
		c := claim.Conversation()
		c.Turns = append(c.Turns, conversation.Turn{Number: n, Text: fmt.Sprintf("question %d", n), Kind: conversation.KindPartial, Reply: fmt.Sprintf("reply %d", n)})
		if err := claim.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	p := newPage(t, s, "/c/long", desktop)
	p.until("the last turns", "document.querySelectorAll('.turn').length > 0")
	shown := func() int { return eval[int](p, "document.querySelectorAll('.turn').length") }
	for rounds := 0; shown() < turns; rounds++ {
		before := shown()
		if rounds > turns/before {
			t.Fatalf("still %d of %d turns", before, turns)
		}
		if got, want := p.text(".earlier button"), fmt.Sprintf("Show %d earlier turns", turns-before); got != want {
			t.Fatalf("the button says %q, want %q", got, want)
		}
		// What is read stays where it is on the screen.
		first := eval[string](p, "document.querySelector('.turn .user-text').innerText")
		place := eval[float64](p, "(document.querySelector('.earlier button').scrollIntoView({block: 'center'}), document.querySelector('.turn').getBoundingClientRect().top)")
		p.click(".earlier button")
		p.until("more turns", fmt.Sprintf("document.querySelectorAll('.turn').length > %d", before))
		now := eval[float64](p, fmt.Sprintf("[...document.querySelectorAll('.turn')].find((t) => t.querySelector('.user-text').innerText === '%s').getBoundingClientRect().top", first))
		if math.Abs(now-place) > 2 {
			t.Errorf("%s was at %v and is at %v", first, place, now)
		}
	}
	if n := eval[int](p, "document.querySelectorAll('.earlier').length"); n != 0 {
		t.Error("the button stays although there is nothing before")
	}
	want := ""
	for n := 1; n <= turns; n++ {
		want += fmt.Sprintf("question %d\n", n)
	}
	if got := eval[string](p, "[...document.querySelectorAll('.turn .user-text')].map((e) => e.innerText + '\\n').join('')"); got != want {
		t.Errorf("the turns are %q", got)
	}
	p.ask("What does ERR-5172 mean?")
	p.until("the new turn at the end", fmt.Sprintf("document.querySelectorAll('.turn').length === %d", turns+1))
	if got := p.text(".turn:last-child .reply-text"); !strings.Contains(got, "speed sensor") {
		t.Errorf("the answer after them: %q", got)
	}
}
