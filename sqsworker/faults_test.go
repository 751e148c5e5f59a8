package sqsworker

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// disturbance is a row of the table of faults.
type disturbance struct {
	name       string
	rule       fault.Rule
	length     time.Duration // 0: until all messages are done
	visibility time.Duration // default: 10 s; handlers take 8 s, so that each needs an extension
	leases     leases
	undeleted  bool // some deletes that happened are never confirmed; the worker cannot tell them from those that did not happen
	repeats    bool // cancelled handlers may be started again, once for each lease lost
}

// leases says how many are lost.
type leases int

const (
	keepsAll leases = iota
	losesSome
	mayLose // depends on chance
)

// disturbances are faults of SQS, and their effect. With each of them every message succeeds once, is never run twice at
// once, leaves the queue, and keeps its order in its group.
var disturbances = []disturbance{
	{name: "nothing"},

	// A failed call costs a retry.
	{name: "half of all calls fail", rule: fault.Rule{Prob: 0.5, Do: fault.Error}, leases: mayLose, repeats: true},
	{name: "10 % of calls fail after their effect", rule: fault.Rule{Prob: 0.1, Do: fault.Error, After: true}},

	// Leases are lost if the visibility timeout is shorter than the outage, and only then. The handlers are cancelled.
	{name: "nothing works for a minute", rule: fault.Rule{Prob: 1, Do: fault.Error}, length: time.Minute, leases: losesSome, repeats: true},
	{name: "no answer for a minute", rule: fault.Rule{Prob: 1, Do: fault.LoseReply}, length: time.Minute, leases: losesSome, repeats: true, undeleted: true},
	{name: "no answer for a minute, V = 2 min", rule: fault.Rule{Prob: 1, Do: fault.LoseReply}, length: time.Minute, visibility: 2 * time.Minute},
	{name: "no deletes for a minute", rule: fault.Rule{Op: opDelete, Prob: 1, Do: fault.Error}, length: time.Minute}, // extended until then
	{name: "no extensions for a minute", rule: fault.Rule{Op: opChange, Prob: 1, Do: fault.Error}, length: time.Minute, leases: losesSome, repeats: true},

	// A receive whose answer is lost has hidden its messages: for the visibility timeout on a standard queue, until the
	// attempt is repeated on FIFO. A delete or extension whose answer is lost is sent again.
	{name: "30 % of receives without an answer", rule: fault.Rule{Op: opReceive, Prob: 0.3, Do: fault.LoseReply}},
	{name: "half of deletes without an answer", rule: fault.Rule{Op: opDelete, Prob: 0.5, Do: fault.LoseReply}},
	{name: "30 % of extensions without an answer", rule: fault.Rule{Op: opChange, Prob: 0.3, Do: fault.LoseReply}},

	// A call that succeeds can have entries that failed.
	{name: "half of deletes fail by entry", rule: fault.Rule{Op: opDelete, Prob: 0.5, Do: fault.FailEntries}},
	{name: "half of deletes do not name their first entry", rule: fault.Rule{Op: opDelete, Prob: 0.5, Do: fault.DropEntries, Entries: []int{0}}},
	{name: "30 % of extensions fail by entry", rule: fault.Rule{Op: opChange, Prob: 0.3, Do: fault.FailEntries}},
	{name: "30 % of extensions do not name their entries", rule: fault.Rule{Op: opChange, Prob: 0.3, Do: fault.DropEntries}},

	// A refused handle loses its lease at once. A message that is done is deleted at the next delivery without a run; a
	// handler that runs is cancelled, and the message is run again.
	{name: "30 % of deletes refuse the handle", rule: fault.Rule{Op: opDelete, Prob: 0.3, Do: fault.FailEntries, Code: "ReceiptHandleIsInvalid"}, leases: losesSome},
	{name: "30 % of extensions refuse the handle", rule: fault.Rule{Op: opChange, Prob: 0.3, Do: fault.FailEntries, Code: "ReceiptHandleIsInvalid"}, leases: losesSome, repeats: true},

	// A second delivery of a message that is in flight here brings a newer handle.
	{name: "30 % of receives deliver twice", rule: fault.Rule{Op: opReceive, Prob: 0.3, Do: fault.Duplicate}},
	{name: "30 % of receives expire at once", rule: fault.Rule{Op: opReceive, Prob: 0.3, Do: fault.ExpireEarly}, leases: mayLose, repeats: true},

	// Slow answers lose nothing.
	{name: "each call takes 4 s", rule: fault.Rule{Prob: 1, Do: fault.Delay, Delay: 4 * time.Second}, visibility: 30 * time.Second},
	{name: "10 % of calls hang", rule: fault.Rule{Prob: 0.1, Do: fault.Delay, Delay: 10 * time.Minute}, leases: mayLose, repeats: true},
	{name: "20 % of calls arrive again 3 s later", rule: fault.Rule{Prob: 0.2, Do: fault.Replay, Delay: 3 * time.Second}, leases: mayLose, repeats: true},
}

