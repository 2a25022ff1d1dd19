// Command soak keeps a server busy for a while, as many users do, and tells whether
// it stays well: no error, no turn lost, no gate that lets a turn pass unread, memory
// that does not grow, and no goroutine left afterwards.
//
//	go run ./bench/soak                                              # 10 minutes
//	go run ./bench/soak -duration 30s -conversations 100 -inflight 20
//
// It builds the program of this tree and serves the sample with the embedded parts
// and a SQLite store. The exit code is 1 if the server is not well.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/askback/askback/bench/load"
)

var (
	duration      = flag.Duration("duration", 10*time.Minute, "how long users talk")
	conversations = flag.Int("conversations", 1000, "open conversations")
	inFlight      = flag.Int("inflight", 200, "turns that wait for their answers at once")
	store         = flag.String("store", "", "the store, as --store of askback serve (default a new SQLite file)")
)

const (
	growth = 1.15 // of memory in the second half, which is still called flat
	left   = 20   // goroutines more than before that may be left, of connections in the pool
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("soak: ")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := run(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(ctx context.Context) (ok bool, err error) {
	folder, err := os.MkdirTemp("", "askback-soak")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(folder)
	binary, err := load.Build(ctx, folder)
	if err != nil {
		return false, err
	}
	if *store == "" {
		*store = filepath.Join(folder, "talk.db")
	}
	server, err := load.Start(ctx, binary, nil, "--store", *store)
	if err != nil {
		return false, err
	}
	defer server.Stop()
	if err := server.Ready(ctx); err != nil {
		return false, err
	}
	before, err := metric(server.URL, goroutines)
	if err != nil {
		return false, err
	}
	if before == 0 {
		return false, fmt.Errorf("%s/metrics does not tell the number of goroutines", server.URL)
	}
	fmt.Printf("%d conversations, %d turns in flight, %s, %d cores, %s/%s\n", *conversations, *inFlight, *duration, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)

	users := &load.Users{URL: func() string { return server.URL }, Conversations: *conversations, InFlight: *inFlight, Name: fmt.Sprint("soak-", time.Now().UnixNano())}
	talking, end := context.WithTimeout(ctx, *duration)
	defer end()
	memory := make(chan []float64)
	go func() { memory <- sample(talking, server.PID(), max(*duration/60, time.Second)) }()
	users.Run(talking, 5*time.Minute)
	rss := <-memory

	count, err := users.Check(ctx, server.URL)
	if err != nil {
		return false, err
	}
	fmt.Print(count)
	fmt.Printf("%.1f turns a second\n", float64(count.Answered)/duration.Seconds())
	ok = true
	wrong := func(format string, args ...any) {
		ok = false
		fmt.Printf("NOT WELL: "+format+"\n", args...)
	}
	if !count.Sound() || count.Answered < count.Sent || len(count.Faults) > 0 {
		wrong("turns failed, were lost or doubled")
	}
	if len(rss) >= 8 {
		half := rss[len(rss)/2:]
		third, last := mean(half[:len(half)/2]), mean(half[len(half)/2:])
		fmt.Printf("memory in MiB: %s %.0f at most, third quarter %.0f, last quarter %.0f\n", chart(rss), highest(rss), third, last)
		if last > third*growth {
			wrong("memory grows")
		}
	}
	http.DefaultClient.CloseIdleConnections()
	decided, err := metric(server.URL, "askback_gate_decisions_total")
	if err != nil {
		return false, err
	}
	var skipped float64
	for _, reason := range []string{"time limit", "failed"} {
		n, err := metric(server.URL, "askback_gate_decisions_total", `askback_reason="`+reason+`"`)
		if err != nil {
			return false, err
		}
		skipped += n
	}
	fmt.Printf("gates: %.0f decisions, %.0f without the clarifier's word\n", decided, skipped)
	if decided == 0 || skipped > 0 {
		wrong("gates let turns pass unread")
	}
	var after float64
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		if after, err = metric(server.URL, goroutines); err != nil {
			return false, err
		}
		if after <= before+left {
			break
		}
	}
	fmt.Printf("goroutines: %.0f before, %.0f after\n", before, after)
	if after > before+left {
		wrong("goroutines are left")
	}
	return ok, nil
}

const goroutines = "go_goroutines"

// metric reads a metric of the server, summed over what bears all the labels.
func metric(url, name string, labels ...string) (sum float64, err error) {
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	in := bufio.NewScanner(resp.Body)
	for in.Scan() {
		series, value, ok := strings.Cut(in.Text(), "} ")
		if !ok { // without labels
			series, value, _ = strings.Cut(in.Text(), " ")
		}
		rest, ok := strings.CutPrefix(series, name)
		if !ok || rest != "" && rest[0] != '{' || slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(rest, l) }) {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("%s/metrics: %s is no number: %w", url, name, err)
		}
		sum += n
	}
	return sum, in.Err()
}

// sample reads a process's resident memory until ctx ends, in MiB; nothing where the
// system does not tell it.
func sample(ctx context.Context, pid int, every time.Duration) []float64 {
	var out []float64
	for {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return out
		}
		for line := range strings.Lines(string(data)) {
			if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
				kib, _ := strconv.ParseFloat(strings.Fields(v)[0], 64)
				out = append(out, kib/1024)
			}
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return out
		}
	}
}

func mean(v []float64) (m float64) {
	for _, x := range v {
		m += x / float64(len(v))
	}
	return m
}

func highest(v []float64) (m float64) {
	for _, x := range v {
		m = max(m, x)
	}
	return m
}

// chart draws values from zero as a line of blocks.
func chart(v []float64) string {
	const blocks = "▁▂▃▄▅▆▇█"
	runes, top := []rune(blocks), highest(v)
	var b strings.Builder
	for _, x := range v {
		b.WriteRune(runes[min(int(x/top*float64(len(runes))), len(runes)-1)])
	}
	return b.String()
}
