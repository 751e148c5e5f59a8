package ops_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// found is what a listing says of a message.
type found struct {
	cause  ops.Cause
	state  dedup.RecordState
	reason string
}

func (x *fixture) want(want map[string]found) {
	x.Helper()
	got := x.mustList(x.open())
	if len(got) != len(want) {
		x.Errorf("%d messages listed, want %d", len(got), len(want))
	}
	for body, w := range want {
		m := got[body]
		if m == nil {
			x.Errorf("%s is not listed", body)
			continue
		}
		reason := w.reason
		if reason == never {
			reason = m.Problem.Error()
		}
		if m.Cause != w.cause || stateOf(m) != w.state || m.Reason != reason || (m.Problem == nil) != (w.state != noRecord) {
			x.Errorf("%s: %s, %s, %q, problem %v; want %+v", body, m.Cause, m.State, m.Reason, m.Problem, w)
		}
		if (m.Record == nil) != (w.state == noRecord) || m.QueueARN != arnPrefix+x.named("jobs") {
			x.Errorf("%s: record %v, queue %s", body, m.Record, m.QueueARN)
		}
	}
}

// noRecord is the state Unknown of an event whose record was looked for, and not found. Its reason is its problem.
const noRecord dedup.RecordState = "unrecorded"

const never = "its problem"

func stateOf(m *ops.Message) dedup.RecordState {
	if m.State == ops.StateUnknown && m.Record == nil && errors.Is(m.Problem, ops.ErrNoRecord) {
		return noRecord
	}
	return m.State
}

// What brings messages to a dead-letter queue, in the hosts: each leaves its cause and its state.
func TestCausesInHosts(t *testing.T) {
	t.Parallel()
	const rejected = "sqsonce: rejected: card declined"
	reject := sqsonce.Reject(errCard)
	for _, tt := range []struct {
		name        string
		fifo        bool
		maxReceives int
		run         func(x *fixture)
		want        map[string]found
	}{
		{name: "reject in a worker", run: func(x *fixture) {
			x.send(x.url, "a1")
			x.worker(x.url, x.guarded(fails(reject))).stopAfter(time.Minute)
		}, want: map[string]found{"a1": {ops.CauseRejected, dedup.StateReleased, rejected}}},
		{name: "reject in a FIFO worker", fifo: true, run: func(x *fixture) {
			x.send(x.url, "a1")
			x.worker(x.url, x.guarded(fails(reject))).stopAfter(time.Minute)
		}, want: map[string]found{"a1": {ops.CauseRejected, dedup.StateReleased, rejected}}},
		{name: "reject in a function", run: func(x *fixture) {
			x.send(x.url, "a1")
			x.function(x.url, x.guarded(fails(reject)), true).stopAfter(time.Minute)
		}, want: map[string]found{"a1": {ops.CauseRejected, dedup.StateReleased, rejected}}},
		{name: "reject before dedup", run: func(x *fixture) {
			x.send(x.url, "a1")
			x.worker(x.url, bare(fails(reject))).stopAfter(time.Minute)
		}, want: map[string]found{"a1": {ops.CauseRejected, noRecord, rejected}}},
		{name: "receives used up in a worker", run: func(x *fixture) {
			x.send(x.url, "a1")
			x.worker(x.url, x.guarded(fails(errCard))).stopAfter(time.Hour)
		}, want: map[string]found{"a1": {ops.CauseReceivesUsedUp, dedup.StateReleased, "card declined"}}},
		{name: "last try of a head in a FIFO worker", fifo: true, run: func(x *fixture) {
			x.send(x.url, "a1", "a2")
			x.worker(x.url, x.guarded(fails(errCard))).stopAfter(2 * time.Hour)
		}, want: map[string]found{"a1": {ops.CauseRejected, dedup.StateReleased, "card declined"}, "a2": {ops.CauseRejected, dedup.StateReleased, "card declined"}}},
		{name: "followers of a head in a function without a client", fifo: true, run: func(x *fixture) {
			x.send(x.url, "a1", "a2", "a3")
			x.function(x.url, x.guarded(fails(errCard)), false).stopAfter(time.Hour)
		}, want: map[string]found{
			"a1": {ops.CauseReceivesUsedUp, dedup.StateReleased, "card declined"},
			"a2": {ops.CauseReceivesUsedUp, noRecord, never}, "a3": {ops.CauseReceivesUsedUp, noRecord, never},
		}},
		{name: "a throttled function", run: func(x *fixture) {
			x.send(x.url, "a1")
			x.mapping(x.url, x.newProcess(), func(context.Context, []byte) ([]byte, error) { return nil, esm.ErrThrottled }).stopAfter(time.Hour)
		}, want: map[string]found{"a1": {ops.CauseReceivesUsedUp, noRecord, never}}},
		{name: "a crash", maxReceives: 1, run: func(x *fixture) {
			x.send(x.url, "a1")
			x.worker(x.url, x.guarded(hangs)).killAfter(5 * time.Second)
			time.Sleep(time.Minute)
			x.receive(x.url)
		}, want: map[string]found{"a1": {ops.CauseReceivesUsedUp, dedup.StateCrashed, "no reason known"}}},
		{name: "a crash whose lease is not over", maxReceives: 1, run: func(x *fixture) {
			x.send(x.url, "a1")
			x.worker(x.url, x.guarded(hangs, func(o *dedup.Options) { o.LeaseDuration = 10 * time.Minute })).killAfter(5 * time.Second)
			time.Sleep(time.Minute)
			x.receive(x.url)
		}, want: map[string]found{"a1": {ops.CauseReceivesUsedUp, dedup.StateRunning, "no reason known"}}},
		{name: "a lost delete", maxReceives: 1, run: func(x *fixture) {
			x.sqs.Set(fault.Plan{Rules: []fault.Rule{{Op: "DeleteMessageBatch", Prob: 1, Do: fault.Error}}})
			x.send(x.url, "a1")
			x.worker(x.url, x.guarded(fails(nil))).killAfter(5 * time.Second)
			x.sqs.Set(fault.Plan{})
			time.Sleep(time.Minute)
			x.receive(x.url)
		}, want: map[string]found{"a1": {ops.CauseReceivesUsedUp, dedup.StateCompleted, "done: the delete failed, or a second copy"}}},
		{name: "a lost delete after a failure", maxReceives: 2, run: func(x *fixture) {
			x.sqs.Set(fault.Plan{Rules: []fault.Rule{{Op: "DeleteMessageBatch", Prob: 1, Do: fault.Error}}})
			x.send(x.url, "a1")
			var failed atomic.Bool
			x.worker(x.url, x.guarded(func(context.Context, *sqsonce.Message) error {
				if failed.CompareAndSwap(false, true) {
					return errCard
				}
				return nil
			})).killAfter(time.Minute)
			x.sqs.Set(fault.Plan{})
			time.Sleep(time.Minute)
			x.receive(x.url)
		}, want: map[string]found{"a1": {ops.CauseReceivesUsedUp, dedup.StateCompleted, "done: the delete failed, or a second copy"}}},
		{name: "sent by somebody", run: func(x *fixture) { x.send(x.dlq, "a1") },
			want: map[string]found{"a1": {ops.CauseSent, noRecord, never}}},
	} {
		run(t, tt.name, setup{fifo: tt.fifo, maxReceives: tt.maxReceives}, func(x *fixture) {
			tt.run(x)
			x.want(tt.want)
		})
	}
}

