package sqloutbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
)

// A mover dies before each statement of Move: each event is where it was or in the outbox, never in both and never in none.
func TestMoveDies(t *testing.T) {
	eachBed(t, func(t *testing.T, b *bed) {
		for n := 1; ; n++ {
			o := b.named(t, fmt.Sprint("box-", n))
			b.schedule(t, o, -time.Second, events("g", 3)...)
			spy, db := spied(t, b)
			db.SetMaxOpenConns(1)
			mover := b.through(t, db, o.name)
			must.Do(t, mover.Check(t.Context()))
			var session int
			must.Do(t, db.QueryRowContext(t.Context(), b.SessionID).Scan(&session))
			ctx, die := context.WithCancel(t.Context())
			statements, died := 0, false
			spy.set(func(string) error {
				if statements++; statements != n {
					return nil
				}
				died = true
				if b.Kill == "" {
					die()
					return io.ErrUnexpectedEOF
				}
				b.exec(t, fmt.Sprintf(b.Kill, session))
				die()
				return nil
			}, nil)
			moved, _, err := mover.Move(ctx)
			die()
			if !died {
				if moved != 3 || err != nil || statements < 4 {
					t.Errorf("nobody died in %d statements: %d moved, %v", statements, moved, err)
				}
				return
			}
			if err == nil {
				t.Errorf("died before statement %d: %d moved, without an error", n, moved)
			}
			left := must.Get(o.Scheduled(t.Context(), 10))(t)
			if there := read(t, o, "g", 10); len(left)+len(there) != 3 || len(left)%3 != 0 {
				t.Errorf("died before statement %d: %d are scheduled and%s in the outbox", n, len(left), ids(there))
			}
			for len(must.Get(o.Scheduled(t.Context(), 1))(t)) > 0 { // the server may need a moment to see that the session has ended
				_, _, err := o.Move(within(t, time.Minute))
				must.Do(t, err)
			}
			if got := ids(read(t, o, "g", 10)); got != " g-1 g-2 g-3" {
				t.Errorf("died before statement %d: read%s", n, got)
			}
		}
	})
}

// planned is an event that was scheduled.
type planned struct {
	Group string
	Due   int64
	// InTime says that its transaction was committed before it was due.
	InTime bool
}

// note is the body of the event that each transaction of a producer adds: what it has done, if it was committed.
type note struct {
	Cancelled []string
	Scheduled string // ""; none
}

// laterStorm is 400 events of 5 groups that become due while 3 movers move them and 2 producers cancel some, schedule others and
// add events, all of whose sessions are killed at any time.
type laterStorm struct {
	*bed
	t        *testing.T
	mu       sync.Mutex
	planned  map[string]planned
	sessions [5]atomic.Int64 // of movers and producers
}

// Each event is moved once, unless it was cancelled, and none is early. Those of a group are in the order of their due times, and
// each producer's in the order of its transactions.
func TestLaterStorm(t *testing.T) {
	eachBed(t, func(t *testing.T, b *bed) {
		s := &laterStorm{bed: b, t: t, planned: map[string]planned{}}
		o := b.outbox(t)
		at := time.Now().Add(time.Hour) // of the first one, until all are there
		tx := b.begin(t)
		for group := range 5 {
			for n := range 80 {
				id, due := fmt.Sprintf("e-%d-%02d", group, n), at.Add(time.Duration(50*n+rand.IntN(50))*time.Millisecond)
				s.planned[id] = planned{fmt.Sprint("g", group), due.Add(time.Millisecond - 1).UnixMilli(), true}
				must.Do(t, o.AddAt(t.Context(), tx, due, event(fmt.Sprint("g", group), id)))
			}
		}
		must.Do(t, tx.Commit())
		sooner := (time.Until(at) - time.Second).Milliseconds()
		for id, p := range s.planned {
			p.Due -= sooner
			s.planned[id] = p
		}
		b.exec(t, "UPDATE {outbox_later} SET due_at = due_at - ?", sooner)
		ctx, stop := context.WithCancel(t.Context())
		var movers, others sync.WaitGroup
		for n := range 3 {
			movers.Go(func() { s.move(ctx, n) })
		}
		for n := range 2 {
			others.Go(func() { s.produce(n) })
		}
		others.Go(s.kill)
		others.Wait()
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			if left := must.Get(o.Scheduled(t.Context(), 1000))(t); len(left) == 0 {
				break
			} else if time.Now().After(end) {
				t.Errorf("%d events are left", len(left))
				break
			}
		}
		stop()
		movers.Wait()
		s.check()
	})
}

// stormLength is how long the storm takes: the events become due in its first 4 s.
const stormLength = 5500 * time.Millisecond

// session makes a pool of one connection, of which some statements or their answers are lost.
func (s *laterStorm) session() *sql.DB {
	spy, db := spied(s.t, s.bed)
	db.SetMaxOpenConns(1)
	lost := func(string) error {
		if rand.IntN(40) == 0 {
			return io.ErrUnexpectedEOF
		}
		return nil
	}
	spy.set(lost, lost)
	return db
}

func (s *laterStorm) note(n int, q sqldb.Queryer) {
	var id int64
	if q.QueryRowContext(s.t.Context(), s.SessionID).Scan(&id) == nil {
		s.sessions[n].Store(id)
	}
}

