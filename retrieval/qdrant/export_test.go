package qdrant

import api "github.com/qdrant/go-client/qdrant"

// Client lets tests look at what is stored.
func (s *Store) Client() *api.GrpcClient { return s.server.client }

// AverageLength is what the weights of words reckon with.
const AverageLength = averageLength

// Grace is how long old passages are kept.
const Grace = grace
