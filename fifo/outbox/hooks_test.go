package outbox_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// NewRelay attaches the relay to each hook once, and to none where an argument is bad. A hook that panics costs a line.
func TestAttach(t *testing.T) {
	t.Parallel()
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
		if err := r.Drain(x.Context(), "g"); err != nil {
			t.Fatal(err)
		}
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
	t.Parallel()
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
		if err := r.Drain(x.Context(), "g"); err != nil {
			t.Fatal(err)
		}
		want("after Drain", false, -1)
		if _, err := r.Sweep(x.Context()); err != nil {
			t.Fatal(err)
		}
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
		if _, err := stop(); err != nil {
			t.Error(err)
		}
		want("after Run", false, -1)
	})
}
