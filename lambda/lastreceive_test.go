package lambda

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/settle"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// redrive gives the queue a redrive policy to its dead-letter queue.
func (x *fixture) redrive(maxReceives int) {
	x.Helper()
	x.redriveTo("jobs-dlq", maxReceives)
}

func (x *fixture) redriveTo(dlq string, maxReceives int) {
	x.Helper()
	policy := `{"deadLetterTargetArn":%q,"maxReceiveCount":"%d"}`
	x.set(x.url, "RedrivePolicy", fmt.Sprintf(policy, strings.Replace(x.arn, ":jobs", ":"+dlq, 1), maxReceives))
}

// dead returns the bodies in the dead-letter queue with the reasons that the host gave, in order.
func (x *fixture) dead() string {
	var out []string
	for _, m := range x.srv.Messages(x.dlq) {
		out = append(out, m.Body+": "+m.Attributes[sqsonce.AttrRejectReason])
	}
	return strings.Join(out, ", ")
}

// deleteOthers deletes what did not fail, as Lambda does.
func (x *fixture) deleteOthers(e events.SQSEvent, failed string) {
	x.Helper()
	for _, r := range e.Records {
		if strings.Contains(failed, r.Body) {
			continue
		}
		must.Get(x.c.DeleteMessage(context.Background(), &sqs.DeleteMessageInput{QueueUrl: &x.url, ReceiptHandle: &r.ReceiptHandle}))(x)
	}
}

// bodies counts the runs of each body.
func bodies(count map[string]int, h sqsonce.Handler) sqsonce.Handler {
	return func(ctx context.Context, m *sqsonce.Message) error { // one group: one handler at a time
		count[m.Body]++
		return h(ctx, m)
	}
}

// TestFailedLastReceive: a FIFO message that fails at its last receive goes to the dead-letter queue with the reason. The head
// of a group whose followers share its receives goes there one receive earlier. The messages behind it run in the same
// invocation; one that fails there for the first time has another run.
func TestFailedLastReceive(t *testing.T) {
	for name, h := range map[string]sqsonce.Handler{
		"it failed": fails(errTest), "sqsonce: retry after 5s: it failed": fails(sqsonce.RetryAfter(5*time.Second, errTest)),
		"sqsonce: handler panicked: it failed":   func(context.Context, *sqsonce.Message) error { panic(errTest) },
		"sqsonce: handler called runtime.Goexit": exits,
	} {
		withQueue(t, true, nil, func(x *fixture) {
			x.redrive(3)
			x.send("a1", "a2", "a3", "b1")
			ran := map[string]int{}
			f := x.wrap(bodies(ran, byBody(handlers{"a1": h, "a2": h, "a4": h, "b1": h})), func(o *Options) { o.Concurrency = 1 })
			for i, want := range []struct{ failed, dead string }{
				{"a1 a2 a3 b1", ""}, {"a2 a3 b1", "a1: " + name}, {"a4 a5", "a1: " + name + ", a2: " + name + ", b1: " + name},
			} {
				if i == 2 {
					x.send("a4", "a5")
				}
				e := x.receive()
				got := x.failed(f, 30*time.Second, e)
				if got != want.failed || x.dead() != want.dead {
					t.Errorf("receive %d: failed %q, dead-lettered %q; want %+v", i+1, got, x.dead(), want)
				}
				x.deleteOthers(e, got)
				time.Sleep(time.Minute)
			}
			if got, want := fmt.Sprint(ran), "map[a1:2 a2:2 a3:1 a4:1 b1:3]"; got != want {
				t.Errorf("runs: got %s, want %s", got, want)
			}
			if got := x.calls(opAttributes); got != 1 {
				t.Errorf("%d calls of GetQueueAttributes, want 1", got)
			}
		})
	}
}