func TestDisturbances(t *testing.T) {
	for _, row := range disturbances {
		for _, s := range []setup{{}, {fifo: true}, {strict: true}, {fifo: true, strict: true}} {
			t.Run(fmt.Sprintf("%s fifo=%t strict=%t", row.name, s.fifo, s.strict), func(t *testing.T) {
				bubble(t, s, func(x *fixture) { x.disturb(row) })
			})
		}
	}
}

func (x *fixture) disturb(row disturbance) {
	const groups, perGroup = 3, 8
	var r runs
	var mu sync.Mutex
	var done []string
	handler := r.take(8 * time.Second)
	x.srv.Set(fault.Plan{})
	j := x.startPrefetching(func(ctx context.Context, m *sqsonce.Message) error {
		err := handler(ctx, m)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			done = append(done, m.Body)
		}
		return err
	}, func(o *Options) {
		o.VisibilityTimeout = 10 * time.Second
		if row.visibility > 0 {
			o.VisibilityTimeout = row.visibility
		}
		o.Backoff = func(int) time.Duration { return time.Second }
	})
	for n := range perGroup {
		for g := range groups {
			x.send(fmt.Sprintf("g%d:%d", g, n))
		}
	}
	if row.length == 0 {
		x.srv.Set(fault.Plan{Seed: 11, Rules: []fault.Rule{row.rule}})
	}
	j.Resume()
	if row.length > 0 {
		// Messages are in flight when the fault begins.
		time.Sleep(4 * time.Second)
		x.srv.Set(fault.Plan{Rules: []fault.Rule{row.rule}})
		time.Sleep(row.length)
		x.srv.Set(fault.Plan{})
	}
	for end := time.Now().Add(6 * time.Hour); len(x.queued()) > 0 && time.Now().Before(end); {
		time.Sleep(5 * time.Second)
	}
	x.srv.Set(fault.Plan{}) // the stop has its own tests
	time.Sleep(time.Minute)
	j.stopClean()

	x.wantEmpty()
	s := j.Stats()
	if len(done) != groups*perGroup || len(r.twice) > 0 || s.Undeleted != 0 != row.undeleted || s.Abandoned != 0 {
		x.Errorf("%d of %d messages done, run twice at once: %v; %+v", len(done), groups*perGroup, r.twice, s)
	}
	if host.IsFIFO(x.url) {
		inOrder(x, done)
	}
	if row.leases == keepsAll && s.LeasesLost > 0 || row.leases == losesSome && s.LeasesLost == 0 {
		x.Errorf("%d leases lost", s.LeasesLost)
	}
	again := int64(len(r.list()) - groups*perGroup)
	if again > 0 && !row.repeats || again > s.LeasesLost {
		x.Errorf("%d handlers started again, %d leases lost", again, s.LeasesLost)
	}
}

