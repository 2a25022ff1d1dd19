package main

import (
	"strings"
	"testing"

	"github.com/askback/askback/server/keys"
)

// A key is printed alone and once; the list says whose it is and whether it is taken.
func TestKeysCommand(t *testing.T) {
	t.Chdir(t.TempDir())
	key, errOut, code := command(t, "", "keys", "create", "Ada's laptop", "--tenant=larkwheel", "--expires=30d", "--keys=keys.json")
	if code != exitAnswered || !strings.HasPrefix(key, keys.Prefix) || strings.Count(key, "\n") != 1 || strings.Contains(errOut, strings.TrimSpace(key)) {
		t.Fatalf("exit code %d, %q, %s", code, key, errOut)
	}
	list := func(want ...string) string {
		t.Helper()
		out, errOut, code := command(t, "", "keys", "list", "--keys=keys.json")
		for _, w := range want {
			if code != exitAnswered || !strings.Contains(out, w) {
				t.Errorf("exit code %d, without %q: %s%s", code, w, out, errOut)
			}
		}
		if json, _, _ := command(t, "", "keys", "list", "--json", "--keys=keys.json"); strings.Contains(json, "sha256") || strings.Contains(out+json, strings.TrimSpace(key)) {
			t.Errorf("the list tells too much: %s", json)
		}
		return out
	}
	out := list("larkwheel", "until ", "Ada's laptop")
	id, _, _ := strings.Cut(strings.Split(out, "\n")[1], " ")
	if _, errOut, code := command(t, "", "keys", "revoke", id, "--keys=keys.json"); code != exitAnswered || !strings.Contains(errOut, "revoked") {
		t.Errorf("exit code %d, %s", code, errOut)
	}
	list("revoked ")
	for says, args := range map[string][]string{
		"ASKBACK_KEYS":             {"keys", "list"},
		"no key of the id":         {"keys", "revoke", "nobody", "--keys=keys.json"},
		"small letters":            {"keys", "create", "x", "--tenant=../x", "--keys=keys.json"},
		"askback keys create NAME": {"serve", "--addr=127.0.0.1:0", "--keys=none.json"},
	} {
		if _, errOut, code := command(t, "", args...); code != exitUsage || !strings.Contains(errOut, says) {
			t.Errorf("%q: exit code %d, %s", args, code, errOut)
		}
	}
}
