package main

import (
	"testing"

	"github.com/sqsonce/sqsonce/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// TestServers is TestSQLite on the servers that this repository's tests start. It is skipped where one is not installed.
func TestServers(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]func(t *testing.T) string{
		"postgres": func(t *testing.T) string { return testserver.PostgreSQL.Shared(t).DSN("postgres") },
		"mariadb": func(t *testing.T) string {
			return testserver.MariaDB.Shared(t).DSN("test") + "?interpolateParams=true"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bookedOnce(t, name, dsn(t))
		})
	}
}