// bring brings an event to the dead-letter queue without a record.
var bring = map[ops.Cause]func(x *fixture){
	ops.CauseRejected: func(x *fixture) {
		x.send(x.url, "a1")
		x.worker(x.url, bare(fails(sqsonce.Reject(errCard)))).stopAfter(time.Minute)
	},
	ops.CauseReceivesUsedUp: func(x *fixture) {
		x.send(x.url, "a1")
		for range 4 {
			x.receive(x.url)
			time.Sleep(2 * visibility)
		}
	},
	ops.CauseSent: func(x *fixture) { x.send(x.dlq, "a1") },
}

// again delivers the event once more, through another queue, to a worker that leaves its record in a state.
var again = map[dedup.RecordState]func(x *fixture, url string){
	noRecord:         func(*fixture, string) {},
	ops.StateUnknown: func(*fixture, string) {},
	dedup.StateReleased: func(x *fixture, url string) {
		x.worker(url, x.guarded(fails(errors.New("no stock")))).stopAfter(5 * time.Second)
	},
	dedup.StateRunning: func(x *fixture, url string) {
		h := x.worker(url, x.guarded(hangs))
		x.Cleanup(h.kill)
		time.Sleep(5 * time.Minute)
	},
	dedup.StateCrashed: func(x *fixture, url string) {
		x.worker(url, x.guarded(hangs)).killAfter(5 * time.Second)
		time.Sleep(time.Minute)
	},
	dedup.StateCompleted: func(x *fixture, url string) {
		x.worker(url, x.guarded(fails(nil))).stopAfter(5 * time.Second)
	},
	dedup.StateForeign: func(x *fixture, _ string) { // as Powertools writes it
		must.Get(x.admin.ddb.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: map[string]ddbtypes.AttributeValue{
			"id":                     &ddbtypes.AttributeValueMemberS{Value: consumer + "#orders|a1"},
			"status":                 &ddbtypes.AttributeValueMemberS{Value: "INPROGRESS"},
			"expiration":             &ddbtypes.AttributeValueMemberN{Value: fmt.Sprint(time.Now().Add(time.Hour).Unix())},
			"in_progress_expiration": &ddbtypes.AttributeValueMemberN{Value: fmt.Sprint(time.Now().Add(time.Minute).UnixMilli())},
		}}))(x)
	},
}

