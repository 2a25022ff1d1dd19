// Package load talks to a server of askback as many users do at once, and keeps
// count: of every message it knows whether it was answered, and afterwards whether
// the server has it, once and in its place.
//
// A message has a key and is sent again with it until it is answered, as a client
// does after a lost connection. So whatever fails meanwhile, none may be lost and
// none may stand twice.
package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// questions are what users ask the sample knowledge base: clear ones, and some
// that are asked back.
var questions = []string{
	"What is the rental deposit?", "When do I get it back?", "What does ERR-5172 mean?", "How long does it take to charge the battery?",
	"What is the rental deposit for the cargo bike?", "How many vacation days do I have?", "thanks", "What is the capital of Portugal?",
	"How do I return a bike late?", "Is the battery covered by the warranty?",
}

// Users are the people who talk to a server.
type Users struct {
	URL           func() string // of the server that takes the next request
	Conversations int           // that are open
	InFlight      int           // messages that wait for an answer at once
	Pause         time.Duration // before a message is sent again. 0: 200 ms
	Client        *http.Client  // nil: one of its own
	Name          string        // begins the ids of conversations

	mu    sync.Mutex
	talks []*talk
	count Count
}

// Count is what became of the messages.
type Count struct {
	Sent, Answered int             // messages, each once
	Again          int             // times that one was sent again
	Stored         int             // that the server has
	Lost, Doubled  int             // answered and not there as answered; there twice
	Disordered     int             // conversations whose turns are not in the order sent
	Asked          int             // answers that are clarifications
	Faults         map[string]int  // why a message had to be sent again, or was refused for good
	Latencies      []time.Duration // from the first sending to the answer
}

// talk is one conversation.
type talk struct {
	id      string
	next    int
	sent    []*message
	choice  string // to be clicked
	pending string
}

type message struct {
	Text          string `json:"text,omitempty"`
	Choice        string `json:"choice,omitempty"`
	Clarification string `json:"clarification,omitempty"`
	Key           string `json:"key"`

	answer *string
}

// result is what is read of an answer.
type result struct {
	Kind, Text, Clarification string
	Options                   []struct{ ID string }
}

// Run lets the users talk until ctx ends, then waits at most grace for the answers
// that are due.
func (u *Users) Run(ctx context.Context, grace time.Duration) {
	if u.Client == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = u.InFlight
		u.Client = &http.Client{Transport: t, Timeout: 5 * time.Minute}
		defer t.CloseIdleConnections()
	}
	if u.Pause == 0 {
		u.Pause = 200 * time.Millisecond
	}
	u.count.Faults = map[string]int{}
	idle := make(chan *talk, u.Conversations)
	for i := range u.Conversations {
		t := &talk{id: fmt.Sprintf("%s-%d", u.Name, i), next: i}
		u.talks = append(u.talks, t)
		idle <- t
	}
	last, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	defer stop()
	var all sync.WaitGroup
	for range u.InFlight {
		all.Go(func() {
			for ctx.Err() == nil {
				select {
				case t := <-idle:
					u.say(last, t)
					idle <- t
				case <-ctx.Done():
				}
			}
		})
	}
	all.Wait()
}

// say sends the next message of a conversation until it is answered.
func (u *Users) say(ctx context.Context, t *talk) {
	m := &message{Key: fmt.Sprintf("%s-%d", t.id, len(t.sent))}
	if t.choice != "" {
		m.Choice, m.Clarification = t.choice, t.pending
	} else {
		m.Text = questions[t.next%len(questions)]
		t.next++
	}
	t.choice = ""
	t.sent = append(t.sent, m)
	u.counted(func(c *Count) { c.Sent++ })
	began := time.Now()
	for {
		r, again, err := u.send(ctx, t.id, m)
		if err == nil {
			m.answer = &r.Text
			if r.Kind == "clarification" && len(r.Options) > 0 {
				t.choice, t.pending = r.Options[rand.IntN(len(r.Options))].ID, r.Clarification
			}
			u.counted(func(c *Count) {
				c.Answered++
				c.Latencies = append(c.Latencies, time.Since(began))
				if r.Kind == "clarification" {
					c.Asked++
				}
			})
			return
		}
		u.counted(func(c *Count) { c.Faults[err.Error()]++ })
		if !again || ctx.Err() != nil {
			return
		}
		u.counted(func(c *Count) { c.Again++ })
		select {
		case <-time.After(u.Pause):
		case <-ctx.Done():
			return
		}
	}
}

func (u *Users) counted(f func(*Count)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f(&u.count)
}

