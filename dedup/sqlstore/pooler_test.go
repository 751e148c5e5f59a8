package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/jackc/pgx/v5"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// throughPgBouncer returns the bed behind a pooler that gives each transaction another of three connections of the server.
func throughPgBouncer(t *testing.T, b *Bed) *Bed {
	t.Helper()
	server := must.Get(pgx.ParseConfig(b.DSN))(t)
	pooler := testserver.PgBouncer.Start(t, func(o *testserver.Options) {
		o.Config = fmt.Sprintf("[databases]\n* = host=%s port=%d user=postgres pool_size=3\n", server.Host, server.Port)
	})
	return b.with(t, pooler.DSN(b.Name))
}

// A pooler in transaction mode needs no setting: the store's statements have no names, which another connection would not know.
func TestPoolerInTransactionMode(t *testing.T) {
	t.Parallel()
	b := NewBed(t, "PostgreSQL")
	newLedger(t, b)
	b = throughPgBouncer(t, b)
	b.DB.SetMaxOpenConns(8)
	s := newStore(t, b)
	once := must.Get(dedup.New(s, "once"))(t)
	plain := once.Handler(func(context.Context, *sqsonce.Message) error { return nil })
	inbox := newInbox(t, s).Handler(func(ctx context.Context, _ *sqsonce.Message, tx *sql.Tx) error { return addTen(ctx, tx) })
	d := newDeferred(t, s)
	_, stop := process(t, d, book)
	const events, workers = 40, 8
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for n := w; n < events; n += workers {
				for receive := range 2 {
					for way, deliver := range map[string]sqsonce.Handler{"once": plain, "inbox": inbox, "deferred": d.Receive} {
						if err := deliver(t.Context(), order(fmt.Sprint(n), receive+1)); err != nil {
							t.Errorf("%s: got %v, want nil", way, err)
						}
					}
				}
			}
		})
	}
	all.Wait()
	awaitCounts(t, d, 0, 0)
	stop()
	expectBalance(t, b.DB, 2*10*events)
	must.Get(s.Sweep(t.Context()))(t)
}
