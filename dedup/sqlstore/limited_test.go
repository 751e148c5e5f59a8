//go:build unix

package sqlstore

import (
	"testing"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/internal/proof/limited"
	"github.com/sqsonce/sqsonce/limit"
)

func TestCounterUnderKills(t *testing.T) {
	t.Parallel()
	const name = "PostgreSQL"
	limited.Run(t, func(t *testing.T) (dsn string) { return NewBed(t, name).DSN }, func(t *testing.T, dsn string) limit.Counter {
		b := openBed(t, sqlbed.Bed{Kind: sqlbed.KindOf(name), DSN: dsn})
		return NewCounter(storeOn(t, b.DB, b.Dialect))
	})
}
