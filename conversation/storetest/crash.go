package storetest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/askback/askback/conversation"
)

// kills is how many processes Crash kills.
var kills = flag.Int("kills", 12, "processes that the crash test kills, for each store")

// childVariable holds, in a process that Crash started, where the store is, and
// the message with which the process begins, or nothing.
const (
	childVariable = "STORETEST_CHILD"
	retryVariable = "STORETEST_RETRY"
)

// crashLease is short, so that the next process need not wait long for the claim
// of one that was killed.
const crashLease = 250 * time.Millisecond

// Child is called first in TestMain by a package whose tests call Crash. In a
// process that Crash started it says things in the store that open gives, until
// it is killed, and reports true.
func Child(open func(ctx context.Context, where string, o Options) (conversation.Store, error)) bool {
	where := os.Getenv(childVariable)
	if where == "" {
		return false
	}
	ctx := context.Background()
	s, err := open(ctx, where, Options{Lease: crashLease})
	if err != nil {
		fmt.Println("error", err)
		return true
	}
	text := os.Getenv(retryVariable)
	for i := 0; ; i++ {
		if text == "" {
			text = fmt.Sprintf("%d.%d", os.Getpid(), i)
		}
		if err := submit(ctx, s, text, i); err != nil {
			fmt.Println("error", err)
			return true
		}
		text = ""
	}
}

// submit sends one message, whose text is its key, and says on standard output
// how far it came: sent, kept, done or lost.
func submit(ctx context.Context, s conversation.Store, text string, i int) error {
	fmt.Println("sent", text)
	claim, err := s.Begin(ctx, conversation.Request{Conversation: crashed, Text: text, Key: text, Last: 5})
	var repeat *conversation.RepeatError
	if errors.As(err, &repeat) {
		fmt.Println("done", text, repeat.Turn.Number)
		return nil
	}
	if err != nil {
		return err
	}
	defer claim.Release()
	fmt.Println("kept", text)
	time.Sleep(time.Duration(rand.IntN(4)) * time.Millisecond) // it thinks
	c := claim.Conversation()
	number := c.Next()
	turn := conversation.Turn{Number: number, Text: text, Question: text, Kind: conversation.KindAnswer, Reply: "re: " + text}
	c.Pending = nil
	if i%3 == 0 {
		turn.Kind = conversation.KindClarification
		p := conversation.Pending{ID: fmt.Sprint("c", number), Question: text, Text: turn.Reply, Since: number}
		c.Pending, c.Asked = &p, append(c.Asked, p)
	}
	c.Turns = append(c.Turns, turn)
	switch err := claim.Commit(ctx, c); {
	case errors.Is(err, conversation.ErrLost): // it stood still for longer than its lease
		fmt.Println("lost", text)
		return nil
	case err != nil:
		return err
	}
	fmt.Println("done", text, number)
	return nil
}

// crashed is the conversation that all processes of Crash write to.
const crashed = "x"

// said is what the processes were told by the store, by message.
type said struct {
	mu   sync.Mutex
	sent []string
	kept map[string]bool
	done map[string]int // the number of the turn
}

func (s *said) line(line string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	what, rest, _ := strings.Cut(line, " ")
	text, number, _ := strings.Cut(rest, " ")
	switch what {
	case "sent":
		s.sent = append(s.sent, text)
	case "kept":
		s.kept[text] = true
	case "done":
		n, err := strconv.Atoi(number)
		if before, again := s.done[text]; err != nil || again && before != n {
			return fmt.Errorf("message %s is turn %s and was %d", text, number, before)
		}
		s.done[text] = n
	case "lost":
	default:
		return errors.New(line)
	}
	return nil
}

