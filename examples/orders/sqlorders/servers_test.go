package main

import (
	"testing"

	"github.com/sqsonce/sqsonce/internal/realserver"
)

func TestMain(m *testing.M) { realserver.Main(m) }

// TestServers is TestSQLite on the servers that this repository's tests start. It is skipped where one is not installed.
func TestServers(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]func(t *testing.T) string{
		"postgres": func(t *testing.T) string { return realserver.PostgreSQL.Shared(t).DSN("postgres") },
		"mariadb": func(t *testing.T) string {
			return realserver.MariaDB.Shared(t).DSN("test") + "?interpolateParams=true"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bookedOnce(t, name, dsn(t))
		})
	}
}
