package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	api "github.com/qdrant/go-client/qdrant"

	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/qdrant"
)

// engine is Qdrant's edge engine behind the tests' front, in a process of its
// own: one shard, on disk.
type engine struct {
	store
	options qdrant.Options
	indexed bool // after filling, indexes of vectors are built
	folder  string
	cmd     *exec.Cmd
	client  *api.Client
}

// python is the variable that names the interpreter with the engine;
// internal/qdranttest/setup makes one and prints its name.
const python = "ASKBACK_QDRANT_PYTHON"

func openEngine(layout qdrant.Layout, indexed bool) func(context.Context, *corpus) (contender, error) {
	return func(ctx context.Context, c *corpus) (contender, error) {
		if os.Getenv(python) == "" {
			return nil, fmt.Errorf("%s is not set; it names a Python with Qdrant's engine, which internal/qdranttest/setup makes", python)
		}
		folder, err := os.MkdirTemp("", "qdrant-")
		if err != nil {
			return nil, err
		}
		e := &engine{folder: folder, indexed: indexed}
		e.given = &given{corpus: c}
		e.options = qdrant.Options{Embedder: e.given, Layout: layout, NoWait: true, CallTimeout: 10 * time.Minute}
		if err := e.start(ctx); err != nil {
			e.close()
			return nil, err
		}
		return e, nil
	}
}

// start starts the engine over its folder, and connects to it.
func (e *engine) start(ctx context.Context, args ...string) error {
	e.cmd = exec.Command(os.Getenv(python), append([]string{"../../internal/qdranttest/server.py", e.folder}, args...)...)
	e.cmd.Stderr = os.Stderr
	out, err := e.cmd.StdoutPipe()
	if err == nil {
		err = e.cmd.Start()
	}
	if err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	port, convErr := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(line), "ready "))
	if err != nil || convErr != nil {
		return fmt.Errorf("starting Qdrant's engine: %q", line)
	}
	e.options.Addr = fmt.Sprintf("127.0.0.1:%d", port)
	s, err := qdrant.Open(ctx, e.options)
	if err != nil {
		return err
	}
	e.store.store = s
	e.client, err = api.NewClient(&api.Config{Host: "127.0.0.1", Port: port, SkipCompatibilityCheck: true})
	return err
}

// stop ends the engine, which writes down what it has.
func (e *engine) stop() {
	if e.client != nil {
		_ = e.client.Close()
	}
	_ = e.cmd.Process.Signal(syscall.SIGTERM)
	_ = e.cmd.Wait()
}

// ready builds the indexes of vectors, and waits until no more is built. (The
// last segment, which is written to, has none.)
func (e *engine) ready(ctx context.Context) error {
	if !e.indexed {
		return nil
	}
	e.stop()
	if err := e.start(ctx, "--optimize"); err != nil {
		return err
	}
	for before := uint64(0); ; time.Sleep(5 * time.Second) {
		info, err := e.client.GetCollectionInfo(ctx, qdrant.DefaultCollection)
		if err != nil {
			return err
		}
		now := info.GetIndexedVectorsCount()
		if now > 0 && now == before {
			return nil
		}
		before = now
	}
}

// dense asks the engine for the vector alone, without what the store adds.
func (e *engine) dense(ctx context.Context, vector []float32) ([]string, error) {
	found, err := e.client.Query(ctx, &api.QueryPoints{
		CollectionName: qdrant.DefaultCollection, Query: api.NewQueryDense(vector), Using: api.PtrOf("dense"),
		Limit: api.PtrOf(uint64(10)), WithPayload: api.NewWithPayloadInclude("id"),
	})
	var ids []string
	for _, p := range found {
		ids = append(ids, p.GetPayload()["id"].GetStringValue())
	}
	return ids, err
}

func (e *engine) words(ctx context.Context, text string) ([]string, error) {
	hits, err := e.store.store.(*qdrant.Store).Search(ctx, qdrant.Search{Query: retrieval.Query{Texts: []string{text}, Limit: 10}, Mode: qdrant.Words})
	var ids []string
	for _, h := range hits {
		ids = append(ids, h.ID)
	}
	return ids, err
}

func (e *engine) memory() float64 { return resident(strconv.Itoa(e.cmd.Process.Pid)) }

func (e *engine) close() {
	e.stop()
	_ = os.RemoveAll(e.folder)
}
