// Rules prints what the rules of package conversation say of each reply of a bank:
//
//	go run ./training/replies/rules FILE... > rules.jsonl
//
// train.py fits the reader's decision to it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/retrieval/minilm"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "rules:", err)
		os.Exit(1)
	}
}

func run(files []string) error {
	encoder, err := minilm.New()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, name := range files {
		if err := read(name, encoder, json.NewEncoder(out)); err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
	}
	return nil
}

func read(name string, encoder *minilm.Embedder, out *json.Encoder) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c struct {
			ID      string
			Pending conversation.Pending
			Reply   string
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return err
		}
		ctx := context.Background()
		matched, err := conversation.Fold(ctx, c.Pending, c.Reply, encoder)
		if err != nil {
			return err
		}
		if err := out.Encode(map[string]any{"id": c.ID, "matched": matched}); err != nil {
			return err
		}
	}
	return lines.Err()
}
