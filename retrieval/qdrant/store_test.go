package qdrant_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	api "github.com/qdrant/go-client/qdrant"

	"github.com/askback/askback/internal/qdranttest"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/qdrant"
	"github.com/askback/askback/retrieval/retrievertest"
)

// document makes a document of passages whose ids are its name and a number
// from 1.
func document(name string, texts ...string) retrieval.Chunked {
	c := retrieval.Chunked{Document: name, Fingerprint: fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, texts)))}
	for i, text := range texts {
		c.Passages = append(c.Passages, retrieval.Passage{ID: fmt.Sprintf("%s/%d", name, i+1), Document: name, Source: name, Text: text})
	}
	return c
}

func put(t *testing.T, s *qdrant.Store, documents ...retrieval.Chunked) {
	t.Helper()
	if err := s.ReplaceAll(t.Context(), documents); err != nil {
		t.Fatal(err)
	}
}

func find(t *testing.T, s *qdrant.Store, q retrieval.Query) string {
	t.Helper()
	passages, err := s.Retrieve(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, p := range passages {
		ids = append(ids, p.ID)
	}
	return strings.Join(ids, " ")
}

// points counts what is stored of a tenant, or of all.
func points(t *testing.T, s *qdrant.Store, collection string, conditions ...*api.Condition) int {
	t.Helper()
	exact := true
	reply, err := s.Client().Points().Count(t.Context(), &api.CountPoints{CollectionName: collection, Exact: &exact, Filter: &api.Filter{Must: conditions}})
	if err != nil {
		t.Fatal(err)
	}
	return int(reply.GetResult().GetCount())
}

func TestOptions(t *testing.T) {
	embedder := new(retrievertest.Embedder)
	for _, test := range []struct {
		name    string
		options qdrant.Options
		want    string // in the error
		is      error
	}{
		{"no embedder", qdrant.Options{}, "Embedder is not set", nil},
		{"a URL", qdrant.Options{Embedder: embedder, Addr: "http://localhost:6334"}, "host:port", nil},
		{"a URL without a port", qdrant.Options{Embedder: embedder, Addr: "http://localhost"}, "host:port", nil},
		{"no port", qdrant.Options{Embedder: embedder, Addr: "localhost"}, "host:port", nil},
		{"key in plain text", qdrant.Options{Embedder: embedder, Addr: "qdrant.example.com:6334", APIKey: "secret"}, "turn on TLS for qdrant.example.com:6334", qdrant.ErrPlaintextKey},
		{"key in plain text to a private host", qdrant.Options{Embedder: embedder, Addr: "10.1.2.3:6334", APIKey: "secret"}, "10.1.2.3", qdrant.ErrPlaintextKey},
		{"collection", qdrant.Options{Embedder: embedder, Collection: "a/b"}, `"a/b"`, nil},
		{"tenant", qdrant.Options{Embedder: embedder, Tenant: "caf\xe9"}, "UTF-8", nil},
		{"layout", qdrant.Options{Embedder: embedder, Layout: qdrant.Layout{Distance: 9}}, "does not exist", nil},
		{"nobody there", qdrant.Options{Embedder: embedder, Addr: "127.0.0.1:1", ReadyWait: -1}, "127.0.0.1:1", qdrant.ErrUnavailable},
	} {
		s, err := qdrant.Open(t.Context(), test.options)
		if err == nil {
			_ = s.Close()
			t.Errorf("%s: no error", test.name)
			continue
		}
		if !strings.Contains(err.Error(), test.want) || test.is != nil && !errors.Is(err, test.is) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error %q, want %q", test.name, err, test.want)
		}
	}
}

