package sqloutbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
)

// servers are the databases whose transactions run beside each other.
var servers = sqlbed.Servers

func eachServer(t *testing.T, f func(t *testing.T, b *bed)) {
	t.Helper()
	each(t, servers, f)
}

// A transaction that adds to a group waits for the end of an earlier one, also if that one is rolled back. So the numbers are
// in the order of the commits. Other groups do not wait.
func TestAddWaitsForItsGroup(t *testing.T) {
	eachServer(t, func(t *testing.T, b *bed) {
		o := b.outbox(t)
		for name, end := range map[string]func(*sql.Tx) error{"commit": (*sql.Tx).Commit, "rollback": (*sql.Tx).Rollback} {
			first, second := b.begin(t), b.begin(t)
			must.Do(t, o.Add(t.Context(), first, event("g", name+"-first")))
			must.Do(t, o.Add(t.Context(), second, event("h", name+"-other group")))
			added := make(chan error, 1)
			go func() { added <- o.Add(context.WithoutCancel(t.Context()), second, event("g", name+"-second")) }()
			select {
			case err := <-added:
				t.Fatalf("%s: added beside an open transaction of the group: %v", name, err)
			case <-time.After(300 * time.Millisecond):
			}
			must.Do(t, end(first))
			must.Do(t, errors.Join(<-added, second.Commit()))
		}
		if n := len(read(t, o, "g", 10)); n != 3 {
			t.Errorf("%d events, want 3", n)
		}
	})
}

// A caller whose transactions exclude one another takes no lock, and one with a lock is not waited for.
func TestGroupLockedTakesNoLock(t *testing.T) {
	eachServer(t, func(t *testing.T, b *bed) {
		first, second := b.begin(t), b.begin(t)
		must.Do(t, b.outbox(t).Add(t.Context(), first, event("g", "1")))
		o := b.outbox(t, func(o *Options) { o.GroupLocked = true })
		must.Do(t, o.Add(within(t, 10*time.Second), second, event("g", "2")))
	})
}

