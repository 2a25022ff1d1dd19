// Command scale compares stores as they grow: the embedded index, chromem-go,
// bleve, and Qdrant's engine.
//
//	cd bench/scale && go run . [-sizes 10000,100000,1000000] [-only local,...] [-limit 5m]
//
// For each it prints how long it took to fill, what memory it takes, how many of
// the ten nearest passages it finds, and how long a search takes, one at a time.
// Each runs in a process of its own, is given the same vectors (384 numbers, in
// clusters) and texts (60 words), and is stopped if filling takes longer than
// the limit. Searches are dense (a vector), by words, or hybrid (both, fused).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/qdrant"
)

var contenders = []struct {
	name string
	open func(context.Context, *corpus) (contender, error)
}{
	{"local", openLocal},
	{"chromem-go", openChromem},
	{"bleve", openBleve},
	{"qdrant-flat", openEngine(qdrant.Layout{}, false)},
	{"qdrant", openEngine(qdrant.Layout{}, true)},
	{"qdrant-int8", openEngine(qdrant.Layout{Quantization: qdrant.Scalar, OnDisk: true}, true)},
}

// running is the corpus of this process.
var running *corpus

func main() {
	log.SetFlags(0)
	sizes := flag.String("sizes", "10000,100000,1000000", "numbers of passages")
	only := flag.String("only", "", "names of contenders; empty for all")
	limit := flag.Duration("limit", 5*time.Minute, "time to fill a contender")
	queries := flag.Int("queries", 100, "searches of each kind; a quarter of them from a million on")
	one := flag.String("one", "", "(used by itself) the contender to run here")
	truth := flag.String("truth", "", "(used by itself) file of the nearest passages")
	flag.Parse()
	if *one != "" {
		n, err := strconv.Atoi(*sizes)
		if err == nil {
			err = run(*one, n, *limit, *truth)
		}
		if err != nil {
			log.Fatal(err)
		}
		return
	}
	fmt.Printf("%s/%s, %d cores, %s\n\n", runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), runtime.Version())
	fmt.Println("| passages | store | filled, passages/s | memory, MiB | recall@10 | dense, ms (p95) | hybrid, ms (p95) | words, ms (p95) |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	dir, err := os.MkdirTemp("", "scale-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, size := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil {
			log.Fatal(err)
		}
		asked := *queries
		if n >= 1_000_000 {
			asked = max(asked/4, 10)
		}
		file := filepath.Join(dir, size+".json")
		data, err := json.Marshal(newCorpus(n).nearest(asked))
		if err == nil {
			err = os.WriteFile(file, data, 0o600)
		}
		if err != nil {
			log.Fatal(err)
		}
		for _, c := range contenders {
			if *only != "" && !slices.Contains(strings.Split(*only, ","), c.name) {
				continue
			}
			cmd := exec.Command(os.Args[0], "-one", c.name, "-sizes", size, "-truth", file, "-limit", limit.String())
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			if err := cmd.Run(); err != nil {
				fmt.Printf("| %d | %s | failed: %v |||||| \n", n, c.name, err)
			}
		}
	}
}

// run fills and asks one contender, and prints its line.
func run(name string, n int, limit time.Duration, truth string) error {
	ctx := context.Background()
	debug.SetGCPercent(50)
	i := slices.IndexFunc(contenders, func(c struct {
		name string
		open func(context.Context, *corpus) (contender, error)
	}) bool {
		return c.name == name
	})
	if i < 0 {
		return fmt.Errorf("no contender %q", name)
	}
	var nearest [][]int
	data, err := os.ReadFile(truth)
	if err == nil {
		err = json.Unmarshal(data, &nearest)
	}
	if err != nil {
		return err
	}
	running = newCorpus(n)
	c, err := contenders[i].open(ctx, running)
	if err != nil {
		return err
	}
	defer c.close()
	took, done, err := fill(ctx, c, limit)
	if err != nil {
		return err
	}
	fmt.Printf("| %d | %s | ", n, name)
	if done < n {
		fmt.Printf("stopped at %d after %.0f s ||||||\n", done, took.Seconds())
		return nil
	}
	fmt.Printf("%.0f | %.0f | ", float64(n)/took.Seconds(), c.memory())
	found := make([]int, len(nearest))
	dense, err := timed(len(nearest), func(q int) error {
		ids, err := c.dense(ctx, running.vector(n+q))
		found[q] = 0
		for _, i := range nearest[q] {
			id, _, _ := strings.Cut(running.text(i), " ")
			if slices.Contains(ids, id) {
				found[q]++
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	hybrid, err := timed(len(nearest), func(q int) error {
		_, err := c.hybrid(ctx, running.vector(n+q), running.question(n+q))
		return err
	})
	if err != nil {
		return err
	}
	words, err := timed(len(nearest), func(q int) error {
		_, err := c.words(ctx, running.question(n+q))
		return err
	})
	if err != nil {
		return err
	}
	recall := "–"
	if dense != "–" {
		all := 0
		for _, f := range found {
			all += f
		}
		recall = fmt.Sprintf("%.3f", float64(all)/float64(10*len(nearest)))
	}
	fmt.Printf("%s | %s | %s | %s |\n", recall, dense, hybrid, words)
	return nil
}

// fill adds all documents, as long as the limit allows. The time is that of the
// contender, without that of making the data.
func fill(ctx context.Context, c contender, limit time.Duration) (took time.Duration, done int, err error) {
	documents := (running.n + perDoc - 1) / perDoc
	for d := 0; d < documents; {
		var batch []retrieval.Chunked
		passages := 0
		for ; d < documents && len(batch) < 50; d++ {
			batch = append(batch, running.document(d))
			passages += len(batch[len(batch)-1].Passages)
		}
		start := time.Now()
		if err := c.add(ctx, batch); err != nil {
			return took, done, err
		}
		took += time.Since(start)
		done += passages
		if took > limit {
			return took, done, nil
		}
	}
	start := time.Now()
	err = c.ready(ctx)
	return took + time.Since(start), done, err
}

// timed asks n times, after once for warmth, and gives the median and 95th
// percentile of the times.
func timed(n int, ask func(q int) error) (string, error) {
	if err := ask(0); errors.Is(err, errNot) {
		return "–", nil
	} else if err != nil {
		return "", err
	}
	times := make([]time.Duration, n)
	for q := range n {
		start := time.Now()
		if err := ask(q); err != nil {
			return "", err
		}
		times[q] = time.Since(start)
	}
	slices.Sort(times)
	ms := func(share float64) float64 { return float64(times[min(n-1, int(share*float64(n)))]) / 1e6 }
	return fmt.Sprintf("%.1f (%.1f)", ms(.5), ms(.95)), nil
}
