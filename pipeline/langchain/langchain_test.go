package langchain_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
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
	"github.com/askback/askback/conversation/postgres"
	"github.com/askback/askback/conversation/sqlite"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/generation"
	"github.com/askback/askback/internal/qdranttest"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/pipeline/langchain"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/local"
	"github.com/askback/askback/retrieval/qdrant"

	"go.uber.org/goleak"
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

// store is what both indexes are here.
type store interface {
	retrieval.Store
	retrieval.Retriever
}

// eachStore runs a test over the local index and over Qdrant.
func eachStore(t *testing.T, test func(t *testing.T, x store)) {
	t.Run("local", func(t *testing.T) { test(t, openIndex(t)) })
	t.Run("Qdrant", func(t *testing.T) {
		o := qdrant.Options{Addr: qdranttest.Shared(t), APIKey: os.Getenv("QDRANT_API_KEY"), PlaintextKey: true, Collection: collection, Tenant: rand.Text(), Embedder: letters{}}
		x, err := qdrant.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = x.Close() })
		test(t, x)
	})
}

var collection = "askback-test-" + rand.Text()

func TestMain(m *testing.M) {
	code := qdranttest.Main(m, func() {
		if addr := os.Getenv(qdranttest.AddrVariable); addr != "" {
			_ = qdrant.Drop(context.Background(), qdrant.Options{Addr: addr, APIKey: os.Getenv("QDRANT_API_KEY"), PlaintextKey: true, Collection: collection})
		}
	})
	if err := goleak.Find(); code == 0 && err != nil {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}

func all(t *testing.T, x store) int {
	t.Helper()
	found, err := x.Retrieve(t.Context(), retrieval.Query{Texts: []string{"deposit"}, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

func TestVectorStore(t *testing.T) { eachStore(t, testVectorStore) }

func testVectorStore(t *testing.T, x store) {
	store := langchain.NewVectorStore(x)
	for range 2 { // the same content twice is stored once
		ids, err := store.AddDocuments(t.Context(), append(slices.Clone(docs), docs[0]))
		if err != nil || len(ids) != len(docs)+1 || ids[0] != ids[len(docs)] {
			t.Fatalf("%v, %v", ids, err)
		}
	}
	if n := all(t, x); n != len(docs) {
		t.Errorf("%d passages after adding %d documents twice", n, len(docs))
	}
	found, err := store.SimilaritySearch(t.Context(), "deposit Cargo", 1)
	if err != nil || len(found) != 1 || found[0].Metadata["title"] != "Deposit: Cargo" {
		t.Errorf("%+v, %v", found, err)
	}
	for _, filter := range []any{map[string]any{"lang": "de"}, map[string]string{"lang": "de"}} {
		found, err = store.SimilaritySearch(t.Context(), "deposit", 5, vectorstores.WithFilters(filter))
		if err != nil || len(found) != 1 || found[0].Metadata["lang"] != "de" {
			t.Errorf("filtered: %+v, %v", found, err)
		}
	}
	if _, err := store.SimilaritySearch(t.Context(), "deposit", 5, vectorstores.WithFilters([]string{"lang"})); err == nil {
		t.Error("a filter of another type is ignored")
	}

	// A threshold is one of the cosine, which is then the score.
	everything, err := store.SimilaritySearch(t.Context(), "deposit Cargo", 5, vectorstores.WithScoreThreshold(.01))
	if err != nil || len(everything) != len(docs) {
		t.Fatalf("%+v, %v", everything, err)
	}
	scores := []float32{everything[0].Score, everything[1].Score, everything[2].Score}
	slices.Sort(scores)
	between := (scores[1] + scores[2]) / 2
	found, err = store.SimilaritySearch(t.Context(), "deposit Cargo", 5, vectorstores.WithScoreThreshold(between))
	if err != nil || len(found) != 1 || found[0].Score != scores[2] || scores[2] > 1.0001 {
		t.Errorf("of scores %v within %v: %+v, %v", scores, between, found, err)
	}
	retriever := vectorstores.ToRetriever(store, 5, vectorstores.WithScoreThreshold(between), vectorstores.WithFilters(map[string]any{"lang": "de"}))
	if got, err := retriever.GetRelevantDocuments(t.Context(), "deposit Cargo"); err != nil || len(got) != 0 {
		t.Errorf("threshold and filter: %+v, %v", got, err)
	}

	// A deduplicater is asked.
	ids, err := store.AddDocuments(t.Context(), []schema.Document{{PageContent: "new"}, {PageContent: "known"}},
		vectorstores.WithDeduplicater(func(_ context.Context, d schema.Document) bool { return d.PageContent == "known" }))
	if n := all(t, x); err != nil || len(ids) != 1 || n != len(docs)+1 {
		t.Errorf("%v, %v, %d passages", ids, err, n)
	}
	for name, option := range map[string]vectorstores.Option{
		"name space": vectorstores.WithNameSpace("x"), "embedder": vectorstores.WithEmbedder(letters{}), "score threshold": vectorstores.WithScoreThreshold(1.5),
		"deduplicater": vectorstores.WithDeduplicater(func(context.Context, schema.Document) bool { return false }),
	} {
		if _, err := store.SimilaritySearch(t.Context(), "deposit", 1, option); err == nil {
			t.Errorf("the option %s is ignored", name)
		}
		if _, err := store.AddDocuments(t.Context(), docs, option); err == nil && name != "deduplicater" {
			t.Errorf("adding: the option %s is ignored", name)
		}
	}
}

// TestThereAndBack takes our indexes to langchaingo and back as a retriever.
func TestThereAndBack(t *testing.T) { eachStore(t, testThereAndBack) }

func testThereAndBack(t *testing.T, x store) {
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
	store := conversation.NewMemory()
	return pipelineOver(t, store, model), store
}

func pipelineOver(t *testing.T, store conversation.Store, model llms.Model) *pipeline.Pipeline {
	t.Helper()
	x := openIndex(t)
	if _, err := langchain.NewVectorStore(x).AddDocuments(t.Context(), docs[:2]); err != nil {
		t.Fatal(err)
	}
	p, err := pipeline.New(pipeline.Parts{Retriever: langchain.FromVectorStore(langchain.NewVectorStore(x)), Store: store,
		Clarifier: asker{}, Generator: generation.Model{LLM: model}})
	if err != nil {
		t.Fatal(err)
	}
	return p
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
	for _, key := range []string{"k", "k"} { // the same message twice
		out, err = chains.Call(t.Context(), chain, map[string]any{langchain.InputKey: "thanks", langchain.UserKey: "ada", langchain.ConversationKey: "ada's", langchain.MessageKey: key})
		if err != nil || out[langchain.ResultKey].(*pipeline.Answer).Number != 1 {
			t.Errorf("%+v, %v; want turn 1", out, err)
		}
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

// counting is a model that counts.
type counting struct{ llms.Model }

func (c counting) GenerateContent(ctx context.Context, m []llms.MessageContent, o ...llms.CallOption) (*llms.ContentResponse, error) {
	r, err := c.Model.GenerateContent(ctx, m, o...)
	if err == nil {
		r.Choices[0].GenerationInfo = map[string]any{"PromptTokens": 200, "CompletionTokens": 12}
	}
	return r, err
}

// TestModelUsage looks for the tokens of a turn where langchaingo's models tell them,
// through a model that is a pipeline over a model that is a pipeline.
func TestModelUsage(t *testing.T) {
	inner, _ := openPipeline(t, counting{fake.NewFakeLLM([]string{"The deposit is 450. [1]"})})
	ask := func(m llms.Model, text string) map[string]any {
		r, err := m.GenerateContent(t.Context(), []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, text)})
		if err != nil {
			t.Fatal(err)
		}
		return r.Choices[0].GenerationInfo
	}
	model := langchain.NewModel(inner, "m")
	if _, told := ask(model, "What is the deposit?")["PromptTokens"]; told {
		t.Error("asking back without a model has tokens")
	}
	if info := ask(model, "Cargo"); info["PromptTokens"] != 200 || info["CompletionTokens"] != 12 || info["TotalTokens"] != 212 {
		t.Errorf("told %v", info)
	}
	ctx, used := conversation.MeterUsage(t.Context())
	if _, err := model.GenerateContent(ctx, []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "What is the deposit for a Cargo?")}); err != nil || used() != (conversation.Usage{}) {
		t.Errorf("%+v is counted twice where the reply tells it too, %v", used(), err)
	}
}

func TestChatHistory(t *testing.T) {
	stores := map[string]func(*testing.T) (conversation.Store, error){
		"memory": func(*testing.T) (conversation.Store, error) { return conversation.NewMemory(), nil },
		"SQLite": func(t *testing.T) (conversation.Store, error) {
			return sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "c.db"), sqlite.Options{})
		},
		"PostgreSQL": func(t *testing.T) (conversation.Store, error) {
			url := os.Getenv("ASKBACK_TEST_POSTGRES")
			if url == "" {
				t.Skip("no PostgreSQL: ./test starts one, or set ASKBACK_TEST_POSTGRES to the URL of a server")
			}
			return postgres.Open(t.Context(), url, postgres.Options{})
		},
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			store, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			if _, err := store.Delete(t.Context(), conversation.Filter{User: "langchaingo test"}); err != nil {
				t.Fatal(err)
			}
			testChatHistory(t, store)
		})
	}
}

func testChatHistory(t *testing.T, store conversation.Store) {
	const user = "langchaingo test"
	p := pipelineOver(t, store, fake.NewFakeLLM([]string{"The deposit is 450. [1]"}))
	for _, text := range []string{"What is the deposit?", "Cargo"} {
		if _, err := p.Ask(t.Context(), pipeline.Message{Conversation: "h", User: user, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := langchain.NewChatHistory(store, "h").Messages(t.Context()); !errors.Is(err, conversation.ErrUser) {
		t.Errorf("another user's look: %v, want ErrUser", err)
	}
	if err := langchain.NewChatHistory(store, "h").Clear(t.Context()); !errors.Is(err, conversation.ErrUser) {
		t.Errorf("another user's delete: %v, want ErrUser", err)
	}
	history := langchain.NewChatHistory(store, "h")
	history.User = user
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
	if err := langchain.Import(t.Context(), history, store, "copy", user); err != nil {
		t.Fatal(err)
	}
	if c, err := store.Load(t.Context(), "copy", conversation.All); err != nil || len(c.Turns) != 3 {
		t.Errorf("imported %+v, %v", c, err)
	}
	if err := langchain.Import(t.Context(), history, store, "copy", user); err == nil {
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
