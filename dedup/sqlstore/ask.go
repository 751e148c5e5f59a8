package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// queryer is met by *sql.DB, *sql.Conn and *sql.Tx.
type queryer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// write runs a statement that writes at most one row, and reports whether it did. An INSERT that found its key reports
// false.
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

// discard closes the connection itself instead of putting it back into the pool.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // its result is the error that was put in
}
