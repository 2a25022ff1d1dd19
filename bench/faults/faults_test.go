//go:build unix

package faults

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/askback/askback/bench/load"
	"github.com/askback/askback/internal/ollamatest"
	"github.com/askback/askback/internal/ollamatest/tinygguf"
	"github.com/askback/askback/internal/qdranttest"
)

var full = flag.Bool("full", false, "the full size: more users, more faults, longer")

// size chooses a number for continuous integration or for the full size.
func size[T any](small, large T) T {
	if *full {
		return large
	}
	return small
}

var binary string

func TestMain(m *testing.M) { goleak.VerifyTestMain(program{m}) }

// program builds askback before the tests.
type program struct{ *testing.M }

func (p program) Run() int {
	flag.Parse()
	if path := os.Getenv(held); path != "" {
		if err := holds(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	folder, err := os.MkdirTemp("", "askback-faults")
	if err == nil {
		defer os.RemoveAll(folder)
		binary, err = load.Build(context.Background(), folder)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := p.M.Run()
	http.DefaultClient.CloseIdleConnections()
	return code
}

// start starts a server that is ready, and stops it at the end.
func start(t *testing.T, env []string, args ...string) *load.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := load.Start(ctx, binary, env, args...)
	if err == nil {
		t.Cleanup(func() {
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
		})
		err = s.Ready(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// talk lets users talk while fault runs, and checks what became of their turns.
func talk(t *testing.T, url func() string, last *load.Server, fault func(ctx context.Context) error) load.Count {
	t.Helper()
	users := &load.Users{URL: url, Conversations: size(8, 40), InFlight: size(4, 16), Name: fmt.Sprint("faults-", time.Now().UnixNano())}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	broken := make(chan error, 1)
	go func() {
		defer end()
		time.Sleep(time.Second) // in the middle of turns
		broken <- fault(ctx)
	}()
	users.Run(ctx, 3*time.Minute)
	if err := <-broken; err != nil {
		t.Error(err)
	}
	ready, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := last.Ready(ready); err != nil {
		t.Error(err)
	}
	count, err := users.Check(t.Context(), last.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", count)
	for fault, n := range count.Faults {
		if strings.HasPrefix(fault, "500") {
			t.Errorf("%d times a problem without a name: %s", n, fault)
		}
	}
	if !count.Sound() || count.Answered != count.Sent || count.Stored != count.Sent || count.Sent == 0 {
		t.Errorf("turns are lost, doubled, out of order or never answered; the server says: %s", tail(last.Log()))
	}
	return count
}

func tail(s string) string { return s[max(0, len(s)-2000):] }

// only is a URL function for one server.
func only(s *load.Server) func() string { return func() string { return s.URL } }

// each does something several times, with a pause after it.
func each(ctx context.Context, times int, pause time.Duration, do func(n int) error) error {
	for n := range times {
		if err := do(n); err != nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(pause)
	}
	return nil
}

// TestKilled kills the process at random moments under load, 100 times at full size.
func TestKilled(t *testing.T) {
	s := start(t, nil, "--store", filepath.Join(t.TempDir(), "talk.db"))
	talk(t, only(s), s, func(ctx context.Context) error {
		return each(ctx, size(4, 100), 0, func(int) error {
			if err := s.Ready(ctx); err != nil {
				return err
			}
			time.Sleep(time.Duration(rand.IntN(2000)) * time.Millisecond)
			s.Kill()
			return s.Restart(ctx)
		})
	})
}

// postgres starts a server of its own, and gives its URL and what its script can do
// with it.
func postgres(t *testing.T) (url string, do func(verb string) error) {
	t.Helper()
	script, err := filepath.Abs("../../conversation/postgres/testserver")
	if err != nil {
		t.Fatal(err)
	}
	call := func(verb string, env ...string) (string, error) {
		c := exec.Command(script, verb)
		c.Env = append(os.Environ(), env...)
		var said strings.Builder
		c.Stderr = &said
		out, err := c.StdoutPipe()
		if err != nil {
			return "", err
		}
		if err := c.Start(); err != nil {
			return "", err
		}
		// What it starts keeps the pipe open: read line by line, to the last one.
		var text strings.Builder
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			fmt.Fprintln(&text, lines.Text())
			if strings.Contains(lines.Text(), "ASKBACK_TEST_POOLER") {
				break
			}
		}
		if err := c.Wait(); err != nil {
			return "", fmt.Errorf("testserver %s: %w: %s", verb, err, said.String())
		}
		return text.String(), nil
	}
	variables, err := call("start")
	if err != nil {
		t.Fatal(err)
	}
	var server string
	for line := range strings.Lines(variables) {
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		switch value = strings.Trim(value, "'"); name {
		case "ASKBACK_TEST_SERVER":
			server = "ASKBACK_TEST_SERVER=" + value
		case "ASKBACK_TEST_POSTGRES":
			url = value
		}
	}
	do = func(verb string) error {
		_, err := call(verb, server)
		return err
	}
	t.Cleanup(func() {
		if err := do("stop"); err != nil {
			t.Error(err)
		}
	})
	return url, do
}

// TestPostgres kills, pauses and restarts PostgreSQL.
func TestPostgres(t *testing.T) {
	url, do := postgres(t)
	s := start(t, nil, "--store", url)
	talk(t, only(s), s, func(ctx context.Context) error {
		return each(ctx, size(1, 10), time.Second, func(int) error {
			for _, verb := range []string{"pause", "resume", "kill", "again"} {
				if err := do(verb); err != nil {
					return err
				}
				time.Sleep(2 * time.Second)
			}
			return nil
		})
	})
}

// ingest fills a Qdrant server with the sample.
func ingest(t *testing.T, addr string) (env []string) {
	t.Helper()
	env = []string{"QDRANT_ADDR=" + addr, "QDRANT_API_KEY=", "QDRANT_COLLECTION=faults"}
	c := exec.Command(binary, "ingest", "../../cmd/askback/sample")
	c.Env = append(os.Environ(), env...)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("askback ingest: %v: %s", err, out)
	}
	return env
}

// TestQdrant pauses, kills and restarts Qdrant.
func TestQdrant(t *testing.T) {
	q := qdranttest.Start(t)
	s := start(t, ingest(t, q.Addr), "--store", filepath.Join(t.TempDir(), "talk.db"))
	talk(t, only(s), s, func(ctx context.Context) error {
		return each(ctx, size(1, 10), 2*time.Second, func(int) error {
			for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
				if err := syscall.Kill(q.PID(), signal); err != nil {
					return err
				}
				time.Sleep(2 * time.Second)
			}
			q.Kill()
			time.Sleep(2 * time.Second)
			q.Restart(t)
			return nil
		})
	})
}

// TestBreaker kills Qdrant, and then PostgreSQL: after some questions that fail for it the
// next ones are told at once that it is left alone, and for how long, and readiness names
// it; once it is back questions are answered again.
func TestBreaker(t *testing.T) {
	t.Run("Qdrant", func(t *testing.T) {
		q := qdranttest.Start(t)
		breaks(t, start(t, ingest(t, q.Addr)), "Qdrant", func() error { q.Kill(); return nil }, func() error { q.Restart(t); return nil })
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		url, do := postgres(t)
		breaks(t, start(t, nil, "--store", url), "PostgreSQL", func() error { return do("kill") }, func() error { return do("again") })
	})
}

// breaks kills a service of a server and brings it back.
func breaks(t *testing.T, s *load.Server, service string, kill, again func() error) {
	asked := 0
	ask := func() (status int, text string, retry time.Duration) {
		asked++
		body := strings.NewReader(`{"text":"What does ERR-5172 mean?"}`)
		resp, err := http.Post(fmt.Sprintf("%s/api/conversations/breaker-%d/turns", s.URL, asked), "application/json", body)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusServiceUnavailable {
			seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
			if err != nil || seconds < 1 || seconds > 5 {
				t.Errorf("%s with Retry-After %q: %s", resp.Status, resp.Header.Get("Retry-After"), data)
			}
			retry = time.Duration(seconds) * time.Second
		}
		return resp.StatusCode, string(data), retry
	}
	if status, text, _ := ask(); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	if err := kill(); err != nil {
		t.Fatal(err)
	}
	var slowest time.Duration
	for end := time.Now().Add(2 * time.Minute); ; {
		began := time.Now()
		status, text, _ := ask()
		took := time.Since(began)
		if status != http.StatusServiceUnavailable || !strings.Contains(text, `"service":"`+service+`"`) {
			t.Fatalf("%d %s", status, text)
		}
		if strings.Contains(text, "left alone") {
			t.Logf("question %d is refused in %s; one before took %s at most", asked, took.Round(time.Millisecond), slowest.Round(time.Millisecond))
			if took > time.Second {
				t.Errorf("a question is refused in %s", took)
			}
			break
		}
		if slowest = max(slowest, took); time.Now().After(end) {
			t.Fatalf("the circuit does not open: %s", text)
		}
	}
	time.Sleep(1500 * time.Millisecond)
	_, text, retry := ask()
	if !strings.Contains(text, "left alone") || retry > 4*time.Second {
		t.Errorf("a while later it is to be tried again in %s: %s", retry, text)
	}
	resp, err := http.Get(s.URL + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	state, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(state), service) {
		t.Errorf("readiness: %s %s %v", resp.Status, state, err)
	}
	if err := again(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		status, text, _ := ask()
		if status == http.StatusOK {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the circuit does not close: %s", text)
		}
	}
}

// TestOllama pauses, kills and restarts Ollama, which writes the answers.
func TestOllama(t *testing.T) {
	o := ollamatest.Start(t)
	if os.Getenv("ASKBACK_TEST_OLLAMA") != "" {
		t.Fatal("ASKBACK_TEST_OLLAMA names a server that must not be broken; unset it for this test")
	}
	model := o.Model(t, "writer", tinygguf.Scripted(tinygguf.Config{Context: 8192}, tinygguf.Say("ANSWER: yes\n", "It is as the source says [1].")))
	s := start(t, []string{"OLLAMA_HOST=" + o.URL}, "--store", filepath.Join(t.TempDir(), "talk.db"), "--chat-model", model)
	talk(t, only(s), s, func(ctx context.Context) error {
		return each(ctx, size(1, 10), 2*time.Second, func(int) error {
			for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
				if err := syscall.Kill(-o.PID(), signal); err != nil {
					return err
				}
				time.Sleep(2 * time.Second)
			}
			o.Restart(t)
			return nil
		})
	})
}

// TestCluster runs several processes on one PostgreSQL and one Qdrant behind a
// round-robin proxy, so that a conversation goes on in any of them, and kills them
// in turn.
func TestCluster(t *testing.T) {
	store, _ := postgres(t)
	q := qdranttest.Start(t)
	env := ingest(t, q.Addr)
	var servers []*load.Server
	for range 3 {
		servers = append(servers, start(t, env, "--store", store))
	}
	var next atomic.Int64
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			to, err := url.Parse(servers[int(next.Add(1))%len(servers)].URL)
			if err != nil {
				panic(err)
			}
			r.SetURL(to)
		},
		Transport: transport, ErrorLog: log.New(io.Discard, "", 0), // those that were killed
	})
	defer transport.CloseIdleConnections()
	defer proxy.Close()
	talk(t, func() string { return proxy.URL }, servers[0], func(ctx context.Context) error {
		return each(ctx, size(3, 60), time.Second, func(n int) error {
			s := servers[n%len(servers)]
			s.Kill()
			time.Sleep(time.Second)
			return s.Restart(ctx)
		})
	})
}

