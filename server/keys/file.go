package keys

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// File is where keys are kept.
type File struct{ Path string }

// format is the file's first field, which says what it is.
const format = "askback keys 1"

// content is what the file holds.
type content struct {
	Format string `json:"format"`
	Keys   []Key  `json:"keys"`
}

// maxFile is the largest file that is read, in bytes.
const maxFile = 16 << 20

// List gives all keys, the oldest first. A file that is not there is an error of
// fs.ErrNotExist.
func (f File) List() ([]Key, error) {
	info, err := os.Stat(f.Path)
	if err != nil {
		return nil, fmt.Errorf("reading the keys: %w", err)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("reading the keys: %s has %d bytes, and is no file of keys", f.Path, info.Size())
	}
	// Who may write it may let themselves in. The bits mean nothing on Windows.
	if info.Mode().Perm()&0o022 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("reading the keys: others than its owner may write to %s: chmod 600 %s", f.Path, f.Path)
	}
	data, err := os.ReadFile(f.Path)
	if err != nil {
		return nil, fmt.Errorf("reading the keys: %w", err)
	}
	all, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("reading the keys in %s: %w", f.Path, err)
	}
	return all, nil
}

// parse reads what a file holds. It errs where a key could mean something else than
// who wrote it thought.
func parse(data []byte) ([]Key, error) {
	var c content
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("something follows the keys")
	}
	if c.Format != format {
		return nil, fmt.Errorf("its format is %q, not %q", c.Format, format)
	}
	seen := map[string]bool{}
	for _, k := range c.Keys {
		if k.ID == "" || seen[k.ID] {
			return nil, fmt.Errorf("the id %q is empty or there twice", k.ID)
		}
		seen[k.ID] = true
		sum, err := hex.DecodeString(k.Hash)
		switch {
		case err != nil || len(sum) != len(hash("")):
			return nil, fmt.Errorf("key %s: its sha256 is none", k.ID)
		case k.Metrics && k.Tenant != "":
			return nil, fmt.Errorf("key %s is for metrics and has a tenant", k.ID)
		case !k.Metrics:
			if err := CheckTenant(k.Tenant); err != nil {
				return nil, fmt.Errorf("key %s: %w", k.ID, err)
			}
		}
	}
	return c.Keys, nil
}

// New is a key to be made.
type New struct {
	Name    string
	Tenant  string    // "" only with Metrics
	Metrics bool      // see Key
	Expires time.Time // zero: never
}

// Create makes a key, and gives what is kept of it and the key itself, which cannot
// be had again. The file is made if it is not there.
func (f File) Create(n New) (Key, Secret, error) {
	if err := checkName(n.Name); err != nil {
		return Key{}, Secret{}, err
	}
	if n.Metrics && n.Tenant != "" {
		return Key{}, Secret{}, errors.New("a key for metrics is no tenant's")
	}
	if !n.Metrics {
		if err := CheckTenant(n.Tenant); err != nil {
			return Key{}, Secret{}, err
		}
	}
	now := time.Now().UTC().Truncate(time.Second)
	k := Key{ID: strings.ToLower(rand.Text()[:10]), Name: n.Name, Tenant: n.Tenant, Metrics: n.Metrics, Created: now}
	if !n.Expires.IsZero() {
		if !n.Expires.After(now) {
			return Key{}, Secret{}, fmt.Errorf("the key would expire at %s, which is past", n.Expires.Format(time.RFC3339))
		}
		at := n.Expires.UTC()
		k.Expires = &at
	}
	secret := newSecret()
	sum := hash(secret.text)
	k.Hash = hex.EncodeToString(sum[:])
	return k, secret, f.change(func(all []Key) ([]Key, error) { return append(all, k), nil })
}

// Revoke shuts a key out, by its id. One that is revoked already stays as it is.
func (f File) Revoke(id string) (Key, error) {
	var revoked Key
	err := f.change(func(all []Key) ([]Key, error) {
		i := slices.IndexFunc(all, func(k Key) bool { return k.ID == id })
		if i < 0 {
			return nil, fmt.Errorf("%s holds no key of the id %q", f.Path, id)
		}
		if all[i].Revoked == nil {
			now := time.Now().UTC().Truncate(time.Second)
			all[i].Revoked = &now
		}
		revoked = all[i]
		return all, nil
	})
	return revoked, err
}

// change replaces the file, by one process at a time.
func (f File) change(edit func([]Key) ([]Key, error)) error {
	unlock, err := lock(f.Path + ".lock")
	if err != nil {
		return fmt.Errorf("changing the keys: %w", err)
	}
	defer unlock()
	all, err := f.List()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if all, err = edit(all); err != nil {
		return err
	}
	data, err := json.MarshalIndent(content{format, all}, "", "  ")
	if err != nil {
		return fmt.Errorf("changing the keys: %w", err)
	}
	if err := replace(f.Path, append(data, '\n')); err != nil {
		return fmt.Errorf("changing the keys: %w", err)
	}
	return nil
}

// replace writes a file that only its owner may read, in one step.
func replace(path string, data []byte) (err error) {
	t, err := os.CreateTemp(filepath.Dir(path), ".keys-*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(t.Name())
		}
	}()
	_, err = t.Write(data)
	err = errors.Join(err, t.Sync(), t.Close())
	if err != nil {
		return err
	}
	return os.Rename(t.Name(), path)
}