// Crash kills processes at random moments, two of which write to one
// conversation at a time, and looks at it after each: the turns are numbered
// without gaps, what a process was told is stored is there, and no message is
// answered twice, though half of the messages on the way are sent again. A flag,
// -kills, says how many to kill. The test binary's TestMain must call Child.
func Crash(t *testing.T, where string, open func(t *testing.T) conversation.Store) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	told := &said{kept: map[string]bool{}, done: map[string]int{}}
	store := open(t)
	retries := []string{"", ""}
	repeated := 0
	for round := 0; 2*round < *kills; round++ {
		var wg sync.WaitGroup
		for p, retry := range retries {
			after := time.Duration(random.IntN(150)) * time.Millisecond
			patient := random.IntN(3) > 0 // until it was answered once, however slow the machine is
			if retry != "" {
				repeated++
			}
			wg.Go(func() { retries[p] = runAndKill(t, where, retry, patient, after, told) })
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		checkCrashed(t, store, told)
		for p := range retries {
			if random.IntN(2) == 0 {
				retries[p] = ""
			}
		}
	}
	t.Logf("%d kills: %d messages sent, %d of them sent again after a kill, %d kept, %d answered", *kills, len(told.sent), repeated, len(told.kept), len(told.done))
	if len(told.done) < *kills/4 {
		t.Errorf("only %d turns were acknowledged: the test tests little", len(told.done))
	}
	if _, err := Say(t.Context(), store, crashed, "still here"); err != nil { // the conversation goes on
		t.Error(err)
	}
}

// runAndKill runs a process, kills it, and gives the message that was on its
// way then.
func runAndKill(t *testing.T, where, retry string, patient bool, after time.Duration, told *said) (underway string) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+where, retryVariable+"="+retry)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return ""
	}
	first, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		lines := bufio.NewScanner(out)
		answered := sync.OnceFunc(func() { close(first) })
		for lines.Scan() {
			line := lines.Text()
			if err := told.line(line); err != nil {
				t.Error(err)
			}
			switch {
			case strings.HasPrefix(line, "kept "):
			case strings.HasPrefix(line, "sent "):
				underway = strings.TrimPrefix(line, "sent ")
			default:
				underway = ""
			}
			if strings.HasPrefix(line, "done ") {
				answered()
			}
		}
	}()
	if patient {
		select {
		case <-first:
		case <-done:
		case <-time.After(time.Minute):
			t.Error("a process was not answered for a minute")
		}
	}
	time.Sleep(after)
	_ = cmd.Process.Kill()
	<-done
	_ = cmd.Wait()
	if stderr.Len() > 0 {
		t.Errorf("standard error: %s", stderr.String())
	}
	return underway
}

// checkCrashed holds the conversation against what the processes were told.
func checkCrashed(t *testing.T, s conversation.Store, told *said) {
	t.Helper()
	c, err := s.Load(t.Context(), crashed, conversation.All)
	if errors.Is(err, conversation.ErrNotFound) && len(told.kept) == 0 {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	turns := slices.Clone(c.Turns)
	if c.Open != nil {
		turns = append(turns, *c.Open)
	}
	answered, broken := map[string]int{}, map[string]bool{}
	asked, pending := map[string]bool{}, ""
	for i, turn := range turns {
		if turn.Number != i+1 {
			t.Fatalf("turn %d of %d is numbered %d", i+1, len(turns), turn.Number)
		}
		if turn.Key != turn.Text {
			t.Fatalf("turn %d is %+v", turn.Number, turn)
		}
		switch turn.Kind {
		case conversation.KindClarification:
			pending = fmt.Sprint("c", turn.Number)
			asked[pending] = true
		case conversation.KindAnswer:
			pending = ""
		default: // a process died
			broken[turn.Text] = true
			continue
		}
		if n := answered[turn.Text]; n > 0 || turn.Reply != "re: "+turn.Text {
			t.Fatalf("turn %d is %+v; it is answered in turn %d too", turn.Number, turn, n)
		}
		answered[turn.Text] = turn.Number
	}
	for text, number := range told.done {
		if answered[text] != number {
			t.Fatalf("message %s was acknowledged as turn %d and is turn %d", text, number, answered[text])
		}
	}
	for text := range told.kept {
		if answered[text] == 0 && !broken[text] {
			t.Fatalf("message %s was kept and is lost", text)
		}
	}
	if got := c.Pending; (got == nil) != (pending == "") || got != nil && got.ID != pending {
		t.Fatalf("the pending clarification is %+v, want %q", got, pending)
	}
	kept := map[string]bool{}
	for _, a := range c.Asked {
		kept[a.ID] = true
	}
	if len(kept) != len(c.Asked) || len(asked) <= conversation.MaxAsked && !maps.Equal(asked, kept) {
		t.Fatalf("clarifications %v, want %v", slices.Sorted(maps.Keys(kept)), slices.Sorted(maps.Keys(asked)))
	}
}
