package ollama

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"unicode"

	"github.com/ollama/ollama/api"
)

var (
	// ErrUnreachable says that no server answers at the host.
	ErrUnreachable = errors.New("no Ollama server answers")
	// ErrNoModel says that the server does not have the model.
	ErrNoModel = errors.New("the server does not have the model")
	// ErrTooLong says that a text is longer than the model can read.
	ErrTooLong = errors.New("the text is longer than the model can read")
	// ErrCut says that a reply ended before the model had finished it.
	ErrCut = errors.New("the reply was cut before its end")
)

// explain turns an error of the server's client into one that says what
// happened and what to do. A context that is over comes first, since the client
// may give any error then, or none.
func (c *Client) explain(ctx context.Context, model string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		return nil
	}
	var status api.StatusError
	var auth api.AuthorizationError
	var network net.Error
	switch {
	case errors.As(err, &status) && status.StatusCode == http.StatusNotFound && model != "":
		return fmt.Errorf("%w: %s at %s; get it with: ollama pull %s", ErrNoModel, model, c.host, model)
	case errors.As(err, &status) && tooLong(status.ErrorMessage):
		return fmt.Errorf("%w: %s says: %s", ErrTooLong, model, tidy(status.ErrorMessage))
	case errors.As(err, &status) && status.StatusCode >= 500:
		return fmt.Errorf("ollama at %s failed with status %d: %s; its log says more", c.host, status.StatusCode, tidy(status.ErrorMessage))
	case errors.As(err, &status):
		return fmt.Errorf("ollama at %s refused the request with status %d: %s", c.host, status.StatusCode, tidy(status.ErrorMessage))
	case errors.As(err, &auth):
		return fmt.Errorf("ollama at %s wants a sign-in (status 401): run ollama signin there, or use another model", c.host)
	case errors.As(err, &network): // a *url.Error, whatever it wraps
		return fmt.Errorf("%w at %s: %v; start it with: ollama serve", ErrUnreachable, c.host, reason(err))
	case tooLong(err.Error()):
		return fmt.Errorf("%w: %s says: %s", ErrTooLong, model, tidy(err.Error()))
	}
	return fmt.Errorf("ollama at %s failed: %s", c.host, tidy(err.Error()))
}

func tooLong(message string) bool {
	return strings.Contains(message, "exceeds the context length") || strings.Contains(message, "exceeds maximum context length") ||
		strings.Contains(message, "exceed_context_size")
}

// reason is the innermost cause of a network error, without the URL that the
// outer ones repeat.
func reason(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// tidy makes what a server said fit for an error: one line, no control
// characters, not long.
func tidy(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 200 {
		s = string(r[:200]) + "…"
	}
	if s == "" {
		s = "it gave no reason"
	}
	return s
}

// again runs f, and once more if it failed because the connection that it was
// given had been closed meanwhile, as by a server that was started anew; unless
// allowed, if not nil, says no.
func again(allowed func() bool, f func() error) error {
	err := f()
	if (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)) && (allowed == nil || allowed()) {
		return f()
	}
	return err
}
