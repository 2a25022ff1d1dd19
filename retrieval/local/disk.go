package local

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/askback/askback/retrieval"
)

const (
	applicationID = 0x61736b69 // "aski", in the header of every index file
	schemaVersion = 1
)

const schema = `
CREATE TABLE meta (
	key   TEXT PRIMARY KEY,
	value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE documents (
	id          TEXT PRIMARY KEY,
	fingerprint TEXT NOT NULL,
	generation  INTEGER NOT NULL -- the index's when the document was last changed
) WITHOUT ROWID;
CREATE TABLE passages (
	id       TEXT PRIMARY KEY,
	document TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
	position INTEGER NOT NULL,
	title    TEXT NOT NULL,
	source   TEXT NOT NULL,
	text     TEXT NOT NULL,
	metadata TEXT NOT NULL, -- a JSON object
	vector   BLOB NOT NULL, -- unit length, little-endian float32
	checksum INTEGER NOT NULL, -- CRC-32C of the other columns but position
	UNIQUE (document, position)
);
INSERT INTO meta VALUES ('generation', '0');
`

// disk is the SQLite file of an index. One connection writes; another tells,
// by data_version, whether the file has changed, and reads the changes.
type disk struct {
	path   string
	wait   time.Duration // for locks
	db     *sql.DB
	writer *sql.Conn // used with Index.write held

	reading sync.Mutex // guards what follows
	reader  *sql.Conn
	version int64 // the reader's data_version when it last read all changes

	generation int64 // of the file, as far as the memory has it; guarded by Index.write
}

// openDisk opens or makes the file. It changes nothing in a file that is not an
// index.
func openDisk(ctx context.Context, path, identity string, wait time.Duration) (*disk, error) {
	if err := looksRight(path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of the index: %w", err)
	}
	name := url.URL{Path: filepath.ToSlash(path)}
	if filepath.VolumeName(path) != "" {
		name.Path = "/" + name.Path // file:/C:/...
	}
	db, err := sql.Open("sqlite", fmt.Sprintf("file:%s?_pragma=busy_timeout(%d)&_pragma=foreign_keys(1)&_pragma=synchronous(1)",
		name.EscapedPath(), wait.Milliseconds()))
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	d := &disk{path: path, wait: wait, db: db}
	if err := d.start(ctx, identity); err != nil {
		return nil, errors.Join(d.explain(ctx, "opening", err), d.close())
	}
	return d, nil
}

// looksRight refuses, without opening it as a database, what is none.
func looksRight(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening the index: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("opening the index: %w", err)
	}
	if info.IsDir() {
		return fmt.Errorf("%w: %s is a folder; name a file in it", ErrForeign, path)
	}
	if info.Size() == 0 {
		return nil
	}
	header := make([]byte, 16)
	if _, err := io.ReadFull(f, header); err != nil || string(header) != "SQLite format 3\x00" {
		return fmt.Errorf("%w: %s is no SQLite file, or its start was overwritten; %s", ErrForeign, path, remedy)
	}
	return nil
}

// remedy is what helps, as Rebuild does it too.
const remedy = "name another file, or move this one aside and index the documents again"

func (d *disk) start(ctx context.Context, identity string) error {
	var err error
	if d.writer, err = d.db.Conn(ctx); err != nil {
		return err
	}
	if d.reader, err = d.db.Conn(ctx); err != nil {
		return err
	}
	fresh, err := d.isFresh(ctx)
	if err != nil {
		return err
	}
	var mode string
	if err := d.writer.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("SQLite keeps journal_mode %q where WAL was asked for; put the index on a local disk", mode)
	}
	for _, conn := range []*sql.Conn{d.writer, d.reader} {
		for pragma, want := range map[string]int64{"foreign_keys": 1, "synchronous": 1, "busy_timeout": d.wait.Milliseconds()} {
			if got, err := number(ctx, conn, "PRAGMA "+pragma); err != nil || got != want {
				return errors.Join(err, fmt.Errorf("SQLite has %s = %d where %d was asked for", pragma, got, want))
			}
		}
	}
	if fresh {
		return d.create(ctx, identity)
	}
	return d.verify(ctx, identity)
}