// TestLongFollower: behind a head that hangs at its last receive, a long message runs to its end where those behind it need little of the
// time, or could not use the half that it would leave them. So the messages that this process ran before say.
func TestLongFollower(t *testing.T) {
	long, quick := share(40), share(1)
	someLong := byBody(handlers{"": quick, "b3": share(60)})
	for name, tt := range map[string]struct {
		before      sqsonce.Handler // nil: none
		second, end sqsonce.Handler
		done        string
		sends       time.Duration // of each to the dead-letter queue
	}{
		"others are quick":               {quick, long, quick, "a2 a3", 0},
		"all are long":                   {long, long, long, "a2", 0},
		"others are not known":           {nil, long, quick, "a3", 0},
		"it hangs, like others":          {quick, waits, quick, "a3", 0},
		"some are long":                  {someLong, waits, quick, "a3", 0},
		"others take a while":            {share(20), long, quick, "a3", 0},
		"it hangs, and a send takes 4 s": {quick, waits, quick, "a3", 4 * time.Second},
		"it does not return":             {share(2), ignores(time.Hour), share(2), "a3", 600 * time.Millisecond},
	} {
		var faults []fault.Rule
		if tt.sends > 0 {
			faults = []fault.Rule{{Op: opSend, Nth: 12, Times: 1000, Do: fault.Delay, Delay: tt.sends}}
		}
		runWithQueue(t, name, true, faults, func(x *fixture) {
			var mu sync.Mutex // handlers that were abandoned return too
			var done []string
			h := byBody(handlers{"": tt.before, "a1": waits, "a2": tt.second, "a3": tt.end})
			f := x.wrap(func(ctx context.Context, m *sqsonce.Message) error {
				err := h(ctx, m)
				if err == nil && m.Group == "a" {
					mu.Lock()
					defer mu.Unlock()
					done = append(done, m.Body)
				}
				return err
			})
			if tt.before != nil {
				for n := range 8 {
					x.send(fmt.Sprintf("b%d", n))
					e := x.receive()
					x.failed(f, 30*time.Second, e)
					x.deleteOthers(e, "")
				}
			}
			x.redrive(1)
			x.send("a1", "a2", "a3")
			x.failed(f, 30*time.Second, x.receive())
			mu.Lock()
			if got := strings.Join(done, " "); got != tt.done {
				x.Errorf("done: %q, want %q", got, tt.done)
			}
			mu.Unlock()
			time.Sleep(time.Hour)
		})
	}
}

// TestFailedLastReceiveNeedsAConfirmation: a send that is not confirmed leaves a failure as any other, and its group stops, unless SQS
// moves the message: it is in its last receive, and its dead-letter queue exists.
func TestFailedLastReceiveNeedsAConfirmation(t *testing.T) {
	denied := fault.Rule{Do: fault.Error, Code: "AccessDenied"}
	unknown := fault.Rule{Op: opURL, Nth: 2, Times: 1000, Do: fault.Error, Code: "AccessDenied"}
	for name, tt := range map[string]struct {
		faults   []fault.Rule
		receives int
		attr     string // of the head
		failed   string
	}{
		"SQS moves it":                  {broken(denied), 1, "", "a1"},
		"the DLQ may not exist":         {append(broken(denied), unknown), 1, "", "a1 a2"},
		"received too often":            {broken(denied), 1, "2", "a1 a2"},
		"a receive is left":             {broken(denied), 2, "", "a1 a2"},
		"those behind it have one left": {broken(denied), 2, "2", "a1 a2"},
		"its count is of another queue": {broken(denied), 1, "moved", "a1 a2"},
	} {
		withQueue(t, true, tt.faults, func(x *fixture) {
			x.redrive(tt.receives)
			x.send("a1", "a2")
			e := x.receive()
			switch tt.attr {
			case "":
			case "moved":
				e.Records[0].Attributes["DeadLetterQueueSourceArn"] = standardARN
			default:
				e.Records[0].Attributes["ApproximateReceiveCount"] = tt.attr
			}
			var r runs
			h := r.wrap(byBody(handlers{"a1": fails(errTest)}))
			if got := x.failed(x.wrap(h), 30*time.Second, e); got != tt.failed || r.count() != 3-len(strings.Fields(tt.failed)) {
				t.Errorf("%s: failed %q, %d ran; want %q", name, got, r.count(), tt.failed)
			}
			if got := x.visibleIn()["a1"]; got > 20*time.Second {
				t.Errorf("%s: visible in %v, want the backoff", name, got)
			}
		})
	}
}