// TestDiskFull fills the disk of the store and of the index under load, and frees it
// again: what finds no room is told so, and is answered once there is some. It needs a
// small file system of its own, which root can make.
func TestDiskFull(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a small file system can be made by root alone")
	}
	disk := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk).CombinedOutput(); err != nil {
		t.Skipf("no small file system can be made here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", disk).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	s := start(t, nil, "--sample", "--store", filepath.Join(disk, "talk.db"), "--index", filepath.Join(disk, "index.db"))
	filler := filepath.Join(disk, "filler")
	count := talk(t, only(s), s, func(ctx context.Context) error {
		return each(ctx, size(1, 10), time.Second, func(n int) error {
			f, err := os.Create(filler)
			if err != nil {
				return err
			}
			_, err = io.Copy(f, io.LimitReader(zeros{}, 16<<20))
			f.Close() // or its room is not freed when it is removed
			if err == nil {
				return fmt.Errorf("the disk takes 16 MiB and should take 8")
			}
			time.Sleep(3 * time.Second)
			status, text, err := upload(ctx, s, fmt.Sprintf("new-%d.md", n))
			if err != nil || status != http.StatusInsufficientStorage || !strings.Contains(text, "index.db is full") || !strings.Contains(text, `"code":"full"`) {
				t.Errorf("an upload without room: %d %s %v", status, text, err)
			}
			if err := os.Remove(filler); err != nil {
				return err
			}
			if status, text, err := upload(ctx, s, fmt.Sprintf("new-%d.md", n)); err != nil || status != http.StatusOK {
				t.Errorf("an upload with room again: %d %s %v", status, text, err)
			}
			return nil
		})
	})
	if count.Faults["507 full"] == 0 {
		t.Errorf("nobody was told that the disk is full: %v", count.Faults)
	}
}

