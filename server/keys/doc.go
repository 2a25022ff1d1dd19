// Package keys holds the API keys that a server is used with.
//
// # A key
//
// A key is askback_ and 52 letters and digits: 256 bits from the system's random
// source. It is shown once, when it is made; the file has its SHA-256 alone. That is
// enough: a password has to be hashed slowly because people choose few of them, and
// an attacker who has the file can try them all. Of 2^256 keys nobody tries a part
// that matters, however fast. The prefix lets scanners of secrets find a key that got
// into a repository or a log.
//
// A key belongs to a tenant, who is whose conversations and documents it reaches, and
// has a name, for people. It may expire, and can be revoked. A key that is made for
// metrics belongs to no tenant, and opens nothing else.
//
// # The file
//
// Keys are in one JSON file that only its owner may read (0600). It is replaced in one
// step, by one process at a time, so that a reader sees the old one or the new one.
// A Ring reads it again when it has changed, so that a server need not be started
// again to let a key in or to shut one out. While the file cannot be read no key is
// taken: whoever revokes a key must not find it accepted because of a slip in the
// file.
package keys
