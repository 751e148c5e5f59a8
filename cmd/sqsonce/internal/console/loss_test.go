package console

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/queues"
)

// What is said is never later than the loss: a standard queue's retention counts from the send, the metric from the move.
func TestLoss(t *testing.T) {
	const hour = time.Hour
	now := time.Now().Round(0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	standard := Queue{Name: "orders", URL: "u", DLQName: "orders-dlq", DLQURL: "d"}
	fifo := Queue{Name: "jobs.fifo", URL: "u", DLQName: "jobs-dlq.fifo", DLQURL: "d"}
	// The source keeps messages for 4 days, the dead-letter queue for 14.
	state := func(change func(*queueState)) queueState {
		s := queueState{
			Main: queues.Counts{Retention: 96 * hour}, Dead: queues.Counts{Visible: 3, Retention: 336 * hour}, At: now,
			Ages: ages{Read: true, Dead: queues.Age{Age: 24 * hour, At: ago(time.Minute)}},
		}
		if change != nil {
			change(&s)
		}
		return s
	}
	look := lookFacts{asOf: ago(hour), complete: true, lostAt: now.Add(100 * hour)}
	denied := errors.New("denied")
	for name, test := range map[string]struct {
		queue  Queue
		change func(*queueState)
		look   lookFacts
		metric error
		want   loss // Why: a part of it
	}{
		"no dead-letter queue": {queue: Queue{Name: "orders", URL: "u"}, want: loss{None: true}},
		"not read yet":         {queue: standard, change: func(s *queueState) { s.At = time.Time{} }, want: loss{Why: "not answered yet"}},
		"no message":           {queue: standard, change: func(s *queueState) { s.Dead.Visible = 0 }, want: loss{None: true}},
		"no message then":      {queue: standard, change: func(s *queueState) { s.Dead.Visible, s.Err = 0, denied }, want: loss{Why: "not read since"}},
		"all in flight":        {queue: standard, change: func(s *queueState) { s.Dead.Visible, s.Dead.InFlight = 0, 1 }, want: loss{At: ago(time.Minute).Add(216 * hour)}},
		// A day in the dead-letter queue, and up to four in the source before.
		"metric":                    {queue: standard, want: loss{At: ago(time.Minute).Add((336 - 96 - 24) * hour)}},
		"metric of a FIFO queue":    {queue: fifo, want: loss{At: ago(time.Minute).Add((336 - 24) * hour)}}, // it counts from the move
		"retentions that are equal": {queue: standard, change: func(s *queueState) { s.Main.Retention = 336 * hour }, want: loss{At: ago(time.Minute).Add(-24 * hour)}},
		"several sources":           {queue: standard, change: func(s *queueState) { s.Ages.Shared = true }, want: loss{At: ago(time.Minute).Add(-24 * hour)}},
		"sources not known":         {queue: standard, change: func(s *queueState) { s.Ages.SharedErr = denied }, want: loss{Why: "cannot be listed: denied"}},
		"sources not read":          {queue: standard, change: func(s *queueState) { s.Ages = ages{} }, want: loss{Why: "not answered yet"}},
		"no metric":                 {queue: standard, change: func(s *queueState) { s.Ages.Dead = queues.Age{} }, want: loss{Why: "no age"}},
		"metric denied":             {queue: standard, change: func(s *queueState) { s.Ages.Dead = queues.Age{} }, metric: denied, want: loss{Why: "CloudWatch gives no ages"}},
		// The newest value was right when it was read.
		"metric denied by now": {queue: standard, metric: denied, want: loss{At: ago(time.Minute).Add(216 * hour)}},

		"look":                  {queue: standard, look: look, want: loss{At: look.lostAt, Exact: true, AsOf: look.asOf}},
		"look, no metric":       {queue: standard, change: func(s *queueState) { s.Ages.Dead = queues.Age{} }, look: look, want: loss{At: look.lostAt, Exact: true, AsOf: look.asOf}},
		"look that missed some": {queue: standard, look: lookFacts{asOf: ago(hour), lostAt: now.Add(100 * hour)}, want: loss{At: now.Add(100 * hour), AsOf: ago(hour)}},
		"look that missed some, metric is worse": {queue: standard, look: lookFacts{asOf: ago(hour), lostAt: now.Add(300 * hour)}, want: loss{
			At: ago(time.Minute).Add(216 * hour), AsOf: ago(hour)}},
		"look that missed some, no metric": {
			queue: standard, change: func(s *queueState) { s.Ages.Dead = queues.Age{} }, look: lookFacts{asOf: ago(hour), lostAt: now.Add(100 * hour)},
			want: loss{Why: "no age", AsOf: ago(hour)},
		},
		// Since the look one may have come that had waited for four days.
		"look that is outlived": {
			queue: standard, change: func(s *queueState) { s.Ages.Dead = queues.Age{} }, look: lookFacts{ago(hour), true, now.Add(300 * hour)},
			want: loss{At: ago(hour).Add(240 * hour)},
		},
		"look at what is gone": {queue: standard, look: lookFacts{ago(9 * hour), true, ago(hour)}, want: loss{At: ago(time.Minute).Add(216 * hour)}},
		"look at nothing":      {queue: standard, look: lookFacts{asOf: ago(hour), complete: true}, want: loss{At: ago(time.Minute).Add(216 * hour)}},
		"look, sources not known": {
			queue: standard, change: func(s *queueState) { s.Ages.SharedErr = denied }, look: look, want: loss{Why: "denied", AsOf: look.asOf},
		},
		"look, several sources": {queue: standard, change: func(s *queueState) { s.Ages.Shared = true }, look: look, want: loss{At: ago(time.Minute).Add(-24 * hour), AsOf: look.asOf}},
		"look at a FIFO queue":  {queue: fifo, look: look, want: loss{At: look.lostAt, AsOf: look.asOf}},
	} {
		got := lossOf(test.queue, state(test.change), test.look, test.metric, now)
		if !strings.Contains(got.Why, test.want.Why) || (got.Why == "") != (test.want.Why == "") {
			t.Errorf("%s: why: got %q, want %q", name, got.Why, test.want.Why)
		}
		got.Why, test.want.Why = "", ""
		if seen := !got.Exact && !got.None && test.look.lostAt.After(now) && got.At.Before(test.look.lostAt); seen != !got.Seen.IsZero() || seen && got.Seen != test.look.lostAt {
			t.Errorf("%s: Seen is %s", name, got.Seen)
		}
		got.Seen = time.Time{}
		if test.want.AsOf.IsZero() {
			got.AsOf = time.Time{}
		}
		if got != test.want {
			t.Errorf("%s: got %+v, want %+v: %s later", name, got, test.want, got.At.Sub(test.want.At))
		}
	}
}

// While a laptop sleeps its monotonic clock stands still, and messages grow old: no time may be compared by that clock.
func TestTimesAreOfTheCalendar(t *testing.T) {
	wall := func(name string, at time.Time) {
		t.Helper()
		if at.IsZero() || at != at.Round(0) {
			t.Errorf("%s is %v: it has no calendar's time alone", name, at)
		}
	}
	now := time.Now()
	state := queueState{
		Main: queues.Counts{Retention: 96 * time.Hour}, Dead: queues.Counts{Visible: 3, Retention: 336 * time.Hour}, At: now, Ages: ages{Read: true},
	}
	q := Queue{Name: "orders", URL: "u", DLQName: "orders-dlq", DLQURL: "d"}
	wall("the loss", lossOf(q, state, lookFacts{now, true, now.Round(0).Add(300 * time.Hour)}, nil, now).At)

	f := newFixture(t, func(o *Options) {
		o.Write = true
		o.Command = func(_ context.Context, out, _ io.Writer, _ ...string) int {
			_, _ = io.WriteString(out, `{"key":"k","before":"crashed","after":"released","hash":"h"}`)
			return exitDone
		}
	})
	f.sampler.sample(t.Context())
	wall("a sample", f.sampler.state("orders").samples[0].at)
	if w := f.post("/plan", "op=free&key=k"); w.Code != http.StatusSeeOther {
		t.Fatalf("got %d\n%s", w.Code, w.Body)
	}
	wall("a plan", f.plans.list[0].Made)
}
