package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/local"
	"github.com/askback/askback/retrieval/minilm"
)

// knowledge is what an assistant answers from, whichever store it is in.
type knowledge interface {
	retrieval.Store
	retrieval.Retriever
	Close() error
}

// target is a store that is ingested into.
type target struct {
	knowledge
	name string // for people
	work *embedding
}

func (t *target) close() {
	_ = t.knowledge.Close()
	_ = t.work.close()
}

// openTarget opens the store that the command and the environment choose.
func openTarget(ctx context.Context, errOut io.Writer, c *ingestCommand, model *minilm.Embedder, work *embedding) (*target, error) {
	if c.Index == "" {
		return nil, usagef("no store is named: give --index FILE (or ASKBACK_INDEX), or set QDRANT_ADDR")
	}
	t := &target{name: c.Index, work: work}
	_, err := os.Stat(c.Index)
	if c.DryRun && errors.Is(err, os.ErrNotExist) {
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

// openIndex opens an index file. If it cannot be used, it is moved aside where
// that is asked for.
func openIndex(ctx context.Context, errOut io.Writer, path string, rebuild bool, embedder retrieval.Embedder, identity string) (*local.Index, error) {
	options := local.Options{Path: path, Embedder: embedder, Identity: identity}
	index, err := local.Open(ctx, options)
	if err != nil && rebuild && (errors.Is(err, local.ErrCorrupt) || errors.Is(err, local.ErrForeign) || errors.Is(err, local.ErrEmbedder)) {
		aside, rebuildErr := local.Rebuild(path)
		if rebuildErr != nil {
			return nil, rebuildErr
		}
		fmt.Fprintf(errOut, "The index could not be used (%v). It was moved to %s; building a new one.\n", err, aside)
		index, err = local.Open(ctx, options)
	}
	if err != nil {
		if path != "" && !rebuild {
			err = fmt.Errorf("%w\n--rebuild moves the file aside and builds a new index", err)
		}
		return nil, err
	}
	return index, nil
}

// openIngested opens what askback ingest has filled.
func (a *assistant) openIngested(ctx context.Context, errOut io.Writer, s sourceFlags, embedder *minilm.Embedder) error {
	path := s.Index
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		path = "" // chatting makes no file
	}
	index, err := openIndex(ctx, errOut, path, false, embedder, embedder.Identity())
	if err != nil {
		return err
	}
	a.knowledge = index
	documents, err := index.Documents(ctx)
	if err != nil {
		return err
	}
	a.documents = slices.Sorted(maps.Keys(documents))
	if index.Len() == 0 {
		a.nothingLoaded(errOut, s.Index, "askback ingest DIR --index "+s.Index)
		return nil
	}
	a.sources = fmt.Sprintf("%s: %s, %s", s.Index, counted(len(documents), "document"), counted(index.Len(), "passage"))
	return nil
}

// nothingLoaded says, where questions cannot be answered yet, what to do first.
func (a *assistant) nothingLoaded(errOut io.Writer, where, command string) {
	a.sources = fmt.Sprintf("%s: nothing loaded yet; load a folder with: %s", where, command)
	fmt.Fprintln(errOut, "askback: "+a.sources)
}
