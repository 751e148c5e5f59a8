package choose

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/internal/must"
)

// statements counts what runs on the connections of counted: SQLite, whose BEGIN and COMMIT are not counted.
var statements atomic.Int64

func init() { sql.Register("counted", countedDriver{&sqlite.Driver{}}) }

type countedDriver struct{ driver.Driver }

func (d countedDriver) Open(name string) (driver.Conn, error) {
	c, err := d.Driver.Open(name)
	if err != nil {
		return nil, err
	}
	return countedConn{c.(sqliteConn)}, nil
}

type sqliteConn interface {
	driver.Conn
	driver.ExecerContext
	driver.QueryerContext
	driver.ConnPrepareContext
	driver.ConnBeginTx
}

type countedConn struct{ sqliteConn }

func (c countedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	statements.Add(1)
	return c.sqliteConn.ExecContext(ctx, query, args)
}

func (c countedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	statements.Add(1)
	return c.sqliteConn.QueryContext(ctx, query, args)
}

func (c countedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.sqliteConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return countedStmt{s.(sqliteStmt)}, nil
}

type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type countedStmt struct{ sqliteStmt }

func (s countedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	statements.Add(1)
	return s.sqliteStmt.ExecContext(ctx, args)
}

func (s countedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	statements.Add(1)
	return s.sqliteStmt.QueryContext(ctx, args)
}

// The statements of an event that docs/choose.md names are those that the database gets.
func TestStatements(t *testing.T) {
	db := must.Get(sql.Open("counted", ":memory:"))(t)
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	must.Do(t, sqlstore.Migrate(t.Context(), db, sqlstore.SQLite))
	store := must.Get(sqlstore.New(db, sqlstore.SQLite))(t)
	once := must.Get(dedup.New(store, "once"))(t)
	inbox := must.Get(sqlstore.NewInbox(store, "inbox"))(t)
	var own int64 // statements of the handler itself
	for row, handler := range map[string]sqsonce.Handler{
		"Record with a lease, SQL": once.Handler(func(context.Context, *sqsonce.Message) error { return nil }),
		"Inbox, SQL": inbox.Handler(func(ctx context.Context, _ *sqsonce.Message, tx *sql.Tx) error {
			own++
			_, err := tx.ExecContext(ctx, "SELECT 1")
			return err
		}),
	} {
		must.Do(t, handler(t.Context(), event("the first one prepares")))
		const events = 10
		before := statements.Load()
		own = 0
		for i := range events {
			must.Do(t, handler(t.Context(), event(fmt.Sprint(i))))
		}
		got := float64(statements.Load()-before-own) / events
		choosePage(t).check(row, perEvent, `((?:at most )?\S+) statements`, got)
	}

	deferred := must.Get(sqlstore.NewDeferred(store, "deferred"))(t)
	processor := must.Get(sqlstore.NewProcessor(deferred, func(o *sqlstore.ProcessorOptions) { o.Poll = time.Hour }))(t)
	const events = 100 // received ten at a time
	before := statements.Load()
	for i := 0; i < events; i += 10 {
		var batch []*sqsonce.Message
		for j := range 10 {
			batch = append(batch, event(fmt.Sprint(i+j)))
		}
		for _, err := range deferred.ReceiveBatch(t.Context(), batch) {
			must.Do(t, err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	handled := 0
	must.Do(t, processor.Run(ctx, func(context.Context, *sqsonce.Message, *sql.Tx) error {
		if handled++; handled == events {
			stop()
		}
		return nil
	}))
	choosePage(t).check("Deferred inbox, SQL", perEvent, `((?:at most )?\S+) statements`, float64(statements.Load()-before)/events)
}
