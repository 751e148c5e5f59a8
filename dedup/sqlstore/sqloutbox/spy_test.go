package sqloutbox

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"sync"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"
)

// spy is between a pool and its driver. It sees each statement and each row that a query returns.
type spy struct {
	driver driver.Driver
	dsn    string

	mu    sync.Mutex
	texts []string
	// began is called when a query begins. It returns what is called for each of its rows, which reports whether the row is
	// returned, and what is called at its end.
	began func(text string) (row func([]driver.Value) bool, ended func())
	// fail is called before a statement is sent, and its error is returned in its place.
	fail func(text string) error
	// lose is called when a statement that writes was carried out, and its error is returned in place of the answer.
	lose func(text string) error
}

// spied returns a pool on the bed's database, and its spy.
func spied(t testing.TB, b *bed) (*spy, *sql.DB) {
	t.Helper()
	s := &spy{driver: b.db.Driver(), dsn: b.DSN}
	db := sql.OpenDB(s)
	t.Cleanup(func() { must.Do(t, db.Close()) })
	return s, db
}

// take returns the statements since the last take, without the ends of transactions.
func (s *spy) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.texts
	s.texts = nil
	return all
}

// set sets the hooks for the statements that follow.
func (s *spy) set(fail, lose func(text string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail, s.lose = fail, lose
}

func (s *spy) Driver() driver.Driver { return s.driver }

func (s *spy) Connect(context.Context) (driver.Conn, error) {
	c, err := s.driver.Open(s.dsn)
	if err != nil {
		return nil, err
	}
	return &spyConn{c, s}, nil
}

func (s *spy) sees(text string) error {
	s.mu.Lock()
	s.texts = append(s.texts, text)
	fail := s.fail
	s.mu.Unlock()
	if fail != nil {
		return fail(text)
	}
	return nil
}

type spyConn struct {
	driver.Conn
	spy *spy
}

func (c *spyConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
}

func (c *spyConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

func (c *spyConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.spy.sees(text); err != nil {
		return nil, err
	}
	res, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, text, args)
	c.spy.mu.Lock()
	lose := c.spy.lose
	c.spy.mu.Unlock()
	if err == nil && lose != nil {
		if err := lose(text); err != nil {
			return nil, err
		}
	}
	return res, err
}

func (c *spyConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.spy.sees(text); err != nil {
		return nil, err
	}
	rows := &spyRows{}
	c.spy.mu.Lock()
	if c.spy.began != nil {
		rows.row, rows.ended = c.spy.began(text)
	}
	c.spy.mu.Unlock()
	var err error
	rows.Rows, err = c.Conn.(driver.QueryerContext).QueryContext(ctx, text, args)
	if err != nil {
		return nil, err
	}
	return rows, nil
}

type spyRows struct {
	driver.Rows
	row   func([]driver.Value) bool
	ended func()
}

func (r *spyRows) Next(values []driver.Value) error {
	for {
		err := r.Rows.Next(values)
		if err != nil || r.row == nil || r.row(values) {
			return err
		}
	}
}

func (r *spyRows) Close() error {
	err := r.Rows.Close()
	if r.ended != nil {
		r.ended()
		r.ended = nil
	}
	return err
}

// short is a statement's first words.
func short(text string) string { return strings.Join(strings.Fields(text)[:2], " ") }
