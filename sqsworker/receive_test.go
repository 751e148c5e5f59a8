package sqsworker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/localstack/fault"
)

const opReceive = "ReceiveMessage"

func TestIdleIsOnePollPerWait(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.sendMany(200)
		j := x.start(ok, func(o *Options) { o.Concurrency = 50 })
		time.Sleep(2*time.Minute + 7*time.Second) // the receivers that joined are gone
		before := x.calls(opReceive)
		time.Sleep(10 * time.Minute)
		if n := x.calls(opReceive) - before; n != 40 {
			t.Errorf("%d receives in 10 min, want one every 15 s", n)
		}
		j.stopClean()
		if x.log.has("answered without use") {
			t.Error("full and empty receives are logged as useless")
		}
	})
}

func TestInFlightIsTheLimit(t *testing.T) {
	for _, limit := range []int{1, 3, 12, 25} {
		run(t, fmt.Sprint(limit), setup{}, func(x *fixture) {
			x.sendMany(60)
			most := 0 // in flight when a receive is sent, what it asks for included; there is one at a time
			c := &countedClient{Client: receiveFunc{x.c, func(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
				most = max(most, int(in.MaxNumberOfMessages)+x.inFlight())
				return x.c.ReceiveMessage(ctx, in, o...)
			}}}
			j := x.startWith(c, ignores(time.Second, nil), func(o *Options) { o.Concurrency, o.MaxInFlight, o.MaxReceivers = 10, limit, 1 })
			j.stopEmptyAfter(2 * time.Minute)
			if most > limit || c.receives.most > 1 {
				x.Errorf("asked for %d in flight with %d polls, want at most %d and 1", most, c.receives.most, limit)
			}
		})
	}
}

func TestBytesAreTheLimit(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		body := strings.Repeat("x", 200<<10)
		for range 40 {
			x.send(body)
		}
		var r runs
		j := x.start(r.take(time.Second), func(o *Options) { o.Concurrency, o.MaxInFlight, o.MaxBytes = 40, 100, 2<<20 })
		j.stopEmptyAfter(time.Minute)
		if r.most > 10 || r.most < 5 {
			t.Errorf("%d of 200 KiB at once in 2 MiB, want 5 to 10", r.most)
		}
	})
}

func TestTransientReceiveErrorsBackOff(t *testing.T) {
	bubble(t, setup{faults: []fault.Rule{{Op: opReceive, Nth: 1, Times: 30, Do: fault.Error, Code: "InternalError"}}}, func(x *fixture) {
		x.send("a")
		j := x.start(ok)
		time.Sleep(time.Second)
		if n := x.calls(opReceive); n > 20 {
			t.Errorf("%d receives in the first second of an outage", n)
		}
		j.stopEmptyAfter(20 * time.Minute)
		if n := x.log.count("receives are answered again"); n != 1 {
			t.Errorf("%d lines of the end of the outage, want one", n)
		}
	})
}

// TestUnansweredReceives: a receive whose answer is lost hides its messages until their visibility timeout ends, and is
// counted. On FIFO the attempt is repeated and gets the same messages.
func TestUnansweredReceives(t *testing.T) {
	for name, c := range map[string]struct {
		rule           fault.Rule
		standard, fifo int64
		reads          int // of the attributes that fail
	}{
		"reply lost":            {fault.Rule{Op: opReceive, Nth: 1, Do: fault.LoseReply}, 1, 0, 0},
		"reply lost, no answer": {fault.Rule{Op: opReceive, Nth: 1, Do: fault.LoseReply}, 1, 0, 5},
		"failed":                {fault.Rule{Op: opReceive, Nth: 1, Do: fault.Error}, 1, 0, 0},
		"throttled":             {fault.Rule{Op: opReceive, Nth: 1, Do: fault.Error, Code: "RequestThrottled"}, 0, 0, 0},
	} {
		faults := []fault.Rule{c.rule, {Op: opAttributes, Nth: 2, Times: c.reads, Do: fault.Reset}}[:1+min(c.reads, 1)]
		for fifo, want := range map[bool]int64{false: c.standard, true: c.fifo} {
			run(t, fmt.Sprintf("%s fifo=%t", name, fifo), setup{fifo: fifo, faults: faults}, func(x *fixture) {
				x.send("g:a")
				j := x.start(ok)
				j.stopEmptyAfter(10 * time.Minute)
				if got := j.Stats(); got.Unanswered != want || got.Done != 1 || int(got.Receives) != x.calls(opReceive) {
					x.Errorf("got %+v, want %d unanswered, 1 done and %d receives", got, want, x.calls(opReceive))
				}
				if n := x.calls(opAttributes); n > 4+c.reads {
					x.Errorf("%d reads of the attributes in 10 min, want %d at most: an answer ends the doubt", n, 4+c.reads)
				}
			})
		}
	}
}
