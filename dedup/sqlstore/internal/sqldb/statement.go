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
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// In returns q, which runs its statements as [Dialect.For] says.
func (d Dialect) In(q Queryer) Queryer {
	if _, is := q.(inMode); is || d.mode == nil {
		return q
	}
	return inMode{q, d}
}

type inMode struct {
	q Queryer
	d Dialect
}

func (m inMode) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return m.q.ExecContext(ctx, query, m.d.withMode(args...)...)
}

func (m inMode) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return m.q.QueryContext(ctx, query, m.d.withMode(args...)...)
}

func (m inMode) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return m.q.QueryRowContext(ctx, query, m.d.withMode(args...)...)
}

// Row is one that can be read.
type Row interface{ Scan(targets ...any) error }

// All runs a query and returns its rows, read by scan.
func All[T any](ctx context.Context, q Queryer, scan func(Row) (T, error), text string, args ...any) (all []T, err error) {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports the errors
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// Write runs a statement that writes at most one row, and reports whether it wrote one. An INSERT whose key exists
// reports false.
func (d Dialect) Write(ctx context.Context, q Queryer, text string, args ...any) (bool, error) {
	res, err := d.In(q).ExecContext(ctx, text, args...)
	if err != nil {
		if d.engine.ignore == none && d.Classify(err) == Duplicate {
			return false, nil
		}
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// returned is how a statement returns a number of the row it wrote.
type returned struct {
	// mark stands for the number in the statement, and end is the statement's end.
	mark, end func(number string) string
	run       func(ctx context.Context, d Dialect, q Queryer, text string, args []any) (number int64, written bool, err error)
}

// Returned marks the number that a statement of [Dialect.WriteReturning] returns.
func (d Dialect) Returned(number string) string { return d.engine.returned.mark(number) }

// Returning is the end of a statement of [Dialect.WriteReturning].
func (d Dialect) Returning(number string) string { return d.engine.returned.end(number) }

// WriteReturning runs a statement that returns a number of the row it wrote: see Returned and Returning. It reports false
// if no row was written, because the key exists or the WHERE clause does not match.
func (d Dialect) WriteReturning(ctx context.Context, q Queryer, text string, args ...any) (number int64, written bool, err error) {
	return d.engine.returned.run(ctx, d, q, text, args)
}

// returning is the clause RETURNING.
var returning = returned{
	mark: func(number string) string { return number },
	end:  func(number string) string { return " RETURNING " + number },
	run: func(ctx context.Context, d Dialect, q Queryer, text string, args []any) (number int64, written bool, err error) {
		err = d.In(q).QueryRowContext(ctx, text, args...).Scan(&number)
		if errors.Is(err, sql.ErrNoRows) {
			return 0, false, nil
		}
		return number, err == nil, err
	},
}

// lastInsertID is LAST_INSERT_ID(number): the server's reply to an INSERT or UPDATE carries the number, and 0 if no row was
// written.
var lastInsertID = returned{
	mark: func(number string) string { return "LAST_INSERT_ID(" + number + ")" },
	end:  func(string) string { return "" },
	run: func(ctx context.Context, d Dialect, q Queryer, text string, args []any) (number int64, written bool, err error) {
		res, err := d.In(q).ExecContext(ctx, text, args...)
		if err != nil {
			if d.Classify(err) == Duplicate {
				return 0, false, nil
			}
			return 0, false, err
		}
		// Not the rows affected: MySQL counts a row that was written with the values it had only if the driver asks for it.
		number, err = res.LastInsertId()
		return number, number > 0, err
	},
}

// Discard closes the connection instead of putting it back into the pool.
func Discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // Raw returns the function's error
}
