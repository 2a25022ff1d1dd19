package sqlstore

import "context"

// Ping looks whether the database can be reached.
func (s *Store) Ping(ctx context.Context) error {
	return s.explain("reaching", s.db.PingContext(ctx))
}
