// Package sqlite keeps conversations in a SQLite file, which several processes
// may share.
//
// The file is in WAL mode and every commit is synced to the disk before it is
// acknowledged. A turn's claim is a row with an owner and an expiry, which is
// moved on while the turn runs: when a process dies, its claims run out after
// the lease and the conversation goes on from its last whole turn. Processes
// that share a file must run on one machine, as SQLite's locks and shared memory
// demand; their clocks are then one.
//
// A file that is damaged, or that is not a store of conversations, is never
// changed or removed: it is a *FileError.
package sqlite
