package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"

	"github.com/askback/askback/cmd/askback/sample"
	"github.com/askback/askback/server"
	"github.com/askback/askback/server/mcp"
	"github.com/askback/askback/server/openai"
	"github.com/askback/askback/server/tenant"
)

// mcpCommand serves one client of the Model Context Protocol, such as an assistant
// on the desktop, which starts it.
type mcpCommand struct {
	About string `help:"What the documents are about, in a few words, for the model that chooses among its tools." placeholder:"WORDS"`
	sourceFlags
	gateFlags
	storeFlags
	waitFlags
}

// Run answers until the client leaves. Clients wait only a moment for a server that
// they start, so it answers while the documents are still being read; a tool that is
// called meanwhile waits.
func (c *mcpCommand) Run(ctx context.Context, out streams) error {
	ctx, interrupted := interruptible(ctx)
	defer interrupted()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var a *assistant
	var failed error
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		if a, failed = openAssistant(ctx, out.err, setup{source: c.sourceFlags, gates: c.gateFlags, kept: c.storeFlags, wait: c.limit()}); failed != nil {
			stop() // the client reads from standard error why
		}
	}()
	s := mcp.New(mcp.Options{Version: release, About: cmp.Or(c.About, c.about()), Log: slog.New(slog.NewTextHandler(out.err, nil)),
		Backend: func(ctx context.Context) (mcp.Backend, error) {
			select {
			case <-opened:
			case <-ctx.Done():
				return mcp.Backend{}, ctx.Err()
			}
			if failed != nil {
				return mcp.Backend{}, failed
			}
			return mcp.Backend{Pipeline: a.pipeline, Retriever: a.knowledge}, nil
		}})
	err := s.Stream(ctx, out.in, out.out)
	told := ctx.Err() != nil
	stop()
	<-opened
	switch {
	case failed == nil:
		a.close()
	case !errors.Is(failed, context.Canceled):
		return failed
	}
	if told {
		return nil
	}
	return err
}

// about says what is known of the documents.
func (s sourceFlags) about() string {
	if s.Docs == "" && s.Index == "" && os.Getenv("QDRANT_ADDR") == "" {
		return sample.About
	}
	return ""
}

// protocols are the APIs of other programs on the server's port: chat completions as
// OpenAI has them, and the Model Context Protocol.
func (b *serveBackend) protocols(s *server.Server, log *slog.Logger) {
	user := func(r *http.Request) string { return server.User(r.Context()) }
	s.Handle("/v1/", openai.New(openai.Options{User: user, Allow: s.AllowTurn, Begin: s.BeginTurn, Blame: s.Blame, Log: log, Backend: func() (openai.Backend, error) {
		served, err := s.Backend()
		if err != nil {
			return openai.Backend{}, err
		}
		return openai.Backend{Pipeline: served.Pipeline, Store: served.Store}, nil
	}}))
	s.Handle("/mcp", mcp.New(mcp.Options{User: user, Allow: s.AllowTurn, Begin: s.BeginTurn, Work: tenant.With, Log: log, AnyHost: true, Version: release, About: b.command.about(), Backend: func(context.Context) (mcp.Backend, error) {
		served, err := s.Backend()
		if err != nil {
			return mcp.Backend{}, err
		}
		return mcp.Backend{Pipeline: served.Pipeline, Retriever: b.searched()}, nil
	}}).HTTP())
}
