package ollama

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/ollama/ollama/api"
)

// DefaultHost is where a server listens that was not told otherwise.
const DefaultHost = "http://127.0.0.1:11434"

// Client talks to one server. It is safe for concurrent use.
type Client struct {
	api  *api.Client
	host string

	mu      sync.Mutex
	models  map[string]Info // by name, what Model was told
	windows map[string]int  // by name, the largest context asked for
}

// New gives a client for the server at host, written as OLLAMA_HOST is: a URL,
// a name or an address, with or without a port; "" means DefaultHost. h sends
// the requests; nil is http.DefaultClient. Nothing is sent yet.
func New(host string, h *http.Client) (*Client, error) {
	base, err := parseHost(host)
	if err != nil {
		return nil, err
	}
	if h == nil {
		h = http.DefaultClient
	}
	return &Client{api: api.NewClient(base, h), host: base.String(), models: map[string]Info{}, windows: map[string]int{}}, nil
}

// Host is the server's URL.
func (c *Client) Host() string { return c.host }

// API is the server's own client, for what this package does not wrap.
func (c *Client) API() *api.Client { return c.api }

func parseHost(host string) (*url.URL, error) {
	fault := func(why string) error {
		return fmt.Errorf("ollama host %q: %s; write it as http://127.0.0.1:11434 or name:port", host, why)
	}
	s := strings.Trim(strings.TrimSpace(host), `"'`)
	if s == "" {
		s = DefaultHost
	}
	defaultPort := "11434"
	if scheme, _, ok := strings.Cut(s, "://"); ok {
		switch strings.ToLower(scheme) {
		case "http":
			defaultPort = "80"
		case "https":
			defaultPort = "443"
		default:
			return nil, fault("only http and https are spoken")
		}
	} else {
		if ip := net.ParseIP(s); ip != nil && strings.Contains(s, ":") {
			s = "[" + s + "]"
		}
		s = "http://" + s
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, fault("it cannot be read")
	}
	if u.User != nil {
		host = u.Redacted()
		return nil, fault("a user and a password have no meaning here")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, fault("a query or a fragment has no meaning here")
	}
	name, port := u.Hostname(), u.Port()
	if port == "" {
		port = defaultPort
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return nil, fault("a port is a number from 1 to 65535")
	}
	if ip := net.ParseIP(name); name == "" || ip != nil && ip.IsUnspecified() { // where a server listens, not where it is reached
		name = "127.0.0.1"
	}
	return &url.URL{Scheme: strings.ToLower(u.Scheme), Host: net.JoinHostPort(name, port), Path: strings.TrimSuffix(u.Path, "/")}, nil
}

// Version asks the server for its version; it is the cheapest sign of life.
func (c *Client) Version(ctx context.Context) (string, error) {
	var v string
	err := again(nil, func() (err error) {
		v, err = c.api.Version(ctx)
		return err
	})
	return v, c.explain(ctx, "", err)
}

// Info is what a server knows of a model.
type Info struct {
	Name         string
	Context      int // tokens that the model was trained to read; 0 if not told
	Dimension    int // of its hidden states; for an embedding model, of its vectors
	Completes    bool
	Embeds       bool
	Thinks       bool
	Size         string // number of parameters, such as 3.4B
	Quantization string
	Digest       string // of the weights, if the server tells it
}

// Model asks what the server knows of a model. The answer is kept; a model that
// is missing is asked for again the next time.
func (c *Client) Model(ctx context.Context, name string) (Info, error) {
	c.mu.Lock()
	info, ok := c.models[name]
	c.mu.Unlock()
	if ok {
		return info, nil
	}
	var r *api.ShowResponse
	err := again(nil, func() (err error) {
		r, err = c.api.Show(ctx, &api.ShowRequest{Model: name})
		return err
	})
	if err != nil {
		return Info{}, c.explain(ctx, name, err)
	}
	info = Info{Name: name, Size: r.Details.ParameterSize, Quantization: r.Details.QuantizationLevel}
	arch, _ := r.ModelInfo["general.architecture"].(string)
	number := func(key string) int {
		n, _ := r.ModelInfo[arch+"."+key].(float64)
		return int(n)
	}
	info.Context, info.Dimension = number("context_length"), number("embedding_length")
	for _, k := range r.Capabilities {
		switch k {
		case "completion":
			info.Completes = true
		case "embedding":
			info.Embeds = true
		case "thinking":
			info.Thinks = true
		}
	}
	c.mu.Lock()
	c.models[name] = info
	c.mu.Unlock()
	return info, nil
}

// Digest gives the digest of a model's manifest, which changes with its weights
// and its template; "" if the server does not list the model.
func (c *Client) Digest(ctx context.Context, name string) (string, error) {
	r, err := c.api.List(ctx)
	if err != nil {
		return "", c.explain(ctx, name, err)
	}
	for _, m := range r.Models {
		if m.Name == name || m.Name == name+":latest" {
			return m.Digest, nil
		}
	}
	return "", nil
}

// Forget drops what is kept of a model, as after it was created anew.
func (c *Client) Forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.models, name)
}
