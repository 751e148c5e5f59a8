package sqlstore

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
)

// prepared is a statement of transactions that each connection of the pool parses once, where that is worth it. It is
// never needed: what cannot be prepared is sent as text. The pool closes it with its connections.
type prepared struct {
	store *Store
	text  string

	mu   sync.Mutex               // held: it is being prepared
	stmt atomic.Pointer[sql.Stmt] // nil: not yet
}

// prepare is called before the transaction begins: a caller that has one already may have the pool's last connection. It
// waits neither for a connection nor for another call that is at it.
func (p *prepared) prepare(ctx context.Context) {
	if !p.store.dialect.engine.prepares || p.stmt.Load() != nil || !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	pool := p.store.db.Stats()
	if p.stmt.Load() != nil || pool.MaxOpenConnections > 0 && pool.InUse >= pool.MaxOpenConnections {
		return
	}
	// A failure is no loss: the text will do, and says what is wrong.
	_ = p.store.timed(ctx, func(ctx context.Context) error {
		stmt, err := p.store.db.PrepareContext(ctx, p.text)
		if err == nil {
			p.stmt.Store(stmt)
		}
		return err
	})
}

// writeKept is [Dialect.writeKept].
func (p *prepared) writeKept(ctx context.Context, tx *sql.Tx, args ...any) (number int64, written bool, err error) {
	d := p.store.dialect
	if stmt := p.stmt.Load(); stmt != nil {
		number, written, err = d.writeKept(ctx, inTx{tx, stmt}, p.text, args...)
		// After any other failure the transaction may have been rolled back, and in MySQL the text would then be committed
		// by itself, as the handler's statements after it.
		if err == nil || d.classify(err) != unprepared {
			return number, written, err
		}
	}
	return d.writeKept(ctx, tx, p.text, args...)
}

// inTx runs the one statement in the transaction, whatever text it is given.
type inTx struct {
	tx   *sql.Tx
	stmt *sql.Stmt
}

func (q inTx) ExecContext(ctx context.Context, _ string, args ...any) (sql.Result, error) {
	return q.tx.StmtContext(ctx, q.stmt).ExecContext(ctx, args...)
}

func (q inTx) QueryRowContext(ctx context.Context, _ string, args ...any) *sql.Row {
	return q.tx.StmtContext(ctx, q.stmt).QueryRowContext(ctx, args...)
}
