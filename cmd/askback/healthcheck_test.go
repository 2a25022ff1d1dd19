package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestHealthcheckAddress(t *testing.T) {
	for _, tc := range []struct{ addr, url, want string }{
		{addr: "127.0.0.1:8080", want: "http://127.0.0.1:8080/healthz"},
		{addr: "0.0.0.0:8080", want: "http://127.0.0.1:8080/healthz"},
		{addr: ":80", want: "http://127.0.0.1:80/healthz"},
		{addr: "[::]:8080", want: "http://127.0.0.1:8080/healthz"},
		{addr: "[::1]:8080", want: "http://[::1]:8080/healthz"},
		{addr: "box:1", want: "http://box:1/healthz"},
		{url: "https://chat.example.com/", want: "https://chat.example.com/healthz"},
		{addr: "8080", want: ""},
		{url: "127.0.0.1:8080", want: ""},
	} {
		c := healthcheckCommand{Addr: tc.addr, URL: tc.url}
		got, err := c.url()
		if got != tc.want || (err != nil) != (tc.want == "") {
			t.Errorf("%+v: %q, %v", tc, got, err)
		}
	}
}

func TestHealthcheck(t *testing.T) {
	t.Chdir(t.TempDir())
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch {
		case r.URL.Path == "/readyz" && asked.Load() < 3:
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, `{"services":[{"name":"qdrant","ok":false}]}`)
		case r.URL.Path == "/moved/healthz":
			http.Redirect(w, r, "/healthz", http.StatusFound)
		default:
			fmt.Fprintln(w, "{\n \"ok\": true\n}")
		}
	}))
	defer server.Close()
	addr := strings.TrimPrefix(server.URL, "http://")
	for _, tc := range []struct {
		name      string
		args      []string
		code      int
		out, says string
	}{
		{"alive", []string{"--addr=" + addr}, 0, "{ \"ok\": true }\n", ""},
		{"alive, by its address", []string{server.URL}, 0, "{ \"ok\": true }\n", ""},
		{"not ready", []string{"--addr=" + addr, "--ready"}, 1, "", `503 Service Unavailable: {"services":[{"name":"qdrant","ok":false}]}`},
		{"ready after a while", []string{"--addr=" + addr, "--ready", "--wait=1m"}, 0, "{ \"ok\": true }\n", ""},
		{"something else there", []string{server.URL + "/moved"}, 1, "", "302"},
		{"nobody there", []string{"--addr=127.0.0.1:1", "--wait=200ms"}, 1, "", "127.0.0.1:1"},
		{"no address", []string{"box"}, 2, "", "write it as http://"},
	} {
		asked.Store(0)
		start := time.Now()
		out, errOut, code := command(t, "", append([]string{"healthcheck"}, tc.args...)...)
		if code != tc.code || out != tc.out || !strings.Contains(errOut, tc.says) || time.Since(start) > 30*time.Second {
			t.Errorf("%s: exit code %d: %q %q", tc.name, code, out, errOut)
		}
	}
	t.Setenv("ASKBACK_ADDR", addr) // as in a container
	if _, errOut, code := command(t, "", "healthcheck"); code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}
