package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
)

// Queryer is implemented by *sql.DB, *sql.Conn and *sql.Tx.
type Queryer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Write runs a statement that writes at most one row, and reports whether it wrote one. An INSERT whose key exists
// reports false.
func (d Dialect) Write(ctx context.Context, q Queryer, text string, args ...any) (bool, error) {
	res, err := q.ExecContext(ctx, text, args...)
	if err != nil {
		if d.engine.ignore == "" && d.Classify(err) == Duplicate {
			return false, nil
		}
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// Returned marks the number that a statement of [Dialect.WriteReturning] returns. On MySQL that is LAST_INSERT_ID(number):
// the server's reply to an INSERT or UPDATE carries the number, and 0 if no row was written.
func (d Dialect) Returned(number string) string {
	if d.engine.returning {
		return number
	}
	return "LAST_INSERT_ID(" + number + ")"
}

// Returning is the end of a statement of [Dialect.WriteReturning].
func (d Dialect) Returning(number string) string {
	if d.engine.returning {
		return " RETURNING " + number
	}
	return ""
}

// WriteReturning runs a statement that returns a number of the row it wrote: see Returned and Returning. It reports false
// if no row was written, because the key exists or the WHERE clause does not match.
func (d Dialect) WriteReturning(ctx context.Context, q Queryer, text string, args ...any) (number int64, written bool, err error) {
	if d.engine.returning {
		err := q.QueryRowContext(ctx, text, args...).Scan(&number)
		if errors.Is(err, sql.ErrNoRows) {
			return 0, false, nil
		}
		return number, err == nil, err
	}
	res, err := q.ExecContext(ctx, text, args...)
	if err != nil {
		if d.Classify(err) == Duplicate {
			return 0, false, nil
		}
		return 0, false, err
	}
	// Not the rows affected: MySQL counts a row that was written with the values it had only if the driver asks for it.
	number, err = res.LastInsertId()
	return number, number > 0, err
}

// Discard closes the connection instead of putting it back into the pool.
func Discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // Raw returns the function's error
}
