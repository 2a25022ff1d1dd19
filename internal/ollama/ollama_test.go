package ollama

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

func TestParseKeepAlive(t *testing.T) {
	for in, want := range map[string]string{
		"-1": "-1", "-5m": "-1", "0": `"0s"`, "300": `"5m0s"`, " 5m ": `"5m0s"`, "1h30m": `"1h30m0s"`, "": "null",
		"forever": "", "5 minutes": "", "1.5": "", "99999999999999999999": "", "9223372036854775807": "",
	} {
		d, err := ParseKeepAlive(in)
		if (err != nil) != (want == "") {
			t.Errorf("%q: error %v", in, err)
			continue
		}
		if got, _ := json.Marshal(d); err == nil && string(got) != want {
			t.Errorf("%q is sent as %s, want %s", in, got, want)
		}
	}
}

func TestParseHost(t *testing.T) {
	for in, want := range map[string]string{
		"": "http://127.0.0.1:11434", "gpu": "http://gpu:11434", "gpu:80": "http://gpu:80", "http://gpu": "http://gpu:80", "https://gpu": "https://gpu:443",
		"0.0.0.0": "http://127.0.0.1:11434", ":8080": "http://127.0.0.1:8080", "[::]:8080": "http://127.0.0.1:8080", "::1": "http://[::1]:11434",
		"HTTP://Gpu/ollama/": "http://Gpu:80/ollama", ` "gpu:1" `: "http://gpu:1",
		"ftp://gpu": "", "gpu:0": "", "gpu:x": "", "http://u:secret@gpu": "", "gpu?x=1": "", "http://gpu\x7f": "",
	} {
		u, err := parseHost(in)
		switch {
		case (err != nil) != (want == ""):
			t.Errorf("%q: %v, error %v", in, u, err)
		case err == nil && u.String() != want:
			t.Errorf("%q is %s, want %s", in, u, want)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("a password is told: %v", err)
		}
	}
}

func FuzzParseHost(f *testing.F) {
	for _, s := range []string{"", "gpu:80", "https://[::1]/x", "%zz", ":"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := parseHost(s)
		if err != nil {
			return
		}
		if u.Port() == "" || u.Hostname() == "" {
			t.Errorf("%q is %s", s, u)
		}
		if _, err := url.Parse(u.String()); err != nil {
			t.Errorf("%q is %s, which is no URL: %v", s, u, err)
		}
	})
}