func TestClosed(t *testing.T) {
	s := open(t, qdrant.Options{})
	put(t, s, document("a.md", "alpha"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Retrieve(t.Context(), retrieval.Query{Texts: []string{"alpha"}}); !errors.Is(err, qdrant.ErrClosed) {
		t.Errorf("a closed store answers %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

// An image of Qdrant has no tool to probe it with, so the program itself waits.
func TestWaitReady(t *testing.T) {
	server := qdranttest.Start(t)
	version, err := qdrant.WaitReady(t.Context(), qdrant.Options{Addr: server.Addr})
	if err != nil || version != "1.17.1" {
		t.Errorf("version %q, %v", version, err)
	}
	server.Kill()
	start := time.Now()
	if _, err := qdrant.WaitReady(t.Context(), qdrant.Options{Addr: server.Addr, ReadyWait: 300 * time.Millisecond}); !errors.Is(err, qdrant.ErrUnavailable) || time.Since(start) > 5*time.Second {
		t.Errorf("of a server that is gone: %v after %v", err, time.Since(start))
	}
	ready := make(chan error)
	go func() {
		_, err := qdrant.WaitReady(t.Context(), qdrant.Options{Addr: server.Addr, ReadyWait: time.Minute})
		ready <- err
	}()
	time.Sleep(200 * time.Millisecond)
	server.Restart(t)
	if err := <-ready; err != nil {
		t.Errorf("of a server that starts late: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	server.Kill()
	if _, err := qdrant.WaitReady(ctx, qdrant.Options{Addr: server.Addr, ReadyWait: time.Minute}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("beyond the context's deadline: %v", err)
	}
}

func TestServerVersion(t *testing.T) {
	server := qdranttest.Start(t, "--version", "1.15.5")
	_, err := qdrant.Open(t.Context(), qdrant.Options{Addr: server.Addr, Embedder: new(retrievertest.Embedder)})
	if !errors.Is(err, qdrant.ErrVersion) || !strings.Contains(err.Error(), "1.15.5") {
		t.Errorf("a server that is too old: %v", err)
	}
	if os.Getenv(qdranttest.AddrVariable) == "" {
		if version, warning := open(t, qdrant.Options{}).ServerVersion(); version != "1.17.1" || warning != "" {
			t.Errorf("version %q, warning %q", version, warning)
		}
	}
}

// shortEmbedder is another embedder, with vectors of another length.
type shortEmbedder struct{ retrievertest.Embedder }

func short(v []float32) []float32 { return v[:64] }

func (e *shortEmbedder) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := e.Embedder.EmbedDocuments(ctx, texts)
	for i := range vectors {
		vectors[i] = short(vectors[i])
	}
	return vectors, err
}

func (e *shortEmbedder) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	v, err := e.Embedder.EmbedQuery(ctx, text)
	if err != nil {
		return nil, err
	}
	return short(v), nil
}

func TestCollectionLife(t *testing.T) {
	o := ownCollection(t, qdrant.Options{Identity: "words@1"})
	exists := func(s *qdrant.Store) bool {
		t.Helper()
		reply, err := s.Client().Collections().CollectionExists(t.Context(), &api.CollectionExistsRequest{CollectionName: o.Collection})
		if err != nil {
			t.Fatal(err)
		}
		return reply.GetResult().GetExists()
	}

	// Missing: nothing is loaded yet, and reading makes nothing.
	s := open(t, o)
	reader := open(t, o)
	if got := find(t, s, retrieval.Query{Texts: []string{"alpha"}}); got != "" {
		t.Errorf("a missing collection finds %s", got)
	}
	if n, err := s.Len(t.Context()); n != 0 || err != nil {
		t.Errorf("a missing collection: Len is %d, %v", n, err)
	}
	if err := s.Delete(t.Context(), "a.md"); err != nil {
		t.Errorf("a missing collection: Delete: %v", err)
	}
	if known, err := s.KnownIdentifiers(t.Context(), "ERR-5172"); err != nil || len(known) != 1 || known[0].Known {
		t.Errorf("a missing collection: KnownIdentifiers: %v, %v", known, err)
	}
	if exists(s) {
		t.Error("reading made the collection")
	}

	// The first write makes it; a reader that was there before sees it.
	put(t, s, document("a.md", "alpha"))
	if got := find(t, reader, retrieval.Query{Texts: []string{"alpha"}}); got != "a.md/1" {
		t.Errorf("a reader opened before the first write finds %q", got)
	}
	if n, err := s.Len(t.Context()); n != 1 || err != nil {
		t.Errorf("Len is %d, %v", n, err)
	}
	info, err := s.Client().Collections().Get(t.Context(), &api.GetCollectionInfoRequest{CollectionName: o.Collection})
	if err != nil {
		t.Fatal(err)
	}
	if got := info.GetResult().GetPayloadSchema()["tenant"]; !got.GetParams().GetKeywordIndexParams().GetIsTenant() {
		t.Errorf("the index of tenants is %v", got)
	}

	// Filled and different: refused, naming both.
	other := o
	other.Identity = "letters@2"
	if _, err := qdrant.Open(t.Context(), other); !errors.Is(err, qdrant.ErrMismatch) || !strings.Contains(err.Error(), "words@1") || !strings.Contains(err.Error(), "letters@2") {
		t.Errorf("another identity: %v", err)
	}
	nameless := o
	nameless.Identity, nameless.Embedder = "", new(shortEmbedder)
	if _, err := qdrant.Open(t.Context(), nameless); !errors.Is(err, qdrant.ErrMismatch) || !strings.Contains(err.Error(), "385") || !strings.Contains(err.Error(), "64") {
		t.Errorf("another length: %v", err)
	}
	euclid := o
	euclid.Layout.Distance = qdrant.Euclid
	if _, err := qdrant.Open(t.Context(), euclid); !errors.Is(err, qdrant.ErrMismatch) || !strings.Contains(err.Error(), "cosine") || !strings.Contains(err.Error(), "Euclidean") {
		t.Errorf("another distance: %v", err)
	}
	nameless.Embedder = o.Embedder
	open(t, nameless) // the same vectors without a name are taken

	// The embedder's vectors change their length while the store is open.
	lying := o
	lying.Embedder = new(shortEmbedder)
	liar := open(t, lying)
	if _, err := liar.Retrieve(t.Context(), retrieval.Query{Texts: []string{"alpha"}}); !errors.Is(err, qdrant.ErrMismatch) {
		t.Errorf("Retrieve with vectors of another length: %v", err)
	}
	if err := liar.Replace(t.Context(), "b.md", "1", document("b.md", "beta").Passages); !errors.Is(err, qdrant.ErrMismatch) {
		t.Errorf("Replace with vectors of another length: %v", err)
	}

	// Empty and different: made anew by the first write.
	if err := s.Delete(t.Context(), "a.md"); err != nil {
		t.Fatal(err)
	}
	if n := points(t, s, o.Collection); n != 0 {
		t.Fatalf("%d points are left of an empty collection", n)
	}
	s2 := open(t, other)
	if got := find(t, s2, retrieval.Query{Texts: []string{"alpha"}}); got != "" {
		t.Errorf("an empty collection of another embedder: finds %s", got)
	}
	put(t, s2, document("a.md", "alpha again"))
	if _, err := qdrant.Open(t.Context(), o); !errors.Is(err, qdrant.ErrMismatch) {
		t.Errorf("the collection made anew: %v", err)
	}
}

// Several processes make the collection at once, and none takes it from another.
func TestFirstWriters(t *testing.T) {
	o := ownCollection(t, qdrant.Options{Identity: "words@1", Tenant: "t"})
	var writers sync.WaitGroup
	for i := range 4 {
		s := open(t, o)
		writers.Go(func() {
			name := fmt.Sprintf("%d.md", i)
			if err := s.ReplaceAll(t.Context(), []retrieval.Chunked{document(name, "alpha", "beta")}); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	if n, err := open(t, o).Len(t.Context()); n != 8 || err != nil {
		t.Errorf("%d passages, %v; want 8", n, err)
	}
}

// A collection of another program is never written to.
func TestForeignCollection(t *testing.T) {
	o := ownCollection(t, qdrant.Options{})
	client := open(t, qdrant.Options{}).Client()
	_, err := client.Collections().Create(t.Context(), &api.CreateCollection{CollectionName: o.Collection,
		VectorsConfig: api.NewVectorsConfigMap(map[string]*api.VectorParams{"picture": {Size: 2, Distance: api.Distance_Dot}})})
	if err != nil {
		t.Fatal(err)
	}
	wait := true
	_, err = client.Points().Upsert(t.Context(), &api.UpsertPoints{CollectionName: o.Collection, Wait: &wait, Points: []*api.PointStruct{{
		Id: api.NewIDNum(1), Vectors: api.NewVectorsMap(map[string]*api.Vector{"picture": api.NewVectorDense([]float32{1, 2})})}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, filled := range []bool{true, false} {
		if _, err := qdrant.Open(t.Context(), o); !errors.Is(err, qdrant.ErrMismatch) || !strings.Contains(err.Error(), "another program") {
			t.Errorf("filled %v: %v, want ErrMismatch", filled, err)
		}
		_, err := client.Points().Delete(t.Context(), &api.DeletePoints{CollectionName: o.Collection, Wait: &wait, Points: api.NewPointsSelector(api.NewIDNum(1))})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := qdrant.Drop(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	open(t, o)
}

// Two tenants with the same documents in one collection never meet.
func TestTenants(t *testing.T) {
	o := ownCollection(t, qdrant.Options{})
	o.Tenant = "one"
	one := open(t, o)
	two, err := one.ForTenant("two") // over the same connection
	if err != nil {
		t.Fatal(err)
	}
	put(t, one, document("a.md", "alpha of one, ERR-5172"), document("b.md", "beta of one"))
	put(t, two, document("a.md", "alpha of two, ERR-5173"))

	hits, err := two.Search(t.Context(), qdrant.Search{Query: retrieval.Query{Texts: []string{"alpha beta of one"}, Limit: 100}})
	if err != nil || len(hits) != 1 || hits[0].Text != "alpha of two, ERR-5173" {
		t.Errorf("two finds %v, %v", hits, err)
	}
	// Conditions of the caller only narrow.
	for name, where := range map[string][]*api.Condition{
		"the other tenant":   {api.NewMatch("tenant", "one")},
		"not this tenant":    {api.NewFilterAsCondition(&api.Filter{MustNot: []*api.Condition{api.NewMatch("tenant", "two")}})},
		"this one or others": {api.NewFilterAsCondition(&api.Filter{Should: []*api.Condition{api.NewMatch("tenant", "one"), api.NewMatch("tenant", "two")}})},
	} {
		hits, err := two.Search(t.Context(), qdrant.Search{Query: retrieval.Query{Texts: []string{"alpha"}}, Where: where})
		if err != nil || slices.ContainsFunc(hits, func(h retrieval.Hit) bool { return strings.Contains(h.Text, "of one") }) {
			t.Errorf("%s: %v, %v", name, hits, err)
		}
	}
	if known, err := two.KnownIdentifiers(t.Context(), "ERR-5172 and ERR-5174"); err != nil || known[0].Known || !slices.Equal(known[1].Nearest, []string{"ERR-5173"}) {
		t.Errorf("two knows %v, %v", known, err)
	}
	if documents, err := two.Documents(t.Context()); err != nil || len(documents) != 1 {
		t.Errorf("two has %v, %v", documents, err)
	}
	if err := two.Delete(t.Context(), "a.md", "b.md"); err != nil {
		t.Fatal(err)
	}
	if n, err := one.Len(t.Context()); n != 2 || err != nil {
		t.Errorf("after two deleted its documents one has %d passages, %v", n, err)
	}
	if _, err := retrieval.Sync(t.Context(), two, func(func(retrieval.Input, error) bool) {}, retrieval.SyncOptions{}); err != nil {
		t.Error(err)
	}
	if err := two.Close(); err != nil {
		t.Error(err)
	}
	if _, err := two.Len(t.Context()); !errors.Is(err, qdrant.ErrClosed) {
		t.Errorf("a closed store answers %v", err)
	}
	if got := find(t, one, retrieval.Query{Texts: []string{"beta"}, Limit: 1}); got != "b.md/1" {
		t.Errorf("one finds %s", got)
	}
	if _, err := one.ForTenant("caf\xe9"); err == nil {
		t.Error("a tenant that is not valid UTF-8 is taken")
	}
}

func TestTLSAndKey(t *testing.T) {
	key := cmp.Or(os.Getenv("QDRANT_API_KEY"), "a secret key") // a whole server may want its own
	plain := qdranttest.StartProxy(t, qdranttest.Shared(t), qdranttest.ProxyOptions{APIKey: key})
	secure := qdranttest.StartProxy(t, qdranttest.Shared(t), qdranttest.ProxyOptions{APIKey: key, TLS: true})
	for _, test := range []struct {
		name    string
		options qdrant.Options
		want    error
	}{
		{"TLS and key", qdrant.Options{Addr: secure.Addr, APIKey: key, TLSConfig: trusting(secure)}, nil},
		{"key on this machine", qdrant.Options{Addr: plain.Addr, APIKey: key}, nil},
		{"no key", qdrant.Options{Addr: secure.Addr, TLSConfig: trusting(secure)}, qdrant.ErrDenied},
		{"wrong key", qdrant.Options{Addr: plain.Addr, APIKey: "another"}, qdrant.ErrDenied},
		{"certificate not trusted", qdrant.Options{Addr: secure.Addr, APIKey: key, TLS: true, ReadyWait: 200 * time.Millisecond}, qdrant.ErrUnavailable},
		{"no TLS", qdrant.Options{Addr: secure.Addr, APIKey: key, ReadyWait: 200 * time.Millisecond}, qdrant.ErrUnavailable},
	} {
		o := test.options
		o.Embedder, o.Collection = new(retrievertest.Embedder), common
		s, err := qdrant.Open(t.Context(), o)
		if test.want == nil && err != nil || !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), key) {
			t.Errorf("%s: the error tells the key: %v", test.name, err)
		}
		if err == nil {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	before := plain.Calls("HealthCheck")
	if _, err := qdrant.Open(t.Context(), qdrant.Options{Addr: plain.Addr, APIKey: "another", Embedder: new(retrievertest.Embedder)}); err == nil || plain.Calls("HealthCheck") != before+1 {
		t.Errorf("a call that was denied was made %d times", plain.Calls("HealthCheck")-before)
	}
}