// send sends a message once. again tells that it may be answered another time.
func (u *Users) send(ctx context.Context, conversation string, m *message) (r result, again bool, err error) {
	body, err := json.Marshal(m)
	if err != nil {
		return r, false, err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, u.URL()+"/api/conversations/"+conversation+"/turns", bytes.NewReader(body))
	if err != nil {
		return r, false, err
	}
	q.Header.Set("Content-Type", "application/json")
	resp, err := u.Client.Do(q)
	if err != nil {
		return r, true, errors.New("no connection")
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return r, true, errors.New("the answer breaks off")
	}
	if resp.StatusCode != http.StatusOK {
		var p struct{ Code, Title string }
		_ = json.Unmarshal(text, &p)
		// A conflict is a turn that another process has begun: its answer comes.
		again = resp.StatusCode >= 500 || resp.StatusCode == http.StatusConflict || resp.StatusCode == http.StatusTooManyRequests
		return r, again, fmt.Errorf("%d %s", resp.StatusCode, p.Code)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, true, errors.New("the answer is cut off")
	}
	if r.Kind == "" {
		return r, true, errors.New("the answer has no kind")
	}
	return r, false, nil
}

// turn is one of a stored conversation.
type turn struct {
	ID, Kind string
	Number   int
	Result   *struct{ Text string }
}

// Check reads every conversation back from the server at url and completes the count.
func (u *Users) Check(ctx context.Context, url string) (Count, error) {
	c := &u.count
	for _, t := range u.talks {
		if len(t.sent) == 0 {
			continue
		}
		stored, err := u.stored(ctx, url, t.id)
		if err != nil {
			return *c, err
		}
		of, order := map[string][]turn{}, []string{}
		for _, s := range stored {
			of[s.ID] = append(of[s.ID], s)
			order = append(order, s.ID)
		}
		var want []string
		for _, m := range t.sent {
			found := of[m.Key]
			if len(found) > 0 {
				c.Stored++
				want = append(want, m.Key)
			}
			if len(found) > 1 {
				c.Doubled++
			}
			if m.answer != nil && (len(found) == 0 || found[0].Result == nil || found[0].Result.Text != *m.answer) {
				c.Lost++
			}
		}
		if !slices.Equal(want, order) {
			c.Disordered++
		}
	}
	return *c, nil
}

// stored reads the turns of a conversation, oldest first.
func (u *Users) stored(ctx context.Context, url, id string) ([]turn, error) {
	var all []turn
	for before := 0; ; {
		where := url + "/api/conversations/" + id
		if before > 0 {
			where += fmt.Sprintf("?before=%d", before)
		}
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
		if err != nil {
			return nil, err
		}
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			return nil, err
		}
		var page struct {
			Earlier int
			Turns   []turn
		}
		err = json.NewDecoder(resp.Body).Decode(&page)
		resp.Body.Close()
		if resp.StatusCode == http.StatusNotFound {
			return nil, nil
		}
		if err != nil || resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("reading conversation %s back: %s: %v", id, resp.Status, err)
		}
		all = append(page.Turns, all...)
		if page.Earlier == 0 || len(page.Turns) == 0 {
			return all, nil
		}
		before = page.Turns[0].Number
	}
}

// Sound reports whether nothing was lost, doubled or out of order.
func (c Count) Sound() bool { return c.Lost == 0 && c.Doubled == 0 && c.Disordered == 0 }

// String tells the count in a few lines.
func (c Count) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "turns sent %d, answered %d (%d asked back), stored %d, lost %d, doubled %d, out of order %d; sent again %d times\n",
		c.Sent, c.Answered, c.Asked, c.Stored, c.Lost, c.Doubled, c.Disordered, c.Again)
	if len(c.Latencies) > 0 {
		fmt.Fprintf(&b, "from question to answer: p50 %s, p95 %s, p99 %s\n", c.Latency(.5), c.Latency(.95), c.Latency(.99))
	}
	why := make([]string, 0, len(c.Faults))
	for w, n := range c.Faults {
		why = append(why, fmt.Sprintf("%s (%d)", w, n))
	}
	if slices.Sort(why); len(why) > 0 {
		fmt.Fprintf(&b, "faults: %s\n", strings.Join(why, ", "))
	}
	return b.String()
}

// Latency is the time in which a share of the messages was answered, 0 to 1.
func (c Count) Latency(share float64) time.Duration {
	if len(c.Latencies) == 0 {
		return 0
	}
	l := slices.Sorted(slices.Values(c.Latencies))
	return l[min(int(share*float64(len(l))), len(l)-1)].Round(time.Millisecond)
}
