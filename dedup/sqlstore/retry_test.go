package sqlstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

// servers are the databases whose connection can break.
var (
	servers = sqlbed.Servers
	mysqls  = sqlbed.MySQLs // those with the dialect MySQL
)

// A connection breaks at a statement: before the server receives it, or after the server executed it and before the reply.
// The store finds out which. The caller gets the same result in both cases.
func TestBrokenConnection(t *testing.T) {
	t.Parallel()
	for _, name := range servers {
		for _, lost := range []struct {
			name string
			at   func(*proxy, string)
			own  bool // an acquire finds that it was granted
		}{
			{"statement", (*proxy).loseStatement, false},
			{"reply", (*proxy).loseReply, true},
		} {
			t.Run(name+"/"+lost.name, func(t *testing.T) {
				t.Parallel()
				b := NewBed(t, name)
				direct := newStore(t, b)
				p, through := throughProxy(t, b)
				s := newStore(t, through)
				must.Do(t, s.Check(t.Context()))

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
				must.Do(t, s.Release(t.Context(), l, errors.New("declined")))

				lost.at(p, "UPDATE")
				second := claim("k", "b")
				second.ReceiveCount = 2
				l = mustAcquire(t, s, second)
				if l.LastError != "declined" || l.OwnRetry != lost.own {
					t.Errorf("second lease: got %+v, want LastError and OwnRetry %t", l, lost.own)
				}

				lost.at(p, "UPDATE")
				must.Do(t, s.Complete(t.Context(), l, dedup.Result{Data: []byte("1")}))
				if g, err := direct.Acquire(t.Context(), claim("k", "c")); g.Verdict != dedup.VerdictCompleted || string(g.Result.Data) != "1" {
					t.Errorf("after Complete: got %+v and error %v, want completed with its result", g, err)
				}

				r = must.Get(direct.Inspect(t.Context(), "k"))(t)
				lost.at(p, "UPDATE")
				must.Do(t, s.Reopen(t.Context(), r, "note"))
				if again, err := direct.Inspect(t.Context(), "k"); err != nil || again.Fence <= r.Fence || again.Note != "note" {
					t.Errorf("after Reopen: got %+v, %v, want the note and a fence above %d", again, err, r.Fence)
				}

				kept := dedup.Record{Lease: dedup.Lease{Key: "kept"}}
				for _, at := range []string{"INSERT INTO", "UPDATE"} {
					lost.at(p, at)
					kept = must.Get(s.Keep(t.Context(), kept, "ann", []byte(at), time.Hour))(t)
					if r, err := direct.Inspect(t.Context(), "kept"); err != nil || r.Owner != kept.Owner || r.Fence != kept.Fence || string(r.Result.Data) != at {
						t.Errorf("after Keep: got %+v, %v, want %+v", r, err, kept)
					}
				}

				lost.at(p, "DELETE")
				must.Do(t, s.Delete(t.Context(), "k"))
				if n := p.count(); n != 9 {
					t.Errorf("%d connections were broken, want 9", n)
				}
			})
		}
	}
}

// An error that says what state the record is in is returned unchanged and not retried.
func TestRefusalsAreFinal(t *testing.T) {
	t.Parallel()
	s := newStore(t, NewBed(t, "SQLite"))
	owned := mustAcquire(t, s, claim("k", "a"))
	other := owned
	other.Owner = "b"
	_, err := s.Renew(t.Context(), other, time.Hour)
	for _, err := range []error{err, s.Complete(t.Context(), other, dedup.Result{}), s.Delete(t.Context(), "k"), s.Reopen(t.Context(), dedup.Record{Lease: other}, ""), fmt.Errorf("%w: x", dedup.ErrRecord)} {
		if s.base.MayRetry(err) {
			t.Errorf("%v would be retried", err)
		}
		if reporter.Explain(sqldb.Dialect(SQLite), "op", err) != err {
			t.Errorf("%v is wrapped", err)
		}
	}
	if err := s.Complete(t.Context(), other, dedup.Result{}); err != sqsonce.ErrLeaseLost {
		t.Errorf("Complete by another owner: got error %v, want ErrLeaseLost itself", err)
	}
}

// A statement that the database ended, because it waited too long for a lock, is run again.
func TestConflictsAreRetried(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		locked := max(500*time.Millisecond, b.kind.LockWait*3/2)
		s := storeOn(t, open(t, b.Driver, b.kind.ShortLocks(b.DSN)), b.Dialect)
		must.Do(t, s.Check(t.Context()))
		tx := blocked(t, b, "k")
		time.AfterFunc(locked, func() { _ = tx.Rollback() })
		mustComplete(t, s, mustAcquire(t, s, claim("k", "a")))
	})
}