// One Add locks its groups in one order, whatever order the events have: it meets no other Add in a deadlock.
func TestAddLocksInOrder(t *testing.T) {
	eachServer(t, func(t *testing.T, b *bed) {
		o := b.outbox(t)
		var groups []string
		for i := range 200 { // over one statement's stripes
			groups = append(groups, fmt.Sprint("g", i))
		}
		var wg sync.WaitGroup
		errs := make(chan error, 100)
		for worker := range 4 {
			rng := rand.New(rand.NewPCG(1, uint64(worker)))
			wg.Go(func() {
				for n := range 6 {
					var es []fifo.Event
					for _, i := range rng.Perm(len(groups))[:100+rng.IntN(100)] {
						es = append(es, event(groups[i], fmt.Sprintf("%d-%d-%d", worker, n, i)))
					}
					tx, err := b.db.BeginTx(t.Context(), nil)
					if err == nil {
						err = o.Add(t.Context(), tx, es...)
						err = errors.Join(err, tx.Commit())
					}
					errs <- err
				}
			})
		}
		wg.Wait()
		close(errs)
		for err := range errs {
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// A row of the table of locks that is not there is no lock.
func TestAddWithoutLockRows(t *testing.T) {
	t.Parallel()
	for _, kind := range sqlbed.MySQLs {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, kind)
			b.exec(t, "DELETE FROM {outbox_locks} WHERE stripe = ?", b.outbox(t).lockHash("g")%4096)
			o := b.outbox(t)
			tx := b.begin(t)
			if err := o.Add(t.Context(), tx, event("g", "1")); !isProblem(err, errLockRows) {
				t.Errorf("Add: got error %v, want errLockRows", err)
			}
			if err := tx.Rollback(); err != nil { // it has a lock on where the row would be
				t.Fatal(err)
			}
			if err := o.Check(t.Context()); !isProblem(err, errLockRows) {
				t.Errorf("Check: got error %v, want errLockRows", err)
			}
			for text := range strings.SplitSeq(DDL(b.dialect), ";\n") {
				if strings.Contains(text, "WITH RECURSIVE") {
					b.exec(t, text)
				}
			}
			must.Do(t, o.Check(t.Context()))
		})
	}
}

// Processes of different releases, and with different names for one table, take the same locks.
func TestLockHash(t *testing.T) {
	t.Parallel()
	b := newBed(t, "SQLite")
	for _, tt := range []struct {
		box, group string
		want       uint64
	}{
		{"box", "g", 0xf3e0b5aa84b11405}, {"orders", "ord-42", 0xf72cca64542a81e6},
	} {
		for _, prefix := range []string{"a_", "b_"} {
			o := must.Get(New(nil, b.dialect.WithPrefix(prefix), tt.box, source))(t)
			if got := o.lockHash(tt.group); got != tt.want {
				t.Errorf("%s, %s: got %#x, want %#x", tt.box, tt.group, got, tt.want)
			}
		}
	}
}

// late counts the events that became visible to readers that had seen a later one of their group, while writers add to one
// group, one in ten of them rolled back. read is how a reader reads.
func late(t *testing.T, b *bed, length time.Duration, o *Outbox, read func(ctx context.Context, seen int64) (all []int64, err error)) (late, commits, reads int64) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var lates, committed, done atomic.Int64
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				tx, err := b.db.BeginTx(context.WithoutCancel(ctx), nil)
				if err != nil {
					t.Error(err)
					return
				}
				if err := o.Add(context.WithoutCancel(ctx), tx, event("g", fmt.Sprintf("%d-%d", worker, n))); err != nil {
					t.Errorf("Add: %v", err)
					_ = tx.Rollback()
					return
				}
				if rand.N(3) == 0 {
					time.Sleep(time.Duration(rand.N(2000)) * time.Microsecond)
				}
				if rand.N(10) == 0 {
					_ = tx.Rollback()
				} else if err := tx.Commit(); err != nil {
					t.Error(err)
				} else {
					committed.Add(1)
				}
			}
		})
	}
	for range 3 {
		wg.Go(func() {
			known, highest := map[int64]bool{}, int64(0)
			for ctx.Err() == nil {
				all, err := read(ctx, highest)
				if err != nil {
					if ctx.Err() == nil {
						t.Errorf("read: %v", err)
					}
					return
				}
				done.Add(1)
				before := highest
				for _, seq := range all {
					if !known[seq] && seq < before {
						lates.Add(1)
					}
					known[seq], highest = true, max(highest, seq)
				}
				if len(all) > 600 { // far behind the writers
					b.exec(t, "DELETE FROM {outbox} WHERE aggregatetype = ? AND seq <= ?", o.name, all[len(all)-300])
				}
			}
		})
	}
	wg.Wait()
	return lates.Load(), committed.Load(), done.Load()
}

// Writers of one group beside readers: with the group's lock no reader sees an event after a later one. Without the lock
// some do, which guards the test. SOAK=1 takes ten minutes for each database.
func TestNoLateEvents(t *testing.T) {
	length := 3 * time.Second
	if os.Getenv("SOAK") != "" {
		length = 10 * time.Minute
	}
	for _, kind := range servers {
		t.Run(kind, func(t *testing.T) {
			b := newBed(t, kind)
			b.db.SetMaxOpenConns(16)
			b.db.SetMaxIdleConns(16)
			o, unlocked := b.named(t, "locked"), b.named(t, "unlocked", func(o *Options) { o.GroupLocked = true })
			reader := func(o *Outbox) func(context.Context, int64) ([]int64, error) {
				return func(ctx context.Context, seen int64) (all []int64, err error) {
					es, err := o.Read(ctx, outbox.Group{Name: "g"}, outbox.Known{Seen: seen}, 1<<20)
					if errors.Is(err, outbox.ErrUnsettled) {
						err = nil
					}
					for _, e := range es {
						all = append(all, e.Seq)
					}
					return all, err
				}
			}
			if n, commits, reads := late(t, b, length, o, reader(o)); n > 0 || commits < 10 || reads < 10 {
				t.Errorf("with the lock: %d late events in %d commits and %d reads, want none", n, commits, reads)
			} else {
				t.Logf("with the lock: no late event in %d commits and %d reads", commits, reads)
			}
			n, commits, reads := late(t, b, 3*time.Second, unlocked, reader(unlocked))
			for again := 0; n == 0 && again < 5; again++ {
				n, commits, reads = late(t, b, 3*time.Second, unlocked, reader(unlocked))
			}
			if n == 0 {
				t.Errorf("without the lock: no late event in %d commits and %d reads: the test shows nothing", commits, reads)
			}
			t.Logf("without the lock: %d late events in %d commits and %d reads", n, commits, reads)
		})
	}
}
