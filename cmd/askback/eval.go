package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/askback/askback/gate"
	"github.com/askback/askback/gate/evaluate"
)

// evalCommand measures the clarifier on labelled cases.
type evalCommand struct {
	Cases       string `arg:"" help:"Cases, one JSON object a line; - reads standard input. training/data/README.md describes the format."`
	Gate        string `help:"Measure one gate only: pre or post." enum:",pre,post" default:"" env:"-"`
	Predictions string `help:"Write a line for each case and gate to this file." type:"path" placeholder:"OUT.jsonl" env:"-"`
	JSON        bool   `name:"json" help:"Print the report as JSON."`
	gateFlags
}

// patience is the time for a decision that nobody waits for: a machine that is busy for
// a moment does not end an evaluation.
const patience = time.Minute

// Run reads the cases, runs the gates and prints the report.
func (c *evalCommand) Run(ctx context.Context, io streams) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	cases, err := c.read(io.in)
	if err != nil {
		return err
	}
	if sameFile(c.Predictions, c.Cases) {
		return usagef("--predictions would overwrite the cases; name another file")
	}
	screen, err := c.clarifier()
	if err != nil {
		return err
	}
	clarifier, err := c.cascade(screen)
	if err != nil {
		return err
	}
	g := gate.Gate{Clarifier: clarifier, Policy: c.policy()}
	g.Policy.TimeLimit = max(g.Policy.TimeLimit, patience)
	stages := []gate.Stage{gate.Pre, gate.Post}
	if c.Gate != "" {
		stages = []gate.Stage{gate.Stage(c.Gate)}
	}
	predictions, err := c.predict(ctx, io.err, g, cases, stages)
	if err != nil {
		return err
	}
	reports := []evaluate.Report{}
	for _, s := range stages {
		reports = append(reports, evaluate.Measure(s, g.Threshold(s), predictions))
	}
	if c.JSON {
		out := json.NewEncoder(printableJSON{io.out})
		out.SetIndent("", "  ")
		return out.Encode(reports)
	}
	return printReports(io.out, reports)
}

func (c *evalCommand) read(in io.Reader) ([]evaluate.Case, error) {
	name := "standard input"
	if c.Cases != "-" {
		f, err := os.Open(c.Cases)
		if err != nil {
			return nil, usagef("reading cases: %w", err)
		}
		defer f.Close()
		in, name = f, c.Cases
	}
	cases, err := evaluate.Read(in)
	if err != nil {
		return nil, usagef("reading cases from %s: %w", name, err)
	}
	return cases, nil
}

// predict runs the gates over the cases, with progress on a terminal. The
// predictions file appears whole or not at all.
func (c *evalCommand) predict(ctx context.Context, errOut io.Writer, g gate.Gate, cases []evaluate.Case, stages []gate.Stage) (ps []evaluate.Prediction, err error) {
	var out *bufio.Writer
	if c.Predictions != "" {
		if info, err := os.Stat(c.Predictions); err == nil && info.IsDir() {
			return nil, usagef("writing predictions: %s is a folder", c.Predictions)
		}
		f, createErr := os.CreateTemp(dirOf(c.Predictions), ".predictions-*")
		if createErr != nil {
			return nil, usagef("writing predictions: %w", createErr)
		}
		defer os.Remove(f.Name()) // gone already if it was renamed
		defer func() {
			if err == nil {
				err = finish(out, f, c.Predictions)
			}
			f.Close()
		}()
		out = bufio.NewWriter(f)
	}
	total := 0
	for _, s := range stages {
		for _, k := range cases {
			if _, ok := k.Label(s); ok {
				total++
			}
		}
	}
	bar := progress(errOut, total, "evaluating")
	defer bar.Finish()
	for p, runErr := range evaluate.Run(ctx, g, cases, stages...) {
		if runErr != nil {
			return nil, runErr
		}
		ps = append(ps, p)
		_ = bar.Add(1)
		if out == nil {
			continue
		}
		line, err := json.Marshal(p)
		if err == nil {
			_, err = out.Write(append(line, '\n'))
		}
		if err != nil {
			return nil, fmt.Errorf("writing predictions: %w", err)
		}
	}
	return ps, nil
}

// sameFile reports whether two names are of one file.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

func finish(out *bufio.Writer, f *os.File, name string) error {
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing predictions: %w", err)
	}
	if err := f.Chmod(fs.FileMode(0o644)); err != nil {
		return fmt.Errorf("writing predictions: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("writing predictions: %w", err)
	}
	return os.Rename(f.Name(), name)
}

// progress is a progress bar on a terminal and nothing elsewhere.
func progress(w io.Writer, total int, what string, more ...progressbar.Option) *progressbar.ProgressBar {
	return progressbar.NewOptions(total, append([]progressbar.Option{
		progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what),
		progressbar.OptionSetVisibility(isTerminal(w)), progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(30),
	}, more...)...)
}

func printReports(w io.Writer, reports []evaluate.Report) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "gate\tcases\task\taccuracy\trecall\tprecision\tover-asking\tAUC\tcalibration\tthreshold\tms\t")
	for _, r := range reports {
		fmt.Fprintf(t, "%s\t%d\t%d\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.1f\t\n",
			r.Gate, r.Cases, r.Asking, r.Accuracy, r.Recall, r.Precision, r.OverAsking, r.AUC, r.CalibrationError, r.Threshold, r.MedianMs)
	}
	for _, r := range reports {
		if r.OptionCases > 0 {
			fmt.Fprintf(t, "\ngate %s options\tcases\tprecision\trecall\t\n\t%d\t%.3f\t%.3f\t\n", r.Gate, r.OptionCases, r.OptionPrecision, r.OptionRecall)
		}
	}
	for _, r := range reports {
		if len(r.ByKind) == 0 {
			continue
		}
		fmt.Fprintf(t, "\ngate %s by kind\tcases\tasked\tright\t\t\n", r.Gate)
		for _, k := range r.ByKind {
			share := float64(k.Right) / float64(k.Cases)
			fmt.Fprintf(t, "%s\t%d\t%d\t%.2f\t%s\t\n", printable(k.Kind), k.Cases, k.Asked, share, bar(share, 20))
		}
	}
	return t.Flush()
}

// bar draws a share, 0 to 1, as a bar of that width.
func bar(share float64, width int) string {
	n := int(share*float64(width) + .5)
	n = max(0, min(n, width))
	return strings.Repeat("█", n) + strings.Repeat("░", width-n)
}
