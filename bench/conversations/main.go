// Command conversations measures what a turn costs in a short and in a long
// conversation: the store alone, claim and commit, and a whole turn of the
// pipeline over parts that take no time. The answer to look for is the ratio of
// the two: 1 means that a turn costs the same however long the conversation is. It
// grows until the conversation is longer than what a turn reads of it, the last 50
// turns and 128 clarifications, which a conversation of middle length shows.
//
//	go run ./bench/conversations
//
// PostgreSQL is measured if ASKBACK_TEST_POSTGRES names a server; see
// conversation/postgres/testserver.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/conversation/postgres"
	"github.com/askback/askback/conversation/sqlite"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/retrieval"
)

func main() {
	log.SetFlags(0)
	long := flag.Int("long", 10_000, "turns of the long conversation")
	samples := flag.Int("samples", 200, "turns to time in each")
	flag.Parse()
	if err := run(context.Background(), *long, *samples); err != nil {
		log.Fatal(err)
	}
}

const short = 10 // turns

func run(ctx context.Context, long, samples int) error {
	dir, err := os.MkdirTemp("", "askback-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file, err := sqlite.Open(ctx, filepath.Join(dir, "c.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	stores := []struct {
		name  string
		store conversation.Store
	}{{"memory", conversation.NewMemory()}, {"SQLite", file}}
	if url := os.Getenv("ASKBACK_TEST_POSTGRES"); url != "" {
		s, err := postgres.Open(ctx, url, postgres.Options{})
		if err != nil {
			return err
		}
		stores = append(stores, struct {
			name  string
			store conversation.Store
		}{"PostgreSQL", s})
	}
	fmt.Printf("%-10s  %-14s  %10s  %10s  %11s  %s\n", "median of", "", fmt.Sprint(short, " turns"), fmt.Sprint(long/10, " turns"), fmt.Sprint(long, " turns"), "ratio to the short, the middle one")
	for _, s := range stores {
		if err := measure(ctx, s.name, s.store, long, samples); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if err := s.store.Close(); err != nil {
			return err
		}
	}
	return nil
}

// measure times turns in the conversations in turn, so that what else the machine
// does hits all.
func measure(ctx context.Context, name string, s conversation.Store, long, samples int) error {
	user := fmt.Sprint("bench ", time.Now().UnixNano())
	defer s.Delete(ctx, conversation.Filter{User: user})
	p, err := pipeline.New(pipeline.Parts{Store: s, Retriever: parts{}, Generator: parts{}})
	if err != nil {
		return err
	}
	for _, what := range []struct {
		name string
		turn func(id string) error
	}{
		{"claim, commit", func(id string) error { return add(ctx, s, id, user, 1, 0) }},
		{"whole turn", func(id string) error {
			_, err := p.Ask(ctx, pipeline.Message{Conversation: id, User: user, Text: "How long does it take to charge the battery of the Cargo 2?"})
			return err
		}},
	} {
		lengths := []int{short, long / 10, long}
		times := make([][]time.Duration, len(lengths))
		for i, length := range lengths {
			if err := add(ctx, s, fmt.Sprint(what.name, i), user, length, 5); err != nil {
				return err
			}
		}
		for n := range samples {
			for i := range lengths {
				id := fmt.Sprint(what.name, i)
				if i == 0 { // stays short
					id = fmt.Sprint(what.name, i, ".", n)
					if err := add(ctx, s, id, user, short, 5); err != nil {
						return err
					}
				}
				start := time.Now()
				if err := what.turn(id); err != nil {
					return err
				}
				times[i] = append(times[i], time.Since(start))
			}
		}
		a, b, c := median(times[0]), median(times[1]), median(times[2])
		fmt.Printf("%-10s  %-14s  %7.3f ms  %7.3f ms  %8.3f ms  %.2f  %.2f\n", name, what.name, ms(a), ms(b), ms(c), float64(c)/float64(a), float64(c)/float64(b))
	}
	return nil
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

var detail, _ = json.Marshal(map[string]string{"trace": strings.Repeat("a passage and its score, ", 80)}) // as large as a turn's

// add adds turns, one in so many of them with a clarification (none if 0).
func add(ctx context.Context, s conversation.Store, id, user string, turns, clarify int) error {
	claim, err := s.Begin(ctx, conversation.Request{Conversation: id, User: user, Text: "a question"})
	if err != nil {
		return err
	}
	defer claim.Release()
	c := claim.Conversation()
	for range turns {
		n := c.Next()
		question := fmt.Sprintf("What does step %d of the procedure say about the deposit?", n)
		c.Turns = append(c.Turns, conversation.Turn{Number: n, Text: question, Question: question, Kind: conversation.KindAnswer,
			Reply: strings.Repeat("The deposit is released after the return. ", 5), Detail: detail})
		if clarify > 0 && n%clarify == 0 {
			c.Asked = append(c.Asked, conversation.Pending{ID: fmt.Sprint("c", n), Question: question, Text: fmt.Sprintf("Which bike, in step %d?", n),
				Options: []conversation.Option{{ID: "1", Text: "Cargo"}, {ID: "2", Text: "City"}}, Chosen: []string{"Cargo"}, Settled: conversation.ReplyChoice})
		}
	}
	return claim.Commit(ctx, c)
}

// parts are a retriever and a generator that take no time.
type parts struct{}

func (parts) Retrieve(context.Context, retrieval.Query) ([]retrieval.Passage, error) {
	return []retrieval.Passage{{ID: "p", Title: "Charging", Text: "It takes 6 hours."}}, nil
}

func (parts) Generate(context.Context, generation.Request) iter.Seq2[generation.Event, error] {
	return func(yield func(generation.Event, error) bool) {
		yield(generation.Event{Done: &generation.Answer{Text: "It takes 6 hours. [1]", Found: true}}, nil)
	}
}
