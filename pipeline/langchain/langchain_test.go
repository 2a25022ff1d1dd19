package langchain_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/fake"
	"github.com/tmc/langchaingo/memory"
	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/vectorstores"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/pipeline/langchain"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/local"
)

// letters embeds a text as its letter counts.
type letters struct{}

func (letters) EmbedQuery(_ context.Context, text string) ([]float32, error) {
	v := make([]float32, 26)
	for _, r := range strings.ToLower(text) {
		if r >= 'a' && r <= 'z' {
			v[r-'a']++
		}
	}
	v[0] += .01
	return v, nil
}

func (l letters) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	var out [][]float32
	for _, t := range texts {
		v, _ := l.EmbedQuery(ctx, t)
		out = append(out, v)
	}
	return out, nil
}

func openIndex(t *testing.T) *local.Index {
	t.Helper()
	x, err := local.Open(t.Context(), local.Options{Embedder: letters{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	return x
}

var docs = []schema.Document{
	{PageContent: "The deposit for a City is 200.", Metadata: map[string]any{"document": "city.md", "title": "Deposit: City", "source": "city.md", "lang": "en"}},
	{PageContent: "The deposit for a Cargo is 450.", Metadata: map[string]any{"document": "cargo.md", "title": "Deposit: Cargo", "source": "cargo.md", "lang": "en"}},
	{PageContent: "Die Kaution beträgt 300.", Metadata: map[string]any{"document": "kaution.md", "title": "Kaution", "source": "kaution.md", "lang": "de"}},
}

func TestVectorStore(t *testing.T) {
	x := openIndex(t)
	store := langchain.NewVectorStore(x)
	for range 2 { // the same content twice is stored once
		if _, err := store.AddDocuments(t.Context(), docs); err != nil {
			t.Fatal(err)
		}
	}
	if x.Len() != len(docs) {
		t.Errorf("%d passages after adding %d documents twice", x.Len(), len(docs))
	}
	found, err := store.SimilaritySearch(t.Context(), "deposit Cargo", 1)
	if err != nil || len(found) != 1 || found[0].Metadata["title"] != "Deposit: Cargo" {
		t.Errorf("%+v, %v", found, err)
	}
	found, err = store.SimilaritySearch(t.Context(), "deposit", 5, vectorstores.WithFilters(map[string]any{"lang": "de"}))
	if err != nil || len(found) != 1 || found[0].Metadata["lang"] != "de" {
		t.Errorf("filtered: %+v, %v", found, err)
	}
	for name, option := range map[string]vectorstores.Option{
		"name space": vectorstores.WithNameSpace("x"), "score threshold": vectorstores.WithScoreThreshold(.5), "embedder": vectorstores.WithEmbedder(letters{}),
	} {
		if _, err := store.SimilaritySearch(t.Context(), "deposit", 1, option); err == nil {
			t.Errorf("the option %s is ignored", name)
		}
		if _, err := store.AddDocuments(t.Context(), docs, option); err == nil {
			t.Errorf("adding: the option %s is ignored", name)
		}
	}
}

// TestThereAndBack takes our index to langchaingo and back as a retriever.
func TestThereAndBack(t *testing.T) {
	x := openIndex(t)
	store := langchain.NewVectorStore(x)
	if _, err := store.AddDocuments(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	query := retrieval.Query{Texts: []string{"deposit Cargo"}, Limit: 2}
	want, err := x.Retrieve(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]retrieval.Retriever{
		"retriever":    langchain.FromRetriever(langchain.NewRetriever(x, 2)),
		"vector store": langchain.FromVectorStore(store),
		"theirs":       langchain.FromRetriever(vectorstores.ToRetriever(store, 2)),
	} {
		got, err := r.Retrieve(t.Context(), query)
		if err != nil || !slices.EqualFunc(got, want, func(a, b retrieval.Passage) bool {
			return a.ID == b.ID && a.Title == b.Title && a.Text == b.Text && a.Source == b.Source && a.Document == b.Document && a.Metadata["lang"] == b.Metadata["lang"]
		}) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
		query := retrieval.Query{Texts: []string{"deposit Cargo", "deposit City"}, Limit: 2}
		if got, err := r.Retrieve(t.Context(), query); err != nil || len(got) != 2 {
			t.Errorf("%s, two wordings: %+v, %v", name, got, err)
		}
	}
	if _, err := langchain.FromRetriever(langchain.NewRetriever(x, 2)).Retrieve(t.Context(), retrieval.Query{Texts: []string{"a"}, Filter: map[string]string{"lang": "de"}}); err == nil {
		t.Error("a filter is ignored")
	}
}

// asker asks at gate 2 about every deposit that names no bike.
type asker struct{}

func (asker) Clarify(_ context.Context, r gate.Request) (gate.Verdict, error) {
	if r.Stage == gate.Pre || strings.Contains(r.Question, "Cargo") {
		return gate.Verdict{}, nil
	}
	return gate.Verdict{Score: 1, Clarification: "City or Cargo?", Options: []conversation.Option{
		{ID: "1", Text: "City", Passages: []string{r.Passages[0].ID}}, {ID: "2", Text: "Cargo", Passages: []string{r.Passages[1].ID}}}}, nil
}

func openPipeline(t *testing.T, model llms.Model) (*pipeline.Pipeline, conversation.Store) {
	t.Helper()
	x := openIndex(t)
	if _, err := langchain.NewVectorStore(x).AddDocuments(t.Context(), docs[:2]); err != nil {
		t.Fatal(err)
	}
	store := conversation.NewMemory()
	p, err := pipeline.New(pipeline.Parts{Retriever: langchain.FromVectorStore(langchain.NewVectorStore(x)), Store: store,
		Clarifier: asker{}, Generator: generation.Model{LLM: model}})
	if err != nil {
		t.Fatal(err)
	}
	return p, store
}

// TestChain runs a conversation through langchaingo's own way of calling a
// chain, with langchaingo's fake model writing the answer.
func TestChain(t *testing.T) {
	p, _ := openPipeline(t, fake.NewFakeLLM([]string{"The deposit is 450. [1]"}))
	chain := langchain.NewChain(p, "c")
	out, err := chains.Call(t.Context(), chain, map[string]any{langchain.InputKey: "What is the deposit?"})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := out[langchain.ResultKey].(*pipeline.Clarification); !ok || out[langchain.OutputKey] != "City or Cargo?" {
		t.Errorf("%+v; want the clarification as data", out)
	}
	out, err = chains.Call(t.Context(), chain, map[string]any{langchain.InputKey: "Cargo"})
	if err != nil {
		t.Fatal(err)
	}
	if a, ok := out[langchain.ResultKey].(*pipeline.Answer); !ok || !strings.Contains(a.Text, "450") {
		t.Errorf("%+v; want the answer", out)
	}
	if _, err := chain.Call(t.Context(), map[string]any{langchain.InputKey: 7}); err == nil {
		t.Error("a question that is no string gave no error")
	}
	if _, err := chain.Call(t.Context(), map[string]any{langchain.InputKey: "a", langchain.ConversationKey: 7}); err == nil {
		t.Error("a conversation that is no string gave no error")
	}
}

func TestModel(t *testing.T) {
	p, _ := openPipeline(t, fake.NewFakeLLM([]string{"The deposit is 450. [1]"}))
	model := langchain.NewModel(p, "m")
	var streamed strings.Builder
	stream := llms.WithStreamingFunc(func(_ context.Context, b []byte) error { streamed.Write(b); return nil })
	text, err := llms.GenerateFromSinglePrompt(t.Context(), model, "What is the deposit?", stream)
	if err != nil || text != "City or Cargo?" || streamed.String() != text {
		t.Errorf("%q, streamed %q, %v", text, streamed.String(), err)
	}
	streamed.Reset()
	text, err = llms.GenerateFromSinglePrompt(t.Context(), model, "Cargo", stream)
	if err != nil || !strings.Contains(text, "450") || streamed.String() != text {
		t.Errorf("%q, streamed %q, %v", text, streamed.String(), err)
	}
	broken := errors.New("broken pipe")
	_, err = llms.GenerateFromSinglePrompt(t.Context(), model, "hello", llms.WithStreamingFunc(func(context.Context, []byte) error { return broken }))
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want the streaming function's", err)
	}
	if _, err := model.GenerateContent(t.Context(), nil); err == nil {
		t.Error("an empty prompt gave no error")
	}
	if _, err := model.GenerateContent(t.Context(), []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "a")}, llms.WithTools([]llms.Tool{{}})); err == nil {
		t.Error("tools are ignored")
	}
}

func TestChatHistory(t *testing.T) {
	p, store := openPipeline(t, fake.NewFakeLLM([]string{"The deposit is 450. [1]"}))
	for _, text := range []string{"What is the deposit?", "Cargo"} {
		if _, err := p.Ask(t.Context(), pipeline.Message{Conversation: "h", Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	history := langchain.NewChatHistory(store, "h")
	messages, err := history.Messages(t.Context())
	if err != nil || len(messages) != 4 || messages[2].GetContent() != "Cargo" {
		t.Fatalf("%v, %v; want both turns", messages, err)
	}
	// langchaingo's memory reads it and writes the next turn.
	buffer := memory.NewConversationBuffer(memory.WithChatHistory(history))
	if err := buffer.SaveContext(t.Context(), map[string]any{"input": "thanks"}, map[string]any{"output": "you're welcome"}); err != nil {
		t.Fatal(err)
	}
	c, err := store.Load(t.Context(), "h", conversation.All)
	if err != nil || len(c.Turns) != 3 || c.Turns[2].Reply != "you're welcome" {
		t.Errorf("%+v, %v", c, err)
	}
	if err := langchain.Import(t.Context(), history, store, "copy"); err != nil {
		t.Fatal(err)
	}
	if c, err := store.Load(t.Context(), "copy", conversation.All); err != nil || len(c.Turns) != 3 {
		t.Errorf("imported %+v, %v", c, err)
	}
	if err := langchain.Import(t.Context(), history, store, "copy"); err == nil {
		t.Error("importing over a conversation gave no error")
	}
	if err := history.AddMessage(t.Context(), llms.SystemChatMessage{Content: "x"}); err == nil {
		t.Error("a system message was taken")
	}
	if err := history.AddAIMessage(t.Context(), "x"); err == nil {
		t.Error("a reply without a human message was taken")
	}
	if err := history.Clear(t.Context()); err != nil {
		t.Error(err)
	}
	if m, err := history.Messages(t.Context()); err != nil || len(m) != 0 {
		t.Errorf("after Clear: %v, %v", m, err)
	}
}
