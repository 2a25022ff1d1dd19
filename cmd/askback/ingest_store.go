package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/askback/askback/cmd/askback/sample"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/local"
	"github.com/askback/askback/retrieval/qdrant"
)

// knowledge is what an assistant answers from, whichever store it is in.
type knowledge interface {
	retrieval.Library
	searched
	Close() error
}

// target is a store that is ingested into.
type target struct {
	knowledge
	name  string // for people
	work  *embedding
	fresh bool // an index file that was not there before
}

// drop closes a store and removes what was made for nothing.
func (t *target) drop(ctx context.Context) {
	if t.fresh {
		dropIndex(ctx, t.knowledge, t.name)
	}
	t.close()
}

func (t *target) close() {
	_ = t.knowledge.Close()
	_ = t.work.close()
}

// openTarget opens the store that the command and the environment choose.
func openTarget(ctx context.Context, errOut io.Writer, c *ingestCommand, model textEmbedder, work *embedding) (*target, error) {
	server, err := qdrantSettings(c.Index)
	switch {
	case err != nil:
		return nil, err
	case server != nil:
		return openQdrantTarget(ctx, errOut, c, *server, model, work)
	case c.Index == "":
		return nil, usagef("no store is named: give --index FILE (or ASKBACK_INDEX), or set QDRANT_ADDR")
	}
	t := &target{name: c.Index, work: work, fresh: isFresh(c.Index)}
	if c.DryRun && t.fresh {
		t.knowledge, err = local.Open(ctx, local.Options{Embedder: work})
		return t, err
	}
	index, err := openIndex(ctx, errOut, c.Index, c.Rebuild && !c.DryRun, work, model.Identity())
	if err != nil {
		return nil, err
	}
	t.knowledge = index
	if !c.DryRun {
		if err := work.keepIn(c.Index+".embedded", model.Identity()); err != nil {
			return nil, errors.Join(fmt.Errorf("keeping what is embedded beside the index: %w", err), index.Close())
		}
	}
	return t, nil
}

// openQdrantTarget opens a collection to ingest into.
func openQdrantTarget(ctx context.Context, errOut io.Writer, c *ingestCommand, o qdrant.Options, model textEmbedder, work *embedding) (*target, error) {
	if c.Rebuild {
		return nil, usagef("--rebuild is for an index file; a Qdrant collection is deleted on the server")
	}
	o.NoWait, o.ReadyWait = true, c.limit()
	store, err := openQdrant(ctx, errOut, o, work, model.Identity())
	if err != nil {
		return nil, err
	}
	t := &target{knowledge: store, name: qdrantName(o), work: work}
	if c.DryRun {
		return t, nil
	}
	cache, err := os.UserCacheDir()
	if err == nil {
		hash := hashOf(o.Addr + "\x00" + o.Collection)
		err = work.keepIn(filepath.Join(cache, "askback", fmt.Sprintf("%x.embedded", hash[:8])), model.Identity())
	}
	if err != nil { // it only saves time after a crash
		fmt.Fprintf(errOut, "askback: what is embedded is not kept for the case of a crash: %v\n", err)
	}
	return t, nil
}

// qdrantSettings reads the environment: QDRANT_ADDR chooses Qdrant, and the other
// QDRANT_ variables belong to it. Without it they are nil. index is the index file
// that was named, which excludes it.
func qdrantSettings(index string) (*qdrant.Options, error) {
	o := &qdrant.Options{
		Addr: os.Getenv("QDRANT_ADDR"), APIKey: os.Getenv("QDRANT_API_KEY"),
		Collection: cmp.Or(os.Getenv("QDRANT_COLLECTION"), qdrant.DefaultCollection),
	}
	if o.Addr == "" {
		return nil, nil
	}
	if index != "" {
		return nil, usagef("both an index file (%s) and QDRANT_ADDR (%s) are named; unset one of them", index, o.Addr)
	}
	for name, set := range map[string]*bool{"QDRANT_TLS": &o.TLS, "QDRANT_PLAINTEXT_KEY": &o.PlaintextKey} {
		if value := os.Getenv(name); value != "" {
			var err error
			if *set, err = strconv.ParseBool(value); err != nil {
				return nil, usagef("%s is %q; it is true or false", name, value)
			}
		}
	}
	return o, nil
}

func qdrantName(o qdrant.Options) string {
	return fmt.Sprintf("Qdrant at %s, collection %s", o.Addr, o.Collection)
}

// openQdrant connects to Qdrant.
func openQdrant(ctx context.Context, errOut io.Writer, o qdrant.Options, embedder retrieval.Embedder, identity string) (*qdrant.Store, error) {
	o.Embedder, o.Identity = embedder, identity
	store, err := qdrant.Open(ctx, o)
	if errors.Is(err, qdrant.ErrPlaintextKey) {
		return nil, usagef("QDRANT_API_KEY would go over the network unencrypted: set QDRANT_TLS=true; or, in a network that is yours alone, QDRANT_PLAINTEXT_KEY=true (%w)", err)
	}
	if err != nil {
		return nil, err
	}
	if _, warning := store.ServerVersion(); warning != "" {
		fmt.Fprintln(errOut, "askback:", warning)
	}
	return store, nil
}