// upload sends a document of many passages.
func upload(ctx context.Context, s *load.Server, name string) (status int, text string, err error) {
	var content strings.Builder
	for n := range 100 {
		fmt.Fprintf(&content, "# Part %d\n\nOf %s.\n\n", n, name)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, s.URL+"/api/documents/"+name, strings.NewReader(content.String()))
	if err != nil {
		return 0, "", err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") == "" {
		err = errors.Join(err, errors.New("no Retry-After"))
	}
	return resp.StatusCode, string(body), err
}

// TestLocked has another process hold the index, and then the conversations: an upload, or
// a question, is told so, what needs the other file alone goes on, and all is well once
// it is done.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	index, store := filepath.Join(dir, "index.db"), filepath.Join(dir, "talk.db")
	s := start(t, nil, "--sample", "--index", index, "--store", store)
	ask := func(key string) (status int, text string) {
		resp, err := http.Post(s.URL+"/api/conversations/locked/turns", "application/json", strings.NewReader(`{"text":"What does ERR-5172 mean?","key":"`+key+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	put := func() (status int, text string) {
		status, text, err := upload(t.Context(), s, "new.md")
		if err != nil {
			t.Fatal(err)
		}
		return status, text
	}

	release := hold(t, index)
	began := time.Now()
	if status, text := put(); status != http.StatusServiceUnavailable || !strings.Contains(text, `"service":"index"`) || !strings.Contains(text, "locked by another process") || !strings.Contains(text, "try again") {
		t.Errorf("an upload: %d %s", status, text)
	}
	t.Logf("an upload is refused in %s", time.Since(began).Round(time.Millisecond))
	if status, text := ask("1"); status != http.StatusOK {
		t.Errorf("a question while the index is held: %d %s", status, text)
	}
	if resp, err := http.Get(s.URL + "/api/documents"); err != nil {
		t.Error(err)
	} else {
		list, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || strings.Contains(string(list), "new.md") {
			t.Errorf("the documents: %s %s %v", resp.Status, list, err)
		}
	}
	release()
	if status, text := put(); status != http.StatusOK {
		t.Errorf("an upload after that: %d %s", status, text)
	}

	release = hold(t, store)
	if status, text := ask("2"); status != http.StatusServiceUnavailable || !strings.Contains(text, `"service":"conversations"`) || !strings.Contains(text, "another process") {
		t.Errorf("a question while the conversations are held: %d %s", status, text)
	}
	release()
	if status, text := ask("2"); status != http.StatusOK {
		t.Errorf("a question after that: %d %s", status, text)
	}
}

// hold lets another process hold a SQLite file as one that writes does.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), held+"="+path)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		in.Close()
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(release)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the file is not held: %q %v", line, err)
	}
	return release
}

