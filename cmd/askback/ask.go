package main

import (
	"context"
	"encoding/json"
	"strings"
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
