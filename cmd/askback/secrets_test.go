package main

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/askback/askback/server/keys"
)

// With a secret in every setting that takes one, and each service failing, nothing that
// the server writes, answers or counts holds one.
func TestSecretsStayInside(t *testing.T) {
	secrets := map[string]string{
		"QDRANT_API_KEY": "qd-Kestrel77Zinnia", "OPENAI_API_KEY": "sk-Marigold42Osprey", "PGPASSWORD": "pg-Heron19Thistle",
		"HF_TOKEN": "hf_Bramble55Curlew",
	}
	const inStore = "Teasel88Plover" // in the store's URL
	for name, what := range map[string]struct {
		env  map[string]string
		args []string
	}{
		"Qdrant and PostgreSQL":  {map[string]string{"QDRANT_ADDR": "127.0.0.1:1"}, []string{"--store=postgres://ada:" + inStore + "@127.0.0.1:1/talk?sslmode=disable"}},
		"PostgreSQL by variable": {nil, []string{"--store=postgres://ada@127.0.0.1:1/talk?sslmode=disable"}},
		"an OpenAI server":       {map[string]string{"OPENAI_BASE_URL": "http://ada:" + inStore + "@127.0.0.1:1/v1"}, []string{"--chat-model=openai:gpt"}},
		"a chat model alone":     {map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, []string{"--chat-model=openai:gpt"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for name, secret := range secrets {
				t.Setenv(name, secret)
			}
			for name, value := range what.env {
				t.Setenv(name, value)
			}
			_, key, err := keys.File{Path: "keys.json"}.Create(keys.New{Name: "Ada", Tenant: "larkwheel"})
			if err != nil {
				t.Fatal(err)
			}
			holds := func(where, text string) {
				t.Helper()
				for _, secret := range []string{"Kestrel77Zinnia", "Marigold42Osprey", "Heron19Thistle", "Bramble55Curlew", inStore, strings.TrimPrefix(key.Reveal(), keys.Prefix)} {
					if strings.Contains(text, secret) {
						t.Errorf("%s holds %s: %.600s", where, secret, text)
					}
				}
			}
			s := listening(t, append([]string{"--addr=127.0.0.1:0", "--keys=keys.json"}, what.args...)...)
			for _, with := range []string{key.Reveal(), key.Reveal() + "x", ""} {
				for _, r := range [][4]string{
					{"GET", "/"}, {"GET", "/readyz"}, {"GET", "/healthz"}, {"GET", "/api/about"}, {"GET", "/api/conversations"}, {"GET", "/api/documents"}, {"GET", "/metrics"}, {"GET", "/openapi.json"},
					{"POST", "/api/conversations/a/turns", "application/json", `{"text":"What does ERR-5172 mean?"}`},
					{"POST", "/v1/chat/completions", "application/json", `{"messages":[{"role":"user","content":"What does ERR-5172 mean?"}]}`},
					{"PUT", "/api/documents/a.md", "application/octet-stream", "# A\n\nText."},
					{"GET", "/api/conversations?key=" + with},
				} {
					got := send(t, with, r[0], s.url+r[1], r[2], r[3])
					holds(r[1], got.body)
					if with == "" && strings.HasPrefix(r[1], "/api") && got.status != http.StatusUnauthorized {
						t.Errorf("%s without a key: %d", r[1], got.status)
					}
				}
			}
			s.stop()
			if s.err.Len() == 0 {
				t.Error("nothing was logged, so that nothing was tried")
			}
			holds("the log", s.err.String())
			out, errOut, _ := command(t, "", append([]string{"doctor", "--timeout=2s"}, what.args...)...)
			holds("doctor", out+errOut)
			if files, err := os.ReadFile("keys.json"); err != nil || strings.Contains(string(files), strings.TrimPrefix(key.Reveal(), keys.Prefix)) {
				t.Errorf("the file of keys: %v", err)
			}
		})
	}
}
