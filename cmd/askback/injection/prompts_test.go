package injection_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"
	"github.com/tmc/langchaingo/llms"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	ollamagate "github.com/askback/askback/gate/ollama"
	"github.com/askback/askback/gate/prompted"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/internal/ollamatest"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/documents"
)

// recorder is a model that keeps what it is asked, and always says the same.
type recorder struct {
	says  string
	asked []llms.MessageContent
}

func (r *recorder) GenerateContent(_ context.Context, messages []llms.MessageContent, _ ...llms.CallOption) (*llms.ContentResponse, error) {
	r.asked = messages
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: r.says}}}, nil
}

func (r *recorder) Call(context.Context, string, ...llms.CallOption) (string, error) {
	return "", errors.New("unexpected")
}

// said gives what was asked, each message as its role and text.
func (r *recorder) said() (out [][2]string) {
	for _, m := range r.asked {
		out = append(out, [2]string{string(m.Role), m.Parts[0].(llms.TextContent).Text})
	}
	return out
}

// passages are all that the files give.
func passages(t testing.TB, files fs.FS) (out []retrieval.Passage) {
	t.Helper()
	for r, err := range documents.Read(t.Context(), files, documents.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, retrieval.Chunk(r.Document, retrieval.ChunkOptions{})...)
	}
	return out
}

func history(k trick) (out []conversation.Message) {
	for _, said := range k.Said {
		out = append(out, conversation.Message{Role: conversation.User, Text: said}, conversation.Message{Role: conversation.Assistant, Text: said})
	}
	return out
}

// each calls f for each trick in each of its scenes.
func each(t *testing.T, f func(t *testing.T, s scene, k trick, ps []retrieval.Passage)) {
	all := scenes(t)
	for _, k := range tricks(t) {
		for _, name := range k.Scenes {
			t.Run(k.Name+"/"+name, func(t *testing.T) {
				s := all[name]
				f(t, s, k, passages(t, s.documents(t, k)))
			})
		}
	}
}

// marked fails the test if one of the messages holds a mark of a chat template
// or a hidden character.
func marked(t *testing.T, messages [][2]string) {
	t.Helper()
	for i, m := range messages {
		if found := special.FindString(m[1]); found != "" {
			t.Errorf("message %d carries %q:\n%s", i, found, m[1])
		}
		if found := invisible.FindString(m[1]); found != "" {
			t.Errorf("message %d carries %q:\n%s", i, found, m[1])
		}
	}
}

// strictly reads all of a JSON text into v.
func strictly(text string, v any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if d.More() {
		return fmt.Errorf("there is more after it: %q", text[d.InputOffset():])
	}
	return nil
}

var grounded = regexp.MustCompile(`(?s)^<passages>\n(.*)\n</passages>\n\nQuestion: (".*")$`)

// TestGroundedPrompt reads the prompt of generation.Model as a strict reader
// does: the instructions, the dialogue in its roles, and one message whose
// passages and question are JSON and nothing else.
func TestGroundedPrompt(t *testing.T) {
	plain := &recorder{says: "NOT_FOUND"}
	run(t, plain, generation.Request{Question: "q", Passages: []retrieval.Passage{{ID: "a", Text: "b"}}})
	instructions := plain.said()[0]
	each(t, func(t *testing.T, s scene, k trick, ps []retrieval.Passage) {
		m := &recorder{says: "NOT_FOUND"}
		h := history(k)
		run(t, m, generation.Request{Question: s.question(k), History: h, Passages: ps})
		got := m.said()
		marked(t, got)
		if len(got) != 2+min(len(h), 6) || got[0] != instructions {
			t.Fatalf("%d messages, the first %q", len(got), got[0])
		}
		for i, message := range got[1 : len(got)-1] {
			if want := [...]string{"human", "ai"}[i%2]; message[0] != want {
				t.Errorf("message %d is by %s, not by %s", i+1, message[0], want)
			}
		}
		last := got[len(got)-1]
		parts := grounded.FindStringSubmatch(last[1])
		if last[0] != "human" || parts == nil || strings.Count(last[1], "<") != 2 || strings.Count(last[1], ">") != 2 {
			t.Fatalf("by %s:\n%s", last[0], last[1])
		}
		var data []struct {
			N           int
			Title, Text string
		}
		if err := strictly(parts[1], &data); err != nil || len(data) != len(ps) {
			t.Fatalf("%d of %d passages, %v:\n%s", len(data), len(ps), err, parts[1])
		}
		for i, p := range data {
			if p.N != i+1 {
				t.Errorf("passage %d has the number %d", i+1, p.N)
			}
		}
		var question string
		if err := strictly(parts[2], &question); err != nil || question == "" {
			t.Errorf("question %q: %v", parts[2], err)
		}
	})
}

func run(t *testing.T, m llms.Model, r generation.Request) (answer generation.Answer) {
	t.Helper()
	text := ""
	for e, err := range (generation.Model{LLM: m}).Generate(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
		text += e.Delta
		if e.Done != nil {
			answer = *e.Done
		}
	}
	if text != answer.Text {
		t.Errorf("streamed %q, answered %q", text, answer.Text)
	}
	return answer
}

