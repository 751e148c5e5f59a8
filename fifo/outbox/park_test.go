package outbox_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func TestARefusedEventHaltsItsGroupOnly(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(x *fixture){
		"by SQS": func(x *fixture) {
			x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: send, Nth: 2, Do: fault.FailEntries, Code: "InvalidMessageContents"}}})
		},
		"by a field": func(x *fixture) {
			x.table.Change("g", 2, func(e *outbox.Entry) bool { e.Body = "\x00"; return false })
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(x *fixture) {
				r := x.relay()
				x.commit(4, "g")
				refuse(x)
				err := r.Drain(x.Context(), "g")
				halted, ok := errors.AsType[*outbox.GroupError](err)
				if !ok || !errors.Is(err, outbox.ErrHalted) || halted.Group != "g" || halted.Seq != 2 || halted.EventID != "g/v2" || halted.Err == outbox.ErrHalted {
					t.Fatalf("Drain: %v, want ErrHalted of g/v2, and why", err)
				}
				x.commit(3, "h")
				if err := r.Drain(x.Context(), "g", "h"); !errors.Is(err, outbox.ErrHalted) {
					t.Errorf("Drain again: %v, want ErrHalted", err)
				}
				x.wantQueued("h", 3)
				if got := x.queued("g"); len(got) != 1 {
					t.Errorf("queue has %v of the halted group, want its first event", got)
				}
				if n := x.log.lines("level=ERROR"); n != 1 {
					t.Errorf("%d lines at ERROR, want one:\n%s", n, x.log)
				}
				parked, err := r.Parked(x.Context(), 10)
				if err != nil || len(parked) != 1 || parked[0].Parked != outbox.OnRefusedHalt {
					t.Fatalf("Parked: %+v, %v, want one halted event", parked, err)
				}
				if s := r.Stats(); s.Refused != 1 || s.Halted != 2 {
					t.Errorf("stats %+v, want 1 refused, 2 visits that ended there", s)
				}
				b, err := r.Sweep(x.Context())
				if err != nil || b.Halted != 1 || b.Groups != 1 || b.Skipped != 0 {
					t.Errorf("Sweep: %+v, %v, want a halted group and no error", b, err)
				}
				// Sweeps see that it waits, and do not read it.
				x.ops.forget()
				stop := x.run(r)
				time.Sleep(5 * time.Minute)
				if _, err := stop(); err != nil || x.ops.of("Read") > 0 || x.ops.of("Claim") > 0 {
					t.Errorf("Run: %v; want no visit of a halted group", err)
				}
				// The operator mends it and unparks: its place is kept.
				x.table.Change("g", 2, func(e *outbox.Entry) bool { e.Body = "g/v2"; return false })
				must.Do(t, r.Unpark(x.Context(), parked[0]))
				must.Do(t, r.Drain(x.Context(), "g"))
				x.wantQueued("g", 4)
				for what, err := range map[string]error{"Unpark": r.Unpark(x.Context(), parked[0]), "Discard": r.Discard(x.Context(), parked[0])} {
					if !errors.Is(err, outbox.ErrNotFound) {
						t.Errorf("%s of what is gone: %v, want ErrNotFound", what, err)
					}
				}
			})
		})
	}
}

func TestARefusedEventIsSkipped(t *testing.T) {
	bubble(t, func(x *fixture) {
		r := x.relay(func(o *outbox.Options) { o.OnRefused, o.Settle = outbox.OnRefusedSkip, -1 })
		x.commit(25, "g")
		for _, seq := range []int64{1, 13} {
			x.table.Change("g", seq, func(e *outbox.Entry) bool { e.Body = "\x00"; return false })
		}
		must.Do(t, r.Drain(x.Context(), "g"))
		if got := x.queued("g"); len(got) != 23 || got[0] != "g/v2" || got[22] != "g/v25" {
			t.Errorf("queue has %v, want all but 1 and 13", got)
		}
		for range 3 {
			b, err := r.Sweep(x.Context())
			if err != nil || b.Skipped != 2 || b.Halted != 0 || b.Oldest != 0 {
				t.Errorf("Sweep: %+v, %v, want two skipped events, which have no part in the age", b, err)
			}
		}
		x.ops.forget()
		stop := x.run(r)
		time.Sleep(30 * time.Second)
		if n := x.ops.of("Read"); n > 1 {
			t.Errorf("%d reads in 30 s of a group that has skipped events only, want at most 1", n)
		}
		x.commit(1, "g") // found by its Seq
		time.Sleep(2 * time.Second)
		if got := x.queued("g"); len(got) != 24 {
			t.Errorf("%d events in the queue, want the new one too", len(got))
		}
		must.Get(stop())(t)
	})
}

