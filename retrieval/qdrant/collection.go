package qdrant

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	api "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Format is the version of how passages are stored and cut into words. A
// collection of another is built anew.
const format = 1

// Keys of the collection's metadata.
const (
	metaFormat   = "askback_format"
	metaEmbedder = "askback_embedder"
)

// made is how a collection was made, as far as another way would not do.
type made struct {
	format    int
	embedder  string // "" if not known
	dimension int    // 0 if not known
	distance  Distance
	vectors   string // of what is not as it must be; "" if it is
}

// foreign reports whether another program made the collection.
func (m made) foreign() bool { return m.format == 0 || m.vectors != "" }

func (m made) String() string {
	if m.foreign() {
		return "another program (" + cmp.Or(m.vectors, "no metadata of this one") + ")"
	}
	text := "format " + strconv.Itoa(m.format)
	if m.embedder != "" {
		text += fmt.Sprintf(", embedder %q", m.embedder)
	}
	if m.dimension > 0 {
		text += fmt.Sprintf(", %d dimensions", m.dimension)
	}
	return text + ", " + m.distance.String()
}

// fits reports whether passages made in the way of n can be kept and found in a
// collection made in the way of m.
func (m made) fits(n made) bool {
	return m.format == n.format && m.vectors == "" && m.distance == n.distance &&
		(m.embedder == n.embedder || m.embedder == "" || n.embedder == "") &&
		(m.dimension == n.dimension || m.dimension == 0 || n.dimension == 0)
}

// ours is how this store would make the collection.
func (s *Store) ours(dimension int) made {
	return made{format: format, embedder: s.options.Identity, dimension: dimension, distance: s.options.Layout.Distance}
}

var distances = map[Distance]api.Distance{Cosine: api.Distance_Cosine, Dot: api.Distance_Dot, Euclid: api.Distance_Euclid, Manhattan: api.Distance_Manhattan}

// look reads how the collection was made; there is false if it is not there.
func (s *Store) look(ctx context.Context) (m made, fields map[string]*api.PayloadSchemaInfo, there bool, err error) {
	reply, err := call(ctx, s.server, "looking at collection "+s.options.Collection, s.server.client.Collections().Get,
		&api.GetCollectionInfoRequest{CollectionName: s.options.Collection})
	if absent(err) {
		return made{}, nil, false, nil
	}
	if err != nil {
		return made{}, nil, false, err
	}
	config := reply.GetResult().GetConfig()
	metadata := config.GetMetadata()
	m = made{format: int(metadata[metaFormat].GetIntegerValue()), embedder: metadata[metaEmbedder].GetStringValue()}
	dense, ok := config.GetParams().GetVectorsConfig().GetParamsMap().GetMap()[vectorDense]
	if !ok {
		m.vectors = fmt.Sprintf("no vector %q", vectorDense)
	}
	if words, ok := config.GetParams().GetSparseVectorsConfig().GetMap()[vectorWords]; !ok || words.GetModifier() != api.Modifier_Idf {
		m.vectors = fmt.Sprintf("no sparse vector %q with inverse document frequency", vectorWords)
	}
	m.dimension = int(dense.GetSize())
	for ours, theirs := range distances {
		if theirs == dense.GetDistance() {
			m.distance = ours
		}
	}
	return m, reply.GetResult().GetPayloadSchema(), true, nil
}

// attach makes sure, once, that the collection is there and fits. It reports
// false if there is none yet, or an empty one of this program that does not fit,
// which the first write replaces: nothing is loaded.
func (s *Store) attach(ctx context.Context) (bool, error) {
	s.life.Lock()
	defer s.life.Unlock()
	return s.attachLocked(ctx)
}

func (s *Store) attachLocked(ctx context.Context) (bool, error) {
	if s.closed.Load() {
		return false, ErrClosed
	}
	if s.attached.Load() {
		return true, nil
	}
	m, _, there, err := s.look(ctx)
	if err != nil || !there {
		return false, err
	}
	ours := s.ours(0)
	if m.fits(ours) && (m.embedder == "" || ours.embedder == "") {
		// Nothing names the embedder: its vectors' length must tell.
		v, err := s.options.Embedder.EmbedQuery(ctx, "length of a vector")
		if err != nil {
			return false, fmt.Errorf("embedding, to compare with the collection: %w", err)
		}
		ours.dimension = len(v)
	}
	if !m.fits(ours) {
		n, err := s.count(ctx, nil)
		if err != nil || n == 0 && !m.foreign() {
			return false, err
		}
		return false, s.mismatch(m, ours, n)
	}
	s.dimension.Store(int64(m.dimension))
	s.attached.Store(true)
	return true, nil
}

func (s *Store) mismatch(theirs, ours made, points uint64) error {
	return fmt.Errorf("%w: %s of Qdrant at %s, %d points, is made by %v, this program would use %v: use what it is made by, name another collection, or delete this one and ingest again",
		ErrMismatch, s.options.Collection, s.options.Addr, points, theirs, ours)
}

