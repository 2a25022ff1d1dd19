package qdrant

import (
	"fmt"
	"strconv"
	"strings"
)

// The oldest server with all that is used: metadata of collections and the
// constant of reciprocal rank fusion.
const oldestMajor, oldestMinor = 1, 16

// clientMinor is the minor version of the client library; a server differs from
// it by one at most where both are supported.
const clientMinor = 17

// checkVersion refuses a server that is too old. One whose version cannot be
// read is taken.
func (s *Store) checkVersion() error {
	if major, minor, ok := parseVersion(s.version); ok && (major < oldestMajor || major == oldestMajor && minor < oldestMinor) {
		return fmt.Errorf("%w: the one at %s has version %s, %d.%d or later is needed", ErrVersion, s.options.Addr, s.version, oldestMajor, oldestMinor)
	}
	return nil
}

// ServerVersion is the server's version as it was when the store was opened.
// warning is a sentence for the user if it is further from the client library's
// than the two are tested together, and "" otherwise.
func (s *Store) ServerVersion() (version, warning string) {
	major, minor, ok := parseVersion(s.version)
	switch {
	case !ok:
		warning = fmt.Sprintf("The Qdrant server at %s gives its version as %q, which cannot be compared.", s.options.Addr, s.version)
	case major != oldestMajor || minor > clientMinor+1 || minor < clientMinor-1:
		warning = fmt.Sprintf("The Qdrant server at %s has version %s; this program's client is made for %d.%d and one minor version more or less.",
			s.options.Addr, s.version, oldestMajor, clientMinor)
	}
	return s.version, warning
}

// parseVersion reads a version such as "1.15.2" or "v1.16.0-dev".
func parseVersion(version string) (major, minor int, ok bool) {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(parts) < 2 {
		return 0, 0, false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return major, minor, err1 == nil && err2 == nil
}
