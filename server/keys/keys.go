package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Prefix begins every key.
const Prefix = "askback_"

// Key is what is kept of a key.
type Key struct {
	ID      string     `json:"id"`   // names the key without giving it away
	Name    string     `json:"name"` // for people: whose it is, or what for
	Tenant  string     `json:"tenant,omitempty"`
	Metrics bool       `json:"metrics,omitempty"` // opens the metrics alone, and is no tenant's
	Hash    string     `json:"sha256"`            // of the key, in hexadecimal
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires,omitempty"`
	Revoked *time.Time `json:"revoked,omitempty"`
}

var (
	// ErrUnknown says that a key is none of the file's.
	ErrUnknown = errors.New("the key is not known here")
	// ErrRevoked says that a key was revoked.
	ErrRevoked = errors.New("the key was revoked")
	// ErrExpired says that a key's time is over.
	ErrExpired = errors.New("the key has expired")
)

// Valid says why a key is not taken at that time, or nothing.
func (k Key) Valid(now time.Time) error {
	switch {
	case k.Revoked != nil:
		return ErrRevoked
	case k.Expires != nil && !now.Before(*k.Expires):
		return ErrExpired
	}
	return nil
}

// Secret is a key as its user sends it. Printed, logged or encoded it is "askback_…";
// Reveal gives it.
type Secret struct{ text string }

const hidden = Prefix + "…"

// Reveal is the key itself.
func (s Secret) Reveal() string { return s.text }

// String implements fmt.Stringer.
func (Secret) String() string { return hidden }

// GoString implements fmt.GoStringer.
func (Secret) GoString() string { return hidden }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText implements encoding.TextMarshaler.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

var letters = base32.StdEncoding.WithPadding(base32.NoPadding)

// newSecret makes a key.
func newSecret() Secret {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return Secret{Prefix + strings.ToLower(letters.EncodeToString(b))}
}

// hash is what is kept of a key.
func hash(text string) [sha256.Size]byte { return sha256.Sum256([]byte(text)) }

// find gives the key that a text is. It looks at all of them, and at each in constant
// time, so that the time it takes tells nothing of what is stored.
func find(all []Key, text string) (Key, error) {
	sum := hash(text)
	found := -1
	for i, k := range all {
		stored, err := hex.DecodeString(k.Hash)
		if err == nil && subtle.ConstantTimeCompare(stored, sum[:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return Key{}, ErrUnknown
	}
	return all[found], nil
}

// maxTenant and maxName are the longest names, in bytes.
const (
	maxTenant = 64
	maxName   = 200
)

// CheckTenant says what is wrong with a tenant's name. It has small letters, digits
// and - _ . of which it does not begin or end with one, so that it can be a part of
// an id and of a file's name.
func CheckTenant(name string) error {
	if name == "" || len(name) > maxTenant {
		return fmt.Errorf("the tenant %q has %d characters; give it 1 to %d", name, len(name), maxTenant)
	}
	inside := false
	for i, r := range name {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			inside = true
		case strings.ContainsRune("-_.", r) && inside && i < len(name)-1:
		default:
			return fmt.Errorf("the tenant %q holds or ends with %q; a tenant's name has small letters and digits, and between them - _ or a full stop", name, r)
		}
	}
	return nil
}

// checkName says what is wrong with a key's name.
func checkName(name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return errors.New("the key has no name; say whose it is or what it is for")
	case len(name) > maxName:
		return fmt.Errorf("the key's name is %d bytes long; at most %d are kept", len(name), maxName)
	case !utf8.ValidString(name), strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("the key's name %q holds characters that are no text", name)
	}
	return nil
}
