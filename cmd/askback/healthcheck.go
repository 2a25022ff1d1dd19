package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// healthcheckCommand asks a server whether it is well. It is what a container
// has, in which there is neither a shell nor curl.
type healthcheckCommand struct {
	URL   string        `arg:"" optional:"" help:"Address of the server. Default: where ASKBACK_ADDR, or --addr, says that it listens."`
	Ready bool          `help:"Ask whether all that it needs is there (/readyz), and not only whether it is alive." env:"-"`
	Wait  time.Duration `help:"Ask again for this long until it is so, such as 10m." env:"-"`
	Addr  string        `help:"Address that the server listens on." default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
}

// Run exits with 0 if the server is well, otherwise with 1, and says why.
func (c *healthcheckCommand) Run(ctx context.Context, io streams) error {
	url, err := c.url()
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	client := &http.Client{
		Timeout:       5 * time.Second,
		Transport:     &http.Transport{Proxy: nil, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 100*time.Millisecond, 2*time.Second
	limit := time.Now().Add(c.Wait)
	for {
		said, err := probe(ctx, client, url)
		if err == nil {
			fmt.Fprintln(io.out, said)
			return nil
		}
		wait := pause.NextBackOff()
		if time.Until(limit) < wait {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// probe gives what the server says, in a line; an error if it is not well.
func probe(ctx context.Context, client *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", usageError{err}
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	if err != nil {
		return "", fmt.Errorf("%s: %w", url, err)
	}
	said := strings.Join(strings.Fields(string(body)), " ")
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s: %s", url, response.Status, said)
	}
	return said, nil
}

// url is what is asked.
func (c *healthcheckCommand) url() (string, error) {
	path := "/healthz"
	if c.Ready {
		path = "/readyz"
	}
	if c.URL != "" {
		if !strings.HasPrefix(c.URL, "http://") && !strings.HasPrefix(c.URL, "https://") {
			return "", usagef("%q is no address of a server; write it as http://127.0.0.1:8080", c.URL)
		}
		return strings.TrimRight(c.URL, "/") + path, nil
	}
	host, port, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return "", usagef("--addr (ASKBACK_ADDR) %q: %w; write HOST:PORT", c.Addr, err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() { // it listens on every address
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port) + path, nil
}
