package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// untilCalled delivers a message until its handler is called: others wait for that, and a slow machine may take longer than CallTimeout.
func untilCalled(t *testing.T, i *Inbox, m *sqsonce.Message, h func(context.Context, *sqsonce.Message, *sql.Tx) error) (err error) {
	for called := false; !called && t.Context().Err() == nil; {
		err = i.Handler(func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error { called = true; return h(ctx, m, tx) })(t.Context(), m)
	}
	return err
}

// shortCall is how long a delivery waits for a connection, and a commit may take.
const shortCall = 3 * time.Second

func shortCalls(o *dedup.Options) { o.CallTimeout = shortCall }

// Handlers read through the pool, and their transactions have all of its connections. One of them ends with an error that
// names the pool and is no try of its event. Then the others go on.
func TestInboxPoolTooSmallForNestedReads(t *testing.T) {
	each(t, []string{"PostgreSQL", "SQLite"}, NewBed, func(t *testing.T, b *Bed) {
		newLedger(t, b)
		limit := 2
		if b.kind.Dialect.OneWriter() {
			limit = 1 // one transaction writes at a time
		}
		b.DB.SetMaxOpenConns(limit)
		h := newInbox(t, newStore(t, b), shortCalls)
		var begun, ended sync.WaitGroup
		begun.Add(limit)
		errs := make([]error, limit)
		for n := range limit {
			ended.Go(func() {
				errs[n] = untilCalled(t, h, order(string(rune('a'+n)), 1), func(ctx context.Context, _ *sqsonce.Message, _ *sql.Tx) error {
					begun.Done()
					begun.Wait()
					err := b.DB.QueryRowContext(ctx, "SELECT balance FROM ledger").Scan(new(int64))
					if err != nil {
						time.Sleep(3 * (lookAfter + shortCall)) // the others are not cancelled before this one has returned
					}
					return err
				})
			})
		}
		ended.Wait()
		failed := 0
		for _, err := range errs {
			if err == nil {
				continue
			}
			failed++
			if kind(err) != "unavailable" || !strings.Contains(err.Error(), "SetMaxOpenConns") || !errors.Is(err, context.Canceled) {
				t.Errorf("delivery: got error %v, want unavailable, the pool and the handler's", err)
			}
		}
		if failed != 1 {
			t.Errorf("%d of %d deliveries failed, want 1", failed, limit)
		}
	})
}

// The same where the last transaction had to wait for a connection that another part of the program had.
func TestInboxPoolIsFullLater(t *testing.T) {
	each(t, []string{"PostgreSQL"}, NewBed, func(t *testing.T, b *Bed) {
		newLedger(t, b)
		b.DB.SetMaxOpenConns(2)
		long := func(o *dedup.Options) { o.CallTimeout = 5 * time.Second }
		i := newInbox(t, newStore(t, b), long)
		var both, ended sync.WaitGroup
		both.Add(2)
		errs := make([]error, 2)
		begun := make(chan struct{}, 2)
		deliver := func(n int) {
			errs[n] = untilCalled(t, i, order(string(rune('a'+n)), 1), func(ctx context.Context, _ *sqsonce.Message, _ *sql.Tx) error {
				begun <- struct{}{}
				both.Done()
				both.Wait()
				return b.DB.QueryRowContext(ctx, "SELECT balance FROM ledger").Scan(new(int64))
			})
		}
		ended.Go(func() { deliver(0) })
		<-begun
		other := must.Get(b.DB.Conn(t.Context()))(t)
		waits := b.DB.Stats().WaitCount
		ended.Go(func() { deliver(1) })
		eventually(t, "the second delivery waits in the pool", func() bool { return b.DB.Stats().WaitCount > waits })
		must.Do(t, other.Close())
		ended.Wait()
		if (errs[0] == nil) == (errs[1] == nil) || kind(errors.Join(errs...)) != "unavailable" {
			t.Errorf("deliveries: got errors %v, want one to be unavailable", errs)
		}
	})
}