func (s *laterStorm) move(ctx context.Context, n int) {
	db := s.session()
	o := s.through(s.t, db, "box")
	for ctx.Err() == nil {
		s.note(n, db)
		_, _, _ = o.Move(ctx) // what became of it is seen at the end
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
	}
}

func (s *laterStorm) produce(n int) {
	db := s.session()
	o := s.through(s.t, db, "box")
	for i, end := 0, time.Now().Add(stormLength); time.Now().Before(end); i++ {
		_ = s.transaction(db, o, n, i) // the note says whether it was committed
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	}
}

// transaction cancels two events, schedules one at times, and adds its note to the group of the first.
func (s *laterStorm) transaction(db *sql.DB, o *Outbox, n, i int) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Second)
	defer cancel()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	s.note(3+n, tx)
	group := rand.IntN(5)
	done := note{}
	done.Cancelled, err = o.Cancel(ctx, tx, fmt.Sprintf("e-%d-%02d", group, rand.IntN(80)), fmt.Sprintf("e-%d-%02d", rand.IntN(5), rand.IntN(80)))
	if err != nil {
		return err
	}
	var due time.Time
	if i%3 == 0 {
		done.Scheduled, due = fmt.Sprintf("more-%d-%d", n, i), time.Now().Add(time.Duration(100+rand.IntN(1000))*time.Millisecond)
		s.plan(done.Scheduled, planned{fmt.Sprint("g", group), due.Add(time.Millisecond - 1).UnixMilli(), false})
		if err := o.AddAt(ctx, tx, due, event(fmt.Sprint("g", group), done.Scheduled)); err != nil {
			return err
		}
	}
	if rand.IntN(2) == 0 {
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	}
	body := must.Get(json.Marshal(done))(s.t)
	if err := o.Add(ctx, tx, fifo.Event{ID: fmt.Sprintf("note-%d-%04d", n, i), Group: fmt.Sprint("g", group), Body: string(body)}); err != nil {
		return err
	}
	if rand.IntN(8) == 0 {
		return tx.Rollback()
	}
	if err := tx.Commit(); err != nil || done.Scheduled == "" {
		return err
	}
	if time.Now().Before(due) {
		s.plan(done.Scheduled, planned{fmt.Sprint("g", group), due.Add(time.Millisecond - 1).UnixMilli(), true})
	}
	return nil
}

func (s *laterStorm) plan(id string, p planned) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.planned[id] = p
}

func (s *laterStorm) kill() {
	if s.Kill == "" {
		return
	}
	for end := time.Now().Add(stormLength); time.Now().Before(end); time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond) {
		if id := s.sessions[rand.IntN(len(s.sessions))].Swap(0); id != 0 {
			_, _ = s.db.ExecContext(s.t.Context(), fmt.Sprintf(s.Bed.Kill, id)) // it may have ended
		}
	}
}

func (s *laterStorm) check() {
	t := s.t
	type placed struct {
		id, group, body string
		created         int64
	}
	all := must.Get(sqldb.All(t.Context(), s.db, func(r sqldb.Row) (p placed, err error) {
		err = r.Scan(&p.id, &p.group, &p.body, &p.created)
		return p, err
	}, s.Dialect.SQL("SELECT {raw}id{/raw}, aggregateid, {raw}payload{/raw}, created_at FROM {outbox} ORDER BY seq")))(t)
	times, scheduled := map[string]int{}, map[string]bool{}
	cancelled, moved := 0, 0
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	last, lastNote := map[string]int64{}, map[string]string{}
	for id := range s.planned {
		scheduled[id] = id[:2] == "e-"
	}
	for _, p := range all {
		plan, was := s.planned[p.id]
		if !was { // a note
			var done note
			must.Do(t, json.Unmarshal([]byte(p.body), &done))
			for _, id := range done.Cancelled {
				cancelled++
				times[id]++
			}
			if done.Scheduled != "" {
				scheduled[done.Scheduled] = true
			}
			if of := p.id[:6] + p.group; p.id <= lastNote[of] {
				bad("%s comes after %s", p.id, lastNote[of])
			} else {
				lastNote[of] = p.id
			}
			continue
		}
		moved++
		times[p.id]++
		if p.created < plan.Due {
			bad("%s was moved %d ms early", p.id, plan.Due-p.created)
		}
		if plan.InTime {
			if plan.Due < last[p.group] {
				bad("%s comes after one of its group that was due %d ms later", p.id, last[p.group]-plan.Due)
			}
			last[p.group] = max(last[p.group], plan.Due)
		}
	}
	for id, was := range scheduled {
		if n := times[id]; was && n != 1 || !was && n != 0 {
			bad("%s was moved or cancelled %d times, scheduled: %t", id, n, was)
		}
	}
	if cancelled == 0 || moved == 0 {
		bad("%d were cancelled and %d moved: the test shows nothing", cancelled, moved)
	}
	slices.SortFunc(errs, func(a, b error) int { return len(a.Error()) - len(b.Error()) })
	if len(errs) > 0 {
		t.Error(errors.Join(errs[:min(len(errs), 20)]...))
	}
	t.Logf("%d events moved, %d cancelled, %d notes", moved, cancelled, len(all)-moved)
}
