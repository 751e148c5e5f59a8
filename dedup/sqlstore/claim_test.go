package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
)

// claimOf claims what is due, or a suspect.
func claimOf(t *testing.T, p *Processor, stmts func() claimStatements) []job {
	t.Helper()
	claim := func(ctx context.Context) ([]job, error) { return p.claim(ctx, 10) }
	if stmts() == p.suspects() {
		claim = p.claimSuspect
	}
	return must.Get(claim(t.Context()))(t)
}

func ids(jobs []job) (all []string) {
	for _, j := range jobs {
		all = append(all, strings.TrimPrefix(j.message.ID, "m-"))
	}
	return all
}

// Where two statements claim, the second one decides again which rows are their groups' heads.
func TestClaimReadsTheHeadsAgain(t *testing.T) {
	eachDeferred(t, func(t *testing.T, b *Bed, d *Deferred) {
		p := newProcessor(t, d)
		if p.due().claim != "" {
			t.Skip("one statement claims")
		}
		receive(t, d, inGroup("g", "head"), inGroup("g", "next"), inGroup("h", "other"), order("none", 1))
		// It finds what it can find if all of the rows came after its inner query's snapshot.
		due := p.due()
		before, rest, _ := strings.Cut(due.find, " AND (i.group_id")
		_, after, _ := strings.Cut(rest, " ORDER BY")
		due.find = before + " ORDER BY" + after
		p.due = func() claimStatements { return due }
		if got := ids(claimOf(t, p, p.due)); !slices.Equal(got, []string{"head", "other", "none"}) {
			t.Errorf("claimed: got %v, want the head of each group and the event without one", got)
		}
	})
}

// An event is a suspect when an attempt ended without an outcome. Suspects are claimed one at a time and apart from others.
func TestClaimSuspects(t *testing.T) {
	eachDeferred(t, func(t *testing.T, b *Bed, d *Deferred) {
		p := newProcessor(t, d, func(o *ProcessorOptions) { o.Concurrency, o.LeaseDuration = 10, time.Hour })
		due := func() bool {
			t.Helper()
			return must.Get(p.suspectDue(t.Context()))(t)
		}
		receive(t, d, order("1", 1), inGroup("g", "2"), inGroup("g", "3"))
		if jobs := claimOf(t, p, p.suspects); len(jobs) > 0 || due() {
			t.Errorf("new events: got suspects %v", ids(jobs))
		}
		if got := ids(claimOf(t, p, p.due)); !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("claimed: got %v, want 1 and 2", got)
		}
		if jobs := claimOf(t, p, p.suspects); len(jobs) > 0 || due() {
			t.Errorf("while they are leased: got suspects %v", ids(jobs))
		}
		if e, err := d.Inspect(t.Context(), "billing#orders|1"); err != nil || !e.DueAt.IsZero() {
			t.Errorf("a claimed event: got %+v and error %v, want one that is due at no time", e, err)
		}
		receive(t, d, order("4", 1))
		exec(t, b.DB, b.Dialect.sql("UPDATE {inbox} SET lease_until = 1 WHERE lease_until > 0")) // their process died
		if got := ids(claimOf(t, p, p.due)); !slices.Equal(got, []string{"4"}) {
			t.Errorf("claimed with others: got %v, want 4", got)
		}
		if !due() {
			t.Error("no suspect is due")
		}
		for _, want := range []string{"1", "2"} {
			jobs := claimOf(t, p, p.suspects)
			if got := ids(jobs); !slices.Equal(got, []string{want}) || jobs[0].diedAlone() || jobs[0].message.ReceiveCount != 2 {
				t.Errorf("suspects: got %v, want %s alone, which has not run alone before", jobs, want)
			}
		}
		if due() {
			t.Error("a claimed suspect is due")
		}
		exec(t, b.DB, b.Dialect.sql("UPDATE {inbox} SET lease_until = 1 WHERE message_id = 'm-2'"))
		if jobs := claimOf(t, p, p.suspects); len(jobs) != 1 || !jobs[0].diedAlone() {
			t.Errorf("after another crash: got %v, want 2, which died alone", jobs)
		}
		// A processor of an earlier version left due_at as it was.
		exec(t, b.DB, b.Dialect.sql("UPDATE {inbox} SET lease_until = {now} + 60000, due_at = 1, owner = 'X' WHERE message_id = 'm-1'"))
		if jobs := claimOf(t, p, p.due); len(jobs) > 0 {
			t.Errorf("claimed while an earlier version has it: got %v", ids(jobs))
		}
		exec(t, b.DB, b.Dialect.sql("UPDATE {inbox} SET lease_until = 1 WHERE message_id = 'm-1'"))
		if got := ids(claimOf(t, p, p.due)); !slices.Equal(got, []string{"1"}) {
			t.Errorf("claimed after an earlier version's crash: got %v, want 1", got)
		}
	})
}

