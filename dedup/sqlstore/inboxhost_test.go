package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// watchedPools opens the connections of a pool whose transactions end by end, and that calls exec before each statement without rows.
type watchedPools struct {
	countedPools
	end  func(op string, do func() error, tx driver.Tx) error
	exec func()
}

func (p watchedPools) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := p.countedPools.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return watchedConn{c.(countedConn), p}, nil
}

type watchedConn struct {
	countedConn
	pools watchedPools
}

func (c watchedConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.countedConn.BeginTx(ctx, opts)
	return watchedTx{tx, c.pools}, err
}

func (c watchedConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if c.pools.exec != nil {
		c.pools.exec()
	}
	return c.countedConn.ExecContext(ctx, text, args)
}

type watchedTx struct {
	driver.Tx
	pools watchedPools
}

func (t watchedTx) Commit() error   { return t.pools.end("commit", t.Tx.Commit, t.Tx) }
func (t watchedTx) Rollback() error { return t.pools.end("rollback", t.Tx.Rollback, t.Tx) }

// An inbox has the message, and not the handler, while it commits or rolls back, and until it calls the handler again.
func TestInboxTellsItsHost(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		err error
		run string
	}{
		"success": {nil, "handler, commit without a reply, handler, commit"},
		"failure": {failed, "handler, rollback"},
		"skip":    {sqsonce.Skip("old"), "handler, rollback, commit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := NewBed(t, "SQLite")
			var ctx context.Context // of the delivery
			run := ""
			note := func(what string) {
				if run != "" {
					run += ", "
				}
				run += what
			}
			db := sql.OpenDB(watchedPools{countedPools: countedPools{b.DB.Driver(), b.DSN}, end: func(op string, do func() error, tx driver.Tx) error {
				if ctx == nil {
					return do() // the check of the tables
				}
				if settle.InHandler(ctx) {
					t.Errorf("%s: the host takes the handler for running", op)
				}
				if c.err == nil && run == "handler" {
					note(op + " without a reply")
					return errors.Join(io.ErrUnexpectedEOF, tx.Rollback())
				}
				note(op)
				return do()
			}})
			t.Cleanup(func() { must.Do(t, db.Close()) })
			s := storeOn(t, db, b.Dialect)
			must.Do(t, s.ensureChecked(t.Context()))
			h := newInbox(t, s).Handler(func(context.Context, *sqsonce.Message, *sql.Tx) error {
				note("handler")
				if !settle.InHandler(ctx) {
					t.Error("the host does not take the handler for running")
				}
				return c.err
			})
			host, settled := settle.New(t.Context())
			ctx = host
			if err := h(ctx, order("1", 1)); !errors.Is(err, c.err) || run != c.run {
				t.Errorf("got error %v after %s, want %v after %s", err, run, c.err, c.run)
			}
			must.Do(t, settled(false))
		})
	}
}

// A deferred inbox has the messages, and not the function that calls it, while it stores them.
func TestDeferredTellsItsHost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		messages int
		handler  func(*Deferred) sqsonce.Handler
	}{
		"message": {1, func(d *Deferred) sqsonce.Handler { return d.Receive }},
		"batch": {2, func(d *Deferred) sqsonce.Handler {
			return sqsonce.Batch(d.ReceiveBatch, func(o *sqsonce.BatchOptions) { o.Size, o.Linger = 2, time.Hour })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := NewBed(t, "SQLite")
			var hosts []context.Context // of the deliveries
			var stored atomic.Int64
			db := sql.OpenDB(watchedPools{countedPools: countedPools{b.DB.Driver(), b.DSN}, exec: func() {
				stored.Add(1)
				if slices.ContainsFunc(hosts, settle.InHandler) {
					t.Error("the host takes the handler for running")
				}
			}})
			t.Cleanup(func() { must.Do(t, db.Close()) })
			s := storeOn(t, db, b.Dialect)
			must.Do(t, s.ensureChecked(t.Context()))
			stored.Store(0)
			receive := c.handler(newDeferred(t, s))
			for range c.messages {
				ctx, _ := settle.New(t.Context())
				hosts = append(hosts, ctx)
			}
			var wg sync.WaitGroup
			for i, ctx := range hosts {
				wg.Go(func() {
					if err := receive(ctx, order(fmt.Sprint(i), 1)); err != nil || !settle.InHandler(ctx) {
						t.Errorf("got error %v; afterwards the host takes the handler for running: %t", err, settle.InHandler(ctx))
					}
				})
			}
			wg.Wait()
			if stored.Load() == 0 {
				t.Error("no statement was watched")
			}
		})
	}
}
