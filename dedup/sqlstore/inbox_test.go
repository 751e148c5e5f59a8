package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/inboxkit"
	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// Nothing is recorded of a first delivery that was postponed, nor an error of a later one.
func TestInboxPostponed(t *testing.T) {
	eachStore(t, func(t *testing.T, b *Bed, s *Store) {
		newLedger(t, b)
		h := newInbox(t, s).Handler(func(ctx context.Context, _ *sqsonce.Message, tx *sql.Tx) error {
			if err := addTen(ctx, tx); err != nil {
				return err
			}
			return sqsonce.Postpone(time.Hour, errBoom)
		})
		for n := range 3 {
			if err := h(t.Context(), order(orderID, n+1)); sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomePostponed {
				t.Errorf("got error %v, want the handler's Postpone", err)
			}
			r, err := s.Inspect(t.Context(), orderKey)
			if first := n == 0; first != errors.Is(err, dedup.ErrNotFound) || !first && (err != nil || r.LastError != "" || !r.Until.IsZero()) {
				t.Errorf("delivery %d: got record %+v, %v", n+1, r, err)
			}
		}
		expectBalance(t, b.DB, 0)
	})
}

// A failure rolls the handler's writes back, and stores the error and the receive count in the record.
func TestInboxFailureIsRecorded(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{
		"error":  func() error { return errBoom },
		"reject": func() error { return sqsonce.Reject(errBoom) },
		"panic":  func() error { panic(errBoom) },
		"goexit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			EachDialect(t, func(t *testing.T, b *Bed) {
				newLedger(t, b)
				s := newStore(t, b)
				i := newInbox(t, s)
				failing := i.Handler(func(ctx context.Context, _ *sqsonce.Message, tx *sql.Tx) error {
					if err := addTen(ctx, tx); err != nil {
						return err
					}
					return fail()
				})
				for n := 1; n <= 2; n++ { // the first failure inserts the record, the second updates it
					var err error
					ended := make(chan struct{})
					go func() { // goexit ends this goroutine
						defer close(ended)
						err = failing(t.Context(), order(orderID, n))
					}()
					<-ended
					if name != "goexit" && !errors.Is(err, errBoom) {
						t.Errorf("delivery %d: got error %v, want the handler's", n, err)
					}
					r, err := s.Inspect(t.Context(), orderKey)
					if err != nil || r.Completed || !r.Until.IsZero() || r.ReceiveCount != n || !strings.Contains(r.LastError, "o") {
						t.Errorf("record after delivery %d: got %+v and error %v, want it released with the error", n, r, err)
					}
				}
				expectBalance(t, b.DB, 0)

				err := i.Handler(func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
					if l, ok := inboxkit.LeaseFrom(ctx); !ok || l.LastError == "" || l.Takeover || l.ReceiveCount != 3 {
						t.Errorf("lease: got %+v, want the third attempt's, with the last error", l)
					}
					return book(ctx, m, tx)
				})(t.Context(), order(orderID, 3))
				if err != nil {
					t.Errorf("third delivery: got error %v, want nil", err)
				}
				expectBalance(t, b.DB, 10)
				if r, err := s.Inspect(t.Context(), orderKey); err != nil || !r.Completed || r.ReceiveCount != 3 {
					t.Errorf("record: got %+v and error %v, want it completed by attempt 3", r, err)
				}
			})
		})
	}
}

// Each attempt's fence is greater than every earlier one's, also of attempts whose transactions were rolled back.
func TestInboxFenceGrows(t *testing.T) {
	eachStore(t, func(t *testing.T, b *Bed, s *Store) {
		l := mustAcquire(t, s, claim(orderKey, "earlier"))
		must.Do(t, s.Release(t.Context(), l, nil))
		// Ahead of the clock: a fence that only follows the clock would not grow.
		last := l.Fence + time.Hour.Milliseconds()
		exec(t, b.DB, b.Dialect.sql("UPDATE {records} SET fence = ?"), last)
		h := newInbox(t, s).Handler(func(ctx context.Context, _ *sqsonce.Message, _ *sql.Tx) error {
			fence, ok := dedup.FenceFrom(ctx)
			if !ok || fence <= last {
				t.Errorf("fence: got %d after %d, want a greater one", fence, last)
			}
			last = fence
			return errBoom
		})
		for n := range 5 {
			if err := h(t.Context(), order(orderID, n+1)); !errors.Is(err, errBoom) {
				t.Errorf("delivery: got error %v, want the handler's", err)
			}
		}
	})
}