// TestOnlyFailuresAreDeadLettered: the host dead-letters no other FIFO message than one that ran and failed, or was cut off.
func TestOnlyFailuresAreDeadLettered(t *testing.T) {
	outage := fails(sqsonce.UnavailableUntil(errTest, func(context.Context) error { time.Sleep(time.Second); return errTest }))
	for name, tt := range map[string]struct {
		h        sqsonce.Handler
		standard bool
		receives int
		set      func(*Options, *fixture)
		faults   []fault.Rule
	}{
		"unavailable in an outage": {h: outage},
		"a claim in an outage": {h: func(context.Context, *sqsonce.Message) error {
			time.Sleep(5 * time.Second)
			return sqsonce.Unavailable(errTest)
		}},
		"unavailable, not yet":      {h: fails(sqsonce.Unavailable(errTest)), receives: 2},
		"misconfigured":             {h: fails(sqsonce.ErrMisconfigured)},
		"in progress elsewhere":     {h: fails(sqsonce.RetryAfter(time.Second, sqsonce.ErrInProgress))},
		"lease lost":                {h: fails(sqsonce.ErrLeaseLost)},
		"not run before the margin": {h: func(ctx context.Context, _ *sqsonce.Message) error { <-ctx.Done(); return settle.NotRun(ctx.Err()) }},
		"abandoned in middleware": {h: func(ctx context.Context, m *sqsonce.Message) error {
			settle.Before(ctx)
			return ignores(time.Hour)(ctx, m)
		}},
		"abandoned while its outcome is recorded": {h: func(ctx context.Context, m *sqsonce.Message) error {
			settle.Record(ctx)
			defer settle.Recorded(ctx)
			return ignores(time.Hour)(ctx, m)
		}},
		"a receive is left":         {h: fails(errTest), receives: 2},
		"a standard queue":          {h: fails(errTest), standard: true},
		"no redrive policy":         {h: fails(errTest), receives: -1},
		"no dead-letter queue":      {h: fails(errTest), receives: -1, set: func(o *Options, _ *fixture) { o.DeadLetterQueue = "" }},
		"its own dead-letter queue": {h: fails(errTest), set: func(o *Options, x *fixture) { o.DeadLetterQueue = x.url }},
		"attributes denied":         {h: fails(errTest), faults: []fault.Rule{{Op: opAttributes, Prob: 1, Do: fault.Error, Code: "AccessDenied"}}},
		"no client": {h: fails(errTest), set: func(o *Options, _ *fixture) {
			o.Client, o.DeadLetterQueue, o.Backoff = nil, "", nil
		}},
	} {
		runWithQueue(t, name, !tt.standard, tt.faults, func(x *fixture) {
			switch {
			case tt.receives == 0:
				x.redrive(1)
			case tt.receives > 0:
				x.redrive(tt.receives)
			}
			x.send("a1", "a2")
			var r runs
			// Another group, or an invocation in which all are unavailable is an error.
			x.send("b1")
			want, sent := "a1 a2", 3
			if name == "a claim in an outage" {
				x.send("c1")
				want, sent = "a1 a2 c1", 4
			}
			f := x.wrap(r.wrap(byBody(handlers{"a1": tt.h, "a2": tt.h, "c1": outage})), func(o *Options) {
				if tt.set != nil {
					tt.set(o, x)
				}
			})
			if got := x.failed(f, 30*time.Second, x.receive()); got != want {
				x.Errorf("failed %q, want %s", got, want)
			}
			if got := x.dead(); got != "" || x.calls(opSend) != sent {
				x.Errorf("in the dead-letter queue: %q, %d sends", got, x.calls(opSend)-sent)
			}
			if got := x.calls(opAttributes); got > 1 || name == "no client" && got > 0 {
				x.Errorf("%d calls of GetQueueAttributes", got)
			}
			time.Sleep(2 * time.Hour)
		})
	}
}

