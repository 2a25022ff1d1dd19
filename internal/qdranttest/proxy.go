package qdranttest

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"path"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Fault is what the proxy does to one call. The zero value lets it through.
type Fault struct {
	Code       codes.Code    // fail with it
	Message    string        // of the failure; "": any
	RetryAfter string        // and this trailer, in seconds
	Delay      time.Duration // before the call goes on or fails; it ends with the call
	Done       bool          // do the call on the server, and fail then: the reply is lost
	Reset      bool          // break all connections, instead of a code
}

// ProxyOptions say what a proxy adds to a server.
type ProxyOptions struct {
	// APIKey, if set, must come with each call.
	APIKey string
	// TLS makes the proxy speak TLS, with a certificate that Proxy.Roots trusts.
	TLS bool
	// Fault, if set, decides what becomes of each call, by the method's last
	// name, such as Upsert, and how often that was called before.
	Fault func(method string, n int) Fault
}

// Proxy stands between a client and a server and passes calls on as they are.
type Proxy struct {
	Addr  string         // host:port
	Roots *x509.CertPool // trusts the certificate, if there is one

	options  ProxyOptions
	to       *grpc.ClientConn
	listener *listener

	mu    sync.Mutex
	calls map[string]int
	sizes map[string]int // the largest request, in bytes
}

// StartProxy starts a proxy in front of the server at addr that is stopped when
// the test ends.
func StartProxy(t testing.TB, addr string, o ProxyOptions) *Proxy {
	t.Helper()
	p := &Proxy{options: o, calls: make(map[string]int), sizes: make(map[string]int)}
	var err error
	p.to, err = grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(bytesCodec{}), grpc.MaxCallRecvMsgSize(1<<30)))
	if err != nil {
		t.Fatal(err)
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.listener = &listener{Listener: inner, open: make(map[net.Conn]bool)}
	p.Addr = inner.Addr().String()
	options := []grpc.ServerOption{grpc.ForceServerCodecV2(bytesCodec{}), grpc.UnknownServiceHandler(p.handle), grpc.MaxRecvMsgSize(1 << 30)}
	if o.TLS {
		certificate, roots := certificate(t)
		p.Roots = roots
		options = append(options, grpc.Creds(credentials.NewServerTLSFromCert(&certificate)))
	}
	server := grpc.NewServer(options...)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(p.listener)
	}()
	t.Cleanup(func() {
		server.Stop()
		<-done
		_ = p.to.Close()
	})
	return p
}

// Calls is how often a method was called.
func (p *Proxy) Calls(method string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[method]
}

// Largest is the size in bytes of the largest request of a method.
func (p *Proxy) Largest(method string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sizes[method]
}

func (p *Proxy) handle(_ any, stream grpc.ServerStream) error {
	full, _ := grpc.MethodFromServerStream(stream)
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	method := path.Base(full)
	p.mu.Lock()
	n := p.calls[method]
	p.calls[method]++
	p.sizes[method] = max(p.sizes[method], len(request))
	p.mu.Unlock()

	ctx := stream.Context()
	headers, _ := metadata.FromIncomingContext(ctx)
	if keys := headers.Get("api-key"); p.options.APIKey != "" && (len(keys) != 1 || keys[0] != p.options.APIKey) {
		return status.Error(codes.Unauthenticated, "Must provide an API key or an Authorization bearer token")
	}
	var fault Fault
	if p.options.Fault != nil {
		fault = p.options.Fault(method, n)
	}
	select {
	case <-time.After(fault.Delay):
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
	var reply []byte
	fails := fault.Reset || fault.Code != codes.OK
	if !fails || fault.Done {
		if err := p.to.Invoke(ctx, full, &request, &reply); err != nil {
			return err
		}
	}
	if fault.Reset {
		p.listener.reset()
		return errors.New("reset")
	}
	if fails {
		if fault.RetryAfter != "" {
			stream.SetTrailer(metadata.Pairs("retry-after", fault.RetryAfter))
		}
		return status.Error(fault.Code, cmp.Or(fault.Message, "a fault of the test"))
	}
	return stream.SendMsg(&reply)
}

// bytesCodec passes messages on as the bytes that they are.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "proto" }

func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// listener remembers the connections, to break them.
type listener struct {
	net.Listener
	mu   sync.Mutex
	open map[net.Conn]bool
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[c] = true
	return &conn{c, l}, nil
}

// reset breaks all connections, so that their other ends see it as a reset.
func (l *listener) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
	clear(l.open)
}

type conn struct {
	net.Conn
	l *listener
}

func (c *conn) Close() error {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	delete(c.l.open, c.Conn)
	return c.Conn.Close()
}

// certificate makes a certificate for this machine, and what trusts it.
func certificate(t testing.TB) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "qdranttest"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}
