package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/pipeline"
)

var programKills = flag.Int("kills", 6, "times that TestProgramKilled kills the program, for each store")

// asProgram in the environment makes the test binary the program.
const asProgram = "ASKBACK_TEST_AS_PROGRAM"

// sentMessage is a message of the crash test, and what is known of it.
type sentMessage struct {
	Conversation string `json:"conversation"`
	Text         string `json:"text"`
	Key          string `json:"key"`
	answer       *pipeline.Record
}

// TestProgramKilled kills the program at random moments while it talks over the
// sample, starts it again, and sends half of the messages that were on their way
// again. Nothing that it had answered may be lost, no message be answered twice,
// and no reply to a clarification lose the question.
func TestProgramKilled(t *testing.T) {
	stores := map[string]string{"SQLite": filepath.Join(t.TempDir(), "talk.db")}
	if url := os.Getenv("ASKBACK_TEST_POSTGRES"); url != "" {
		stores["PostgreSQL"] = url
	}
	for name, where := range stores {
		t.Run(name, func(t *testing.T) { killProgram(t, where) })
	}
}

func killProgram(t *testing.T, where string) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	user := fmt.Sprint("crash test ", seed)
	defer run(t.Context(), []string{"conversations", "delete", "--store", where, "--user", user}, streams{strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}})
	script := []string{"What is the rental deposit?", "Cargo 2", "When do I get it back?", "What does ERR-5172 mean?", "thanks"}
	// A conversation is left alone for a while after the program was killed in the
	// middle of its turn, until the claim has run out; others go on meanwhile.
	conversations := max(2, min(12, *programKills/3))
	next, underway := make([]int, conversations), make([]*sentMessage, conversations)
	sent := map[string]*sentMessage{}
	repeated := 0
	for round := range *programKills {
		n := round % conversations
		if t.Failed() {
			return
		}
		p := startProgram(t, "chat", "--json", "--store", where, "--user", user)
		kill := func() { _ = p.cmd.Process.Kill() }
		var fatal *time.Timer
		patient := random.IntN(4) > 0 // until it has answered once, however slow the machine is
		if !patient {
			fatal = time.AfterFunc(time.Duration(random.IntN(500))*time.Millisecond, kill)
		}
		if m := underway[n]; m != nil && random.IntN(2) == 0 {
			next[n]--
		} else {
			underway[n] = nil
		}
		silent := time.AfterFunc(5*time.Minute, func() {
			t.Error("the program fell silent")
			kill()
		})
		for {
			m := underway[n]
			if m == nil {
				id := fmt.Sprintf("%s %d", user, n)
				m = &sentMessage{Conversation: id, Text: script[next[n]%len(script)], Key: fmt.Sprint("k", len(sent))}
				sent[m.Key] = m
			} else {
				repeated++
			}
			next[n]++
			underway[n] = m
			record, ok := p.say(t, m)
			if !ok {
				break
			}
			m.answer, underway[n] = &record, nil
			if patient {
				patient = false
				fatal = time.AfterFunc(time.Duration(random.IntN(1000))*time.Millisecond, kill)
			}
		}
		silent.Stop()
		if fatal != nil {
			fatal.Stop()
		}
		kill()
		_ = p.cmd.Wait()
		for line := range strings.Lines(p.err.String()) {
			if !strings.HasPrefix(line, "Waiting: ") { // for the claim of the one killed before
				t.Fatalf("standard error: %s", line)
			}
		}
	}
	checkKilled(t, where, user, sent)
	answered := 0
	for _, m := range sent {
		if m.answer != nil {
			answered++
		}
	}
	t.Logf("%d kills: %d messages sent, %d sent again, %d answered", *programKills, len(sent), repeated, answered)
	if answered == 0 {
		t.Error("nothing was answered: the test tests nothing")
	}
}

// checkKilled holds what is exported against what was answered.
func checkKilled(t *testing.T, where, user string, sent map[string]*sentMessage) {
	var out, errOut bytes.Buffer
	if code := run(t.Context(), []string{"conversations", "export", "--store", where, "--user", user}, streams{strings.NewReader(""), &out, &errOut}); code != 0 {
		t.Fatalf("export: exit code %d, %s", code, errOut.String())
	}
	var all []conversation.Conversation
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	found := map[string]conversation.Turn{}
	for _, c := range all {
		var last conversation.Turn // whole
		for i, turn := range c.Turns {
			m := sent[turn.Key]
			if turn.Number != i+1 || m == nil || m.Conversation != c.ID || m.Text != turn.Text {
				t.Fatalf("conversation %s, turn %d is %+v", c.ID, i+1, turn)
			}
			if turn.Kind == conversation.KindPartial {
				continue
			}
			if _, twice := found[turn.Key]; twice || turn.Reply == "" {
				t.Errorf("conversation %s: message %s (%s) is answered twice or empty: %+v", c.ID, turn.Key, turn.Text, turn)
			}
			found[turn.Key] = turn
			for _, word := range []string{"deposit", "back"} {
				if last.Kind == conversation.KindClarification && turn.Text == "Cargo 2" && strings.Contains(last.Question, word) && !strings.Contains(turn.Question, word) {
					t.Errorf("conversation %s, turn %d: the question %q is lost: %q", c.ID, turn.Number, last.Question, turn.Question)
				}
			}
			last = turn
		}
		if waits := c.Pending != nil; waits != (last.Kind == conversation.KindClarification) {
			t.Errorf("conversation %s: pending %+v after a turn of kind %s", c.ID, c.Pending, last.Kind)
		}
	}
	for key, m := range sent {
		if m.answer == nil {
			continue
		}
		turn, there := found[key]
		if !there || turn.Number != m.answer.Turn || turn.Reply != m.answer.Text || turn.Kind != m.answer.Kind {
			t.Errorf("message %s was answered by turn %d, %q, and is kept as %+v", key, m.answer.Turn, m.answer.Text, turn)
		}
	}
}

// program is a process of askback that talks in JSON.
type program struct {
	cmd *exec.Cmd
	in  *json.Encoder
	out *bufio.Reader
	err bytes.Buffer
}

func startProgram(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{cmd: exec.Command(os.Args[0], args...)}
	p.cmd.Env = append(os.Environ(), asProgram+"=1", "ASKBACK_GATE_TIMEOUT="+slow)
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = &p.err
	p.in, p.out = json.NewEncoder(in), bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// say sends a message and gives the result; false says that the program is dead.
func (p *program) say(t *testing.T, m *sentMessage) (r pipeline.Record, ok bool) {
	if err := p.in.Encode(m); err != nil {
		return r, false
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return r, false
	}
	if err := json.Unmarshal(line, &r); err != nil {
		t.Errorf("%s: %v", line, err)
	}
	return r, true
}