// Slow handlers that have all connections are not cancelled: not while nobody waits for a connection, not because of
// deliveries that wait to begin, and not because of a wait that has ended.
func TestInboxSlowHandlersKeepThePool(t *testing.T) {
	t.Parallel()
	for _, waited := range []bool{false, true} {
		t.Run(fmt.Sprintf("waited %t", waited), func(t *testing.T) {
			each(t, []string{"PostgreSQL"}, NewBed, func(t *testing.T, b *Bed) { slowHandlerKeepsThePool(t, b, waited) })
		})
	}
}

// slowHandlerKeepsThePool runs a slow handler on a pool of one connection. If waited is set, another part of the program
// waits for a connection for a while.
func slowHandlerKeepsThePool(t *testing.T, b *Bed, waited bool) {
	newLedger(t, b)
	b.DB.SetMaxOpenConns(1)
	i := newInbox(t, newStore(t, b), shortCalls)
	begun := make(chan struct{})
	slow := make(chan error, 1)
	go func() {
		slow <- untilCalled(t, i, order(orderID, 1), func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
			close(begun)
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(4 * (lookAfter + shortCall)):
				return book(ctx, m, tx)
			}
		})
	}()
	<-begun
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if waited {
		if err := b.DB.PingContext(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ping: got error %v, want the deadline: the pool has one connection", err)
		}
	}
	for len(slow) == 0 {
		err := i.Handler(book)(t.Context(), order("43", 1))
		if err == nil || kind(err) == "unavailable" && strings.Contains(err.Error(), "SetMaxOpenConns") {
			continue
		}
		select { // a delivery that gets the connection in its last moment has another error
		case ended := <-slow:
			slow <- ended
		case <-time.After(10 * time.Second):
			t.Errorf("delivery without a connection: got error %v, want unavailable, and the pool", err)
		}
	}
	must.Do(t, <-slow)
	eventually(t, "the other delivery is done", func() bool { return i.Handler(book)(t.Context(), order("43", 1)) == nil })
	expectBalance(t, b.DB, 20)
}

// Two handlers wait for connections that both keep. One is cancelled: with its connection the other one goes on.
func TestOneHandlerIsCancelledForAStuckPool(t *testing.T) {
	t.Parallel()
	db := must.Get(sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "db")))(t)
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(2)
	p := &handlerPool{db: db}
	var watches []*poolWatch
	for range 2 {
		tx := must.Get(p.begin(t.Context()))(t)
		defer func() { _ = tx.Rollback() }()
		watches = append(watches, &poolWatch{pool: p, every: time.Hour, timer: time.NewTimer(time.Hour)})
	}
	waiting, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		if c, err := db.Conn(waiting); err == nil {
			_ = c.Close()
		}
	}()
	for db.Stats().WaitCount == 0 {
		time.Sleep(time.Millisecond)
	}
	cancelled := make([]int, 2)
	for i, w := range watches {
		w.cancel = func(error) { cancelled[i]++ }
	}
	for range 3 {
		for _, w := range watches {
			if cancelled[0]+cancelled[1] == 0 || w != watches[0] {
				w.look()
			}
		}
	}
	if cancelled[0] != 1 || cancelled[1] != 0 {
		t.Errorf("handlers cancelled %v times, want the first once: nobody has come to wait since", cancelled)
	}
}

// throughPgBouncer returns the bed behind a pooler that gives each transaction another of three connections of the server.
func throughPgBouncer(t *testing.T, b *Bed) *Bed {
	t.Helper()
	server := must.Get(pgx.ParseConfig(b.DSN))(t)
	pooler := testserver.PgBouncer.Start(t, func(o *testserver.Options) {
		o.Config = fmt.Sprintf("[databases]\n* = host=%s port=%d user=postgres pool_size=3\n", server.Host, server.Port)
	})
	return b.with(t, pooler.DSN(b.Name))
}

// A pooler in transaction mode works as it is: the store's statements have no names, which another connection would not know.
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
