package sqlstore

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
)

// A connection parses an inbox's INSERT and its UPDATE once, on engines where that is cheaper.
func TestInboxPreparesOnce(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		newLedger(t, b)
		db := b.Open(t)
		db.SetMaxOpenConns(1)
		s := storeOn(t, db, b.Dialect)
		i := newInbox(t, s)
		h := i.Handler(book)
		for _, id := range []string{"1", "2", "3"} {
			must.Do(t, h(t.Context(), order(id, 1)))
		}
		expectBalance(t, b.DB, 30)
		for _, p := range []*prepared{&i.insert, &i.complete} {
			if got := p.stmt.Load() != nil; got != b.kind.Dialect.Prepares() {
				t.Errorf("prepared: got %t: %s", got, p.text())
			}
		}
		if b.kind.SessionStatus == "" {
			return
		}
		for name, want := range map[string]int{"Com_stmt_prepare": 2, "Com_stmt_execute": 6} {
			var got int
			must.Do(t, db.QueryRowContext(t.Context(), strings.Replace(b.kind.SessionStatus, "*", name, 1)).Scan(new(string), &got))
			if got != want {
				t.Errorf("%s: got %d, want %d", name, got, want)
			}
		}
	})
}

// A server that accepts no more prepared statements gets the text, in the same transaction.
func TestInboxCannotPrepare(t *testing.T) {
	t.Parallel()
	b := ownServer(t, "MariaDB")
	newLedger(t, b)
	s := newStore(t, b)
	i := newInbox(t, s)
	h := i.Handler(book)
	exec(t, b.DB, "SET GLOBAL max_prepared_stmt_count = 0")
	if err := h(t.Context(), order("1", 1)); err != nil || i.insert.stmt.Load() != nil {
		t.Errorf("not prepared: got error %v and a statement %t, want neither", err, i.insert.stmt.Load() != nil)
	}
	exec(t, b.DB, "SET GLOBAL max_prepared_stmt_count = 1")
	if err := h(t.Context(), order("2", 1)); err != nil || i.insert.stmt.Load() == nil {
		t.Errorf("prepared on one connection: got error %v and a statement %t, want one", err, i.insert.stmt.Load() != nil)
	}
	first := must.Get(b.DB.Conn(t.Context()))(t)
	defer func() { _ = first.Close() }()
	must.Do(t, h(t.Context(), order("3", 1)))
	expectBalance(t, b.DB, 30)
}

// Preparing waits for no connection, and does not use the pool's last one.
func TestPrepareDoesNotWait(t *testing.T) {
	t.Parallel()
	b := NewBed(t, "SQLite")
	b.DB.SetMaxOpenConns(1)
	p := prepared{store: newStore(t, b, func(o *Options) { o.Timeout = -1 }), text: func() string { return "SELECT 1" }}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	conn := must.Get(b.DB.Conn(ctx))(t)
	p.prepare(ctx)
	if ctx.Err() != nil || p.stmt.Load() != nil {
		t.Errorf("without a connection: got %v and a statement %t, want neither", ctx.Err(), p.stmt.Load() != nil)
	}
	must.Do(t, conn.Close())
	p.mu.Lock()
	p.prepare(ctx)
	p.mu.Unlock()
	if p.stmt.Load() != nil {
		t.Error("prepared while another call prepares")
	}
	if p.prepare(ctx); p.stmt.Load() == nil {
		t.Error("not prepared with a connection")
	}
}

// After a failure the transaction may be rolled back, so the text is not sent after it.
func TestPreparedFails(t *testing.T) {
	t.Parallel()
	b := NewBed(t, "SQLite")
	exec(t, b.DB, "CREATE TABLE few (n INTEGER NOT NULL)")
	failing := must.Get(b.DB.PrepareContext(t.Context(), "INSERT INTO few (n) VALUES (NULL) RETURNING n"))(t)
	p := prepared{store: newStore(t, b), text: func() string { return "INSERT INTO few (n) VALUES (1) RETURNING n" }}
	p.stmt.Store(failing)
	tx := must.Get(b.DB.BeginTx(t.Context(), nil))(t)
	defer func() { _ = tx.Rollback() }()
	if _, written, err := p.writeReturning(t.Context(), tx); err == nil || written {
		t.Errorf("got error %v and a row %t, want the failure", err, written)
	}
	n := 0
	if err := tx.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM few").Scan(&n); err != nil || n != 0 {
		t.Errorf("rows: got %d and error %v, want none", n, err)
	}
}
