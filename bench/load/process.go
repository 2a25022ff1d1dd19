package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Build makes the program from this source tree, in a folder.
func Build(ctx context.Context, folder string) (binary string, err error) {
	binary = filepath.Join(folder, "askback")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/askback/askback/cmd/askback").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building askback: %w: %s", err, out)
	}
	return binary, nil
}

// Server is a process of askback serve.
type Server struct {
	URL string

	binary string
	args   []string
	env    []string
	cmd    *exec.Cmd
	ended  chan struct{}
	log    *buffer
}

// Start starts askback serve with more arguments and waits until it is ready. Rates
// are not limited. env is added to the environment, from which ASKBACK_ is left out.
func Start(ctx context.Context, binary string, env []string, args ...string) (*Server, error) {
	s := &Server{binary: binary, args: append([]string{"serve", "--turn-rate", "0", "--upload-rate", "0"}, args...), log: &buffer{}}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "ASKBACK_") {
			s.env = append(s.env, e)
		}
	}
	s.env = append(s.env, env...)
	return s, s.run(ctx, "127.0.0.1:0")
}

// Restart starts it again after its end, at the same address.
func (s *Server) Restart(ctx context.Context) error {
	return s.run(ctx, strings.TrimPrefix(s.URL, "http://"))
}

func (s *Server) run(ctx context.Context, addr string) error {
	s.cmd = exec.Command(s.binary, append(s.args, "--addr", addr)...)
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = os.TempDir(), s.env, s.log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("starting askback serve: %w", err)
	}
	s.ended = make(chan struct{})
	serving := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if _, url, ok := strings.Cut(lines.Text(), "serves "); ok {
				select {
				case serving <- strings.TrimSpace(url):
				default:
				}
			}
		}
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	select {
	case url := <-serving:
		if s.URL == "" { // and the same after a restart
			s.URL = url
		}
		return nil
	case <-s.ended:
		return fmt.Errorf("askback serve ended: %s", s.log)
	case <-ctx.Done():
		s.Kill()
		return ctx.Err()
	}
}

// Ready waits until the server says that it is ready.
func (s *Server) Ready(ctx context.Context) error {
	for {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/readyz", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(q)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-s.ended:
			return fmt.Errorf("askback serve ended: %s", s.log)
		case <-ctx.Done():
			return fmt.Errorf("askback serve is not ready: %w: %s", ctx.Err(), s.log)
		}
	}
}

// Kill ends the process at once, and waits for its end.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// Stop asks the process to end, and waits.
func (s *Server) Stop() error {
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-s.ended:
		return nil
	case <-time.After(time.Minute):
		s.Kill()
		return errors.New("askback serve did not end within a minute")
	}
}

// PID is the process's number.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Log is what the process has written to standard error.
func (s *Server) Log() string { return s.log.String() }

// buffer is a bytes.Buffer for several goroutines, which keeps the last mebibyte.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.b.Len() > 1<<20 {
		b.b.Reset()
	}
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
