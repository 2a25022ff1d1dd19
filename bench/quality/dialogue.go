package main

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/retrieval"
)

// A form makes a query of a question and its dialogue.
type form struct {
	name  string
	query func(ctx context.Context, q question) (retrieval.Query, error)
}

func forms() []form {
	joined := func(turns int) func(context.Context, question) (retrieval.Query, error) {
		return func(_ context.Context, q question) (retrieval.Query, error) {
			return retrieval.Query{Texts: []string{join(q, turns)}}, nil
		}
	}
	return []form{
		{"question alone", joined(0)},
		{"last turn joined", joined(1)},
		{"whole dialogue joined", joined(100)},
		{"resolved by the last question", func(ctx context.Context, q question) (retrieval.Query, error) {
			found, err := asked(ctx, q)
			found.Context = ""
			return found, err
		}},
		{"as the pipeline asks", asked},
	}
}

// join puts the user's last turns before the question.
func join(q question, turns int) string {
	users := said(q.history, conversation.User)
	return strings.Join(append(users[max(0, len(users)-turns):], q.text), " ")
}

func said(history []conversation.Message, role conversation.Role) []string {
	var texts []string
	for _, m := range history {
		if m.Role == role {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

// asked gives what the pipeline searches for: it is run on the dialogue with
// gates that do not ask, and a retriever that only takes the query down.
func asked(ctx context.Context, q question) (retrieval.Query, error) {
	store := conversation.NewMemory()
	claim, err := store.Begin(ctx, conversation.Request{Conversation: "c"})
	if err != nil {
		return retrieval.Query{}, err
	}
	conv := claim.Conversation()
	retell(conv, q.history)
	if err := claim.Commit(ctx, conv); err != nil {
		return retrieval.Query{}, err
	}
	taken := &dictation{}
	p, err := pipeline.New(pipeline.Parts{Store: store, Retriever: taken, Clarifier: content{}, Generator: silent{}})
	if err != nil {
		return retrieval.Query{}, err
	}
	if _, err := p.Ask(ctx, pipeline.Message{Conversation: "c", Text: q.text}); err != nil {
		return retrieval.Query{}, err
	}
	if len(taken.query.Texts) == 0 { // taken for small talk
		taken.query.Texts = []string{q.text}
	}
	return taken.query, nil
}

// retell adds a dialogue to a conversation. What the assistant asked is a
// clarification, and the user's next words complete the question.
func retell(conv *conversation.Conversation, history []conversation.Message) {
	open := ""
	for i := 0; i < len(history); i++ {
		if history[i].Role != conversation.User {
			continue
		}
		t := conversation.Turn{Number: len(conv.Turns) + 1, Text: history[i].Text, Kind: conversation.KindAnswer}
		t.Question = strings.TrimSpace(open + " " + t.Text)
		if i+1 < len(history) && history[i+1].Role == conversation.Assistant {
			t.Reply = history[i+1].Text
		}
		open = ""
		conv.Pending = nil
		if strings.HasSuffix(strings.TrimSpace(t.Reply), "?") {
			t.Kind, open = conversation.KindClarification, t.Question
			conv.Pending = &conversation.Pending{ID: fmt.Sprint("p", i), Gate: string(gate.Post), Question: t.Question, Text: t.Reply, Asked: 1, Since: t.Number}
		}
		conv.Turns = append(conv.Turns, t)
	}
}

type dictation struct{ query retrieval.Query }

func (d *dictation) Retrieve(_ context.Context, q retrieval.Query) ([]retrieval.Passage, error) {
	d.query = q
	return nil, nil
}

type content struct{}

func (content) Clarify(context.Context, gate.Request) (gate.Verdict, error) {
	return gate.Verdict{}, nil
}

type silent struct{}

func (silent) Generate(context.Context, generation.Request) iter.Seq2[generation.Event, error] {
	return func(yield func(generation.Event, error) bool) {
		yield(generation.Event{Done: &generation.Answer{}}, nil)
	}
}