// A handler that has outlived its lease is no suspect: nothing waits for it.
func TestSlowHandlerIsNoSuspect(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		if b.kind.Dialect.OneWriter() {
			t.Skip("one transaction locks the file; no other handler can run meanwhile")
		}
		d := newDeferred(t, newStore(t, b))
		p := newProcessor(t, d)
		receive(t, d, order("slow", 1))
		p.handle(t.Context(), claimOf(t, p, p.due)[0], func(context.Context, *sqsonce.Message, *sql.Tx) error {
			time.Sleep(1200 * time.Millisecond) // longer than the lease, by the database's clock
			if due, err := p.suspectDue(t.Context()); err != nil || due {
				t.Errorf("suspectDue: got %t and error %v, want none", due, err)
			}
			return nil
		})
	})
}

// Suspects run one after the other, and while no other handler of the processor runs, although events that are no suspects
// never run out. Those run several at once.
func TestSuspectsRunAlone(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		if b.kind.Dialect.OneWriter() {
			t.Skip("one handler runs at a time")
		}
		d := newDeferred(t, newStore(t, b))
		for n := range 3 {
			receive(t, d, order(fmt.Sprint("suspect-", n), 1))
		}
		claimOf(t, newProcessor(t, d), newProcessor(t, d).due)
		exec(t, b.DB, b.Dialect.sql("UPDATE {inbox} SET lease_until = {now} + 60000"))
		var mu sync.Mutex
		running, most, suspects, overlaps, next := 0, 0, 0, 0, 0
		suspectRuns := false
		more := func() {
			mu.Lock()
			next++
			id := fmt.Sprint("other-", next)
			mu.Unlock()
			receive(t, d, order(id, 1))
		}
		for range 8 {
			more()
		}
		allRan, severalRan := make(chan struct{}), make(chan struct{})
		several := sync.OnceFunc(func() { close(severalRan) })
		_, stop := process(t, d, func(_ context.Context, m *sqsonce.Message, _ *sql.Tx) error {
			suspect := strings.HasPrefix(m.ID, "m-suspect")
			mu.Lock()
			if suspectRuns || suspect && running > 0 {
				overlaps++
			}
			running++
			suspectRuns = suspectRuns || suspect
			most = max(most, running)
			if most == 2 {
				several()
			}
			mu.Unlock()
			if !suspect {
				more()
			}
			time.Sleep(20 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			running--
			if suspect {
				suspectRuns = false
				if suspects++; suspects == 3 {
					close(allRan)
				}
			}
			return nil
		}, func(o *ProcessorOptions) { o.Concurrency, o.LeaseDuration = 4, time.Minute })
		await(t, "no two handlers ran at once", severalRan)
		exec(t, b.DB, b.Dialect.sql("UPDATE {inbox} SET lease_until = 1 WHERE message_id LIKE 'm-suspect-%'")) // their process died
		await(t, "the suspects did not run", allRan)
		stop()
		if overlaps > 0 || most < 2 {
			t.Errorf("%d handlers ran with a suspect, and at most %d at once; want none, and several", overlaps, most)
		}
	})
}

