package sqlstore

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/attack"
)

func TestAttack(t *testing.T) {
	t.Parallel()
	EachDialect(t, func(t *testing.T, b *Bed) {
		exec(t, b.DB, "CREATE TABLE attacked (event VARCHAR(200) NOT NULL)")
		insert := "INSERT INTO attacked (event) VALUES (" + b.Dialect.sql("?") + ")"
		target := attack.Target{
			Locks: true,
			Inbox: func(t *testing.T, addr string, work func(context.Context, string) error) sqsonce.Handler {
				inbox, err := NewInbox(storeOn(t, b.through(t, addr), b.Dialect), "inbox", attack.Options)
				if err != nil {
					t.Fatal(err)
				}
				return inbox.Handler(func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
					if _, err := tx.ExecContext(ctx, insert, m.ID); err != nil {
						return err
					}
					return work(ctx, m.ID)
				})
			},
			Store:   func(t *testing.T, addr string) dedup.Store { return storeOn(t, b.through(t, addr), b.Dialect) },
			Effects: func(t *testing.T) map[string]int { return countAttacked(t, b) },
		}
		if b.Dialect != SQLite {
			target.Addr = serverAddress(t, b)
		}
		attack.Run(t, target)
	})
}

// through opens a pool that reaches the database at addr; "": directly.
func (b *Bed) through(t *testing.T, addr string) *sql.DB {
	if addr == "" {
		return b.Open(t)
	}
	return open(t, b.Driver, strings.Replace(b.DSN, serverAddress(t, b), addr, 1))
}

func countAttacked(t *testing.T, b *Bed) map[string]int {
	rows, err := b.DB.QueryContext(t.Context(), "SELECT event, COUNT(*) FROM attacked GROUP BY event")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	counts := map[string]int{}
	for rows.Next() {
		var event string
		var n int
		if err := rows.Scan(&event, &n); err != nil {
			t.Fatal(err)
		}
		counts[event] = n
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return counts
}
