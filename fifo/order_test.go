package fifo_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// plan is what a run publishes and which faults it meets. It is drawn before the run: rapid cannot draw in a bubble.
type plan struct {
	groups []int // of each event, in the order of publishing
	gaps   []time.Duration
	faults []fault.Rule
	opts   fifo.Options
	all    bool // by one call of PublishAll
}

func (p plan) String() string {
	s := fmt.Sprintf("groups %v gaps %v options %+v all %v", p.groups, p.gaps, p.opts, p.all)
	for _, r := range p.faults {
		s += fmt.Sprintf("\n%+v", r)
	}
	return s
}

func drawPlan(rt *rapid.T, rule func(*rapid.T) fault.Rule) plan {
	n := rapid.IntRange(1, 40).Draw(rt, "events")
	return plan{
		groups: rapid.SliceOfN(rapid.IntRange(0, 5), n, n).Draw(rt, "groups"),
		gaps: rapid.SliceOfN(rapid.SampledFrom([]time.Duration{0, 0, 0, time.Millisecond, 7 * time.Millisecond, time.Second}), n, n).
			Draw(rt, "gaps"),
		faults: rapid.SliceOfN(rapid.Custom(rule), 0, 6).Draw(rt, "faults"),
		opts: fifo.Options{
			InFlight:    rapid.IntRange(1, 4).Draw(rt, "in flight"),
			MaxMessages: rapid.IntRange(1, 50).Draw(rt, "messages"),
			Linger:      rapid.SampledFrom([]time.Duration{-1, 0, time.Second}).Draw(rt, "linger"),
		},
		all: rapid.Bool().Draw(rt, "all"),
	}
}

// transientFault returns a fault that ends within the window of every event.
func transientFault(rt *rapid.T) fault.Rule {
	r := fault.Rule{
		Op:    "SendMessageBatch",
		Nth:   rapid.IntRange(1, 30).Draw(rt, "nth"),
		Times: rapid.IntRange(1, 3).Draw(rt, "times"),
		Do: rapid.SampledFrom([]fault.Kind{
			fault.Error, fault.LoseReply, fault.Reset, fault.Delay, fault.FailEntries, fault.DropEntries, fault.Replay,
		}).Draw(rt, "kind"),
	}
	switch r.Do {
	case fault.Error:
		r.After = rapid.Bool().Draw(rt, "after")
		if !r.After { // SQS does not refuse a request after its effect
			r.Code = rapid.SampledFrom([]string{"", "ServiceUnavailable", "RequestThrottled", "ThrottlingException"}).Draw(rt, "code")
		}
	case fault.Delay: // after 5 s the attempt is cancelled; its effect comes within the 10 s that the window leaves for it
		r.Delay = rapid.SampledFrom([]time.Duration{time.Second, 4 * time.Second, 14 * time.Second}).Draw(rt, "delay")
	case fault.Replay:
		r.Delay = rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(rt, "delay")
	case fault.FailEntries, fault.DropEntries:
		r.Entries = rapid.SliceOfN(rapid.IntRange(0, 9), 0, 3).Draw(rt, "entries")
	}
	if r.Do == fault.FailEntries {
		r.Code = rapid.SampledFrom([]string{"InternalError", "RequestThrottled", "KMS.ThrottlingException"}).Draw(rt, "code")
	}
	return r
}

// lastingFault returns a fault that may last longer than a window, or a refusal.
func lastingFault(rt *rapid.T) fault.Rule {
	r := transientFault(rt)
	switch r.Do {
	case fault.Replay:
		r.Delay = min(r.Delay, 9*time.Second) // a later copy could come after the deduplication interval
	case fault.Reset, fault.LoseReply, fault.DropEntries:
		r.Times = rapid.IntRange(1, 200).Draw(rt, "many times")
	case fault.FailEntries:
		r.Code = rapid.SampledFrom([]string{"InternalError", "InvalidMessageContents"}).Draw(rt, "code")
	case fault.Error:
		if !r.After {
			r.Code = rapid.SampledFrom([]string{"RequestThrottled", "AccessDenied"}).Draw(rt, "code")
		}
	}
	return r
}

// TestTransientFaults: when all faults end within the window, every event is in the queue once and in its group's order.
func TestTransientFaults(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt, transientFault)
		var problem string
		synctest.Test(t, func(t *testing.T) {
			problem = p.run(t, func(i int, err error) string {
				if err != nil {
					return fmt.Sprintf("event %d: %v", i, err)
				}
				return ""
			})
		})
		if problem != "" {
			rt.Fatalf("%s\n%s", problem, p)
		}
	})
}

// TestLastingFaults: with any faults, every event in the queue is there once and in order, and the results match the queue.
func TestLastingFaults(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt, lastingFault)
		var problem string
		synctest.Test(t, func(t *testing.T) {
			problem = p.run(t, func(int, error) string { return "" })
		})
		if problem != "" {
			rt.Fatalf("%s\n%s", problem, p)
		}
	})
}

// run publishes the plan's events and returns what is wrong with the results or the queue.
func (p plan) run(t *testing.T, check func(i int, err error) string) string {
	x := newFixture(t, orders, nil)
	defer x.srv.Close()
	x.srv.Set(fault.Plan{Rules: p.faults})
	pub := x.publisher(func(o *fifo.Options) { *o = p.opts })

	es := make([]fifo.Event, len(p.groups))
	for i, g := range p.groups {
		es[i] = event(fmt.Sprint("g", g), i)
	}
	errs := make([]error, len(es))
	if p.all {
		_, err := pub.PublishAll(t.Context(), es)
		for _, err := range split(err) {
			if errs[err.Index] != nil {
				return fmt.Sprintf("event %d has two errors", err.Index)
			}
			errs[err.Index] = err
		}
	} else {
		pending := make([]*fifo.Pending, len(es))
		for i, e := range es {
			time.Sleep(p.gaps[i])
			var err error
			if pending[i], err = pub.Enqueue(t.Context(), e); err != nil && !errors.Is(err, fifo.ErrGroupHalted) {
				return fmt.Sprintf("Enqueue %d: %v", i, err)
			}
			errs[i] = err
		}
		for i, pd := range pending {
			if pd != nil {
				_, errs[i] = pd.Wait(t.Context())
			}
		}
	}
	synctest.Wait()
	if !pub.Idle() {
		return "the publisher is not idle"
	}
	time.Sleep(2 * time.Minute) // delayed copies arrive
	for i, err := range errs {
		if problem := check(i, err); problem != "" {
			return problem
		}
	}
	if problem := x.sent.problem(); problem != "" {
		return problem
	}
	return x.audit(es, errs)
}

// audit compares the queue with the results. An event with an unknown outcome may be there or not, at any position.
func (x *fixture) audit(es []fifo.Event, errs []error) string {
	for g := range 6 {
		group := fmt.Sprint("g", g)
		queued := x.queued(group)
		var sent []string
		for i, e := range es {
			switch {
			case e.Group != group:
			case errors.Is(errs[i], fifo.ErrUnknownOutcome):
				queued = slices.DeleteFunc(queued, func(body string) bool { return body == e.Body })
			case errs[i] == nil:
				sent = append(sent, e.Body)
			}
		}
		if !slices.Equal(sent, queued) {
			return fmt.Sprintf("%s: sent %v, in the queue %v", group, sent, queued)
		}
	}
	return ""
}

// split returns the errors that PublishAll joins.
func split(err error) []*fifo.PublishError {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var all []*fifo.PublishError
	for _, err := range joined.Unwrap() {
		if pe, ok := errors.AsType[*fifo.PublishError](err); ok {
			all = append(all, pe)
		}
	}
	return all
}
