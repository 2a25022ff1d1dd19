package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/askback/askback/conversation"
)

// conversationsCommand looks after what a store keeps.
type conversationsCommand struct {
	List   listConversations   `cmd:"" help:"List conversations, the last changed first."`
	Show   showConversation    `cmd:"" help:"Show a conversation."`
	Export exportConversations `cmd:"" help:"Print conversations with everything that is kept of them, as a JSON array."`
	Delete deleteConversations `cmd:"" help:"Delete conversations with everything that is kept of them."`
}

// filterFlags choose conversations.
type filterFlags struct {
	User      string `help:"The conversations of this user." placeholder:"NAME" env:"-"`
	OlderThan age    `help:"The conversations that last changed longer ago than this, such as 30d or 12h." placeholder:"AGE" env:"-"`
}

func (f filterFlags) filter() conversation.Filter {
	filter := conversation.Filter{User: f.User}
	if f.OlderThan > 0 {
		filter.Before = time.Now().Add(-time.Duration(f.OlderThan))
	}
	return filter
}

// each is the filter for each of the ids, or for all conversations. An id that is
// empty, as of a script's unset variable, would leave all of them and is refused;
// one that stands twice counts once.
func (f filterFlags) each(ids []string) ([]conversation.Filter, error) {
	if len(ids) == 0 {
		return []conversation.Filter{f.filter()}, nil
	}
	var filters []conversation.Filter
	for i, id := range ids {
		if err := conversation.CheckID(id); err != nil {
			return nil, usagef("%w", err)
		}
		if slices.Contains(ids[:i], id) {
			continue
		}
		filter := f.filter()
		filter.ID = id
		filters = append(filters, filter)
	}
	return filters, nil
}

func unknown(id string) error { return usagef("%w: %q", conversation.ErrNotFound, id) }

type listConversations struct {
	JSON bool `name:"json" help:"Print a JSON object for each conversation."`
	storeFlags
	filterFlags
}

