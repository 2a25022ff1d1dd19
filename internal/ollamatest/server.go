package ollamatest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ollama/ollama/api"

	"github.com/askback/askback/internal/ollamatest/tinygguf"
)

// Server is a real Ollama server.
type Server struct {
	URL  string
	HTTP *http.Client // closed when the test ends
	API  *api.Client

	process *exec.Cmd
	log     *bytes.Buffer
	dir     string
	tag     string // of the models, so that a server that runs already keeps its own
}

const version = "v0.17.4"

// Binary is where install.sh puts the server.
func Binary() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "askback", "ollama-"+version, "ollama"), err
}

// Gemma gives the name of a real small language model on the server, Gemma 3
// 270M. It is a base model, not one tuned to follow instructions, and the
// template is a plain one.
func (s *Server) Gemma(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(cache, "askback", "gemma-3-270m", "gemma-3-270m-q4_k_m.gguf"))
	if err != nil {
		t.Fatal("this test needs a small language model; run: internal/ollamatest/install.sh")
	}
	return s.Create(t, "gemma3-270m", &api.CreateRequest{
		Template: `{{- range $i, $_ := .Messages }}
{{- $last := eq (len (slice $.Messages $i)) 1 }}
{{- if or (eq .Role "user") (eq .Role "system") }}<start_of_turn>user
{{ .Content }}<end_of_turn>
{{ if $last }}<start_of_turn>model
{{ end }}
{{- else if eq .Role "assistant" }}<start_of_turn>model
{{ .Content }}{{ if not $last }}<end_of_turn>
{{ end }}
{{- end }}
{{- end }}`,
		Parameters: map[string]any{"stop": []string{"<end_of_turn>"}, "temperature": 0, "seed": 1, "num_thread": 1},
	}, map[string][]byte{"gemma.gguf": data})
}

// Start starts a server for a test, on a free port and with a folder of its own
// for models, and stops it when the test ends. A test that cannot have one
// fails, and says what to run.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{HTTP: NewClient(t), tag: "test"}
	if running := os.Getenv("ASKBACK_TEST_OLLAMA"); running != "" {
		s.URL, s.tag = running, fmt.Sprintf("askback-test-%d", time.Now().UnixNano())
	} else {
		s.dir = t.TempDir()
		s.Run(t, freePort(t))
		t.Cleanup(func() { s.Stop(t) })
	}
	base, err := url.Parse(s.URL)
	if err != nil {
		t.Fatalf("ASKBACK_TEST_OLLAMA: %v", err)
	}
	s.API = api.NewClient(base, s.HTTP)
	s.wait(t)
	return s
}

// NewClient gives an HTTP client whose connections are closed when the test
// ends.
func NewClient(t testing.TB) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Run starts the process at an address; a server that was stopped comes back
// with the models that it had.
func (s *Server) Run(t testing.TB, address string) {
	t.Helper()
	binary, err := Binary()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(binary); err != nil {
		t.Fatal("this test needs the Ollama server that the tests use; run: internal/ollamatest/install.sh")
	}
	s.URL, s.log = "http://"+address, &bytes.Buffer{}
	s.process = exec.Command(binary, "serve")
	s.process.Env = append(os.Environ(), "OLLAMA_HOST="+address, "OLLAMA_MODELS="+filepath.Join(s.dir, "models"), "HOME="+s.dir,
		"OLLAMA_NUM_PARALLEL=2", "OLLAMA_KEEP_ALIVE=10m", "OLLAMA_NOHISTORY=1", "GIN_MODE=release")
	s.process.Stdout, s.process.Stderr = s.log, s.log
	ownGroup(s.process)
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
}

// PID is the number of the server's process, whose group its runners are in.
func (s *Server) PID() int { return s.process.Process.Pid }

// Restart ends the server and starts it anew at the same address; its models
// stay. It does nothing to one that the tests did not start.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if s.process == nil {
		return
	}
	address := strings.TrimPrefix(s.URL, "http://")
	s.Stop(t)
	s.Run(t, address)
	s.wait(t)
}

// Stop ends the process and the runners that it started.
func (s *Server) Stop(t testing.TB) {
	if s.process == nil {
		return
	}
	endGroup(s.process)
	_ = s.process.Wait() // it was killed
	s.process = nil
	if t.Failed() {
		lines := strings.Split(s.log.String(), "\n")
		t.Logf("the end of the server's log:\n%s", strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
}

func (s *Server) wait(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		if _, err := s.API.Version(ctx); err == nil {
			return
		} else if ctx.Err() != nil {
			t.Fatalf("the server at %s does not answer: %v\n%s", s.URL, err, s.log)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Model puts a model on the server, with Template and temperature 0, and gives
// its name. It is taken away when the test ends.
func (s *Server) Model(t testing.TB, name string, f *tinygguf.File) string {
	t.Helper()
	data, err := f.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return s.Create(t, name, &api.CreateRequest{Template: tinygguf.Template, Parameters: map[string]any{"temperature": 0, "num_thread": 1}},
		map[string][]byte{"model.gguf": data})
}

// Create puts a model on the server as the request says, from those files, and
// gives its name.
func (s *Server) Create(t testing.TB, name string, r *api.CreateRequest, files map[string][]byte) string {
	t.Helper()
	ctx := context.Background() // the test's own is over when its cleanup runs
	r.Model, r.Files = name+":"+s.tag, map[string]string{}
	for file, data := range files {
		digest := fmt.Sprintf("sha256:%x", sha256.Sum256(data))
		if err := s.API.CreateBlob(ctx, digest, bytes.NewReader(data)); err != nil {
			t.Fatalf("sending %s: %v", file, err)
		}
		r.Files[file] = digest
	}
	if err := s.API.Create(ctx, r, func(api.ProgressResponse) error { return nil }); err != nil {
		t.Fatalf("creating the model %s: %v\n%s", r.Model, err, s.log)
	}
	t.Cleanup(func() {
		if s.process == nil && s.dir != "" {
			return // the server is gone, and its folder goes too
		}
		if err := s.API.Delete(ctx, &api.DeleteRequest{Model: r.Model}); err != nil && !errors.As(err, &api.StatusError{}) {
			t.Logf("taking away the model %s: %v", r.Model, err)
		}
	})
	return r.Model
}

// Busy reports whether the server's processes use the CPU, watched for a
// moment. It knows only on Linux, and of a server that the test started.
func (s *Server) Busy(t testing.TB) bool {
	t.Helper()
	if s.process == nil || runtime.GOOS != "linux" {
		return false
	}
	before := groupTime(t, s.process.Process.Pid)
	time.Sleep(300 * time.Millisecond)
	return groupTime(t, s.process.Process.Pid)-before > 2 // of 30 ticks
}

// groupTime is the CPU time of a process group, in ticks of 10 ms.
func groupTime(t testing.TB, group int) (ticks int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range stats {
		data, _ := os.ReadFile(file) // it may be gone
		_, rest, ok := strings.Cut(string(data), ") ")
		if f := strings.Fields(rest); ok && len(f) > 12 && f[2] == strconv.Itoa(group) {
			for _, n := range f[11:13] { // user and system
				v, _ := strconv.Atoi(n)
				ticks += v
			}
		}
	}
	return ticks
}
