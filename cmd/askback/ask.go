package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/askback/askback/pipeline"
)

// askCommand runs one turn.
type askCommand struct {
	Question []string `arg:"" help:"The question, or a reply to a clarification in a stored conversation."`
	JSON     bool     `name:"json" help:"Print the result as one JSON object."`
	Why      bool     `help:"Print what happened in the turn to standard error."`
	sourceFlags
	gateFlags
	conversationFlags
	waitFlags
}

// Run asks and prints the result; the exit code says how the turn ended.
func (c *askCommand) Run(ctx context.Context, io streams) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	a, err := openAssistant(ctx, io.err, setup{source: c.sourceFlags, gates: c.gateFlags, kept: c.storeFlags, wait: c.limit()})
	if err != nil {
		return err
	}
	defer a.close()
	result, err := askPatiently(ctx, a.pipeline, c.message(strings.Join(c.Question, " ")), io.err)
	if err != nil {
		return turnError(err)
	}
	record := result.Record()
	if c.JSON {
		if err := json.NewEncoder(printableJSON{io.out}).Encode(record); err != nil {
			return err
		}
	} else {
		printResult(io.out, styleFor(io.out), result, false)
	}
	if c.Why {
		printTrace(io.err, styleFor(io.err), record.Trace)
	}
	if code := exitCode(record.Kind); code != exitAnswered {
		return outcome(code)
	}
	return nil
}

// waiting says for what a turn waits.
func waiting(w pipeline.Waiting) string {
	return "Waiting: another turn of this conversation runs, or was broken off; it is held" + heldBy(w.Held) + "."
}

// askPatiently is Pipeline.Ask that says on errOut for what it waits.
func askPatiently(ctx context.Context, p *pipeline.Pipeline, m pipeline.Message, errOut io.Writer) (pipeline.Result, error) {
	for e, err := range p.Stream(ctx, m) {
		if err != nil {
			return nil, err
		}
		switch e := e.(type) {
		case pipeline.Waiting:
			fmt.Fprintln(errOut, waiting(e))
		case pipeline.Finished:
			return e.Result, nil
		}
	}
	return nil, errors.New("the turn ended without a result")
}
