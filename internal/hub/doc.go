// Package hub fetches files of a model repository by the URLs that the Hugging
// Face hub and its mirrors share: BASE/REPOSITORY/resolve/REVISION/PATH.
//
// A download that was cut goes on where it ended, within one call and in a later
// one; a file is put in its place only when it has the length and the checksum
// that the hub tells (the SHA-256 of large files, the git hash of small ones).
package hub
