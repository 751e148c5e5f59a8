package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/internal/must"
)

// accounts are four rows; a handler adds 1 to each of them.
type accounts struct {
	t *testing.T
	b *Bed
}

func newAccounts(t *testing.T, b *Bed) accounts {
	t.Helper()
	exec(t, b.DB, "CREATE TABLE accounts (id INT PRIMARY KEY, n INT NOT NULL)")
	exec(t, b.DB, "CREATE TABLE ballast (id INT PRIMARY KEY)")
	exec(t, b.DB, "INSERT INTO accounts VALUES (1, 0), (2, 0), (3, 0), (4, 0)")
	return accounts{t, b}
}

func (a accounts) add(ctx context.Context, q sqldb.Queryer, id int) error {
	_, err := q.ExecContext(ctx, fmt.Sprintf("UPDATE accounts SET n = n + 1 WHERE id = %d", id))
	return err
}

func (a accounts) expect(want ...int) {
	a.t.Helper()
	got := make([]int, len(want))
	for i := range got {
		must.Do(a.t, a.b.DB.QueryRowContext(a.t.Context(), fmt.Sprintf("SELECT n FROM accounts WHERE id = %d", i+1)).Scan(&got[i]))
	}
	if !reflect.DeepEqual(got, want) {
		a.t.Errorf("accounts: got %v, want %v", got, want)
	}
}

// ignoringDeadlock returns a handler that adds to each account and ignores a deadlock at the second one. There is one at its
// first run: another transaction locks the accounts in the other order. It has written more, so the database chooses the
// handler's as its victim.
func (a accounts) ignoringDeadlock() (h func(context.Context, *sqsonce.Message, *sql.Tx) error, wait func()) {
	var other sync.WaitGroup
	var runs atomic.Int64
	return func(ctx context.Context, _ *sqsonce.Message, tx *sql.Tx) error {
		first := runs.Add(1) == 1
		if err := a.add(ctx, tx, 1); err != nil {
			return err
		}
		if first {
			locked := make(chan struct{})
			other.Go(func() { a.lockInOtherOrder(sync.OnceFunc(func() { close(locked) })) })
			<-locked
		}
		if err := a.add(ctx, tx, 2); first != (err != nil && a.b.Dialect.classify(err) == sqldb.Conflict) {
			a.t.Errorf("second account: got error %v, first run %t: want a deadlock at the first run only", err, first)
		}
		return errors.Join(a.add(ctx, tx, 3), a.add(ctx, tx, 4))
	}, other.Wait
}

func (a accounts) lockInOtherOrder(locked func()) {
	defer locked()
	tx, err := a.b.DB.BeginTx(context.Background(), nil)
	if err != nil {
		a.t.Error(err)
		return
	}
	defer func() { _ = tx.Rollback() }() // nothing of it remains
	for n := range 200 {
		if _, err := tx.Exec(fmt.Sprintf("INSERT INTO ballast VALUES (%d)", n)); err != nil {
			a.t.Error(err)
			return
		}
	}
	err = a.add(context.Background(), tx, 2)
	locked()
	must.Do(a.t, errors.Join(err, a.add(context.Background(), tx, 1)))
}

// On MySQL a deadlock rolls the whole transaction back. A handler that ignores its error goes on without a transaction. The
// event is not done: half of the handler's writes are missing.
func TestInboxIgnoredDeadlock(t *testing.T) {
	t.Parallel()
	for _, name := range mysqls {
		for _, failed := range []bool{false, true} { // the record is inserted, or exists
			t.Run(fmt.Sprintf("%s/record %t", name, failed), func(t *testing.T) {
				t.Parallel()
				b := NewBed(t, name)
				a := newAccounts(t, b)
				s := newStore(t, b)
				if failed {
					fails := func(context.Context, *sqsonce.Message, *sql.Tx) error { return errBoom }
					if err := newInbox(t, s).Handler(fails)(t.Context(), order(orderID, 1)); !errors.Is(err, errBoom) {
						t.Fatal(err)
					}
				}
				h, wait := a.ignoringDeadlock()
				if err := newInbox(t, s).Handler(h)(t.Context(), order(orderID, 2)); !errors.Is(err, ErrTxEnded) {
					t.Errorf("first delivery: got error %v, want ErrTxEnded", err)
				}
				wait()
				a.expect(0, 0, 1, 1)
				if r, err := s.Inspect(t.Context(), orderKey); err != nil || r.Completed || !r.Until.IsZero() {
					t.Errorf("record: got %+v and error %v, want it released", r, err)
				}
				must.Do(t, newInbox(t, otherProcess(t, b)).Handler(h)(t.Context(), order(orderID, 3)))
				a.expect(1, 1, 2, 2)
			})
		}
	}
}

// On PostgreSQL a transaction in which a statement failed can only be rolled back. A handler that ignores the error does
// not complete its event.
func TestInboxIgnoredError(t *testing.T) {
	t.Parallel()
	b := NewBed(t, "PostgreSQL")
	newLedger(t, b)
	s := newStore(t, b)
	err := newInbox(t, s).Handler(func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
		err := book(ctx, m, tx)
		_, _ = tx.ExecContext(ctx, "SELECT 1 / 0")
		return err
	})(t.Context(), order(orderID, 1))
	if !errors.Is(err, ErrTxEnded) {
		t.Errorf("delivery: got error %v, want ErrTxEnded", err)
	}
	expectBalance(t, b.DB, 0)
	if r, err := s.Inspect(t.Context(), orderKey); err != nil || r.Completed {
		t.Errorf("record: got %+v and error %v, want it released", r, err)
	}
}