// A rejected event stays locked until its host has settled the message: no second delivery starts before the message is
// in the dead-letter queue.
func TestInboxRejectLocksUntilSettled(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		newLedger(t, b)
		ctx, settle := settle.New(t.Context())
		rejecting := newInbox(t, newStore(t, b)).Handler(func(context.Context, *sqsonce.Message, *sql.Tx) error {
			return sqsonce.Reject(errBoom)
		})
		if err := rejecting(ctx, order(orderID, 1)); !errors.Is(err, errBoom) {
			t.Fatalf("delivery: got error %v, want the handler's", err)
		}
		done := make(chan error, 1)
		go func() { done <- newInbox(t, otherProcess(t, b)).Handler(book)(t.Context(), order(orderID, 1)) }()
		select {
		case err := <-done:
			t.Errorf("second delivery before the settlement: got error %v, want it to wait", err)
		case <-time.After(200 * time.Millisecond):
		}
		settle(true)
		must.Do(t, <-done)
		expectBalance(t, b.DB, 10)
	})
}

// The host stops, or loses the message, after the handler has returned: the handler's writes are committed.
func TestInboxCommitsAfterStop(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		newLedger(t, b)
		ctx, cancel := context.WithCancelCause(t.Context())
		h := newInbox(t, newStore(t, b)).Handler(func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
			defer cancel(sqsonce.ErrShutdown)
			return book(ctx, m, tx)
		})
		must.Do(t, h(ctx, order(orderID, 1)))
		expectBalance(t, b.DB, 10)
		if err := h(ctx, order("43", 1)); !errors.Is(err, sqsonce.ErrShutdown) {
			t.Errorf("delivery after the stop: got error %v, want ErrShutdown", err)
		}
		expectBalance(t, b.DB, 10)
	})
}

// A handler can end its *sql.Tx itself.
func TestInboxHandlerEndsItsTx(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		newLedger(t, b)
		i := newInbox(t, newStore(t, b))
		err := i.Handler(func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
			return errors.Join(book(ctx, m, tx), tx.Rollback())
		})(t.Context(), order(orderID, 1))
		if !errors.Is(err, ErrTxEnded) {
			t.Errorf("delivery that rolled back: got error %v, want ErrTxEnded", err)
		}
		expectBalance(t, b.DB, 0)
		err = i.Handler(func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
			return errors.Join(book(ctx, m, tx), tx.Commit())
		})(t.Context(), order(orderID, 2))
		if err != nil {
			t.Errorf("delivery that committed: got error %v, want nil", err)
		}
		expectBalance(t, b.DB, 10)
	})
}

func TestNewInboxChecksItsOptions(t *testing.T) {
	t.Parallel()
	if _, err := NewInbox(nil, "billing"); !hasField(err, "store") {
		t.Errorf("NewInbox without a store: got error %v, want one that names it", err)
	}
	s := newStore(t, NewBed(t, "SQLite"))
	for _, policy := range []dedup.CrashPolicy{dedup.OnCrashBlock, dedup.OnCrashDeadLetter} {
		_, err := NewInbox(s, "no spaces", func(o *dedup.Options) { o.OnStoreDown, o.OnCrash = dedup.OnStoreDownRunAnyway, policy })
		for _, field := range []string{"consumer", "Options.OnStoreDown", "Options.OnCrash"} {
			if err == nil || !strings.Contains(err.Error(), field) {
				t.Errorf("NewInbox: got error %v, want it to name %s", err, field)
			}
		}
	}
	if newInbox(t, s).Handler(nil) != nil {
		t.Error("Handler(nil) is a handler")
	}
}
