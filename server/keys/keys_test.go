package keys

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func newFile(t *testing.T) File { return File{filepath.Join(t.TempDir(), "keys.json")} }

// A key is let in until it expires or is revoked, without the ring being opened again.
func TestRing(t *testing.T) {
	f := newFile(t)
	if _, err := Open(f.Path, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	ada, secret, err := f.Create(New{Name: "Ada", Tenant: "larkwheel"})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	r, err := Open(f.Path, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	r.now = func() time.Time { now = now.Add(time.Second); return now }
	check := func(text string, want error, tenant string) {
		t.Helper()
		if k, err := r.Check(text); !errors.Is(err, want) || k.Tenant != tenant {
			t.Errorf("%+v, %v; want %v of %q", k, err, want, tenant)
		}
	}
	check(secret.Reveal(), nil, "larkwheel")
	for _, text := range []string{"", Prefix, secret.Reveal()[:20], secret.Reveal() + "a", strings.ToUpper(secret.Reveal()), secret.Reveal()[len(Prefix):], ada.Hash, Prefix + ada.Hash, ada.ID} {
		check(text, ErrUnknown, "")
	}
	_, short, err := f.Create(New{Name: "for a moment", Tenant: "brook", Expires: now.Add(10 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	check(short.Reveal(), nil, "brook")
	now = now.Add(time.Minute)
	check(short.Reveal(), ErrExpired, "")
	check(secret.Reveal(), nil, "larkwheel")
	if _, err := f.Revoke("nobody"); err == nil {
		t.Error("a key that is not there is revoked")
	}
	if n := r.Usable(); n != 1 {
		t.Errorf("%d usable", n)
	}
	if _, err := f.Revoke(ada.ID); err != nil {
		t.Fatal(err)
	}
	check(secret.Reveal(), ErrRevoked, "")

	if err := os.WriteFile(f.Path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Check(secret.Reveal()); err == nil || errors.Is(err, ErrRevoked) || errors.Is(err, ErrUnknown) {
		t.Errorf("a broken file: %v", err)
	}
	if _, _, err := f.Create(New{Name: "x", Tenant: "x"}); err == nil {
		t.Error("a broken file is written over")
	}
	if !strings.Contains(log.String(), "nobody is let in") {
		t.Errorf("log %q", &log)
	}
}

// Keys that are made at once by many are all kept, none twice; the file stays its
// owner's alone, and holds no key.
func TestFile(t *testing.T) {
	f := newFile(t)
	var wg sync.WaitGroup
	secrets := make([]Secret, 20)
	for i := range secrets {
		wg.Go(func() {
			var err error
			if _, secrets[i], err = f.Create(New{Name: fmt.Sprint(i), Tenant: "larkwheel"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	all, err := f.List()
	if err != nil || len(all) != len(secrets) {
		t.Fatalf("%d keys, %v", len(all), err)
	}
	data, _ := os.ReadFile(f.Path)
	for _, s := range secrets {
		if strings.Contains(string(data), s.Reveal()[len(Prefix):]) {
			t.Error("the file holds a key")
		}
		if len(s.Reveal()) != len(Prefix)+52 {
			t.Errorf("a key of %d characters", len(s.Reveal()))
		}
	}
	if info, _ := os.Stat(f.Path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(f.Path), ".keys-*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	if err := os.Chmod(f.Path, 0o620); err != nil {
		t.Fatal(err)
	}
	if _, err := f.List(); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others may write: %v", err)
	}
}

func TestNew(t *testing.T) {
	for name, n := range map[string]New{
		"no name":              {Tenant: "a"},
		"a name with a line":   {Name: "a\nb", Tenant: "a"},
		"no tenant":            {Name: "a"},
		"a path":               {Name: "a", Tenant: "a/b"},
		"the folder above":     {Name: "a", Tenant: ".."},
		"a hidden file":        {Name: "a", Tenant: ".a"},
		"capitals":             {Name: "a", Tenant: "Larkwheel"},
		"ends with a dot":      {Name: "a", Tenant: "a."},
		"a long tenant":        {Name: "a", Tenant: strings.Repeat("a", 65)},
		"an option":            {Name: "a", Tenant: "-a"},
		"metrics and a tenant": {Name: "a", Tenant: "a", Metrics: true},
		"past":                 {Name: "a", Tenant: "a", Expires: time.Now().Add(-time.Hour)},
	} {
		f := newFile(t)
		if _, s, err := f.Create(n); err == nil || s.Reveal() != "" {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(f.Path); err == nil {
			t.Errorf("%s: a file was made", name)
		}
	}
}

// A key does not get out by being printed.
func TestSecret(t *testing.T) {
	s := newSecret()
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("made", "key", s, "in", struct{ S Secret }{s})
	encoded, _ := json.Marshal(map[string]any{"key": s, "list": []Secret{s}})
	for _, shown := range []string{fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %s %q", s, s, s, s, s), fmt.Sprintf("%v %+v", struct{ S Secret }{s}, []Secret{s}), string(encoded), log.String()} {
		if strings.Contains(shown, s.Reveal()[len(Prefix):]) {
			t.Errorf("%s", shown)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"format":"askback keys 1","keys":[{"id":"a","name":"x","tenant":"t","sha256":"` + strings.Repeat("ab", 32) + `","created":"2026-01-01T00:00:00Z"}]}`, `{}`, `[]`, `{"format":"askback keys 1","keys":null}{}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := parse(data)
		if err != nil {
			return
		}
		for _, k := range all {
			if !k.Metrics && CheckTenant(k.Tenant) != nil || k.ID == "" || len(k.Hash) != 64 {
				t.Errorf("%+v", k)
			}
		}
	})
}