// TestAttributesAreReadOnce: attributes that cannot be read are read by the next invocation, unless that is not allowed.
// Nothing is read where no message needs it.
func TestAttributesAreReadOnce(t *testing.T) {
	for code, want := range map[string]int{"": 1, "AccessDenied": 1, "QueueDoesNotExist": 3} {
		var faults []fault.Rule
		if code != "" {
			faults = []fault.Rule{{Op: opAttributes, Prob: 1, Do: fault.Error, Code: code}}
		}
		withQueue(t, true, faults, func(x *fixture) {
			x.redrive(10)
			f := x.wrap(byBody(handlers{"a1": fails(errTest), "b1": fails(errTest), "d1": takes(20 * time.Second)}))
			x.send("c1", "c2", "d1")
			x.failed(f, 30*time.Second, x.receive())
			if got := x.calls(opAttributes); got > 0 {
				t.Errorf("%q: %d calls of GetQueueAttributes without a failure", code, got)
			}
			x.send("a1", "b1")
			for range 3 {
				x.failed(f, 30*time.Second, x.receive())
				time.Sleep(time.Minute)
			}
			if got := x.calls(opAttributes); got != want {
				t.Errorf("%q: %d calls of GetQueueAttributes in three invocations with two failures, want %d", code, got, want)
			}
			if got := x.log.count("attributes not read"); code != "" && got != want || code == "" && got > 0 {
				t.Errorf("%q: logged %d times", code, got)
			}
			if x.log.count("questionable") > 0 {
				t.Errorf("%q: attributes that are not known, or fit, are questionable:\n%s", code, &x.log)
			}
		})
	}
}

// TestAttributesThatHang: groups that need the attributes wait for one call, and not for longer than its timeout.
func TestAttributesThatHang(t *testing.T) {
	withQueue(t, true, []fault.Rule{{Op: opAttributes, Prob: 1, Do: fault.Delay, Delay: time.Hour}}, func(x *fixture) {
		x.send("a1", "b1", "c1")
		begun := time.Now()
		if got := x.failed(x.wrap(fails(errTest)), time.Minute, x.receive()); got != "a1 b1 c1" {
			t.Errorf("failed %q, want all", got)
		}
		if took := time.Since(begun); took != callTimeout {
			t.Errorf("took %v, want %v", took, callTimeout)
		}
		time.Sleep(2 * time.Hour)
	})
}

// TestQuestionableSettings: a queue that does not fit the function is logged once in a process.
func TestQuestionableSettings(t *testing.T) {
	for _, tt := range []struct {
		timeout     time.Duration
		maxReceives int
		want        []string
	}{
		{30 * time.Second, 5, nil}, // 6 x 30 s is the queue's visibility timeout
		{30 * time.Second, 4, []string{"maxReceiveCount value=4"}},
		{30 * time.Second, 0, []string{`RedrivePolicy value="none`}},
		{31 * time.Second, 5, []string{"VisibilityTimeout value=3m0s"}},
		{60 * time.Second, 1, []string{"maxReceiveCount value=1", "VisibilityTimeout value=3m0s"}},
	} {
		withQueue(t, true, nil, func(x *fixture) {
			if tt.maxReceives > 0 {
				x.redrive(tt.maxReceives)
			}
			f := x.wrap(fails(sqsonce.RetryAfter(0, errTest)))
			for range 2 {
				x.send("a1", "b1")
				x.failed(f, tt.timeout-time.Millisecond, x.receive())
				time.Sleep(10 * time.Minute)
			}
			if got := x.log.count("questionable setting"); got != len(tt.want) {
				t.Errorf("%+v: %d lines, want %d:\n%s", tt, got, len(tt.want), &x.log)
			}
			for _, line := range tt.want {
				if x.log.count(line) != 1 {
					t.Errorf("%+v: %q not logged:\n%s", tt, line, &x.log)
				}
			}
		})
	}
}