// held names the variable that makes this program hold a file until its standard input
// ends.
const held = "ASKBACK_TEST_HOLD"

func holds(path string) error {
	db, err := sql.Open("sqlite", path+"?_txlock=immediate")
	if err != nil {
		return err
	}
	defer db.Close()
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	fmt.Println("held")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestClients has clients that are slow or leave while others talk: a body that comes
// byte by byte, an answer that is read byte by byte or by nobody, connections that end in
// mid-turn.
func TestClients(t *testing.T) {
	s := start(t, nil, "--store", filepath.Join(t.TempDir(), "talk.db"))
	host := strings.TrimPrefix(s.URL, "http://")
	const body = `{"text":"What does ERR-5172 mean?"}`
	head := func(conversation string) string {
		return fmt.Sprintf("POST /api/conversations/%s/turns HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\nContent-Length: %d\r\n\r\n", conversation, host, len(body))
	}
	dial := func() (net.Conn, error) { return (&net.Dialer{}).DialContext(t.Context(), "tcp", host) }
	talk(t, only(s), s, func(ctx context.Context) error {
		var open []net.Conn
		defer func() {
			for _, c := range open {
				c.Close()
			}
		}()
		// Who left, or never read, has the answer when they come back.
		answered := func(conversation string) error {
			where := fmt.Sprintf("%s/api/conversations/%s/export", s.URL, conversation)
			for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
				resp, err := http.Get(where)
				if err != nil {
					return err
				}
				text, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err == nil && strings.Contains(string(text), "wheel speed sensor") {
					return nil
				}
				if time.Now().After(end) {
					return fmt.Errorf("%s: the answer is not there: %s %.300s", conversation, resp.Status, text)
				}
			}
		}
		const atOnce = 50 // with two turns each, fewer than the server takes at once
		if err := each(ctx, size(10, 200), 0, func(n int) error {
			if n >= atOnce {
				for _, kind := range []string{"leaves", "deaf"} {
					if err := answered(fmt.Sprint(kind, "-", n-atOnce)); err != nil {
						return err
					}
				}
			}
			slow, err := dial()
			if err != nil {
				return err
			}
			open = append(open, slow)
			request := head(fmt.Sprint("slow-", n)) + body
			for i := range min(len(request), 40) {
				if _, err := slow.Write([]byte{request[i]}); err != nil {
					return err
				}
				time.Sleep(time.Millisecond)
			}
			deaf, err := dial() // never reads
			if err != nil {
				return err
			}
			open = append(open, deaf)
			if _, err := io.WriteString(deaf, head(fmt.Sprint("deaf-", n))+body); err != nil {
				return err
			}
			leaves, err := dial()
			if err != nil {
				return err
			}
			if _, err := io.WriteString(leaves, head(fmt.Sprint("leaves-", n))+body); err != nil {
				return err
			}
			time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
			return leaves.Close()
		}); err != nil {
			return err
		}
		reads, err := dial()
		if err != nil {
			return err
		}
		open = append(open, reads)
		if _, err := io.WriteString(reads, head("reads-0")+body); err != nil {
			return err
		}
		var got strings.Builder
		for one := make([]byte, 1); !strings.Contains(got.String(), "event: end"); {
			if _, err := reads.Read(one); err != nil {
				return fmt.Errorf("an answer that is read byte by byte: %w after %q", err, got.String())
			}
			got.Write(one)
			time.Sleep(time.Millisecond)
		}
		for n := max(0, size(10, 200)-atOnce); n < size(10, 200); n++ {
			for _, kind := range []string{"leaves", "deaf"} {
				if err := answered(fmt.Sprint(kind, "-", n)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
