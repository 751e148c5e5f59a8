package lambda

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

const (
	opChange = "ChangeMessageVisibilityBatch"
	opURL    = "GetQueueUrl"
	opSend   = "SendMessage"

	opAttributes = "GetQueueAttributes"
)

func TestDelays(t *testing.T) {
	for _, tt := range []struct {
		name string
		h    sqsonce.Handler
		want time.Duration
	}{
		{"error: the backoff", fails(errTest), 10 * time.Second},
		{"panic: the backoff", panics("boom"), 10 * time.Second},
		{"Goexit: the backoff", exits, 10 * time.Second},
		{"RetryAfter: shorter", fails(sqsonce.RetryAfter(7*time.Second, errTest)), 7 * time.Second},
		{"RetryAfter: longer", fails(sqsonce.RetryAfter(time.Hour, errTest)), time.Hour},
		{"RetryAfter: at once", fails(sqsonce.RetryAfter(0, errTest)), time.Second},
		{"RetryAfter: less than a second", fails(sqsonce.RetryAfter(time.Millisecond, errTest)), time.Second},
		{"RetryAfter: rounded up", fails(sqsonce.RetryAfter(1500*time.Millisecond, errTest)), 2 * time.Second},
		{"RetryAfter: more than SQS accepts", fails(sqsonce.RetryAfter(100*time.Hour, errTest)), 10*time.Hour + 20*time.Minute},
		{"in progress: half the visibility timeout", fails(sqsonce.RetryAfter(31*time.Second, sqsonce.ErrInProgress)), visibility / 2},
		{"in progress: not before the other lease is over", fails(sqsonce.RetryAfter(10*time.Minute, sqsonce.ErrInProgress)), 10 * time.Minute},
		{"in progress: without RetryAfter", fails(sqsonce.ErrInProgress), visibility / 2},
		{"lease lost: not changed", fails(sqsonce.ErrLeaseLost), visibility},
		{"lease lost: not changed for RetryAfter either", fails(sqsonce.RetryAfter(time.Second, sqsonce.ErrLeaseLost)), visibility},
		{"success: not changed", fails(nil), visibility},
	} {
		runWithQueue(t, tt.name, false, nil, func(x *fixture) {
			x.send("1")
			x.failed(x.wrap(tt.h), 30*time.Second, x.receive())
			if got := x.visibleIn()["1"]; got != tt.want {
				x.Errorf("visible in %v, want %v\n%s", got, tt.want, &x.log)
			}
		})
	}
}

// TestDelaysCountFromTheFailure: the changes are sent when the results are closed, and the delay of a message began when it
// failed. One that is over by then is a second from the change.
func TestDelaysCountFromTheFailure(t *testing.T) {
	withQueue(t, false, nil, func(x *fixture) {
		x.send("early", "slow", "over")
		h := byBody(handlers{
			"early": fails(sqsonce.RetryAfter(10*time.Second, errTest)), "slow": takes(6 * time.Second), "over": fails(sqsonce.RetryAfter(2*time.Second, errTest)),
		})
		x.failed(x.wrap(h), 30*time.Second, x.receive())
		want := map[string]time.Duration{"early": 4 * time.Second, "slow": visibility - 6*time.Second, "over": time.Second}
		if diff := cmp.Diff(want, x.visibleIn()); diff != "" {
			t.Errorf("visible in (-want +got):\n%s", diff)
		}
	})
}

// TestInProgressBacksOff: SQS counts each receive, so the delay of a duplicate doubles while the other delivery runs: from
// half the visibility timeout, or if that is not known from the end of the other lease.
func TestInProgressBacksOff(t *testing.T) {
	denied := fault.Rule{Op: opAttributes, Prob: 1, Do: fault.Error, Code: "AccessDenied"}
	known := sqsonce.RetryAfter(10*time.Second, sqsonce.ErrInProgress)
	for _, tt := range []struct {
		faults      []fault.Rule
		maxReceives int
		err         error
		delays      []time.Duration
	}{
		{nil, 5, known, []time.Duration{90 * time.Second, 10 * time.Second, 360 * time.Second}},
		{nil, 2, known, []time.Duration{90 * time.Second, 180 * time.Second}},
		{nil, 5, sqsonce.ErrInProgress, []time.Duration{90 * time.Second, 180 * time.Second}},
		{[]fault.Rule{denied}, 5, known, []time.Duration{10 * time.Second, 10 * time.Second, 40 * time.Second}},
	} {
		withQueue(t, false, tt.faults, func(x *fixture) {
			x.send("1")
			x.redrive(tt.maxReceives)
			f := x.wrap(fails(tt.err))
			for _, want := range tt.delays {
				x.failed(f, 30*time.Second, x.receive())
				if got := x.visibleIn()["1"]; got != want {
					t.Errorf("visible in %v, want %v", got, want)
				}
				time.Sleep(want)
			}
			if len(tt.delays) == 2 {
				return
			}
			if x.log.count("handler failed") > 0 {
				t.Error("an event in progress elsewhere is logged as a failure")
			}
			x.failed(x.wrap(fails(sqsonce.ErrInProgress)), 30*time.Second, x.receive())
			if got := x.visibleIn()["1"]; tt.faults != nil && got != visibility {
				t.Errorf("nothing known: visible in %v, want %v", got, visibility)
			}
			if got := x.calls(opAttributes); got != 2 {
				t.Errorf("%d calls of GetQueueAttributes by two functions, want 2", got)
			}
		})
	}
}

