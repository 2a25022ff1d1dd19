package local

import (
	"context"
	"database/sql"
	"runtime"
	"sync"
	"sync/atomic"
)

// reload reads into memory what changed in the file. It is called by Open.
func (x *Index) reload(ctx context.Context) error {
	x.write.Lock()
	defer x.write.Unlock()
	x.disk.reading.Lock()
	defer x.disk.reading.Unlock()
	return x.catchUp(ctx)
}

// refresh reads what another process has changed in the file since the last
// time. If documents are being written just now by this process, the memory
// serves as it stands.
func (x *Index) refresh(ctx context.Context) error {
	d := x.disk
	if d == nil {
		return nil
	}
	d.reading.Lock()
	defer d.reading.Unlock()
	if x.isClosed() {
		return ErrClosed
	}
	version, err := number(ctx, d.reader, "PRAGMA data_version")
	if err != nil {
		return d.explain(ctx, "reading", err)
	}
	if version == d.version || !x.write.TryLock() {
		return nil
	}
	defer x.write.Unlock()
	return x.catchUp(ctx)
}

// catchUp is called with write and disk.reading held.
func (x *Index) catchUp(ctx context.Context) error {
	d := x.disk
	version, err := number(ctx, d.reader, "PRAGMA data_version")
	if err != nil {
		return d.explain(ctx, "reading", err)
	}
	err = d.transaction(ctx, d.reader, "BEGIN", func() error { return x.pull(ctx, d.reader) })
	if err != nil {
		return d.explain(ctx, "reading", err)
	}
	d.version = version
	return nil
}

// pull brings the memory up to the file as conn's transaction sees it. It is
// called with write held.
func (x *Index) pull(ctx context.Context, conn *sql.Conn) error {
	delta, err := x.disk.since(ctx, conn, x.disk.generation)
	if err != nil || delta.generation == x.disk.generation {
		return err
	}
	changes := prepareChanges(delta.changed)
	x.mu.RLock()
	for name := range x.memory.documents {
		if !delta.documents[name] {
			changes = append(changes, change{name: name, gone: true})
		}
	}
	x.mu.RUnlock()
	x.publish(changes)
	x.disk.generation = delta.generation
	return nil
}

// prepareChanges makes entries of what was read, on all processors.
func prepareChanges(documents []rawDocument) []change {
	changes := make([]change, len(documents))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(documents) {
					return
				}
				raw := documents[i]
				changes[i] = change{name: raw.name, fingerprint: raw.fingerprint, entries: make([]*entry, len(raw.passages))}
				for j, p := range raw.passages {
					changes[i].entries[j] = newEntry(p, raw.vectors[j])
				}
			}
		})
	}
	wg.Wait()
	return changes
}

// store writes changes to the file and then to the memory. It is called with
// write held.
func (x *Index) store(ctx context.Context, changes []change) error {
	d := x.disk
	generation := int64(0)
	err := d.transaction(ctx, d.writer, "BEGIN IMMEDIATE", func() error {
		// Another process may have written since the memory was last brought up.
		if err := x.pull(ctx, d.writer); err != nil {
			return err
		}
		if err := x.check(changes); err != nil {
			return err
		}
		generation = d.generation + 1
		return d.put(ctx, changes, generation)
	})
	if err != nil {
		return d.explain(ctx, "writing", err)
	}
	x.publish(changes)
	d.generation = generation
	return nil
}
