package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/internal/proof/attack"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

func TestAttack(t *testing.T) {
	t.Parallel()
	for _, name := range sqlbed.Names { // not EachDialect: a host that is a process makes no database
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attack.Run(t, func(t *testing.T) (dsn string) {
				b := NewBed(t, name)
				exec(t, b.DB, "CREATE TABLE attacked (event VARCHAR(200) NOT NULL)")
				return b.DSN
			}, func(dsn string) attack.Target {
				return target(t, openBed(t, sqlbed.Bed{Kind: sqlbed.KindOf(name), DSN: dsn}))
			})
		})
	}
}

func target(t *testing.T, b *Bed) attack.Target {
	insert := "INSERT INTO attacked (event) VALUES (" + b.Dialect.sql("?") + ")"
	var ill atomic.Pointer[func(dsn string) string]
	target := attack.Target{
		Locks: true,
		Inbox: func(t *testing.T, addr string, work func(context.Context, string) error) sqsonce.Handler {
			inbox := must.Get(NewInbox(storeOn(t, b.through(t, addr, &ill), b.Dialect), "inbox", attack.Options))(t)
			return inbox.Handler(func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
				if err := work(ctx, m.ID); err != nil {
					return err
				}
				_, err := tx.ExecContext(ctx, insert, m.ID)
				return err
			})
		},
		Store:   func(t *testing.T, addr string) dedup.Store { return storeOn(t, b.through(t, addr, &ill), b.Dialect) },
		Effects: b.countAttacked,
	}
	if b.kind.HasServer() {
		target.Addr = b.kind.Address(b.DSN)
		target.Faults = b.faults(&ill)
	}
	return target
}

// faults are met by the connections that are opened meanwhile.
func (b *Bed) faults(ill *atomic.Pointer[func(dsn string) string]) (all []attack.Fault) {
	add := func(name string, begin func(t *testing.T) func(dsn string) string) {
		all = append(all, attack.Fault{Name: name, MovesClock: name == "an hour ahead", Begin: func(t *testing.T) (end func()) {
			change := begin(t)
			ill.Store(&change)
			return func() { ill.Store(nil) }
		}})
	}
	add("login refused", func(*testing.T) func(string) string {
		return func(dsn string) string { return replaceUser(dsn, b.kind.Login, "nobody") }
	})
	if b.kind.ReadOnlyDSN != nil {
		add("read-only", func(*testing.T) func(string) string { return b.kind.ReadOnlyDSN })
	}
	if b.kind.OldClock != "" {
		add("an hour ahead", func(*testing.T) func(string) string {
			return func(dsn string) string { return dsn + fmt.Sprint("&timestamp=", time.Now().Add(time.Hour).Unix()) }
		})
	}
	add("unlisted codes", func(t *testing.T) func(string) string {
		stub, refusals := b.kind.NewStub(t, rand.IntN(2) == 0), testserver.Refusals(100)
		stub.Refusal.Store(&refusals[rand.IntN(100)])
		return func(string) string { return stub.DSN }
	})
	return all
}

// faulty opens the connections of a pool.
type faulty struct {
	driver driver.Driver
	dsn    string
	ill    *atomic.Pointer[func(dsn string) string]
}

func (f faulty) Driver() driver.Driver { return f.driver }

func (f faulty) Connect(context.Context) (driver.Conn, error) {
	if change := f.ill.Load(); change != nil {
		return f.driver.Open((*change)(f.dsn))
	}
	return f.driver.Open(f.dsn)
}

// through opens a pool that reaches the database at addr; "": directly.
func (b *Bed) through(t *testing.T, addr string, ill *atomic.Pointer[func(dsn string) string]) *sql.DB {
	dsn := b.DSN
	if addr != "" {
		dsn = strings.Replace(dsn, b.kind.Address(b.DSN), addr, 1)
	}
	db := sql.OpenDB(faulty{b.DB.Driver(), dsn, ill})
	if os.Getenv("SOAK") != "" {
		db.SetConnMaxLifetime(2 * time.Second) // also of those that a fault has changed
	}
	t.Cleanup(func() { must.Do(t, db.Close()) })
	return db
}

func (b *Bed) countAttacked(t *testing.T) map[string]int {
	rows := must.Get(b.DB.QueryContext(t.Context(), "SELECT event, COUNT(*) FROM attacked GROUP BY event"))(t)
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