// Each cause with each state: the reason of a message that was rejected is its own, that of any other one is its record's.
func TestEveryCauseAndState(t *testing.T) {
	t.Parallel()
	reasons := map[dedup.RecordState]string{
		noRecord: never, dedup.StateReleased: "no stock", dedup.StateCompleted: "done: the delete failed, or a second copy",
	}
	for cause := range bring {
		for state := range again {
			run(t, string(cause)+"/"+string(state), setup{}, func(x *fixture) {
				bring[cause](x)
				url := x.create("again", nil)
				x.send(url, "a1")
				again[state](x, url)
				if state == ops.StateUnknown {
					x.ddb.Set(fault.Plan{Rules: []fault.Rule{{Op: "GetItem", Prob: 1, Do: fault.Error, Code: "InternalServerError"}}})
				}
				m := x.mustList(x.open())["a1"]
				if m == nil {
					x.Fatal("the message is not listed")
				}
				want := reasons[state]
				switch {
				case cause == ops.CauseRejected:
					want = "sqsonce: rejected: card declined"
				case want == never:
					want = m.Problem.Error()
				case want == "":
					want = "no reason known"
				}
				if m.Cause != cause || stateOf(m) != state || m.Reason != want {
					x.Errorf("got %s, %s, %q, want %s, %s, %q", m.Cause, m.State, m.Reason, cause, state, want)
				}
				if hasRecord := state != noRecord && state != ops.StateUnknown; (m.Record != nil) != hasRecord || (m.Problem == nil) != hasRecord {
					x.Errorf("record %v, problem %v", m.Record, m.Problem)
				}
				if m.RecordKey != consumer+"#orders|a1" || m.QueueARN != arnPrefix+"jobs" {
					x.Errorf("key %q of queue %q", m.RecordKey, m.QueueARN)
				}
			})
		}
	}
}

// The reason of an earlier visit is stale where SQS has moved the message since: AWS's redrive leaves it on the message.
func TestStaleReason(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		x.sendWith(x.url, "a1", map[string]string{
			sqsonce.AttrEventID: "a1", sqsonce.AttrEventSource: "orders",
			sqsonce.AttrRejectReason: "an old one", sqsonce.AttrDeadLetterSource: arnPrefix + "elsewhere",
		})
		x.worker(x.url, x.guarded(fails(errCard))).stopAfter(time.Hour)
		x.want(map[string]found{"a1": {ops.CauseReceivesUsedUp, dedup.StateReleased, "card declined"}})
	})
}

// Reasons that differ in details are one class.
func TestClass(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		reasons := []string{
			`order 17 of "Ann" at 2026-11-23T17:00:00.5Z: don't know arn:aws:sqs:us-east-1:1:a, it's 0123456789abcdef`,
			`Order 4711 of "Bob \"B\"" at 2025-01-02 03:04:05: don't know arn:aws:sqs:eu-west-1:2:b, it's ffffffff00000000`,
			"tenant `x y` of 6ba7b810-9dad-11d1-80b4-00c04fd430c8 took 1,000.5 ms",
			"tenant 'z' of 7ba7b810-9dad-11d1-80b4-00c04fd430c9 took 7 ms",
			strings.Repeat("€", 60) + "1",
			strings.Repeat("€", 60) + "another end",
		}
		for _, r := range reasons {
			x.sendWith(x.dlq, r, map[string]string{sqsonce.AttrRejectReason: r})
		}
		got := x.mustList(x.open())
		texts := []string{
			"order * of * at *: don't know *, it's *", "tenant * of * took * ms", strings.Repeat("€", 53),
		}
		ids := map[string]bool{}
		for i, r := range reasons {
			c := got[r].Class
			if c.Text != texts[i/2] || len(c.ID) != 6 {
				t.Errorf("class of %q: %+v, want %q", r, c, texts[i/2])
			}
			ids[c.ID] = true
		}
		if len(ids) != len(texts) || got[reasons[0]].Class.ID != "9ea337" {
			t.Errorf("class IDs %v", ids)
		}
	})
}