// An event that cannot be read, and one of another namespace: neither sent nor parked, their groups wait, others go on.
func TestGroupsThatWait(t *testing.T) {
	bubble(t, func(x *fixture) {
		r := x.relay()
		x.commit(5, "broken", "foreign", "fine", "many")
		x.table.Change("broken", 3, func(*outbox.Entry) bool { return true })
		x.table.Change("foreign", 4, func(e *outbox.Entry) bool { e.Source = "payments"; return false })
		for i := range outbox.MaxSkipped + 1 {
			x.commit(1, "many")
			x.table.Change("many", int64(6+i), func(e *outbox.Entry) bool { e.Parked = outbox.OnRefusedSkip; return false })
		}
		start := time.Now()
		err := r.Drain(x.Context(), "broken", "foreign", "fine", "many")
		if time.Since(start) > time.Second {
			t.Errorf("Drain took %v, want that it does not wait for operators", time.Since(start))
		}
		if !errors.Is(err, outbox.ErrBroken) || !errors.Is(err, outbox.ErrWrongSource) || !errors.Is(err, outbox.ErrManySkipped) {
			t.Errorf("Drain: %v, want ErrBroken, ErrWrongSource and ErrManySkipped", err)
		}
		x.wantQueued("fine", 5)
		for g, want := range map[string]int{"broken": 2, "foreign": 3, "many": 5} {
			if got := x.queued(g); len(got) != want {
				t.Errorf("group %s: queue has %v, want the first %d", g, got, want)
			}
		}
		if n := x.ops.of("Park"); n != 0 {
			t.Errorf("%d calls of Park", n)
		}
		if s := r.Stats(); s.WrongSource == 0 {
			t.Errorf("stats %+v, want WrongSource", s)
		}
		x.ops.forget()
		for range 2 {
			if _, err := r.Sweep(x.Context()); err == nil {
				t.Error("Sweep: nil, want the errors of the groups that wait")
			}
		}
		stop := x.run(r)
		time.Sleep(10 * time.Minute)
		if n := x.ops.of("Read"); n > 3*13 {
			t.Errorf("%d reads in 10 minutes of three groups that wait, want one a minute each", n)
		}
		if n := x.log.lines("waits for an operator (logged once"); n < 9 || n > 11 {
			t.Errorf("%d lines, want one a minute", n)
		}
		must.Get(stop())(t)
	})
}

// The operator discards a halted event: its group goes on without it.
func TestDiscard(t *testing.T) {
	bubble(t, func(x *fixture) {
		r := x.relay()
		x.commit(3, "g")
		stop := x.run(r)
		time.Sleep(2 * time.Second)
		parked, err := r.Parked(x.Context(), 1)
		if err != nil || len(parked) != 1 {
			t.Fatalf("Parked: %v, %v", parked, err)
		}
		must.Do(t, r.Discard(x.Context(), parked[0]))
		time.Sleep(2 * time.Second)
		if got := x.queued("g"); len(got) != 2 || got[1] != "g/v3" {
			t.Errorf("queue has %v, want v1 and v3", got)
		}
		must.Get(stop())(t)
	}, fault.Rule{Op: send, Nth: 2, Do: fault.FailEntries, Code: "InvalidMessageContents"})
}

// NewRelay attaches the relay to each hook once, and to none where an argument is bad. A hook that panics costs a line.
func TestAttach(t *testing.T) {
	bubble(t, func(x *fixture) {
		var attached []*outbox.Relay
		hook := outbox.Hooks{Attach: func(r *outbox.Relay) { attached = append(attached, r) }}
		broken := outbox.Hooks{Attach: func(*outbox.Relay) { panic("no meter") }}
		withHooks := func(o *outbox.Options) { o.Hooks = []outbox.Hooks{{}, broken, hook} }
		r := x.relay(withHooks)
		if len(attached) != 1 || attached[0] != r {
			t.Errorf("attached to %d relays, want the one that was made", len(attached))
		}
		if n := x.log.lines("sqsonce: hook failed"); n != 1 {
			t.Errorf("%d lines of a hook that failed, want 1:\n%s", n, x.log)
		}
		x.commit(1, "g")
		must.Do(t, r.Drain(x.Context(), "g"))
		x.wantQueued("g", 1)
		if got := r.QueueURL(); got != x.url {
			t.Errorf("QueueURL is %s, want %s", got, x.url)
		}
		if _, err := outbox.NewRelay(nil, nil, withHooks); err == nil || len(attached) != 1 {
			t.Errorf("bad arguments: %v, attached %d times, want an error and no further time", err, len(attached))
		}
	})
}

// Began and Swept say how old the Backlog is: a relay that cannot read, or cannot go on to its last group, is seen by their age, and
// one that is not running has none.
func TestSwept(t *testing.T) {
	bubble(t, func(x *fixture) {
		r := x.relay(func(o *outbox.Options) { o.Groups = 2 })
		want := func(when string, running bool, swept time.Duration) {
			t.Helper()
			time.Sleep(time.Millisecond) // what is due now has happened
			s := r.Stats()
			if s.Began.IsZero() == running {
				t.Errorf("%s: Run began %v, want %t", when, s.Began, running)
			}
			const poll = 2 * time.Second
			switch age := time.Since(s.Swept); {
			case swept < 0 && !s.Swept.IsZero():
				t.Errorf("%s: swept %v ago, want never", when, age)
			case swept >= 0 && (s.Swept.IsZero() || age < swept || age > swept+poll):
				t.Errorf("%s: swept %v ago, want %v", when, age, swept)
			}
		}
		want("new", false, -1)
		must.Do(t, r.Drain(x.Context(), "g"))
		want("after Drain", false, -1)
		must.Get(r.Sweep(x.Context()))(t)
		want("after Sweep", false, 0)

		away := func(string) error { return errors.New("no answer") }
		x.ops.failing(away)
		stop := x.run(r)
		time.Sleep(5 * time.Minute)
		want("the store is away from the start", true, -1)
		x.ops.failing(nil)
		time.Sleep(time.Minute)
		want("the store is back", true, 0)
		x.ops.failing(away)
		time.Sleep(5 * time.Minute)
		want("the store is away again", true, 5*time.Minute)
		x.ops.failing(nil)
		time.Sleep(time.Minute)

		x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: "SendMessageBatch", Prob: 1, Do: fault.Error, Code: "ServiceUnavailable"}}})
		x.commit(1, groupNames(10)...)
		time.Sleep(5 * time.Minute)
		want("SQS is away", true, 5*time.Minute)
		x.srv.Set(fault.Plan{})
		time.Sleep(time.Minute)
		want("SQS is back", true, 0)
		must.Get(stop())(t)
		want("after Run", false, -1)
	})
}
