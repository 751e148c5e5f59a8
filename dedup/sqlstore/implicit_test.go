package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// implicitCommit is a statement that commits a handler's transaction without its *sql.Tx.
type implicitCommit struct{ name, text string }

// implicitCommits returns what each database has: every one executes a COMMIT that is sent as text.
func implicitCommits(t testing.TB, b *Bed) []implicitCommit {
	t.Helper()
	all := []implicitCommit{{"text", "COMMIT"}}
	for _, text := range b.kind.Procedures {
		exec(t, b.DB, text)
	}
	for name, text := range b.kind.Commits {
		all = append(all, implicitCommit{name, text})
	}
	return all
}

// bookAndCommit books and then commits without the *sql.Tx.
func bookAndCommit(ctx context.Context, tx *sql.Tx, c implicitCommit) error {
	if err := addTen(ctx, tx); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, c.text)
	return err
}

// A statement of the handler commits implicitly, and then the handler fails. The event is not done: the second delivery
// runs the handler again. The first one's error names the implicit commit. What was committed is there twice.
func TestInboxImplicitCommitThenFailure(t *testing.T) {
	eachLedger(t, func(t *testing.T, b *Bed, s *Store) {
		i := newInbox(t, s)
		for n, c := range implicitCommits(t, b) {
			id, want := fmt.Sprint("order-", n), int64(n+1)*20
			err := i.Handler(func(ctx context.Context, _ *sqsonce.Message, tx *sql.Tx) error {
				return errors.Join(bookAndCommit(ctx, tx, c), errBoom)
			})(t.Context(), order(id, 1))
			if !errors.Is(err, errBoom) || !errors.Is(err, ErrImplicitCommit) {
				t.Errorf("%s: got error %v, want the handler's and ErrImplicitCommit", c.name, err)
			}
			expectBalance(t, b.DB, want-10)
			r, err := s.Inspect(t.Context(), "billing#orders|"+id)
			if err != nil || r.Completed || !r.Until.IsZero() || r.LastError == "" {
				t.Errorf("%s: record: got %+v and error %v, want it released with the error", c.name, r, err)
			}
			// Another process, which remembers nothing.
			if err := newInbox(t, otherProcess(t, b)).Handler(book)(t.Context(), order(id, 2)); err != nil {
				t.Errorf("%s: second delivery: got error %v, want nil", c.name, err)
			}
			expectBalance(t, b.DB, want)
		}
	})
}

// The handler goes on after an implicit commit and succeeds: the event is done once.
func TestInboxImplicitCommitThenSuccess(t *testing.T) {
	eachLedger(t, func(t *testing.T, b *Bed, s *Store) {
		for n, c := range implicitCommits(t, b) {
			id := fmt.Sprint("order-", n)
			// Where the driver finds no transaction to commit it says so.
			err := newInbox(t, s).Handler(func(ctx context.Context, _ *sqsonce.Message, tx *sql.Tx) error {
				return bookAndCommit(ctx, tx, c)
			})(t.Context(), order(id, 1))
			if err != nil && b.kind.HasServer() {
				t.Errorf("%s: got error %v, want nil", c.name, err)
			}
			if err := newInbox(t, s).Handler(book)(t.Context(), order(id, 2)); err != nil {
				t.Errorf("%s: second delivery: got error %v, want nil", c.name, err)
			}
			expectBalance(t, b.DB, int64(n+1)*10)
		}
	})
}

// A rejected or panicking handler committed implicitly before. The record is released all the same, and the log names the
// implicit commit.
func TestInboxImplicitCommitThenRejectOrPanic(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		newLedger(t, b)
		for n, fail := range []func() error{func() error { return sqsonce.Reject(errBoom) }, func() error { panic(errBoom) }} {
			id, log := fmt.Sprint("order-", n), &bytes.Buffer{}
			s := newStore(t, b, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
			var lines host.Lines
			ctx, settled := settle.New(lines.Context(t.Context()))
			err := newInbox(t, s).Handler(func(ctx context.Context, _ *sqsonce.Message, tx *sql.Tx) error {
				return errors.Join(bookAndCommit(ctx, tx, implicitCommit{text: "COMMIT"}), fail())
			})(ctx, order(id, 1))
			if !errors.Is(err, errBoom) {
				t.Errorf("delivery: got error %v, want the handler's", err)
			}
			settled(true)
			if r, err := s.Inspect(t.Context(), "billing#orders|"+id); err != nil || r.Completed || !r.Until.IsZero() {
				t.Errorf("record: got %+v and error %v, want it released", r, err)
			}
			lines.Flush(time.Minute)
			if !strings.Contains(log.String(), "implicit commit") {
				t.Errorf("log: got %q, want a line about the implicit commit", log)
			}
		}
	})
}

