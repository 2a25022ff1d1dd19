// Package sqlite keeps conversations in a SQLite file, which several processes
// may share.
//
// The file is in WAL mode, transactions that write begin as writers, and every
// commit is synced to the disk before it is acknowledged. Deleted text is
// overwritten. Processes that share a file must run on one machine, as SQLite's
// locks and shared memory demand; their clocks are then one.
//
// A file that is damaged, or that is not a store of conversations, is never
// changed or removed: it is a *FileError.
package sqlite
