// Command turn measures what a user waits for: start-up, a whole turn by
// stage, indexing, and memory.
//
//	go run ./bench/turn
package main

import (
	"context"
	"fmt"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing/fstest"
	"time"

	"github.com/askback/askback/cmd/askback/sample"
	"github.com/askback/askback/gate/lora"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/documents"
	"github.com/askback/askback/retrieval/local"
	"github.com/askback/askback/retrieval/minilm"
)

const rounds = 3 // over the sample's questions

func main() {
	log.SetFlags(0)
	fmt.Printf("%s/%s, %d cores, %s\n\n", runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), runtime.Version())
	startUp()
	embedder := must(minilm.New())
	index := indexing(embedder)
	turns(embedder, index)
}

// startUp builds the program and times it from start to exit with one turn.
func startUp() {
	dir := must(os.MkdirTemp("", "askback-bench-"))
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "askback")
	if out, err := exec.Command("go", "build", "-o", binary, "./cmd/askback").CombinedOutput(); err != nil {
		log.Fatalf("building the program: %v\n%s", err, out)
	}
	var wall []time.Duration
	var peak int64
	for range 5 {
		cmd := exec.Command(binary, "chat")
		cmd.Stdin = strings.NewReader("")
		start := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			log.Fatalf("running the program: %v\n%s", err, out)
		}
		wall = append(wall, time.Since(start))
		if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			peak = max(peak, u.Maxrss) // KiB on Linux
		}
	}
	info := must(os.Stat(binary))
	fmt.Printf("start-up to the first prompt   %6.0f ms (median of %d)\n", ms(median(wall)), len(wall))
	fmt.Printf("memory at the first prompt     %6.0f MiB (peak)\n", float64(peak)/1024)
	fmt.Printf("program                        %6.0f MiB\n\n", float64(info.Size())/(1<<20))
}

// indexing embeds the sample without its built-in vectors, several times over
// under other names.
func indexing(embedder *minilm.Embedder) *local.Index {
	ctx := context.Background()
	folder := fstest.MapFS{}
	var bytes int
	for _, name := range must(fs.Glob(sample.Documents, "*.md")) {
		data := must(fs.ReadFile(sample.Documents, name))
		bytes += len(data)
		folder[name] = &fstest.MapFile{Data: data}
	}
	index := must(local.Open(ctx, local.Options{Embedder: embedder}))
	inputs := documents.Inputs(ctx, folder, documents.InputOptions{Chunk: retrieval.ChunkOptions{Count: embedder.Count}})
	start := time.Now()
	report := must(retrieval.Sync(ctx, index, inputs, retrieval.SyncOptions{}))
	took := time.Since(start)
	fmt.Printf("indexing                       %6.0f passages/s (%d passages of %d bytes on average)\n\n",
		float64(report.Passages)/took.Seconds(), report.Passages, bytes/report.Passages)
	return index
}

// turns asks the sample's questions, each in a conversation of its own.
func turns(embedder *minilm.Embedder, index *local.Index) {
	p := must(pipeline.New(pipeline.Parts{Retriever: index, Clarifier: must(lora.New(nil)), Generator: generation.Extractive{Embedder: embedder}}))
	by := map[string][]time.Duration{}
	var order []string
	for round := range rounds {
		for _, q := range must(sample.Questions()) {
			start := time.Now()
			r := must(p.Ask(context.Background(), pipeline.Message{Conversation: fmt.Sprint(q.ID, round), Text: q.Question}))
			stages := append(r.Record().Trace.Stages, pipeline.StageTime{Name: "whole turn", Elapsed: time.Since(start)})
			for _, s := range stages {
				if by[s.Name] == nil && s.Name != "whole turn" {
					order = append(order, s.Name)
				}
				by[s.Name] = append(by[s.Name], s.Elapsed)
			}
		}
	}
	fmt.Println("a turn, by stage               median      p95")
	for _, name := range append(order, "whole turn") {
		fmt.Printf("  %-26s %8.1f %8.1f ms\n", name, ms(median(by[name])), ms(quantile(by[name], .95)))
	}
}

func quantile(d []time.Duration, q float64) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[min(len(d)-1, int(q*float64(len(d))))]
}

func median(d []time.Duration) time.Duration { return quantile(d, .5) }

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
