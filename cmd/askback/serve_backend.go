package main

import (
	"context"
	"errors"
	"io"

	"github.com/cenkalti/backoff/v5"

	"github.com/askback/askback/server"
	"github.com/askback/askback/server/web"
)

// serveBackend opens what is served, as the flags say.
type serveBackend struct {
	command *serveCommand
	err     io.Writer

	assistant *assistant
}

// open opens it. What the user has to put right ends the attempts.
func (b *serveBackend) open(ctx context.Context) (*server.Backend, error) {
	c := b.command
	a, err := openAssistant(ctx, b.err, c.sourceFlags, c.gateFlags, conversationFlags{storeFlags: c.storeFlags})
	if errors.Is(err, errUsage) {
		return nil, backoff.Permanent(err)
	}
	if err != nil {
		return nil, err
	}
	b.assistant = a
	return &server.Backend{Pipeline: a.pipeline, Store: a.store}, nil
}

func (b *serveBackend) close() {
	if b.assistant != nil {
		b.assistant.close()
	}
}

// checks look at the services that the flags name.
func (b *serveBackend) checks() []server.Check { return nil }

// handlers are what is served beside the API.
func (b *serveBackend) handlers(s *server.Server) {
	s.Handle("/", web.Handler())
}
