package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"sync/atomic"
)

// queryer is implemented by *sql.DB, *sql.Conn and *sql.Tx.
type queryer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// write runs a statement that writes at most one row, and reports whether it wrote one. An INSERT whose key exists
// reports false.
func (d Dialect) write(ctx context.Context, q queryer, text string, args ...any) (bool, error) {
	res, err := q.ExecContext(ctx, text, args...)
	if err != nil {
		if d.engine.ignore == "" && d.classify(err) == duplicate {
			return false, nil
		}
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// returned marks the number that a statement of [Dialect.writeReturning] returns. On MySQL that is LAST_INSERT_ID(number):
// the server's reply to an INSERT or UPDATE carries the number, and 0 if no row was written.
func (d Dialect) returned(number string) string {
	if d.engine.returning {
		return number
	}
	return "LAST_INSERT_ID(" + number + ")"
}

// returning is the end of a statement of [Dialect.writeReturning].
func (d Dialect) returning(number string) string {
	if d.engine.returning {
		return " RETURNING " + number
	}
	return ""
}

// writeReturning runs a statement that returns a number of the row it wrote: see returned and returning. It reports false
// if no row was written, because the key exists or the WHERE clause does not match.
func (d Dialect) writeReturning(ctx context.Context, q queryer, text string, args ...any) (number int64, written bool, err error) {
	if d.engine.returning {
		err := q.QueryRowContext(ctx, text, args...).Scan(&number)
		if errors.Is(err, sql.ErrNoRows) {
			return 0, false, nil
		}
		return number, err == nil, err
	}
	res, err := q.ExecContext(ctx, text, args...)
	if err != nil {
		if d.classify(err) == duplicate {
			return 0, false, nil
		}
		return 0, false, err
	}
	// Not the rows affected: MySQL counts a row that was written with the values it had only if the driver asks for it.
	number, err = res.LastInsertId()
	return number, number > 0, err
}

// discard closes the connection instead of putting it back into the pool.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // Raw returns the function's error
}

// prepared is a statement that each connection of the pool parses once, if the engine says that this is cheaper. It is
// optional: a statement that cannot be prepared is sent as text. The pool closes it with its connections.
type prepared struct {
	store *Store
	text  string

	mu   sync.Mutex               // locked while a call prepares it
	stmt atomic.Pointer[sql.Stmt] // nil: not prepared yet
}

// prepare is called before the transaction begins, because the transaction may have the pool's last connection. It waits
// neither for a connection nor for another call that prepares.
func (p *prepared) prepare(ctx context.Context) {
	if !p.store.dialect.engine.prepares || p.stmt.Load() != nil || !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	pool := p.store.db.Stats()
	if p.stmt.Load() != nil || pool.MaxOpenConnections > 0 && pool.InUse >= pool.MaxOpenConnections {
		return
	}
	// A failure is ignored: the statement is then sent as text, and that reports what is wrong.
	_ = p.store.withTimeout(ctx, func(ctx context.Context) error {
		stmt, err := p.store.db.PrepareContext(ctx, p.text)
		if err == nil {
			p.stmt.Store(stmt)
		}
		return err
	})
}

// writeReturning is [Dialect.writeReturning].
func (p *prepared) writeReturning(ctx context.Context, tx *sql.Tx, args ...any) (number int64, written bool, err error) {
	err = p.run(tx, func(q queryer) (err error) {
		number, written, err = p.store.dialect.writeReturning(ctx, q, p.text, args...)
		return err
	})
	return number, written, err
}

// write is [Dialect.write].
func (p *prepared) write(ctx context.Context, tx *sql.Tx, args ...any) (written bool, err error) {
	err = p.run(tx, func(q queryer) (err error) {
		written, err = p.store.dialect.write(ctx, q, p.text, args...)
		return err
	})
	return written, err
}

func (p *prepared) run(tx *sql.Tx, f func(queryer) error) error {
	if stmt := p.stmt.Load(); stmt != nil {
		// Any other failure may have rolled the transaction back. On MySQL the text would then be committed by itself, and so
		// would the handler's statements after it.
		if err := f(preparedQueryer{tx, stmt}); err == nil || p.store.dialect.classify(err) != notPrepared {
			return err
		}
	}
	return f(tx)
}

// preparedQueryer runs the prepared statement in the transaction, whatever text it is given.
type preparedQueryer struct {
	tx   *sql.Tx
	stmt *sql.Stmt
}

func (q preparedQueryer) ExecContext(ctx context.Context, _ string, args ...any) (sql.Result, error) {
	return q.tx.StmtContext(ctx, q.stmt).ExecContext(ctx, args...)
}

func (q preparedQueryer) QueryRowContext(ctx context.Context, _ string, args ...any) *sql.Row {
	return q.tx.StmtContext(ctx, q.stmt).QueryRowContext(ctx, args...)
}
