package sqlstore

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

// prepared is a statement that each connection of the pool parses once, if the engine says that this is cheaper. It is
// optional: a statement that cannot be prepared is sent as text. The pool closes it with its connections.
type prepared struct {
	store *Store
	text  func() string

	mu   sync.Mutex               // locked while a call prepares it
	stmt atomic.Pointer[sql.Stmt] // nil: not prepared yet
}

// prepare is called before the transaction begins, because the transaction may have the pool's last connection. It waits
// neither for a connection nor for another call that prepares.
func (p *prepared) prepare(ctx context.Context) {
	if !p.store.dialect.Prepares() || p.stmt.Load() != nil || !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	pool := p.store.db.Stats()
	if p.stmt.Load() != nil || pool.MaxOpenConnections > 0 && pool.InUse >= pool.MaxOpenConnections {
		return
	}
	// A failure is ignored: the statement is then sent as text, and that reports what is wrong.
	_ = p.store.base.WithTimeout(ctx, func(ctx context.Context) error {
		stmt, err := p.store.db.PrepareContext(ctx, p.text())
		if err == nil {
			p.stmt.Store(stmt)
		}
		return err
	})
}

// writeReturning is [sqldb.Dialect.WriteReturning].
func (p *prepared) writeReturning(ctx context.Context, tx *sql.Tx, args ...any) (number int64, written bool, err error) {
	err = p.run(tx, func(q sqldb.Queryer) (err error) {
		number, written, err = p.store.dialect.WriteReturning(ctx, q, p.text(), args...)
		return err
	})
	return number, written, err
}

// write is [sqldb.Dialect.Write].
func (p *prepared) write(ctx context.Context, tx *sql.Tx, args ...any) (written bool, err error) {
	err = p.run(tx, func(q sqldb.Queryer) (err error) {
		written, err = p.store.dialect.Write(ctx, q, p.text(), args...)
		return err
	})
	return written, err
}

func (p *prepared) run(tx *sql.Tx, f func(sqldb.Queryer) error) error {
	if stmt := p.stmt.Load(); stmt != nil {
		// Any other failure may have rolled the transaction back. On MySQL the text would then be committed by itself, and so
		// would the handler's statements after it.
		if err := f(preparedQueryer{tx, stmt}); err == nil || p.store.dialect.Classify(err) != sqldb.NotPrepared {
			return err
		}
	}
	return f(tx)
}

// preparedQueryer runs the prepared statement in the transaction, whatever text it is given.
type preparedQueryer struct {
	*sql.Tx
	stmt *sql.Stmt
}

func (q preparedQueryer) ExecContext(ctx context.Context, _ string, args ...any) (sql.Result, error) {
	return q.StmtContext(ctx, q.stmt).ExecContext(ctx, args...)
}

func (q preparedQueryer) QueryRowContext(ctx context.Context, _ string, args ...any) *sql.Row {
	return q.StmtContext(ctx, q.stmt).QueryRowContext(ctx, args...)
}
