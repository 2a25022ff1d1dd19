package qdranttest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

//go:embed server.py
var script []byte

//go:embed requirements.txt
var requirements []byte

// Environment variables that are read.
const (
	// AddrVariable names a whole Qdrant server, host:port of gRPC.
	AddrVariable = "QDRANT_ADDR"
	// PythonVariable names the interpreter that has the engine.
	PythonVariable = "ASKBACK_QDRANT_PYTHON"
)

// Server is a running test server.
type Server struct {
	Addr string // host:port

	folder string
	args   []string
	cmd    *exec.Cmd
	output *lockedBuffer
}

// Start starts a server with an empty folder that is stopped when the test ends.
// args are further arguments of server.py.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s := &Server{folder: t.TempDir(), args: args}
	if err := s.run("0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

// Kill ends the server at once, as a crash would.
func (s *Server) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait() // it was killed
		s.cmd = nil
	}
}

// PID is the number of the server's process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Restart starts the server again, with its folder and at its address.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.run(s.Addr[strings.LastIndex(s.Addr, ":")+1:]); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) run(port string) error {
	python, err := interpreter()
	if err != nil {
		return err
	}
	s.output = new(lockedBuffer)
	s.cmd = exec.Command(python, append([]string{"-", s.folder, "--port", port}, s.args...)...)
	s.cmd.Stdin = bytes.NewReader(script)
	s.cmd.Stderr = s.output
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("starting Qdrant's engine: %w", err)
	}
	ready := make(chan string, 1)
	go func() {
		lines := bufio.NewReader(out)
		line, _ := lines.ReadString('\n')
		ready <- strings.TrimSpace(line)
		_, _ = io.Copy(io.Discard, lines)
	}()
	select {
	case line := <-ready:
		if number, ok := strings.CutPrefix(line, "ready "); ok && number != "0" {
			if s.Addr == "" {
				s.Addr = "127.0.0.1:" + number // and the same after a restart
			}
			return nil
		}
	case <-time.After(time.Minute):
	}
	s.Kill()
	return fmt.Errorf("starting Qdrant's engine: it is not ready: %s", s.output)
}

// interpreter finds the Python that has the engine.
func interpreter() (string, error) {
	python := os.Getenv(PythonVariable)
	if python == "" {
		cache := os.Getenv("XDG_CACHE_HOME")
		if cache == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", err
			}
			cache = filepath.Join(home, ".cache")
		}
		sum := sha256.Sum256(requirements)
		python = filepath.Join(cache, "askback", "qdrant-"+hex.EncodeToString(sum[:6]), "bin", "python")
	}
	if _, err := os.Stat(python); err != nil {
		return "", fmt.Errorf("no Python with Qdrant's engine at %s; make it with internal/qdranttest/setup (./test does), or name one in %s", python, PythonVariable)
	}
	return python, nil
}

var shared struct {
	once   sync.Once
	server *Server
	folder string
	err    error
}

// Shared gives the address of a server that all tests of a package share, each
// with a collection or tenant of its own: the one that QDRANT_ADDR names, or one
// that is started now and ended by Main.
func Shared(t testing.TB) (addr string) {
	t.Helper()
	addr, err := SharedAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// SharedAddr is Shared for examples.
func SharedAddr() (addr string, err error) {
	if addr := os.Getenv(AddrVariable); addr != "" {
		return addr, nil
	}
	shared.once.Do(func() {
		if shared.folder, shared.err = os.MkdirTemp("", "qdranttest"); shared.err == nil {
			shared.server = &Server{folder: shared.folder}
			shared.err = shared.server.run("0")
		}
	})
	if shared.err != nil {
		return "", shared.err
	}
	return shared.server.Addr, nil
}

// Main runs a package's tests, for TestMain, then cleanup, and ends the shared
// server.
func Main(m *testing.M, cleanup func()) (code int) {
	defer func() {
		if cleanup != nil {
			cleanup()
		}
		if shared.server != nil {
			shared.server.Kill()
			_ = os.RemoveAll(shared.folder)
		}
	}()
	return m.Run()
}

// lockedBuffer holds what the server says, for the error if it does not start.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
