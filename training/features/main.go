// Command features reads labelled cases and writes, for each case and gate,
// the numbers that the clarifier's decision rests on: the input of
// training/decision.py. The program that will decide computes them, so that
// training and use cannot differ.
//
//	go run ./training/features [-adapter DIR] CASES.jsonl > FEATURES.jsonl
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"

	"github.com/askback/askback/gate"
	"github.com/askback/askback/gate/evaluate"
	"github.com/askback/askback/gate/lora"
)

// row is one line of the output.
type row struct {
	ID     string     `json:"id"`
	Group  string     `json:"group"`
	Domain string     `json:"domain"`
	Kind   string     `json:"kind"`
	Gate   gate.Stage `json:"gate"`
	Label  int        `json:"label"`
	Names  []string   `json:"names"`
	Values []float64  `json:"values"`
}

func main() {
	adapter := flag.String("adapter", "", "folder of the adapter; empty: the embedded one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *adapter, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "features:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, adapter string, files []string) error {
	if len(files) == 0 {
		return fmt.Errorf("name at least one file of cases")
	}
	var folder fs.FS
	if adapter != "" {
		folder = os.DirFS(adapter)
	}
	clarifier, err := lora.New(folder)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, name := range files {
		if err := dump(ctx, clarifier, name, json.NewEncoder(out)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return out.Flush()
}

func dump(ctx context.Context, clarifier *lora.Clarifier, name string, out *json.Encoder) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	cases, err := evaluate.Read(f)
	if err != nil {
		return err
	}
	for _, s := range []gate.Stage{gate.Pre, gate.Post} {
		for i, c := range cases {
			if i%50 == 0 {
				fmt.Fprintf(os.Stderr, "\r%s: gate %s, %d of %d ", name, s, i, len(cases))
			}
			ask, ok := c.Label(s)
			if !ok {
				continue
			}
			fs, err := clarifier.Features(ctx, c.Request(s))
			if err != nil {
				return fmt.Errorf("case %s: %w", c.ID, err)
			}
			r := row{ID: c.ID, Group: c.Group, Domain: c.Domain, Kind: c.Kind, Gate: s}
			if ask {
				r.Label = 1
			}
			for _, f := range fs {
				r.Names, r.Values = append(r.Names, f.Name), append(r.Values, f.Value)
			}
			if err := out.Encode(r); err != nil {
				return err
			}
		}
	}
	fmt.Fprintln(os.Stderr)
	return nil
}
