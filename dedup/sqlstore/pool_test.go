package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

func shortCalls(o *dedup.Options) { o.CallTimeout = 500 * time.Millisecond }

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
				errs[n] = h.Handler(func(ctx context.Context, _ *sqsonce.Message, _ *sql.Tx) error {
					begun.Done()
					begun.Wait()
					err := b.DB.QueryRowContext(ctx, "SELECT balance FROM ledger").Scan(new(int64))
					if err != nil {
						time.Sleep(3 * (lookAfter + 500*time.Millisecond)) // the others are not cancelled before this one has returned
					}
					return err
				})(t.Context(), order(string(rune('a'+n)), 1))
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
			errs[n] = i.Handler(func(ctx context.Context, _ *sqsonce.Message, _ *sql.Tx) error {
				begun <- struct{}{}
				both.Done()
				both.Wait()
				return b.DB.QueryRowContext(ctx, "SELECT balance FROM ledger").Scan(new(int64))
			})(t.Context(), order(string(rune('a'+n)), 1))
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
		slow <- i.Handler(func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
			close(begun)
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(4 * (lookAfter + 500*time.Millisecond)):
				return book(ctx, m, tx)
			}
		})(t.Context(), order(orderID, 1))
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
		if err != nil && (kind(err) != "unavailable" || !strings.Contains(err.Error(), "SetMaxOpenConns")) {
			t.Errorf("delivery without a connection: got error %v, want unavailable, and the pool", err)
		}
	}
	must.Do(t, <-slow)
	eventually(t, "the other delivery is done", func() bool { return i.Handler(book)(t.Context(), order("43", 1)) == nil })
	expectBalance(t, b.DB, 20)
}