// undelivered are faults of sends to the dead-letter queue, and their effect. With each of them every rejected message gets
// there, in the order of its group, and leaves its queue only then. A send that fails is retried by the SDK, and then with
// the next delivery.
var undelivered = []struct {
	name   string
	rule   fault.Rule
	length time.Duration // 0: until all messages are done
	copies bool          // after a lost reply the next send makes a second copy, but not on FIFO, where both have one deduplication ID
}{
	{name: "nothing"},
	{name: "half of sends fail", rule: fault.Rule{Prob: 0.5, Do: fault.Error}},
	{name: "half of sends denied", rule: fault.Rule{Prob: 0.5, Do: fault.Error, Code: "AccessDenied"}}, // does not stop the worker: only rejected messages need it
	{name: "no connection for a minute", rule: fault.Rule{Prob: 1, Do: fault.Reset}, length: time.Minute},
	{name: "sends hang for a minute", rule: fault.Rule{Prob: 1, Do: fault.Delay, Delay: 10 * time.Minute}, length: time.Minute},
	{name: "half without an answer", rule: fault.Rule{Prob: 0.5, Do: fault.LoseReply}, copies: true},
	{name: "10 % fail after their effect", rule: fault.Rule{Prob: 0.1, Do: fault.Error, After: true}, copies: true},
}

func TestRejectedWhileSendsFail(t *testing.T) {
	for _, row := range undelivered {
		row.rule.Op = opSend
		for _, fifo := range []bool{false, true} {
			run(t, fmt.Sprintf("%s fifo=%t", row.name, fifo), setup{fifo: fifo, maxReceives: 1000}, func(x *fixture) {
				const groups, perGroup = 3, 8
				bodies := map[string]bool{}
				for n := range perGroup {
					for g := range groups {
						body := fmt.Sprintf("g%d:%d", g, n)
						bodies[body] = true
						x.send(body)
					}
				}
				x.srv.Set(fault.Plan{Seed: 5, Rules: []fault.Rule{row.rule}})
				j := x.start(func(context.Context, *sqsonce.Message) error { return sqsonce.Reject(errTest) }, func(o *Options) {
					o.Backoff = func(int) time.Duration { return time.Second }
				})
				if row.length > 0 {
					time.AfterFunc(row.length, func() { x.srv.Set(fault.Plan{}) })
				}
				for end := time.Now().Add(time.Hour); len(x.queued()) > 0 && time.Now().Before(end); {
					x.wantSomewhere(bodies)
					time.Sleep(time.Second)
				}
				x.srv.Set(fault.Plan{})
				j.stopEmptyAfter(0)

				var order []string // of the first copies
				copies := map[string]int{}
				for _, m := range x.dead() {
					if copies[m.Body]++; copies[m.Body] == 1 {
						order = append(order, m.Body)
					}
				}
				if fifo {
					inOrder(x, order)
				}
				lost, more := 0, len(x.dead())-len(bodies)
				for _, c := range x.srv.Calls() {
					if c.Op == opSend && c.Fault != nil {
						lost++
					}
				}
				if len(copies) != len(bodies) || more > 0 && (fifo || !row.copies) || more > lost {
					x.Errorf("%d of %d messages in the dead-letter queue, %d second copies; %d sends met the fault", len(copies), len(bodies), more, lost)
				}
				s := j.Stats()
				if row.rule.Prob >= 0.1 && lost == 0 && s.Failed == int64(len(bodies)) {
					x.Error("no send met the fault")
				}
				if s.Rejected != int64(len(bodies)) || s.LeasesLost != 0 || s.Undeleted != 0 {
					x.Errorf("%+v", s)
				}
			})
		}
	}
}

const opSend = "SendMessage"

// wantSomewhere checks that every message is in its queue, or in the dead-letter queue already.
func (x *fixture) wantSomewhere(bodies map[string]bool) {
	x.Helper()
	there := map[string]bool{}
	for _, m := range append(x.queued(), x.dead()...) { // in this order: a message is sent, then deleted
		there[m.Body] = true
	}
	for body := range bodies {
		if !there[body] {
			x.Errorf("%s is in neither queue", body)
		}
	}
}