// Run lists.
func (c *listConversations) Run(ctx context.Context, out streams) error {
	store, err := c.existing(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	table := tabwriter.NewWriter(out.out, 0, 0, 2, ' ', 0)
	defer table.Flush()
	encoder := json.NewEncoder(printableJSON{out.out})
	n := 0
	for i, err := range store.List(ctx, c.filter()) {
		if err != nil {
			return err
		}
		if c.JSON {
			if err := encoder.Encode(i); err != nil {
				return err
			}
			continue
		}
		if n++; n == 1 {
			fmt.Fprintln(table, "CONVERSATION\tUSER\tTURNS\tCHANGED\tTITLE\t")
		}
		state := ""
		switch {
		case i.Running:
			state = "a turn runs"
		case i.Pending:
			state = "waits for a reply"
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\n", printable(i.ID), printable(i.User), i.Turns, i.Changed.Local().Format(time.DateTime), printable(i.Title), state)
	}
	if n == 0 && !c.JSON {
		fmt.Fprintln(out.err, "No conversations.")
	}
	return nil
}

type showConversation struct {
	ID   string `arg:"" help:"Id of the conversation."`
	Last int    `help:"Show only so many turns, the last ones." env:"-"`
	JSON bool   `name:"json" help:"Print it as one JSON object."`
	storeFlags
}

// Run shows.
func (c *showConversation) Run(ctx context.Context, out streams) error {
	store, err := c.existing(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	last := conversation.All
	if c.Last > 0 {
		last = c.Last
	}
	kept, err := store.Load(ctx, c.ID, last)
	switch {
	case errors.Is(err, conversation.ErrNotFound):
		return unknown(c.ID)
	case err != nil:
		return err
	case c.JSON:
		return json.NewEncoder(printableJSON{out.out}).Encode(kept)
	}
	printConversation(out.out, styleFor(out.out), kept)
	return nil
}

// printConversation writes the dialogue as the chat shows it.
func printConversation(w io.Writer, s style, c *conversation.Conversation) {
	if c.Earlier > 0 {
		fmt.Fprintln(w, s.dim(fmt.Sprintf("(%s before these)", counted(c.Earlier, "turn"))))
	}
	for _, t := range c.Turns {
		fmt.Fprintf(w, "%s%s\n", s.bold("> "+printable(t.Text)), s.dim("   "+t.At.Local().Format(time.DateTime)))
		reply := printable(t.Reply)
		switch {
		case t.Kind == conversation.KindClarification:
			reply = s.ask("? ") + reply
		case t.Kind == conversation.KindPartial && reply == "":
			reply = s.dim("(broken off before an answer)")
		case t.Kind == conversation.KindPartial:
			reply += s.dim(" (broken off)")
		}
		fmt.Fprintf(w, "%s\n\n", reply)
	}
	if c.Open != nil {
		at := "(broken off: the process that answered it has ended)"
		if c.Held != nil {
			at = "(being answered" + heldBy(*c.Held) + ")"
		}
		fmt.Fprintf(w, "%s\n%s\n\n", s.bold("> "+printable(c.Open.Text)), s.dim(at))
	}
	if c.Pending != nil {
		fmt.Fprintln(w, s.dim("The clarification waits for a reply. It is about: "+printable(c.Pending.Question)))
		for _, o := range c.Pending.Options {
			fmt.Fprintf(w, "  %s  %s\n", printable(o.ID), printable(o.Text))
		}
	}
}

// heldBy says which process runs a turn, and how long its claim holds if it is
// dead.
func heldBy(h conversation.Held) (by string) {
	if h.By != "" {
		by = " by " + printable(h.By)
	}
	if !h.Until.IsZero() {
		by += ", whose claim runs out at " + h.Until.Local().Format(time.TimeOnly) + " unless it is at work"
	}
	return by
}

type exportConversations struct {
	IDs []string `arg:"" optional:"" name:"id" help:"Ids of the conversations. Default: all that the other flags leave."`
	storeFlags
	filterFlags
}

// Run exports.
func (c *exportConversations) Run(ctx context.Context, out streams) error {
	filters, err := c.each(c.IDs)
	if err != nil {
		return err
	}
	store, err := c.existing(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	var ids []string
	for _, f := range filters {
		n := len(ids)
		for i, err := range store.List(ctx, f) {
			if err != nil {
				return err
			}
			ids = append(ids, i.ID)
		}
		if f.ID != "" && len(ids) == n {
			return unknown(f.ID)
		}
	}
	separator := "[\n"
	for _, id := range ids {
		kept, err := store.Load(ctx, id, conversation.All)
		if errors.Is(err, conversation.ErrNotFound) { // deleted meanwhile
			continue
		}
		if err != nil {
			return err
		}
		text, err := json.Marshal(kept)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(printableJSON{out.out}, "%s%s", separator, text); err != nil {
			return fmt.Errorf("writing the export: %w", err)
		}
		separator = ",\n"
	}
	if separator == "[\n" {
		_, err = fmt.Fprintln(out.out, "[]")
	} else {
		_, err = fmt.Fprintln(out.out, "\n]")
	}
	return err
}

type deleteConversations struct {
	IDs []string `arg:"" optional:"" name:"id" help:"Ids of the conversations. Default: all that the other flags leave; one of them has to be given then."`
	storeFlags
	filterFlags
}

// Run deletes.
func (c *deleteConversations) Run(ctx context.Context, out streams) error {
	filters, err := c.each(c.IDs)
	if err != nil {
		return err
	}
	if filters[0].IsZero() {
		return usagef("which conversations? Give their ids, --user or --older-than")
	}
	store, err := c.existing(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	deleted := 0
	for _, f := range filters {
		n, err := store.Delete(ctx, f)
		if err != nil {
			return err
		}
		if n == 0 && f.ID != "" && c.OlderThan == 0 {
			return unknown(f.ID)
		}
		deleted += n
	}
	fmt.Fprintf(out.out, "deleted %s\n", counted(deleted, "conversation"))
	return nil
}
