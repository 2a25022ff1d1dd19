// Package postgres keeps conversations in PostgreSQL, for any number of processes
// on any number of machines.
//
// Nothing that it does outlives a transaction: no session lock, no prepared
// statement, no setting, no listening. It therefore works through a pooler that
// hands out a connection for one transaction, such as PgBouncer. A turn's claim
// is a lease in the conversation's own row, by the database's clock, so that the
// clocks of the machines do not matter.
//
// Open brings the tables up to date with the migrations in this package; several
// processes may do so at once. They are made in the schema that comes first in
// the connection's search_path.
package postgres
