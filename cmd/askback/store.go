package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/conversation/postgres"
	"github.com/askback/askback/conversation/sqlite"
	"github.com/askback/askback/pipeline"
)

// storeFlags choose where conversations are kept.
type storeFlags struct {
	Store string `help:"Keep conversations here: a file (SQLite), or a postgres:// URL. Default: in memory." placeholder:"FILE|URL"`
}

// waitFlags say how long servers are waited for.
type waitFlags struct {
	Wait time.Duration `help:"How long to wait for a Qdrant server that does not answer yet." default:"2s" placeholder:"TIME"`
}

// limit is the time as options have it, where 0 is none.
func (f waitFlags) limit() time.Duration {
	if f.Wait <= 0 {
		return -1
	}
	return f.Wait
}

// conversationFlags choose the conversation.
type conversationFlags struct {
	storeFlags
	Conversation string `help:"Id of the conversation." default:"default" placeholder:"ID"`
	User         string `help:"Who writes. A conversation belongs to the user who began it." placeholder:"NAME"`
}

// message is what the user of the flags sends.
func (f conversationFlags) message(text string) pipeline.Message {
	return pipeline.Message{Conversation: f.Conversation, User: f.User, Text: text}
}

// open opens the store that the flags name.
func (f storeFlags) open(ctx context.Context) (conversation.Store, error) {
	scheme, _, isURL := strings.Cut(f.Store, "://")
	switch {
	case f.Store == "":
		return conversation.NewMemory(), nil
	case isURL && (scheme == "postgres" || scheme == "postgresql"):
		s, err := postgres.Open(ctx, f.Store, postgres.Options{})
		if err != nil {
			return nil, err
		}
		return s, nil
	case isURL:
		return nil, usagef("--store: %s:// is not known; give a file, or postgres://user:password@host/database", scheme)
	}
	s, err := sqlite.Open(ctx, kong.ExpandPath(f.Store), sqlite.Options{})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// existing opens a store that has to be there already.
func (f storeFlags) existing(ctx context.Context) (conversation.Store, error) {
	if f.Store == "" {
		return nil, usagef("which store? Name it with --store or ASKBACK_STORE; without one, conversations are kept in memory only while the program runs")
	}
	if !strings.Contains(f.Store, "://") {
		if _, err := os.Stat(kong.ExpandPath(f.Store)); err != nil {
			return nil, usagef("--store: %w", err)
		}
	}
	return f.open(ctx)
}

// age is a length of time that may be written in days: 30d, or 12h.
type age time.Duration

// UnmarshalText reads an age.
func (a *age) UnmarshalText(text []byte) error {
	if days, ok := strings.CutSuffix(string(text), "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil || n < 0 || n > 36500 {
			return fmt.Errorf("%q is no number of days; write it as 30d or 12h", text)
		}
		*a = age(time.Duration(n) * 24 * time.Hour)
		return nil
	}
	d, err := time.ParseDuration(string(text))
	if err != nil || d < 0 {
		return fmt.Errorf("%q is no length of time; write it as 30d or 12h", text)
	}
	*a = age(d)
	return nil
}