// Events arrive a millisecond apart while processors claim as many as there are. A claim's reading of the group's older
// rows must not be older than its reading of the row itself: it would not find a head that came in between. SOAK=1 takes
// two minutes for each server.
func TestClaimUnderInserts(t *testing.T) {
	length := 4 * time.Second
	if os.Getenv("SOAK") != "" {
		length = 2 * time.Minute
	}
	EachDialect(t, func(t *testing.T, b *Bed) {
		receivers := b
		if b.kind.OldClock != "" {
			// The receivers' sessions have a clock of long ago, so that their events are due for claims that began before them.
			// By the server's clock that takes two inserts and the claim's begin in one millisecond.
			receivers = b.with(t, b.DSN+b.kind.OldClock)
		}
		d := newDeferred(t, newStore(t, receivers))
		end := time.Now().Add(length)
		var wg sync.WaitGroup
		for receiver := range 8 {
			wg.Go(func() {
				for n := 0; time.Now().Before(end); n++ {
					group := fmt.Sprintf("%d-%d", receiver, n)
					for _, place := range []string{"head", "next", "last"} {
						switch err := d.Receive(t.Context(), inGroup(group, group+"-"+place)); {
						case errors.Is(err, sqsonce.ErrUnavailable):
							return // too slow a machine: an event without its head would look like a wrong one
						case err != nil:
							t.Error(err)
							return
						}
						time.Sleep(time.Millisecond)
					}
				}
			})
		}
		var claims, events, wrong atomic.Int64
		for range 3 {
			p := newProcessor(t, newDeferred(t, otherProcess(t, b)), func(o *ProcessorOptions) { o.LeaseDuration = time.Hour })
			wg.Go(func() {
				for time.Now().Before(end) {
					jobs, err := p.claim(t.Context(), 100_000)
					if errors.Is(err, sqsonce.ErrUnavailable) {
						continue // the same
					}
					if err != nil {
						t.Error(err)
						return
					}
					if len(jobs) > 0 {
						claims.Add(1)
					}
					events.Add(int64(len(jobs)))
					for _, j := range jobs { // no event is ever done
						if !strings.HasSuffix(j.message.ID, "-head") {
							wrong.Add(1)
						}
					}
				}
			})
		}
		wg.Wait()
		t.Logf("%d claims of %d events", claims.Load(), events.Load())
		if wrong.Load() > 0 || events.Load() == 0 {
			t.Errorf("%d of %d claimed events were not the head of their group", wrong.Load(), events.Load())
		}
	})
}

// A suspect waits for running handlers, and other events wait for the suspect, but not for ever: a handler may hang.
func TestSuspectWaitsForHandlerThatHangs(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		if b.kind.Dialect.OneWriter() {
			t.Skip("one handler runs at a time")
		}
		d := newDeferred(t, newStore(t, b))
		receive(t, d, order("suspect", 1))
		claimOf(t, newProcessor(t, d), newProcessor(t, d).due) // it dies
		receive(t, d, order("hangs", 1))
		hangs, release, suspect, others := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{}, 3)
		process(t, d, func(ctx context.Context, m *sqsonce.Message, _ *sql.Tx) error {
			switch m.ID {
			case "m-hangs":
				close(hangs)
				select {
				case <-release:
				case <-ctx.Done():
				}
			case "m-suspect":
				close(suspect)
			default:
				others <- struct{}{}
			}
			return nil
		}, func(o *ProcessorOptions) { o.Concurrency = 2 })
		<-hangs
		eventually(t, "the suspect is due", func() bool {
			select {
			case <-suspect: // it was so before the other handler began
				return true
			default:
			}
			due, err := newProcessor(t, d).suspectDue(t.Context())
			return err == nil && due
		})
		for n := range cap(others) {
			receive(t, d, order(fmt.Sprint(n), 1))
			await(t, "events wait for a handler that hangs", others)
		}
		close(release)
		await(t, "the suspect did not run", suspect)
		awaitCounts(t, d, 0, 0)
	})
}

// The steps of a drain, and its end, do not wait for the next poll.
func TestTurn(t *testing.T) {
	t.Parallel()
	d := newDeferred(t, newStore(t, NewBed(t, "SQLite")))
	p := newProcessor(t, d, func(o *ProcessorOptions) { o.Concurrency, o.Poll, o.LeaseDuration = 2, time.Hour, time.Minute })
	receive(t, d, order("1", 1), order("2", 1))
	claimOf(t, p, p.due)
	exec(t, d.store.db, d.store.dialect.SQL("UPDATE {inbox} SET lease_until = 1"))
	receive(t, d, order("3", 1))
	later := time.Now().Add(time.Hour)
	step := func(now *turn, slots int, want ...string) {
		t.Helper()
		jobs, err := p.next(t.Context(), now, slots)
		if got := ids(jobs); err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v: claimed %v, error %v; want %v", now, got, err, want)
		}
	}
	now := turn{patience: time.Minute}
	if step(&now, 1); !now.drains || now.until.Before(time.Now()) {
		t.Errorf("a suspect is due: got %+v, want a drain", now)
	}
	now.look = later
	step(&now, 1)
	if step(&now, 2, "1"); !now.alone || now.drains {
		t.Errorf("idle: got %+v, want a suspect at work", now)
	}
	now.look = later
	step(&now, 1)
	step(&now, 2, "2")
	if step(&now, 2, "3"); now.alone {
		t.Errorf("after the last suspect: got %+v, want others at work", now)
	}
	given := turn{drains: true, until: time.Now(), patience: time.Minute}
	if step(&given, 1); given.drains || given.patience != 2*time.Minute || given.look.Before(time.Now().Add(30*time.Second)) {
		t.Errorf("after a drain in vain: got %+v, want a longer one, a minute later", given)
	}
}
