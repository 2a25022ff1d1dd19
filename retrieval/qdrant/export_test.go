package qdrant

import (
	"context"

	api "github.com/qdrant/go-client/qdrant"
)

// Client lets tests look at what is stored.
func (s *Store) Client() *api.GrpcClient { return s.server.client }

// Drop deletes the collection that options name.
func Drop(ctx context.Context, o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	s, err := dial(o)
	if err != nil {
		return err
	}
	defer s.conn.Close()
	_, err = call(ctx, s, "deleting", s.client.Collections().Delete, &api.DeleteCollection{CollectionName: o.Collection})
	return err
}

// AverageLength is what the weights of words reckon with.
const AverageLength = averageLength

// Grace is how long old passages are kept.
const Grace = grace