// isFresh reports whether the file holds nothing yet. What is neither fresh nor
// an index of this version is ErrForeign.
func (d *disk) isFresh(ctx context.Context) (bool, error) {
	// In one statement, so that a process that makes the tables in this moment is
	// seen before it or after it and not in the middle.
	var id, version, tables int64
	err := d.writer.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM sqlite_schema),
		(SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version)`).Scan(&tables, &id, &version)
	switch {
	case err != nil:
		return false, err
	case id == 0 && tables == 0:
		return true, nil
	case id != applicationID:
		return false, fmt.Errorf("%w: %s is the database of another program; name another file", ErrForeign, d.path)
	case version != schemaVersion:
		return false, fmt.Errorf("%w: %s has version %d of the format, this program reads version %d; %s", ErrForeign, d.path, version, schemaVersion, remedy)
	}
	return false, nil
}

// create makes the tables, unless another process has just done so.
func (d *disk) create(ctx context.Context, identity string) error {
	err := d.transaction(ctx, d.writer, "BEGIN IMMEDIATE", func() error {
		if fresh, err := d.isFresh(ctx); err != nil || !fresh {
			return err
		}
		for _, statement := range []string{schema,
			fmt.Sprintf("PRAGMA application_id = %d", applicationID),
			fmt.Sprintf("PRAGMA user_version = %d", schemaVersion),
		} {
			if _, err := d.writer.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return d.setMeta(ctx, "embedder", identity)
	})
	if err != nil {
		return err
	}
	return d.verify(ctx, identity)
}

func (d *disk) verify(ctx context.Context, identity string) error {
	var state string
	if err := d.writer.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&state); err != nil {
		return err
	}
	if state != "ok" {
		return d.damaged("%s", strings.Join(strings.Fields(state), " "))
	}
	tables, err := number(ctx, d.writer, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('meta', 'documents', 'passages')")
	if err != nil {
		return err
	}
	if tables != 3 {
		return d.damaged("tables are missing")
	}
	have, err := d.meta(ctx, d.writer, "embedder")
	if err != nil {
		return err
	}
	if have != identity && have != "" && identity != "" {
		return fmt.Errorf("%w: %s holds vectors of %q, this program embeds with %q: use that embedder, name another file, or build the index anew (local.Rebuild moves the old one aside)",
			ErrEmbedder, d.path, have, identity)
	}
	return nil
}

func (d *disk) close() error {
	var errs []error
	for _, conn := range []*sql.Conn{d.reader, d.writer} {
		if conn != nil {
			errs = append(errs, conn.Close())
		}
	}
	return errors.Join(append(errs, d.db.Close())...)
}

// transaction runs f between begin and COMMIT, or ROLLBACK if it fails.
func (d *disk) transaction(ctx context.Context, conn *sql.Conn, begin string, f func() error) error {
	_, err := conn.ExecContext(ctx, begin)
	if err == nil {
		err = f()
	}
	if err == nil {
		// What is done is kept, so that memory and file agree whenever ctx ends.
		_, err = conn.ExecContext(context.WithoutCancel(ctx), "COMMIT")
	}
	if err != nil {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") // there may be none: not begun, or ended by SQLite
	}
	return err
}

// meta gives a value, "" if it was never set.
func (d *disk) meta(ctx context.Context, conn *sql.Conn, key string) (value string, err error) {
	err = conn.QueryRowContext(ctx, "SELECT value FROM meta WHERE key = ?", key).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return value, err
}

// metaNumber gives a number, 0 if it was never set.
func (d *disk) metaNumber(ctx context.Context, conn *sql.Conn, key string) (int64, error) {
	value, err := d.meta(ctx, conn, key)
	if err != nil || value == "" {
		return 0, err
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0, d.damaged("its %s is %q", key, value)
	}
	return n, nil
}

func (d *disk) setMeta(ctx context.Context, key, value string) error {
	_, err := d.writer.ExecContext(ctx, "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", key, value)
	return err
}

// delta is what changed in the file since a generation.
type delta struct {
	generation int64
	dim        int
	documents  map[string]bool // all there are
	changed    []rawDocument
}

type rawDocument struct {
	name, fingerprint string
	passages          []retrieval.Passage
	vectors           [][]float32
}

// since reads, in a transaction of conn, what changed after a generation.
func (d *disk) since(ctx context.Context, conn *sql.Conn, generation int64) (delta, error) {
	out := delta{documents: make(map[string]bool)}
	var err error
	if out.generation, err = d.metaNumber(ctx, conn, "generation"); err != nil || out.generation == generation {
		return out, err
	}
	dim, err := d.metaNumber(ctx, conn, "dimension")
	if err != nil {
		return out, err
	}
	out.dim = int(dim)
	place := make(map[string]int)
	rows, err := conn.QueryContext(ctx, "SELECT id, fingerprint, generation > ? FROM documents ORDER BY id", generation)
	if err != nil {
		return out, err
	}
	defer rows.Close()
	for rows.Next() {
		var raw rawDocument
		var changed bool
		if err := rows.Scan(&raw.name, &raw.fingerprint, &changed); err != nil {
			return out, err
		}
		out.documents[raw.name] = true
		if changed {
			place[raw.name] = len(out.changed)
			out.changed = append(out.changed, raw)
		}
	}
	if err := rows.Err(); err != nil {
		return out, err
	}
	return out, d.readPassages(ctx, conn, generation, place, &out)
}

func (d *disk) readPassages(ctx context.Context, conn *sql.Conn, generation int64, place map[string]int, out *delta) error {
	rows, err := conn.QueryContext(ctx, `SELECT p.id, p.document, p.title, p.source, p.text, p.metadata, p.vector, p.checksum
		FROM documents d JOIN passages p ON p.document = d.id WHERE d.generation > ? ORDER BY p.document, p.position`, generation)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var p retrieval.Passage
		var metadata, vector sql.RawBytes
		var sum uint32
		if err := rows.Scan(&p.ID, &p.Document, &p.Title, &p.Source, &p.Text, &metadata, &vector, &sum); err != nil {
			return err
		}
		if sum != checksum(p, metadata, vector) {
			return d.damaged("passage %q is not what was stored", p.ID)
		}
		if len(vector) != 4*out.dim || out.dim == 0 {
			return d.damaged("passage %q has a vector of %d bytes, the index one of %d numbers", p.ID, len(vector), out.dim)
		}
		if string(metadata) != "{}" {
			if err := json.Unmarshal(metadata, &p.Metadata); err != nil {
				return d.damaged("passage %q has metadata that cannot be read: %v", p.ID, err)
			}
		}
		raw := &out.changed[place[p.Document]]
		raw.passages = append(raw.passages, p)
		raw.vectors = append(raw.vectors, decodeVector(vector))
	}
	return rows.Err()
}

// put writes changes, in a transaction of the writer.
func (d *disk) put(ctx context.Context, changes []change, generation int64) error {
	for _, c := range changes {
		if _, err := d.writer.ExecContext(ctx, "DELETE FROM documents WHERE id = ?", c.name); err != nil {
			return err
		}
	}
	insert, err := d.writer.PrepareContext(ctx, "INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer insert.Close()
	dim := 0
	for _, c := range changes {
		if c.gone {
			continue
		}
		if _, err := d.writer.ExecContext(ctx, "INSERT INTO documents VALUES (?, ?, ?)", c.name, c.fingerprint, generation); err != nil {
			return err
		}
		for i, e := range c.entries {
			p := e.passage
			metadata := []byte("{}")
			if len(p.Metadata) > 0 {
				if metadata, err = json.Marshal(p.Metadata); err != nil {
					return err
				}
			}
			dim = len(e.vector)
			vector := encodeVector(e.vector)
			if _, err := insert.ExecContext(ctx, p.ID, p.Document, i, p.Title, p.Source, p.Text, string(metadata), vector, checksum(p, metadata, vector)); err != nil {
				return err
			}
		}
	}
	if dim > 0 {
		if err := d.setMeta(ctx, "dimension", strconv.Itoa(dim)); err != nil {
			return err
		}
	}
	return d.setMeta(ctx, "generation", strconv.FormatInt(generation, 10))
}

// checksum covers a row of passages, so that damage that SQLite cannot see, such
// as within a vector, is seen.
func checksum(p retrieval.Passage, metadata, vector []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	var sum uint32
	for _, field := range []string{p.ID, p.Document, p.Title, p.Source, p.Text} {
		sum = crc32.Update(sum, table, []byte(field))
		sum = crc32.Update(sum, table, []byte{0})
	}
	return crc32.Update(crc32.Update(sum, table, metadata), table, vector)
}

func encodeVector(v []float32) []byte {
	out := make([]byte, 0, 4*len(v))
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}

func decodeVector(b []byte) []float32 {
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

func number(ctx context.Context, conn *sql.Conn, query string) (n int64, err error) {
	err = conn.QueryRowContext(ctx, query).Scan(&n)
	return n, err
}

func (d *disk) damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s; %s", ErrCorrupt, d.path, fmt.Sprintf(format, args...), remedy)
}

// explain names the file in an error, and wraps what SQLite's code means.
func (d *disk) explain(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s the index %s: %w", doing, d.path, ctx.Err()) // SQLite says "interrupted"
	}
	for _, ours := range []error{ErrCorrupt, ErrForeign, ErrEmbedder, retrieval.ErrInvalid} {
		if errors.Is(err, ours) {
			return err
		}
	}
	var failed *sqlite.Error
	if errors.As(err, &failed) {
		code := failed.Code()
		if code&0xff == sqlite3.SQLITE_FULL || code == sqlite3.SQLITE_IOERR_SHMSIZE { // the latter of the file of shared memory
			return fmt.Errorf("%w: the disk of %s is full; nothing was changed; free some space and try again: %w", retrieval.ErrFull, d.path, err)
		}
		switch code & 0xff {
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
			return fmt.Errorf("%w: %s: %w; %s", ErrCorrupt, d.path, err, remedy)
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
			return fmt.Errorf("%w: %s was being written for more than %v; try again when the other process is done: %w", ErrLocked, d.path, d.wait, err)
		case sqlite3.SQLITE_CANTOPEN:
			return fmt.Errorf("%s the index %s: the file cannot be opened; see that its folder exists and can be written to: %w", doing, d.path, err)
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
			return fmt.Errorf("%s the index %s: the file and its folder cannot be written to, which reading takes too; see their permissions: %w", doing, d.path, err)
		}
	}
	return fmt.Errorf("%s the index %s: %w", doing, d.path, err)
}
