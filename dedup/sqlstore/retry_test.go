package sqlstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// servers are the databases with a connection that can break.
var (
	servers = []string{"PostgreSQL", "MariaDB", "MySQL"}
	mysqls  = servers[1:] // of the dialect MySQL
)

// A connection breaks at a statement: before the server has it, or after it was executed and before the answer. The store
// finds out which, and the caller is told of neither.
func TestBrokenConnection(t *testing.T) {
	t.Parallel()
	for _, name := range servers {
		for _, lost := range []struct {
			name string
			at   func(*proxy, string)
			own  bool // an acquire finds its own
		}{
			{"statement", (*proxy).loseStatement, false},
			{"answer", (*proxy).loseAnswer, true},
		} {
			t.Run(name+"/"+lost.name, func(t *testing.T) {
				t.Parallel()
				b := NewBed(t, name)
				direct := newStore(t, b)
				p, through := throughProxy(t, b)
				s := newStore(t, through)
				if err := s.Check(t.Context()); err != nil {
					t.Fatal(err)
				}

				lost.at(p, "INSERT INTO")
				l := mustAcquire(t, s, claim("k", "a"))
				if l.OwnRetry != lost.own || l.Takeover {
					t.Errorf("lease after a lost INSERT: got %+v, want OwnRetry %t", l, lost.own)
				}
				r, err := direct.Inspect(t.Context(), "k")
				if err != nil || r.Fence != l.Fence || r.Owner != "a" || r.Until.Sub(l.Until).Abs() > time.Second {
					t.Errorf("record: got %+v, %v, want it as the lease %+v", r, err, l)
				}

				lost.at(p, "UPDATE")
				renewed, err := s.Renew(t.Context(), l, 2*time.Hour)
				if err != nil || time.Until(renewed.Until) < time.Hour {
					t.Errorf("Renew: got %+v, %v, want an end in two hours", renewed, err)
				}

				lost.at(p, "UPDATE")
				if err := s.Release(t.Context(), l, errors.New("declined")); err != nil {
					t.Errorf("Release: %v", err)
				}

				lost.at(p, "UPDATE")
				second := claim("k", "b")
				second.Attempt = 2
				l = mustAcquire(t, s, second)
				if l.LastError != "declined" || l.OwnRetry != lost.own {
					t.Errorf("second lease: got %+v, want LastError and OwnRetry %t", l, lost.own)
				}

				lost.at(p, "UPDATE")
				if err := s.Complete(t.Context(), l, dedup.Result{Data: []byte("1")}); err != nil {
					t.Errorf("Complete: %v", err)
				}
				_, err = direct.Acquire(t.Context(), claim("k", "c"))
				if done, ok := errors.AsType[*dedup.CompletedError](err); !ok || string(done.Result.Data) != "1" {
					t.Errorf("after Complete: got %v, want completed with its result", err)
				}

				lost.at(p, "DELETE")
				if err := s.Delete(t.Context(), "k"); err != nil {
					t.Errorf("Delete: %v", err)
				}
				if n := p.count(); n != 6 {
					t.Errorf("%d connections were broken, want 6", n)
				}
			})
		}
	}
}

// What says something about the record is an answer: it is returned as it is, and nothing is asked again.
func TestAnswersAreFinal(t *testing.T) {
	t.Parallel()
	s := newStore(t, NewBed(t, "SQLite"))
	held := mustAcquire(t, s, claim("k", "a"))
	stranger := held
	stranger.Owner = "b"
	_, err := s.Renew(t.Context(), stranger, time.Hour)
	for _, err := range []error{err, s.Complete(t.Context(), stranger, dedup.Result{}), s.Delete(t.Context(), "k"), fmt.Errorf("%w: x", ErrRecord)} {
		if s.mayRetry(err) {
			t.Errorf("%v would be tried again", err)
		}
		if explain(SQLite, "op", err) != err {
			t.Errorf("%v is wrapped", err)
		}
	}
	if err := s.Complete(t.Context(), stranger, dedup.Result{}); err != sqsonce.ErrLeaseLost {
		t.Errorf("Complete by a stranger: got error %v, want ErrLeaseLost itself", err)
	}
}

// A statement that the database ended, since a lock was held too long, is run again.
func TestConflictsAreTriedAgain(t *testing.T) {
	t.Parallel()
	EachDialect(t, func(t *testing.T, b *Bed) {
		dsn, held := b.DSN, 500*time.Millisecond
		switch b.Dialect {
		case PostgreSQL:
			dsn += "&lock_timeout=50ms"
		case MySQL:
			dsn += "&innodb_lock_wait_timeout=1"
			held = 1500 * time.Millisecond
		case SQLite:
			dsn = strings.Replace(dsn, "busy_timeout(10000)", "busy_timeout(50)", 1)
		}
		s := storeOn(t, open(t, b.Driver, dsn), b.Dialect)
		if err := s.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		tx := blocked(t, b, "k")
		time.AfterFunc(held, func() { _ = tx.Rollback() })
		mustComplete(t, s, mustAcquire(t, s, claim("k", "a")))
	})
}
