package qdranttest

import (
	"context"
	"strings"
	"testing"
	"time"

	api "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Without the engine tests fail, and say what to run.
func TestNoEngine(t *testing.T) {
	t.Setenv(PythonVariable, "/nowhere/python")
	s := &Server{folder: t.TempDir()}
	if err := s.run("0"); err == nil || !strings.Contains(err.Error(), "internal/qdranttest/setup") {
		t.Errorf("%v, want an error that names the command", err)
	}
}

func client(t *testing.T, addr string) *api.GrpcClient {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return api.NewGrpcClientFromConn(conn)
}

// What is not served says so, and what is malformed is refused, before the
// engine sees it.
func TestServer(t *testing.T) {
	s := Start(t)
	c := client(t, s.Addr)
	create := &api.CreateCollection{CollectionName: "c",
		VectorsConfig:       api.NewVectorsConfigMap(map[string]*api.VectorParams{"dense": {Size: 2, Distance: api.Distance_Cosine}}),
		SparseVectorsConfig: api.NewSparseVectorsConfig(map[string]*api.SparseVectorParams{"words": {}})}
	if _, err := c.Collections().Create(t.Context(), create); err != nil {
		t.Fatal(err)
	}
	upsert := func(id *api.PointId, vectors map[string]*api.Vector) error {
		wait := true
		_, err := c.Points().Upsert(t.Context(), &api.UpsertPoints{CollectionName: "c", Wait: &wait, Points: []*api.PointStruct{{Id: id, Vectors: api.NewVectorsMap(vectors)}}})
		return err
	}
	dense := func(v ...float32) map[string]*api.Vector {
		return map[string]*api.Vector{"dense": api.NewVectorDense(v)}
	}
	for name, test := range map[string]struct {
		do   func() error
		want codes.Code
	}{
		"a point": {func() error { return upsert(api.NewIDNum(1), dense(1, 2)) }, codes.OK},
		"again": {func() error {
			_, err := c.Collections().Create(t.Context(), create)
			return err
		}, codes.AlreadyExists},
		"no collection": {func() error {
			_, err := c.Points().Count(t.Context(), &api.CountPoints{CollectionName: "d"})
			return err
		}, codes.NotFound},
		"no id":        {func() error { return upsert(nil, dense(1, 2)) }, codes.InvalidArgument},
		"no UUID":      {func() error { return upsert(api.NewIDUUID("x"), dense(1, 2)) }, codes.InvalidArgument},
		"wrong length": {func() error { return upsert(api.NewIDNum(2), dense(1, 2, 3)) }, codes.InvalidArgument},
		"wrong name": {func() error {
			return upsert(api.NewIDNum(2), map[string]*api.Vector{"x": api.NewVectorDense([]float32{1, 2})})
		}, codes.InvalidArgument},
		"a word twice": {func() error {
			return upsert(api.NewIDNum(2), map[string]*api.Vector{"words": api.NewVectorSparse([]uint32{1, 1}, []float32{1, 2})})
		}, codes.InvalidArgument},
		"not served": {func() error {
			_, err := c.Points().Recommend(t.Context(), &api.RecommendPoints{CollectionName: "c"})
			return err
		}, codes.Unimplemented},
	} {
		if err := test.do(); status.Code(err) != test.want {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
	// A crash keeps what was acknowledged.
	if err := upsert(api.NewIDNum(7), dense(3, 4)); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	s.Restart(t)
	reply, err := client(t, s.Addr).Points().Get(t.Context(), &api.GetPoints{CollectionName: "c", Ids: []*api.PointId{api.NewIDNum(7)}}, grpc.WaitForReady(true))
	if err != nil || len(reply.GetResult()) != 1 {
		t.Errorf("after a crash: %v, %v", reply, err)
	}
}

// The proxy does to calls what it is told, and nothing else.
func TestProxy(t *testing.T) {
	s := Start(t)
	fault := Fault{}
	p := StartProxy(t, s.Addr, ProxyOptions{APIKey: "k", Fault: func(string, int) Fault { return fault }})
	c := client(t, p.Addr)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "api-key", "k")
	for name, test := range map[string]struct {
		fault Fault
		ctx   context.Context
		want  codes.Code
	}{
		"nothing": {Fault{}, ctx, codes.OK},
		"no key":  {Fault{}, t.Context(), codes.Unauthenticated},
		"code":    {Fault{Code: codes.Aborted}, ctx, codes.Aborted},
		"reset":   {Fault{Reset: true}, ctx, codes.Unavailable},
	} {
		fault = test.fault
		if _, err := c.Qdrant().HealthCheck(test.ctx, &api.HealthCheckRequest{}, grpc.WaitForReady(true)); status.Code(err) != test.want {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
	fault = Fault{Delay: time.Minute}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := c.Qdrant().HealthCheck(short, &api.HealthCheckRequest{}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("slow: %v", err)
	}
	if p.Calls("HealthCheck") < 4 || p.Largest("HealthCheck") != 0 {
		t.Errorf("%d calls of at most %d bytes", p.Calls("HealthCheck"), p.Largest("HealthCheck"))
	}
}
