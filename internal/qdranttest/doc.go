// Package qdranttest runs Qdrant's engine for tests, and stands between it and
// a client to make things go wrong.
//
// The engine is qdrant-edge-py, Qdrant's own for one process; server.py puts it
// behind Qdrant's generated gRPC service. It is not a Qdrant server: it has no
// cluster, authentication or TLS. Proxy adds the last two, and faults.
//
// Its Python environment is made by setup, which ./test runs. Where it is not
// there a test fails and says so. With QDRANT_ADDR set, Shared gives that server
// instead, a whole one.
package qdranttest
