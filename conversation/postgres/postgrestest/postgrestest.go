// Package postgrestest gives tests an empty PostgreSQL database.
package postgrestest

import (
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver

	"github.com/askback/askback/conversation/postgres"
)

// Variable names the server that tests may make databases on: a postgres:// URL.
const Variable = "ASKBACK_TEST_POSTGRES"

// URL is that of a database of the test's own, which goes when the test ends. Without
// a server the test is skipped.
func URL(t testing.TB) string {
	t.Helper()
	server := os.Getenv(Variable)
	if server == "" {
		t.Skip("no PostgreSQL: ./test starts one, or set " + Variable + " to the URL of a server")
	}
	u, err := url.Parse(server)
	if err != nil || u.Scheme == "" {
		t.Fatalf("%s is no URL: %v", Variable, err)
	}
	name := "askback_test_" + strings.ToLower(rand.Text())
	run := func(statement string) {
		t.Helper()
		db, err := sql.Open("pgx", server)
		if err == nil {
			defer db.Close()
			_, err = db.Exec(statement)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	run("CREATE DATABASE " + name)
	t.Cleanup(func() { run("DROP DATABASE " + name + " WITH (FORCE)") })
	u.Path = "/" + name
	return u.String()
}

// Open opens a store in the database, and closes it when the test ends.
func Open(t testing.TB, where string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), where, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