// TestPromptedGate reads the prompt of gate/prompted in the same way, at both
// gates.
func TestPromptedGate(t *testing.T) {
	each(t, func(t *testing.T, s scene, k trick, ps []retrieval.Passage) {
		for _, stage := range []gate.Stage{gate.Pre, gate.Post} {
			m := &recorder{says: `{"clarification": "CLEAR"}`}
			c, err := prompted.New(m, prompted.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r := gate.Request{Stage: stage, Question: s.question(k), History: history(k)}
			if stage == gate.Post {
				r.Passages = ps
			}
			if _, err := c.Clarify(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			got := m.said()
			marked(t, got)
			if len(got) != 2 || got[0][0] != "system" || got[1][0] != "human" || strings.ContainsAny(got[1][1], "<>") {
				t.Fatalf("%q", got)
			}
			var data struct {
				Dialogue []struct{ Role, Text string }
				Question string
				Passages []struct{ Title, Text string }
			}
			if err := strictly(got[1][1], &data); err != nil || len(data.Passages) != len(r.Passages) || len(data.Dialogue) != min(len(r.History), 12) {
				t.Fatalf("%v:\n%s", err, got[1][1])
			}
		}
	})
}

var (
	listed = regexp.MustCompile(`(?s)^(You are a helpful assistant with access .*<documents></documents> XML tags:\n<documents>)\n(.*)\n(</documents>\n\nWrite the response .*)$`)
)

// TestServedGate reads what gate/ollama sends to a server: the documents are a
// list of JSON lines inside of one pair of tags, numbered in order.
func TestServedGate(t *testing.T) {
	fake := ollamatest.NewFake(t, ollamatest.Turn{Pieces: []string{`{"clarification": "CLEAR"}`}})
	c, err := ollamagate.New(ollamagate.Options{Host: fake.URL, Model: "fake", HTTP: fake.HTTP})
	if err != nil {
		t.Fatal(err)
	}
	var before, after string // the frame, the same in all
	each(t, func(t *testing.T, s scene, k trick, ps []retrieval.Passage) {
		r := gate.Request{Stage: gate.Post, Question: s.question(k), History: history(k), Passages: ps}
		if _, err := c.Clarify(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		asked := fake.Asked()
		messages := asked[len(asked)-1].Messages
		var got [][2]string
		for _, m := range messages {
			got = append(got, [2]string{m.Role, m.Content})
		}
		marked(t, got)
		if len(messages) != 2+min(len(r.History), 16) || messages[0].Role != "system" || messages[len(messages)-1].Role != "user" {
			t.Fatalf("%q", got)
		}
		for i, m := range messages[1 : len(messages)-1] {
			if want := [...]string{"user", "assistant"}[i%2]; m.Role != want {
				t.Errorf("message %d is by %s, not by %s", i+1, m.Role, want)
			}
		}
		checkDocuments(t, messages[0], ps, &before, &after)
	})
}

func checkDocuments(t *testing.T, system api.Message, ps []retrieval.Passage, before, after *string) {
	t.Helper()
	parts := listed.FindStringSubmatch(system.Content)
	if parts == nil || strings.Count(system.Content, "<documents>") != 2 || strings.Count(system.Content, "</documents>") != 2 {
		t.Fatalf("the list of documents is broken out of:\n%s", system.Content)
	}
	if *before == "" {
		*before, *after = parts[1], parts[3]
	}
	if parts[1] != *before || parts[3] != *after {
		t.Errorf("the frame differs:\n%s", system.Content)
	}
	lines := strings.Split(parts[2], "\n")
	if len(lines) != len(ps) {
		t.Fatalf("%d lines for %d passages:\n%s", len(lines), len(ps), parts[2])
	}
	for i, line := range lines {
		var d struct {
			Text string `json:"text"`
			ID   string `json:"doc_id"`
		}
		if err := strictly(line, &d); err != nil || d.ID != fmt.Sprint(i+1) {
			t.Errorf("line %d: %v: %s", i+1, err, line)
		}
	}
}

// TestGullibleModel lets a model be taken in by every trick: it says what it was
// told to, as an answer and as a clarification. What of that reaches the reader
// is text without marks, markup and hidden characters, and asks for no secret.
func TestGullibleModel(t *testing.T) {
	refused := 0
	each(t, func(t *testing.T, s scene, k trick, ps []retrieval.Passage) {
		for _, text := range append(values(k.Put), values(k.Files)...) {
			answer := run(t, &recorder{says: "ANSWER: It is so [1]. " + text + " [1] [42]"}, generation.Request{Question: s.Question, Passages: ps})
			for _, what := range []*regexp.Regexp{special, invisible, markup} {
				if m := what.FindString(answer.Text); m != "" {
					t.Errorf("the answer carries %q: %q", m, answer.Text)
				}
			}
			if strings.Contains(answer.Text, "[42]") {
				t.Errorf("the answer cites a passage that is not there: %q", answer.Text)
			}
			reply, _ := json.Marshal(map[string]string{"clarification": text})
			c, err := prompted.New(&recorder{says: string(reply)}, prompted.Options{})
			if err != nil {
				t.Fatal(err)
			}
			v, err := c.Clarify(t.Context(), gate.Request{Stage: gate.Post, Question: s.Question, Passages: ps})
			if errors.Is(err, prompted.ErrReply) {
				refused++
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, what := range []*regexp.Regexp{special, invisible, secrets} {
				if m := what.FindString(v.Clarification); m != "" {
					t.Errorf("the clarification carries %q: %q", m, v.Clarification)
				}
			}
			if strings.Contains(v.Clarification, "://") {
				t.Errorf("the clarification gives a link: %q", v.Clarification)
			}
		}
	})
	if refused == 0 {
		t.Error("no clarification was refused")
	}
}

func values(m map[string]string) (out []string) {
	for _, v := range m {
		out = append(out, v)
	}
	return out
}