// After an implicit commit the row is not locked. Its lease of CallTimeout stands between the handler and another delivery,
// also when the process has died.
func TestInboxImplicitCommitLeavesALease(t *testing.T) {
	eachLedger(t, func(t *testing.T, b *Bed, s *Store) {
		long := func(o *dedup.Options) { o.CallTimeout = time.Minute }
		committed, proceed, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		first := newInbox(t, otherProcess(t, b), long).Handler(func(ctx context.Context, _ *sqsonce.Message, tx *sql.Tx) error {
			err := bookAndCommit(ctx, tx, implicitCommit{text: "COMMIT"})
			close(committed)
			<-proceed
			return err
		})
		begun := time.Now()
		go func() { ended <- first(context.Background(), order(orderID, 1)) }()
		<-committed
		r, err := s.Inspect(t.Context(), orderKey)
		if err != nil || r.Completed || r.Until.Before(begun.Add(time.Minute-time.Second)) || r.Until.After(time.Now().Add(time.Minute+time.Second)) {
			t.Errorf("record: got %+v and error %v, want a lease of CallTimeout", r, err)
		}
		if left := time.Until(r.ExpiresAt); left < 28*24*time.Hour {
			t.Errorf("retention: got %v, want the default", left)
		}
		second := newInbox(t, s).Handler(book)
		if err := second(t.Context(), order(orderID, 2)); !errors.Is(err, sqsonce.ErrInProgress) {
			t.Errorf("second delivery in the lease: got error %v, want ErrInProgress", err)
		}
		age(t, b, orderKey, 2*time.Minute)
		must.Do(t, second(t.Context(), order(orderID, 2)))
		// The first is refused: the event is another delivery's.
		close(proceed)
		if err := <-ended; !errors.Is(err, ErrTxEnded) {
			t.Errorf("first delivery: got error %v, want ErrTxEnded", err)
		}
		if r, err := s.Inspect(t.Context(), orderKey); err != nil || !r.Completed {
			t.Errorf("record: got %+v and error %v, want it completed by the second", r, err)
		}
	})
}

// An attempt of the same delivery that committed implicitly is not followed by another one: its effect is there already.
func TestInboxImplicitCommitIsNotRepeated(t *testing.T) {
	each(t, servers, NewBed, func(t *testing.T, b *Bed) {
		newLedger(t, b)
		var runs atomic.Int64
		p, proxied := throughProxy(t, b)
		i := newInbox(t, newStore(t, proxied))
		err := i.Handler(func(ctx context.Context, _ *sqsonce.Message, tx *sql.Tx) error {
			runs.Add(1)
			defer p.loseStatement("orders|42") // the last UPDATE
			return bookAndCommit(ctx, tx, implicitCommit{text: "COMMIT"})
		})(t.Context(), order(orderID, 1))
		if !errors.Is(err, ErrImplicitCommit) || runs.Load() != 1 {
			t.Errorf("delivery: got error %v after %d runs, want ErrImplicitCommit after 1", err, runs.Load())
		}
		expectBalance(t, b.DB, 10)
		if r, err := newStore(t, b).Inspect(t.Context(), orderKey); err != nil || r.Completed || !r.Until.IsZero() {
			t.Errorf("record: got %+v and error %v, want it released", r, err)
		}
	})
}

// A processor's attempt: the event is not done, its error names the implicit commit, and it is tried again.
func TestProcessorImplicitCommit(t *testing.T) {
	eachDeferred(t, func(t *testing.T, b *Bed, d *Deferred) {
		for n, c := range implicitCommits(t, b) {
			id, want := fmt.Sprint("order-", n), int64(n+1)*20
			receive(t, d, order(id, 1))
			var runs atomic.Int64
			lastError := make(chan string, 1)
			p, stop := process(t, d, func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
				if runs.Add(1) == 1 {
					return errors.Join(bookAndCommit(ctx, tx, c), errBoom)
				}
				e, err := d.Inspect(ctx, "billing#orders|"+id)
				lastError <- e.Error
				return errors.Join(err, book(ctx, m, tx))
			}, func(o *ProcessorOptions) { o.Concurrency, o.LeaseDuration = 1, time.Minute })
			awaitCounts(t, d, 0, 0)
			stop()
			if got := <-lastError; runs.Load() != 2 || !strings.Contains(got, "implicit commit") {
				t.Errorf("%s: got error %q after %d runs, want one about the implicit commit, and 2 runs", c.name, got, runs.Load())
			}
			if s := p.Stats(); s.Done != 1 || s.Failed != 1 {
				t.Errorf("%s: got %+v, want one failed and one done", c.name, s)
			}
			expectBalance(t, b.DB, want)
		}
	})
}
