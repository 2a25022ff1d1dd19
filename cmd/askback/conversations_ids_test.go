package main

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/conversation/sqlite"
)

// An id that is named twice is one conversation.
func TestExportTwice(t *testing.T) {
	store := filepath.Join(t.TempDir(), "c.db")
	s, err := sqlite.Open(t.Context(), store, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	claim, err := s.Begin(t.Context(), conversation.Request{Conversation: "a", Text: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	c := claim.Conversation()
	c.Turns = append(c.Turns, conversation.Turn{Number: 1, Text: "hello", Kind: conversation.KindAnswer, Reply: "hi"})
	if err := errors.Join(claim.Commit(t.Context(), c), s.Close()); err != nil {
		t.Fatal(err)
	}
	out, errOut, code := command(t, "", "conversations", "export", "a", "a", "--store", store)
	var kept []conversation.Conversation
	if err := json.Unmarshal([]byte(out), &kept); err != nil || code != 0 || len(kept) != 1 {
		t.Errorf("%d conversations, code %d, %v: %s%s", len(kept), code, err, out, errOut)
	}
	if _, errOut, code := command(t, "", "conversations", "delete", "a", "a", "--store", store); code != 0 {
		t.Errorf("deleting it: code %d: %s", code, errOut)
	}
}