// TestInProgressHasALimit: no delay is longer than SQS accepts.
func TestInProgressHasALimit(t *testing.T) {
	withQueue(t, false, nil, func(x *fixture) {
		x.send("1")
		e := x.receive()
		e.Records[0].Attributes["ApproximateReceiveCount"] = "40"
		x.failed(x.wrap(fails(sqsonce.ErrInProgress)), 30*time.Second, e)
		if got := x.visibleIn()["1"]; got != maxDelay {
			t.Errorf("visible in %v, want %v", got, maxDelay)
		}
	})
}

// TestLongestDelay: SQS accepts it from the oldest message in the longest invocation.
func TestLongestDelay(t *testing.T) {
	withQueue(t, false, nil, func(x *fixture) {
		x.set(x.url, "VisibilityTimeout", "43200")
		x.send("1")
		e := x.receive()
		time.Sleep(5 * time.Minute) // the batching window
		h := func(context.Context, *sqsonce.Message) error {
			time.Sleep(90*time.Minute - 5*time.Second)
			return sqsonce.RetryAfter(100*time.Hour, errTest)
		}
		x.failed(x.wrap(h), 90*time.Minute, e)
		if got := x.visibleIn()["1"]; got != maxDelay {
			t.Errorf("visible in %v, want %v\n%s", got, maxDelay, &x.log)
		}
	})
}

// TestDelayFaults: a failure of SQS does not change the response, nor the messages whose changes failed.
func TestDelayFaults(t *testing.T) {
	all := map[string]time.Duration{"1": 10 * time.Second, "2": 10 * time.Second, "3": visibility}
	none := map[string]time.Duration{"1": visibility, "2": visibility, "3": visibility}
	for _, tt := range []struct {
		name string
		rule fault.Rule
		want map[string]time.Duration
		log  string
	}{
		{"an entry fails", fault.Rule{Op: opChange, Prob: 1, Do: fault.FailEntries, Entries: []int{0}, Code: "ReceiptHandleIsInvalid"},
			map[string]time.Duration{"1": visibility, "2": 10 * time.Second, "3": visibility}, "ReceiptHandleIsInvalid"},
		{"an entry has no result", fault.Rule{Op: opChange, Prob: 1, Do: fault.DropEntries, Entries: []int{0}}, all, "no result for some"},
		{"access denied", fault.Rule{Op: opChange, Prob: 1, Do: fault.Error, Code: "AccessDenied"}, none, "visibility not changed"},
		{"GetQueueUrl is not allowed", fault.Rule{Op: opURL, Prob: 1, Do: fault.Error, Code: "AccessDeniedException"}, all, "made from its ARN"},
		{"GetQueueUrl fails", fault.Rule{Op: opURL, Prob: 1, Do: fault.Error, Code: "QueueDoesNotExist"}, none, "URL is not known"},
	} {
		runWithQueue(t, tt.name, false, []fault.Rule{tt.rule}, func(x *fixture) {
			x.send("1", "2", "3")
			f := x.wrap(byBody(handlers{"1": fails(errTest), "2": fails(errTest)}))
			e := x.receive()
			at := time.Now()
			if got := x.failed(f, 30*time.Second, e); got != "1 2" {
				x.Errorf("failed: got %q, want 1 2", got)
			}
			got := x.visibleIn()
			for body := range got {
				got[body] += time.Since(at) // the SDK's retries take time
			}
			for body, want := range tt.want {
				if d := got[body] - want; d < 0 || d > callTimeout {
					x.Errorf("%s: visible in %v, want %v", body, got[body], want)
				}
			}
			if x.log.count(tt.log) == 0 {
				x.Errorf("the log does not say %q:\n%s", tt.log, &x.log)
			}
			if noResult := "no result for some"; tt.log != noResult && x.log.count(noResult) > 0 {
				x.Errorf("the log says %q:\n%s", noResult, &x.log)
			}
		})
	}
}

