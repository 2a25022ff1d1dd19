package qdrant

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	api "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/askback/askback/retrieval"
)

// maxReply is the largest reply taken, in bytes.
const maxReply = 256 << 20

// server is the connection, and how calls over it are made.
type server struct {
	options Options
	conn    *grpc.ClientConn
	client  *api.GrpcClient
}

// connectTime is how long a connection may take to be opened, and reconnect is how
// soon it is tried again: a server that is back after a long time is to be seen
// within seconds.
const connectTime = 10 * time.Second

var reconnect = grpcbackoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second}

// dial makes the connection, which is opened by the first call.
func dial(o Options) (*server, error) {
	security := insecure.NewCredentials()
	if o.TLS {
		config := o.TLSConfig
		if config == nil {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		security = credentials.NewTLS(config)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(security),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxReply)),
		grpc.WithDisableServiceConfig(), // calls are repeated here and nowhere else
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: connectTime, Backoff: reconnect}),
	}
	if o.KeepAlive > 0 {
		options = append(options, grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: o.KeepAlive, Timeout: 10 * time.Second}))
	}
	conn, err := grpc.NewClient(o.Addr, options...)
	if err != nil {
		return nil, fmt.Errorf("connecting to Qdrant at %s: %w", o.Addr, err)
	}
	return &server{o, conn, api.NewGrpcClientFromConn(conn)}, nil
}

// A method is a call of the generated client, such as PointsClient.Upsert.
type method[Request, Reply any] func(ctx context.Context, r Request, o ...grpc.CallOption) (Reply, error)

// call makes a call, and makes it again while it fails for a passing reason.
// All of this package's calls may be repeated: writes name their points. doing
// says in the error what was being done.
func call[Request, Reply any](ctx context.Context, s *server, doing string, m method[Request, Reply], r Request) (Reply, error) {
	return callFor(ctx, s, s.options.RetryFor, doing, m, r)
}

func callFor[Request, Reply any](ctx context.Context, s *server, patience time.Duration, doing string, m method[Request, Reply], r Request) (Reply, error) {
	attempt := func() (Reply, error) {
		var trailer metadata.MD
		once, cancel := context.WithTimeout(ctx, s.options.CallTimeout)
		defer cancel()
		if s.options.APIKey != "" {
			once = metadata.AppendToOutgoingContext(once, "api-key", s.options.APIKey)
		}
		reply, err := m(once, r, grpc.Trailer(&trailer))
		switch {
		case err == nil:
			return reply, nil
		case ctx.Err() != nil:
			return reply, backoff.Permanent(ctx.Err())
		case patience < 0 || !passing(err):
			return reply, backoff.Permanent(err)
		}
		if after := trailer.Get("retry-after"); len(after) == 1 {
			if seconds, bad := strconv.Atoi(after[0]); bad == nil && seconds >= 0 {
				err = errors.Join(err, backoff.RetryAfter(seconds))
			}
		}
		return reply, err
	}
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = 50*time.Millisecond, 5*time.Second
	reply, err := backoff.Retry(ctx, attempt, backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(max(patience, time.Nanosecond)))
	if err != nil {
		err = s.explain(ctx, doing, err)
	}
	return reply, err
}

// passing reports whether an error may be gone if the call is made again: the
// server is down, starting, overloaded or was too slow, or the connection broke.
func passing(err error) bool {
	switch status.Code(err) {
	case codes.ResourceExhausted:
		return !tooLarge(err)
	case codes.Unavailable, codes.Aborted, codes.DeadlineExceeded:
		return true
	case codes.Canceled: // by the server, since our context has not ended
		return true
	}
	return false
}

// tooLarge reports whether a message was beyond a limit, which gRPC tells with
// the code of an overloaded server.
func tooLarge(err error) bool {
	return status.Code(err) == codes.ResourceExhausted && strings.Contains(status.Convert(err).Message(), "larger than max")
}

// explain names the server in an error and wraps what its code means.
func (s *server) explain(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("asking Qdrant at %s: %s: %w", s.options.Addr, doing, ctx.Err())
	}
	switch status.Code(cause(err)) {
	case codes.Unavailable, codes.DeadlineExceeded:
		return fmt.Errorf("%w at %s: %s: %w; see that it runs, that this is its gRPC port, and that TLS is on or off as it is there", ErrUnavailable, s.options.Addr, doing, err)
	case codes.Unauthenticated, codes.PermissionDenied:
		return fmt.Errorf("%w at %s: %s: %w; check the API key", ErrDenied, s.options.Addr, doing, err)
	}
	if strings.Contains(status.Convert(cause(err)).Message(), "No space left on device") { // which has no code of its own
		return fmt.Errorf("%w: the disk of Qdrant at %s is full: %s: %w; free some space there and try again", retrieval.ErrFull, s.options.Addr, doing, err)
	}
	if tooLarge(cause(err)) {
		return fmt.Errorf("asking Qdrant at %s: %s: %w; lower Options.BatchBytes", s.options.Addr, doing, err)
	}
	return fmt.Errorf("asking Qdrant at %s: %s: %w", s.options.Addr, doing, err)
}

// cause finds the gRPC error in what a call gave.
func cause(err error) error {
	var with interface{ GRPCStatus() *status.Status }
	if errors.As(err, &with) {
		return with.GRPCStatus().Err()
	}
	return err
}

// absent reports whether an error says that the collection is not there.
func absent(err error) bool { return status.Code(cause(err)) == codes.NotFound }