// Savepoints of the handler, and a rollback to one, leave the record in the transaction. A rollback of the whole transaction
// does not.
func TestInboxSavepoints(t *testing.T) {
	eachLedger(t, func(t *testing.T, b *Bed, s *Store) {
		for n, c := range []struct {
			name, end, fails string
			want             int64
			err              error
		}{
			{"released", "RELEASE SAVEPOINT sp", "SELECT 1", 20, nil},
			{"rolled back", "ROLLBACK TO SAVEPOINT sp", "SELECT 1", 10, nil},
			{"rolled back after an error", "ROLLBACK TO SAVEPOINT sp", "SELECT * FROM no_such_table", 10, nil},
			{"rolled back whole", "ROLLBACK", "SELECT 1", 0, ErrTxEnded},
		} {
			exec(t, b.DB, "UPDATE ledger SET balance = 0")
			id, booked := fmt.Sprint("order-", n), false
			h := func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
				booked = true
				if err := book(ctx, m, tx); err != nil {
					return err
				}
				if _, err := tx.ExecContext(ctx, "SAVEPOINT sp"); err != nil {
					return err
				}
				if err := book(ctx, m, tx); err != nil {
					return err
				}
				_, _ = tx.ExecContext(ctx, c.fails)
				_, err := tx.ExecContext(ctx, c.end)
				return err
			}
			if err := newInbox(t, s).Handler(h)(t.Context(), order(id, 1)); !errors.Is(err, c.err) {
				t.Errorf("%s: got error %v, want %v", c.name, err, c.err)
			}
			expectBalance(t, b.DB, c.want)
			booked = false
			if err := newInbox(t, s).Handler(h)(t.Context(), order(id, 2)); !errors.Is(err, c.err) || booked != (c.err != nil) {
				t.Errorf("%s: second delivery: got error %v, ran %t", c.name, err, booked)
			}
		}
	})
}

// A handler switches autocommit. An event is done once or not done, and the connection that others use after it commits.
func TestInboxAutocommitSwitched(t *testing.T) {
	t.Parallel()
	for _, name := range mysqls {
		for _, c := range []struct {
			name         string
			before       string
			after        string
			fails        error
			first, final int64
			want         []error
		}{
			{"off", "SET autocommit = 0", "SELECT 1", nil, 0, 10, []error{ErrTxEnded}},
			{"off, then on", "SET autocommit = 0", "SET autocommit = 1", nil, 10, 10, nil},
			{"off, then fails", "SET autocommit = 0", "SELECT 1", errBoom, 0, 10, []error{errBoom}},
			{"off, then on, then fails", "SET autocommit = 0", "SET autocommit = 1", errBoom, 10, 20, []error{errBoom, ErrImplicitCommit}},
			{"on, then fails", "SET autocommit = 1", "SELECT 1", errBoom, 0, 10, []error{errBoom}},
		} {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				b := NewBed(t, name)
				newLedger(t, b)
				b.DB.SetMaxOpenConns(1)
				s := newStore(t, b)
				err := newInbox(t, s).Handler(func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
					_, before := tx.ExecContext(ctx, c.before)
					err := book(ctx, m, tx)
					_, after := tx.ExecContext(ctx, c.after)
					return errors.Join(before, err, after, c.fails)
				})(t.Context(), order(orderID, 1))
				for _, want := range c.want {
					if !errors.Is(err, want) {
						t.Errorf("delivery: got error %v, want %v", err, want)
					}
				}
				if c.want == nil && err != nil {
					t.Errorf("delivery: got error %v, want nil", err)
				}
				// Another process sees what this pool's connection wrote: it was committed.
				other := b.Open(t)
				expectBalance(t, other, c.first)
				l := mustAcquire(t, s, claim("k", "a"))
				must.Get(storeOn(t, other, b.Dialect).Inspect(t.Context(), "k"))(t)
				mustComplete(t, s, l)
				must.Do(t, newInbox(t, storeOn(t, other, b.Dialect)).Handler(book)(t.Context(), order(orderID, 2)))
				expectBalance(t, other, c.final)
			})
		}
	}
}

// A processor's handler that leaves autocommit off has not committed, and the connection commits again.
func TestProcessorAutocommitSwitched(t *testing.T) {
	each(t, mysqls, NewBed, func(t *testing.T, b *Bed) {
		newLedger(t, b)
		d := newDeferred(t, newStore(t, b))
		receive(t, d, order(orderID, 1))
		var runs atomic.Int64
		p, stop := process(t, d, func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
			if runs.Add(1) == 1 {
				if _, err := tx.ExecContext(ctx, "SET autocommit = 0"); err != nil {
					return err
				}
			}
			return book(ctx, m, tx)
		})
		awaitCounts(t, d, 0, 0)
		stop()
		expectBalance(t, b.DB, 10)
		if s := p.Stats(); s.Done != 1 || s.Failed != 1 {
			t.Errorf("got %+v, want one failed and one done", s)
		}
	})
}