// ensure makes the collection for vectors of a dimension if it is not there, or
// anew if it is empty and does not fit.
func (s *Store) ensure(ctx context.Context, dimension int) error {
	s.life.Lock()
	defer s.life.Unlock()
	ok, err := s.attachLocked(ctx)
	if err != nil {
		return err
	}
	if !ok {
		if err := s.remove(ctx, dimension); err != nil {
			return err
		}
		if err := s.create(ctx, dimension); err != nil {
			return err
		}
		if ok, err = s.attachLocked(ctx); err == nil && !ok {
			err = fmt.Errorf("making collection %s of Qdrant at %s: it is not there afterwards", s.options.Collection, s.options.Addr)
		}
		if err != nil {
			return err
		}
	}
	if have := int(s.dimension.Load()); have != dimension {
		n, err := s.count(ctx, nil)
		if err != nil {
			return err
		}
		theirs := s.ours(have)
		return s.mismatch(theirs, s.ours(dimension), n)
	}
	if s.indexed.Load() {
		return nil
	}
	if err := s.index(ctx); err != nil {
		return err
	}
	s.indexed.Store(true)
	return nil
}

// remove deletes the collection if it is empty and does not fit. Another process
// may have made it, or filled it, since it was looked at.
func (s *Store) remove(ctx context.Context, dimension int) error {
	m, _, there, err := s.look(ctx)
	if err != nil || !there || m.fits(s.ours(dimension)) {
		return err
	}
	n, err := s.count(ctx, nil)
	if err != nil || n > 0 {
		return err // what follows refuses it
	}
	_, err = call(ctx, s.server, "deleting the empty collection "+s.options.Collection, s.server.client.Collections().Delete,
		&api.DeleteCollection{CollectionName: s.options.Collection})
	return err
}

func (s *Store) create(ctx context.Context, dimension int) error {
	l := s.options.Layout
	vector := &api.VectorParams{Size: uint64(dimension), Distance: distances[l.Distance]}
	r := &api.CreateCollection{
		CollectionName: s.options.Collection,
		VectorsConfig:  api.NewVectorsConfigMap(map[string]*api.VectorParams{vectorDense: vector}),
		SparseVectorsConfig: api.NewSparseVectorsConfig(map[string]*api.SparseVectorParams{vectorWords: {
			Modifier: api.Modifier_Idf.Enum(), Index: &api.SparseIndexConfig{OnDisk: api.PtrOf(l.OnDisk)}}}),
		OnDiskPayload: api.PtrOf(l.OnDisk),
		Metadata: map[string]*api.Value{
			metaFormat:   api.NewValueInt(format),
			metaEmbedder: api.NewValueString(s.options.Identity),
		},
	}
	if l.OnDisk {
		vector.OnDisk = api.PtrOf(true)
		r.HnswConfig = &api.HnswConfigDiff{OnDisk: api.PtrOf(true)}
	}
	switch l.Quantization {
	case Scalar:
		r.QuantizationConfig = api.NewQuantizationScalar(&api.ScalarQuantization{Type: api.QuantizationType_Int8, Quantile: api.PtrOf(float32(0.99)), AlwaysRam: api.PtrOf(true)})
	case Binary:
		r.QuantizationConfig = api.NewQuantizationBinary(&api.BinaryQuantization{AlwaysRam: api.PtrOf(true)})
	}
	if l.Shards > 0 {
		r.ShardNumber = api.PtrOf(uint32(l.Shards))
	}
	if l.Replicas > 0 {
		r.ReplicationFactor = api.PtrOf(uint32(l.Replicas))
		r.WriteConsistencyFactor = api.PtrOf(uint32(l.Replicas/2 + 1))
	}
	_, err := call(ctx, s.server, "making collection "+s.options.Collection, s.server.client.Collections().Create, r)
	if status.Code(cause(err)) == codes.AlreadyExists {
		return nil // by another process, or by a try of ours whose reply was lost
	}
	return err
}

// index makes the payload indexes that are missing.
func (s *Store) index(ctx context.Context) error {
	_, have, _, err := s.look(ctx)
	if err != nil {
		return err
	}
	for _, field := range indexed {
		if _, ok := have[field]; ok {
			continue
		}
		_, err := call(ctx, s.server, "making the index of "+field, s.server.client.Points().CreateFieldIndex, &api.CreateFieldIndexCollection{
			CollectionName: s.options.Collection, FieldName: field, Wait: api.PtrOf(true), FieldType: api.FieldType_FieldTypeKeyword.Enum(),
			FieldIndexParams: api.NewPayloadIndexParamsKeyword(&api.KeywordIndexParams{
				IsTenant: api.PtrOf(field == fieldTenant), OnDisk: api.PtrOf(s.options.Layout.OnDisk)}),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// count counts points exactly; without a filter, those of all tenants.
func (s *Store) count(ctx context.Context, filter *api.Filter) (uint64, error) {
	reply, err := call(ctx, s.server, "counting points", s.server.client.Points().Count,
		&api.CountPoints{CollectionName: s.options.Collection, Filter: filter, Exact: api.PtrOf(true)})
	if absent(err) {
		return 0, nil
	}
	return reply.GetResult().GetCount(), err
}
