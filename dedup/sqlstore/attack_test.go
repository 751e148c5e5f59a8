package sqlstore

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/internal/proof/attack"
)

// place is where the hosts find the database.
type place struct{ Driver, DSN string }

func TestAttack(t *testing.T) {
	t.Parallel()
	for _, name := range sqlbed.Names { // not EachDialect: a host that is a process makes no database
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attack.Run(t, func(t *testing.T) place {
				b := NewBed(t, name)
				exec(t, b.DB, "CREATE TABLE attacked (event VARCHAR(200) NOT NULL)")
				return place{b.Driver, b.DSN}
			}, func(p place) attack.Target {
				return target(t, &Bed{Dialect: Dialect(sqlbed.KindOf(name).Dialect), Driver: p.Driver, DSN: p.DSN})
			})
		})
	}
}

func target(t *testing.T, b *Bed) attack.Target {
	insert := "INSERT INTO attacked (event) VALUES (" + b.Dialect.sql("?") + ")"
	target := attack.Target{
		Locks: true,
		Inbox: func(t *testing.T, addr string, work func(context.Context, string) error) sqsonce.Handler {
			inbox := must.Get(NewInbox(storeOn(t, b.through(t, addr), b.Dialect), "inbox", attack.Options))(t)
			return inbox.Handler(func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
				if _, err := tx.ExecContext(ctx, insert, m.ID); err != nil {
					return err
				}
				return work(ctx, m.ID)
			})
		},
		Store:   func(t *testing.T, addr string) dedup.Store { return storeOn(t, b.through(t, addr), b.Dialect) },
		Effects: b.countAttacked,
	}
	if b.kind.HasServer() {
		target.Addr = b.kind.Address(b.DSN)
	}
	return target
}

// through opens a pool that reaches the database at addr; "": directly.
func (b *Bed) through(t *testing.T, addr string) *sql.DB {
	dsn := b.DSN
	if addr != "" {
		dsn = strings.Replace(dsn, b.kind.Address(b.DSN), addr, 1)
	}
	return open(t, b.Driver, dsn)
}

func (b *Bed) countAttacked(t *testing.T) map[string]int {
	rows := must.Get(b.through(t, "").QueryContext(t.Context(), "SELECT event, COUNT(*) FROM attacked GROUP BY event"))(t)
	defer rows.Close()
	counts := map[string]int{}
	for rows.Next() {
		var event string
		var n int
		must.Do(t, rows.Scan(&event, &n))
		counts[event] = n
	}
	must.Do(t, rows.Err())
	return counts
}
