package qdrant

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/askback/askback/retrieval"
)

// Options say where the server is and how the collection is used; Embedder
// must be set.
type Options struct {
	// Addr is host:port of the server's gRPC interface; "" means DefaultAddr.
	Addr string
	// APIKey goes with each request. Without TLS it is refused for another host
	// than this one, unless PlaintextKey allows it (inside a private network).
	APIKey       string
	PlaintextKey bool
	// TLS encrypts the connection; TLSConfig, if set, says how, and implies TLS.
	TLS       bool
	TLSConfig *tls.Config

	// Collection is the collection's name; "" means DefaultCollection.
	Collection string
	// Tenant is the part of the collection that the store is bound to; ""
	// means DefaultTenant. Tenants do not see each other's passages; the
	// frequency of words, which BM25 weighs by, is that of the collection.
	Tenant string

	// Embedder makes the vectors of passages and queries.
	Embedder retrieval.Embedder
	// Identity names the embedder and its version, such as its model and a hash
	// of the weights. The collection remembers it and refuses another. "" is not
	// compared.
	Identity string
	// PerDocument is the most passages of one document in a result; 0 is no
	// limit.
	PerDocument int

	// Layout is how a new collection is made.
	Layout Layout
	// Exact searches all vectors instead of the index: slow and complete.
	Exact bool

	// BatchBytes is the most bytes of one write; 0 means DefaultBatchBytes. It
	// must be below the limit of messages of the server and of proxies between.
	BatchBytes int
	// Parallel is the number of writes at a time; 0 means 4. While all are busy
	// no more passages are embedded.
	Parallel int
	// NoWait sends passages without waiting until each batch is searchable, and
	// waits once before the document becomes visible: for large ingestion.
	NoWait bool

	// CallTimeout ends one attempt of one call; 0 means 30 seconds. The
	// context's deadline ends all.
	CallTimeout time.Duration
	// RetryFor is how long a call that fails for a passing reason is repeated;
	// 0 means 30 seconds, negative is not at all.
	RetryFor time.Duration
	// ReadyWait is how long Open waits for a server that does not answer yet; 0
	// means 10 seconds, negative is not at all.
	ReadyWait time.Duration
	// KeepAlive is the time after which a connection on which nothing comes is
	// probed while calls wait, so that one that is dead is noticed; 0 means 30
	// seconds, less than 10 seconds is 10, negative is never.
	KeepAlive time.Duration
}

// Values that Options have if not set.
const (
	DefaultAddr       = "localhost:6334"
	DefaultCollection = "askback"
	DefaultTenant     = "default"
	DefaultBatchBytes = 4 << 20
)

// Layout is how a collection is made. The zero value serves up to some millions
// of passages.
type Layout struct {
	// Distance compares the embedder's vectors.
	Distance Distance
	// Quantization keeps a small form of the vectors in memory; a search finds
	// more than it needs by it and ranks these by the originals.
	Quantization Quantization
	// OnDisk keeps vectors, their index and payloads on disk instead of in
	// memory; a quantized form stays in memory.
	OnDisk bool
	// Shards and Replicas spread the collection over a cluster; 0 is 1. A write
	// is done when most replicas have it; a reader that asks one of the others
	// may see for a moment what was before.
	Shards, Replicas int
}

// Distance is how vectors are compared.
type Distance int

const (
	Cosine    Distance = iota // the more the nearer
	Dot                       // the more the nearer
	Euclid                    // the less the nearer
	Manhattan                 // the less the nearer
)

func (d Distance) String() string {
	return [...]string{"cosine", "dot product", "Euclidean distance", "Manhattan distance"}[d]
}

// Quantization is a small form of vectors.
type Quantization int

const (
	NoQuantization Quantization = iota
	Scalar                      // one byte a number: a quarter of the memory
	Binary                      // one bit a number: 1/32 of the memory, for 1024 dimensions or more
)

// withDefaults checks the options and fills in what is not set.
func (o Options) withDefaults() (Options, error) {
	if o.Embedder == nil {
		return o, errors.New("opening Qdrant: Options.Embedder is not set")
	}
	if o.Addr == "" {
		o.Addr = DefaultAddr
	}
	host, port, err := net.SplitHostPort(o.Addr)
	if number, bad := strconv.ParseUint(port, 10, 16); err != nil || host == "" || bad != nil || number == 0 {
		return o, fmt.Errorf("opening Qdrant: the address %q is not host:port, such as %s (the gRPC port, without http://)", o.Addr, DefaultAddr)
	}
	if o.TLSConfig != nil {
		o.TLS = true
	}
	if o.APIKey != "" && !o.TLS && !o.PlaintextKey && !loopback(host) {
		return o, fmt.Errorf("%w: turn on TLS for %s, or allow the key in plain text if the network is private", ErrPlaintextKey, o.Addr)
	}
	if o.Collection == "" {
		o.Collection = DefaultCollection
	}
	if len(o.Collection) > 255 || strings.ContainsAny(o.Collection, "/\\<>:\"|?*\x00") || !utf8.ValidString(o.Collection) {
		return o, fmt.Errorf("opening Qdrant: %q cannot be the name of a collection", o.Collection)
	}
	if o.Tenant == "" {
		o.Tenant = DefaultTenant
	}
	if !utf8.ValidString(o.Tenant) || !utf8.ValidString(o.Identity) {
		return o, errors.New("opening Qdrant: the tenant or the embedder's identity is not valid UTF-8")
	}
	if o.Layout.Distance < Cosine || o.Layout.Distance > Manhattan || o.Layout.Quantization < NoQuantization || o.Layout.Quantization > Binary ||
		o.Layout.Shards < 0 || o.Layout.Replicas < 0 {
		return o, fmt.Errorf("opening Qdrant: the layout %+v does not exist", o.Layout)
	}
	if o.BatchBytes <= 0 {
		o.BatchBytes = DefaultBatchBytes
	}
	if o.Parallel <= 0 {
		o.Parallel = 4
	}
	for _, d := range []struct {
		value     *time.Duration
		otherwise time.Duration
	}{{&o.CallTimeout, 30 * time.Second}, {&o.RetryFor, 30 * time.Second}, {&o.ReadyWait, 10 * time.Second}, {&o.KeepAlive, 30 * time.Second}} {
		if *d.value == 0 {
			*d.value = d.otherwise
		}
	}
	if o.CallTimeout < 0 {
		return o, errors.New("opening Qdrant: Options.CallTimeout is negative")
	}
	return o, nil
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
