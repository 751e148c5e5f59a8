package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"regexp"
	"testing"

	"github.com/sqsonce/sqsonce/internal/limittest"
	"github.com/sqsonce/sqsonce/internal/must"
)

// countedPool returns a pool on the bed's database whose writes limittest counts.
func countedPool(t testing.TB, b *Bed) *sql.DB {
	t.Helper()
	db := sql.OpenDB(countedPools{b.DB.Driver(), b.DSN})
	t.Cleanup(func() { must.Do(t, db.Close()) })
	return db
}

// countedPools opens the connections of a pool.
type countedPools struct {
	driver driver.Driver
	dsn    string
}

func (p countedPools) Driver() driver.Driver { return p.driver }

func (p countedPools) Connect(context.Context) (driver.Conn, error) {
	c, err := p.driver.Open(p.dsn)
	return countedConn{c}, err
}

type countedConn struct{ driver.Conn }

var writes = regexp.MustCompile(`^\s*(INSERT|UPDATE|DELETE|REPLACE)\b`)

func (c countedConn) count(ctx context.Context, text string) {
	if writes.MatchString(text) {
		limittest.CountWrite(ctx)
	}
}

func (c countedConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
}

func (c countedConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

func (c countedConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	c.count(ctx, text)
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, text, args)
}

func (c countedConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	c.count(ctx, text)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, text, args)
}