// openIndex opens an index file. If it cannot be used, it is moved aside where
// that is asked for.
func openIndex(ctx context.Context, errOut io.Writer, path string, rebuild bool, embedder retrieval.Embedder, identity string) (*local.Index, error) {
	options := local.Options{Path: path, Embedder: embedder, Identity: identity}
	index, err := local.Open(ctx, options)
	if err == nil {
		return index, nil
	}
	unusable := errors.Is(err, local.ErrCorrupt) || errors.Is(err, local.ErrForeign) || errors.Is(err, local.ErrEmbedder)
	if info, statErr := os.Stat(path); !unusable || statErr != nil || !info.Mode().IsRegular() {
		return nil, err // a file that is in use, or a folder, is not to be moved
	}
	if !rebuild {
		return nil, fmt.Errorf("%w\n--rebuild, with the folder to index, moves the file aside and builds a new index", err)
	}
	aside, rebuildErr := local.Rebuild(path)
	if rebuildErr != nil {
		return nil, rebuildErr
	}
	fmt.Fprintf(errOut, "The index could not be used (%v). It was moved to %s; building a new one.\n", err, aside)
	return local.Open(ctx, options)
}

// isFresh reports whether a file is not there yet.
func isFresh(path string) bool {
	if path == "" {
		return false
	}
	_, err := os.Stat(path)
	return errors.Is(err, os.ErrNotExist)
}

// dropIndex closes an index, and removes its file if it holds nothing: it was made
// for a folder in which there is nothing.
func dropIndex(ctx context.Context, index knowledge, path string) {
	held, err := index.Documents(context.WithoutCancel(ctx))
	if err := errors.Join(err, index.Close()); err != nil || len(held) > 0 {
		return
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(path + suffix)
	}
}

// openIngested opens what askback ingest has filled: a Qdrant collection or an
// index file. It gives false if neither is named.
func (a *assistant) openIngested(ctx context.Context) (bool, error) {
	server, err := qdrantSettings(a.source.Index)
	switch {
	case err != nil:
		return true, err
	case server != nil:
		return true, a.openCollection(ctx, *server)
	case a.source.Index != "":
		return true, a.openIndexFile(ctx)
	}
	return false, nil
}

func (a *assistant) openCollection(ctx context.Context, o qdrant.Options) error {
	o.ReadyWait = a.wait
	if a.serving {
		o.RetryFor = servingRetry
	}
	store, err := openQdrant(ctx, a.errOut, o, a.embedder, a.embedder.Identity())
	if err != nil {
		return err
	}
	a.knowledge = store
	if err := a.loadSample(ctx); err != nil {
		return err
	}
	n, err := store.Len(ctx)
	if err != nil {
		return err
	}
	if n == 0 {
		a.nothingLoaded(qdrantName(o), "askback ingest DIR")
		return nil
	}
	a.sources = fmt.Sprintf("%s: %s", qdrantName(o), counted(n, "passage"))
	return nil
}

func (a *assistant) openIndexFile(ctx context.Context) error {
	file, path := a.source.Index, a.source.Index
	if isFresh(path) && !a.source.Sample && !a.serving {
		path = "" // chatting makes no file
	}
	index, err := openIndex(ctx, a.errOut, path, false, a.embedder, a.embedder.Identity())
	if err != nil {
		return err
	}
	a.knowledge = index
	if err := a.loadSample(ctx); err != nil {
		return err
	}
	documents, err := index.Documents(ctx)
	if err != nil {
		return err
	}
	a.documents = slices.Sorted(maps.Keys(documents))
	if index.Len() == 0 {
		a.nothingLoaded(file, "askback ingest DIR --index "+file)
		return nil
	}
	a.sources = fmt.Sprintf("%s: %s, %s", file, counted(len(documents), "document"), counted(index.Len(), "passage"))
	return nil
}

// loadSample puts the sample into a store that holds nothing else, if that is
// wanted: an attempt that was cut off is gone on with. Two processes that do it at
// once write the same. While the store holds the sample, its questions are
// suggested.
func (a *assistant) loadSample(ctx context.Context) error {
	if !a.source.Sample {
		return nil
	}
	pages, err := fs.Glob(sample.Documents, "*.md")
	if err != nil {
		return err
	}
	held, err := a.knowledge.Documents(ctx)
	if err != nil {
		return err
	}
	there := 0
	for _, page := range pages {
		if _, ok := held[page]; ok {
			there++
		}
	}
	if there == len(held) && there < len(pages) {
		if _, err := a.sync(ctx, a.errOut, sample.Documents); err != nil {
			return fmt.Errorf("loading the sample knowledge base: %w", err)
		}
		there = len(pages)
	}
	if there < len(pages) {
		return nil
	}
	return a.suggest()
}

// nothingLoaded says, where questions cannot be answered yet, what to do first.
func (a *assistant) nothingLoaded(where, command string) {
	a.sources = fmt.Sprintf("%s: nothing loaded yet; load a folder with: %s", where, command)
	fmt.Fprintln(a.errOut, "askback: "+a.sources)
}
