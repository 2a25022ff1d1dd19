package qdrant_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/askback/askback/internal/qdranttest"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/qdrant"
	"github.com/askback/askback/retrieval/retrievertest"
)

func TestMain(m *testing.M) {
	code := qdranttest.Main(m, func() {
		if addr := os.Getenv(qdranttest.AddrVariable); addr != "" { // the server stays
			for _, collection := range []string{common, exampleCollection()} {
				_ = qdrant.Drop(context.Background(), qdrant.Options{Addr: addr, APIKey: os.Getenv("QDRANT_API_KEY"), PlaintextKey: true, Collection: collection})
			}
		}
	})
	if code == 0 {
		if err := goleak.Find(); err != nil {
			println(err.Error())
			code = 1
		}
	}
	os.Exit(code)
}

// common is the collection of the tests that need none of their own; each has
// its own tenant of it.
var common = "askback-test-" + rand.Text()

// open opens a store for a new tenant in the common collection on the shared
// server, where options do not name others.
func open(t *testing.T, o qdrant.Options) *qdrant.Store {
	t.Helper()
	o = named(t, o)
	s, err := qdrant.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// named fills in what open says.
func named(t *testing.T, o qdrant.Options) qdrant.Options {
	t.Helper()
	if o.Addr == "" {
		o.Addr = qdranttest.Shared(t)
	}
	if o.APIKey == "" {
		o.APIKey = os.Getenv("QDRANT_API_KEY")
		o.PlaintextKey = true
	}
	if o.Collection == "" {
		o.Collection = common
	}
	if o.Tenant == "" {
		o.Tenant = rand.Text()
	}
	if o.Embedder == nil {
		o.Embedder = new(retrievertest.Embedder)
	}
	return o
}

// ownCollection names a collection of the test's own.
func ownCollection(t *testing.T, o qdrant.Options) qdrant.Options {
	t.Helper()
	o.Collection = "askback-test-" + rand.Text()
	o = named(t, o)
	t.Cleanup(func() { drop(t, o) })
	return o
}

func drop(t *testing.T, o qdrant.Options) {
	t.Helper()
	if err := qdrant.Drop(context.Background(), o); err != nil {
		t.Log(err) // the server may be gone
	}
}

func TestConformance(t *testing.T) {
	retrievertest.Run(t, func(t *testing.T, e retrieval.Embedder) retrievertest.Store {
		return open(t, qdrant.Options{Embedder: e})
	})
}

func trusting(p *qdranttest.Proxy) *tls.Config { return &tls.Config{RootCAs: p.Roots} }

// exampleAddr and exampleCollection serve the example, which has no testing.T.
func exampleAddr() string {
	addr, err := qdranttest.SharedAddr()
	if err != nil {
		panic(err)
	}
	return addr
}

func exampleCollection() string { return common + "-example" }