// TestFIFOGroupIsVisibleTogether: SQS delivers nothing of a group while one of its messages is hidden, so the messages
// behind a failed one get the same delay.
func TestFIFOGroupIsVisibleTogether(t *testing.T) {
	withQueue(t, true, nil, func(x *fixture) {
		x.send("a1", "a2", "b1", "a3", "b2")
		var r runs
		f := x.wrap(r.wrap(byBody(handlers{"a1": fails(sqsonce.RetryAfter(5*time.Second, errTest)), "b2": fails(sqsonce.RetryAfter(time.Hour, errTest))})))
		if got := x.failed(f, 30*time.Second, x.receive()); got != "a1 a2 a3 b2" {
			t.Errorf("failed: got %q, want a1 a2 a3 b2", got)
		}
		s := time.Second
		want := map[string]time.Duration{"a1": 5 * s, "a2": 5 * s, "a3": 5 * s, "b1": visibility, "b2": time.Hour}
		if diff := cmp.Diff(want, x.visibleIn()); diff != "" {
			t.Errorf("visible in (-want +got):\n%s", diff)
		}
		time.Sleep(5 * s)
		var again []string
		for _, rec := range x.receive().Records {
			again = append(again, rec.Body)
		}
		if diff := cmp.Diff([]string{"a1", "a2", "a3"}, again); diff != "" {
			t.Errorf("received again (-want +got):\n%s", diff)
		}
	})
}

// A message behind a head that is left to SQS has the delay of its own failure, and so has the head: they are visible together.
func TestDelayBehindAHeadLeftToSQS(t *testing.T) {
	withQueue(t, true, []fault.Rule{{Op: opSend, Nth: 4, Times: 1000, Do: fault.Error, Code: "AccessDenied"}}, func(x *fixture) {
		x.redrive(1)
		x.send("a1", "a2", "a3")
		h := byBody(handlers{"a1": fails(errTest), "a3": fails(sqsonce.RetryAfter(time.Hour, errTest))})
		if got := x.failed(x.wrap(h), 30*time.Second, x.receive()); got != "a1 a3" {
			t.Errorf("failed %q, want a1 a3", got)
		}
		if diff := cmp.Diff(map[string]time.Duration{"a1": time.Hour, "a2": visibility, "a3": time.Hour}, x.visibleIn()); diff != "" {
			t.Errorf("visible in (-want +got):\n%s", diff)
		}
	})
}

// TestUnfinishedKeepTheirVisibility: a message whose handler still runs must not be visible early. One that was not started
// would only be received again, and its receive count would grow.
func TestUnfinishedKeepTheirVisibility(t *testing.T) {
	withQueue(t, false, nil, func(x *fixture) {
		x.send("1", "2", "3")
		f := x.wrap(byBody(handlers{"1": fails(errTest), "": ignores(time.Minute)}), func(o *Options) { o.Concurrency = 1 })
		e := x.receive()
		// The message whose handler runs is in the event twice; its other copy has failed.
		e.Records = append(e.Records[:1], append(e.Records[1:2:2], e.Records...)...)
		x.failed(f, 20*time.Second, e)
		got := x.visibleIn()
		if got["1"] > 10*time.Second || got["2"] < visibility-20*time.Second || got["3"] < visibility-20*time.Second {
			t.Errorf("visible in %v, want only 1 changed", got)
		}
		time.Sleep(time.Hour)
	})
}

// TestRunningCopyIsNotChanged: a message is in the event twice; one copy fails and the other is abandoned.
func TestRunningCopyIsNotChanged(t *testing.T) {
	withQueue(t, false, nil, func(x *fixture) {
		x.send("1")
		first := make(chan bool, 1)
		f := x.wrap(func(ctx context.Context, m *sqsonce.Message) error {
			select {
			case first <- true:
				return errTest
			default:
				return ignores(time.Minute)(ctx, m)
			}
		})
		e := x.receive()
		e.Records = append(e.Records, e.Records[0])
		if got := x.failed(f, 20*time.Second, e); got != "1" {
			t.Errorf("failed: got %q, want 1 once", got)
		}
		if got := x.calls(opChange); got != 0 {
			t.Errorf("%d visibility changes of a message whose handler runs, want none", got)
		}
		time.Sleep(time.Hour)
	})
}

func TestBackoffThatPanics(t *testing.T) {
	for name, backoff := range map[string]func(int) time.Duration{
		"panic": func(int) time.Duration { panic("bug") }, "Goexit": func(int) time.Duration { runtime.Goexit(); return 0 },
	} {
		runWithQueue(t, name, false, nil, func(x *fixture) {
			x.send("1", "2")
			f := x.wrap(byBody(handlers{"1": fails(errTest)}), func(o *Options) { o.Backoff = backoff })
			begun := time.Now()
			if got := x.failed(f, 30*time.Second, x.receive()); got != "1" || time.Since(begun) > time.Second {
				t.Errorf("failed: got %q after %s, want 1 at once", got, time.Since(begun))
			}
			if got := x.visibleIn()["1"]; got < 9*time.Second || got > 13*time.Second {
				t.Errorf("visible in %v, want the default backoff", got)
			}
		})
	}
}
