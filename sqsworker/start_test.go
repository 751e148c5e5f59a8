package sqsworker

import (
	"context"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

const opAttributes = "GetQueueAttributes"

// TestAttributesNotReadable: a denied read delays nothing, and is repeated every 5 min. The ARN is that of the URL.
func TestAttributesNotReadable(t *testing.T) {
	for _, code := range []string{"AccessDenied", "AccessDeniedException"} {
		run(t, code, setup{faults: []fault.Rule{{Op: opAttributes, Prob: 1, Do: fault.Error, Code: code}}}, func(x *fixture) {
			x.send("a")
			arn := make(chan string, 1)
			began := time.Now()
			j := x.start(func(_ context.Context, m *sqsonce.Message) error {
				arn <- m.QueueARN
				return nil
			})
			if got, want := <-arn, "arn:aws:sqs:us-east-1:000000000000:jobs"; got != want || time.Since(began) > 0 {
				x.Errorf("QueueARN after %s: got %q, want %q", time.Since(began), got, want)
			}
			time.Sleep(11 * time.Minute)
			j.stopClean()
			if n := x.calls(opAttributes); n != 3 || x.log.count("queue attributes cannot be read") != 1 {
				x.Errorf("%d reads of the attributes, want three, with one line", n)
			}
		})
	}
}

func TestStartWaitsForAttributes(t *testing.T) {
	bubble(t, setup{maxReceives: 7, faults: []fault.Rule{{Op: opAttributes, Nth: 1, Times: 5, Do: fault.Error}}}, func(x *fixture) {
		x.send("a")
		j := x.start(ok)
		j.stopEmptyAfter(2 * time.Minute)
		if !x.log.has("max_receive_count=7") || x.log.has("receiving without it") {
			t.Error("the worker began without the attributes")
		}
	})
}

// TestAttributesNotAnswered: after 30 s messages are received without the attributes, which are taken over when they come.
func TestAttributesNotAnswered(t *testing.T) {
	for name, rule := range map[string]fault.Rule{
		"5xx":         {Do: fault.Error},
		"throttled":   {Do: fault.Error, Code: "RequestThrottled"},
		"no answer":   {Do: fault.Delay, Delay: time.Hour},
		"broken":      {Do: fault.Reset},
		"credentials": {Do: fault.Error, Code: "ExpiredToken"},
		"a new code":  {Do: fault.Error, Code: "SomethingNew"},
	} {
		run(t, name, setup{fifo: true, maxReceives: 7}, func(x *fixture) {
			rule.Op, rule.Prob = opAttributes, 1
			x.srv.Set(fault.Plan{Rules: []fault.Rule{rule}})
			x.send("g:0")
			p := &poison{}
			j := x.start(p.handle, func(o *Options) { o.Backoff = func(int) time.Duration { return time.Second } })
			time.Sleep(5 * time.Second)
			if rule.Do == fault.Delay {
				j.wantReason("/ready", "GetQueueAttributes has not been answered yet")
			}
			time.Sleep(20 * time.Second)
			j.wantReason("/ready", "GetQueueAttributes fails: ")
			time.Sleep(16 * time.Second)
			if len(p.handled()) != 1 {
				x.Fatal("nothing is received without the attributes")
			}
			j.wantHealth("without the attributes", 200, 200)
			x.srv.Set(fault.Plan{})
			time.Sleep(3 * time.Minute)
			x.send("g:1bad")
			j.stopEmptyAfter(time.Minute)
			if n := p.count("g:1bad"); n != 7 || len(x.dead()) != 1 {
				x.Errorf("%d runs, %d dead-lettered; want 7 and 1, by the queue's attributes", n, len(x.dead()))
			}
			if n := x.log.count("receiving without it"); n != 1 {
				x.Errorf("%d lines, want one", n)
			}
		})
	}
}

// TestAttributesNotReadableLater: a denied read is logged once.
func TestAttributesNotReadableLater(t *testing.T) {
	bubble(t, setup{faults: []fault.Rule{{Op: opAttributes, Prob: 1, Do: fault.Reset}}}, func(x *fixture) {
		j := x.start(ok)
		time.Sleep(10 * time.Minute)
		if n, lines := x.calls(opAttributes), x.log.count("the worker reads them again"); n < 15 || n > 30 || lines > 11 {
			t.Errorf("%d tries in ten minutes, with %d lines", n, lines)
		}
		x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: opAttributes, Prob: 1, Do: fault.Error, Code: "AccessDenied"}}})
		time.Sleep(10 * time.Minute)
		j.stopClean()
		if n := x.log.count("queue attributes cannot be read"); n != 1 {
			t.Errorf("%d answers, want one", n)
		}
	})
}

// TestNoStartWithoutAnARN: a URL that is not of AWS's form does not tell the ARN, which is part of keys.
func TestNoStartWithoutAnARN(t *testing.T) {
	bubble(t, setup{faults: []fault.Rule{{Op: opAttributes, Prob: 1, Do: fault.Reset}}}, func(x *fixture) {
		x.url = "http://proxy.local/jobs"
		j := x.start(ok)
		time.Sleep(time.Hour)
		j.wantReason("/ready", "GetQueueAttributes fails: ")
		if n := x.calls(opReceive); n > 0 {
			t.Errorf("%d receives, want none", n)
		}
		j.stopClean()
	})
}

func TestRequestsPerMessage(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		const n = 1000
		x.sendMany(n)
		before := len(x.srv.Calls())
		j := x.start(func(context.Context, *sqsonce.Message) error {
			time.Sleep(20 * time.Millisecond)
			return nil
		}, func(o *Options) { o.Concurrency = 50 })
		for len(x.queued()) > 0 {
			time.Sleep(10 * time.Millisecond)
		}
		calls := len(x.srv.Calls()) - before
		j.stopClean()
		if per := float64(calls) / n; per > 0.22 {
			t.Errorf("%.3f requests per message (%d calls), want at most 0.22", per, calls)
		}
	})
}
