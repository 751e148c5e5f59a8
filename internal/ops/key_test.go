package ops_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/ops"
)

// one lists the only message.
func (x *fixture) one(d *ops.DLQ) *ops.Message {
	x.Helper()
	l, err := x.list(d)
	if err != nil || len(l.Messages) != 1 {
		x.Fatalf("%d messages, %v; want one", len(l.Messages), err)
	}
	return l.Messages[0]
}

const inSNS = `{"Type":"Notification","MessageId":"m-1","TopicArn":"arn:aws:sns:us-east-1:1:orders","Message":"{}","Timestamp":"2026-11-23T06:00:00.000Z"}`

// A message finds its record by the key that its consumer gave it, wherever that key comes from, after a reject and after SQS's own
// move; or the listing says why it cannot be known. What goes back, by a redrive or by way of an archive, keeps it.
func TestMessagesFindTheirRecords(t *testing.T) {
	t.Parallel()
	trust := func(o *dedup.Options) { o.TrustDedupID = true }
	keyOf := func(f func(*sqsonce.Message) string) []func(*dedup.Options) {
		return []func(*dedup.Options){func(o *dedup.Options) {
			o.Key = func(m *sqsonce.Message) (string, error) { return f(m), nil }
		}}
	}
	for _, s := range []identity{
		{name: "event-id and event-source", attrs: map[string]string{"event-id": "1", "event-source": "orders"}},
		{name: "event-id", attrs: map[string]string{"event-id": "1"}},
		{name: "CloudEvent", body: `{"specversion":"1.0","id":"1","source":"s","type":"t","data":{}}`},
		{name: "SNS", body: inSNS},
		{name: "message ID", eventKey: true},
		{name: "message ID on FIFO", fifo: true, eventKey: true},
		{name: "trusted MessageDeduplicationId", fifo: true, opts: []func(*dedup.Options){trust}, lost: true},
		{name: "trusted MessageDeduplicationId in SNS", body: inSNS, fifo: true, opts: []func(*dedup.Options){trust}, lost: true},
		{name: "event-id where the MessageDeduplicationId is trusted", attrs: map[string]string{"event-id": "1", "event-source": "o"}, fifo: true, opts: []func(*dedup.Options){trust}},
		{name: "function of the body", opts: keyOf(func(m *sqsonce.Message) string { return "f" + m.Body })},
		{name: "function of the message ID", opts: keyOf(func(m *sqsonce.Message) string { return m.ID }), changes: true},
	} {
		s.body = cmp.Or(s.body, "a1")
		for _, archived := range []bool{false, true} {
			for _, cause := range []ops.Cause{ops.CauseRejected, ops.CauseReceivesUsedUp} {
				run(t, fmt.Sprintf("%s/%s/archived=%t", s.name, cause, archived), setup{fifo: s.fifo}, func(x *fixture) {
					x.sendWith(x.url, s.body, s.attrs)
					x.bring(cause, s)
					withKey := func(o *ops.Options) { o.Key = x.once(x.admin, s.opts...).Key }
					m := x.one(x.open(withKey))
					lost := s.lost && cause == ops.CauseReceivesUsedUp
					switch {
					case m.Cause != cause || m.Message.Body != s.body:
						x.Errorf("cause %s, want %s; body %q, want it in its envelope", m.Cause, cause, m.Message.Body)
					case s.changes:
					case lost && (!errors.Is(m.Problem, ops.ErrDedupIDLost) || m.State != ops.StateUnknown || m.RecordKey != ""):
						x.Errorf("%s, key %q, problem %v; want the loss said", m.State, m.RecordKey, m.Problem)
					case !lost && (m.State != dedup.StateReleased || m.Problem != nil || m.Record == nil || m.Record.Key != m.RecordKey):
						x.Errorf("%s, key %q, problem %v; want the record found", m.State, m.RecordKey, m.Problem)
					}
					if archived && !s.changes {
						x.roundTrip(withKey)
						return
					}
					r := x.redriveAll(x.redriver(withKey))
					if lost || s.changes {
						if len(x.bodies(x.url)) != 0 || !errors.Is(r.Results[0].Err, ops.ErrDedupIDLost) && !errors.Is(r.Results[0].Err, ops.ErrKeyChanges) {
							x.Errorf("%+v", r.Results[0])
						}
						return
					}
					x.completes(m, cause, s)
				})
			}
		}
	}
}

// identity is how a consumer knows an event.
type identity struct {
	name     string
	body     string
	attrs    map[string]string
	fifo     bool
	opts     []func(*dedup.Options)
	eventKey bool // needed after SQS's own move
	lost     bool // by SQS's own move
	changes  bool // with each copy
}

// bring has a worker bring the message to the dead-letter queue.
func (x *fixture) bring(cause ops.Cause, s identity) {
	x.Helper()
	failure := errCard
	if cause == ops.CauseRejected {
		failure = sqsonce.Reject(errCard)
	}
	h := x.guarded(fails(failure), s.opts...)
	if cause != ops.CauseReceivesUsedUp || !s.fifo {
		x.worker(x.url, h).stopAfter(time.Hour)
		return
	}
	x.worker(x.url, h).killAfter(5 * time.Second) // before its own last try: it does not live so long
	for range 4 {
		time.Sleep(visibility * 2)
		x.receive(x.url)
	}
}

// completes has the redriven message handled: its event is completed under the record that it had.
func (x *fixture) completes(m *ops.Message, cause ops.Cause, s identity) {
	x.Helper()
	if len(x.bodies(x.url)) != 1 {
		x.Fatal("not redriven")
	}
	if _, has := x.sqs.Messages(x.url)[0].Attributes["event-key"]; cause == ops.CauseReceivesUsedUp && has != s.eventKey {
		x.Errorf("event-key is there: %t, want %t", has, s.eventKey)
	}
	x.worker(x.url, x.guarded(fails(nil), s.opts...)).stopAfter(time.Minute)
	rec, err := x.store(x.admin).Inspect(context.Background(), m.RecordKey)
	if err != nil || !rec.Completed || len(x.bodies(x.url)) != 0 {
		x.Errorf("record %s: %+v, %v", m.RecordKey, rec, err)
	}
}

// A dead-letter queue of several queues: a message says which one it came from, or needs no source, or the listing says that it does.
func TestSeveralSources(t *testing.T) {
	t.Parallel()
	const other = arnPrefix + "other"
	bubble(t, setup{}, func(x *fixture) {
		url := x.create("other", x.redrive("jobs-dlq", 3))
		id := map[string]string{"event-id": "1"}
		rejected := func(source string) map[string]string {
			attrs := map[string]string{"event-id": "1", sqsonce.AttrRejectReason: "r"}
			if source != "" {
				attrs[sqsonce.AttrDeadLetterSource] = source
			}
			return attrs
		}
		x.sendWith(url, "moved", map[string]string{ // with what an earlier visit has left
			"event-id": "1", sqsonce.AttrRejectReason: "r", sqsonce.AttrDeadLetterSource: arnPrefix + "jobs",
		})
		x.worker(url, bare(fails(errCard))).stopAfter(time.Hour)
		x.sendWith(x.dlq, "rejected", rejected(other))
		x.sendWith(x.dlq, "no room for the source", rejected(""))
		x.sendWith(x.dlq, "sent", id)
		x.sendWith(x.dlq, "message ID", nil)
		x.sendWith(x.dlq, "no source needed", map[string]string{"event-id": "1", "event-source": "orders"})

		type want struct {
			queue, key string
			problem    error
		}
		check := func(d *ops.DLQ, wants map[string]want) {
			t.Helper()
			got := x.mustList(d)
			for body, w := range wants {
				if m := got[body]; m.QueueARN != w.queue || m.RecordKey != w.key || !errors.Is(m.Problem, w.problem) {
					t.Errorf("%s: queue %q, key %q, %s, problem %v; want %+v", body, m.QueueARN, m.RecordKey, m.State, m.Problem, w)
				}
			}
		}
		known := want{other, "billing#sqs-event|" + other + "|1", ops.ErrNoRecord}
		check(x.open(), map[string]want{
			"moved": known, "rejected": known,
			"no room for the source": {problem: ops.ErrNoSource}, "sent": {problem: ops.ErrNoSource}, "message ID": {problem: ops.ErrNoSource},
			"no source needed": {"", "billing#orders|1", ops.ErrNoRecord},
		})
		wrong := want{queue: other, problem: ops.ErrOtherSource}
		check(x.open(func(o *ops.Options) { o.Sources = []string{arnPrefix + "jobs"} }), map[string]want{
			"moved": wrong, "rejected": wrong, "sent": {problem: ops.ErrNoSource}, "no source needed": {problem: ops.ErrNoSource},
		})
		check(x.open(func(o *ops.Options) { o.Sources = []string{arnPrefix + "jobs", other} }), map[string]want{"moved": known, "rejected": known})
		r := x.redriveAll(x.open(func(o *ops.Options) { o.Sources = []string{arnPrefix + "jobs"} }))
		for _, res := range r.Results {
			if res.Action != ops.ActionLeft || !errors.Is(res.Err, ops.ErrNotSelected) && !errors.Is(res.Err, ops.ErrNoSource) {
				t.Errorf("%+v", res)
			}
		}
		check(x.open(func(o *ops.Options) { o.Source = other }), map[string]want{
			"moved": known, "rejected": known, "no room for the source": known, "sent": known, "no source needed": {other, "billing#orders|1", ops.ErrNoRecord},
		})
	})
}

// The consumer of envelopes without sqsonce.OpenEnvelope has other keys. One that nobody understands has no key.
func TestNoOpenEnvelope(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		x.sendWith(x.url, inSNS, nil)
		x.worker(x.url, func(p *process) sqsonce.Handler { return x.once(p).Handler(fails(errCard)) }).stopAfter(time.Hour)
		if m := x.one(x.open()); stateOf(m) != noRecord {
			t.Errorf("with Unwrap: %s", m.State)
		}
		if m := x.one(x.open(func(o *ops.Options) { o.NoOpenEnvelope = true })); m.State != dedup.StateReleased || m.Problem != nil {
			t.Errorf("NoOpenEnvelope: %s, %v", m.State, m.Problem)
		}
		x.purge()
		x.sendWith(x.dlq, strings.Replace(inSNS, "Notification", "SubscriptionConfirmation", 1), nil)
		if m := x.one(x.open()); !errors.Is(m.Problem, sqsonce.ErrEnvelope) || m.State != ops.StateUnknown {
			t.Errorf("unreadable: %s, problem %v", m.State, m.Problem)
		}
	})
}

const inS3 = `{"Records":[{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"},"object":{"key":"k","sequencer":"1"}}}]}`

// A consumer behind sqsonce.S3 has another key for a notification that SQS has moved. Until it is said whether it is
// one, the notification is left: with the wrong key its event would seem never to have run, and would run again.
func TestNotificationOfS3(t *testing.T) {
	t.Parallel()
	behind, without := func(o *ops.Options) { o.S3 = true }, func(o *ops.Options) { o.NoS3 = true }
	for name, wraps := range map[string]func(sqsonce.Handler) sqsonce.Handler{
		"behind S3": sqsonce.S3, "without": func(h sqsonce.Handler) sqsonce.Handler { return h },
	} {
		run(t, name, setup{}, func(x *fixture) {
			x.sendWith(x.url, inS3, nil)
			x.worker(x.url, func(p *process) sqsonce.Handler { return wraps(x.once(p).Handler(fails(errCard))) }).stopAfter(time.Hour)
			if m := x.one(x.open()); !errors.Is(m.Problem, ops.ErrS3) || m.State != ops.StateUnknown {
				x.Errorf("not said: %s, %v", m.State, m.Problem)
			}
			for _, res := range x.redriveAll(x.redriver()).Results {
				if res.Action != ops.ActionLeft || !errors.Is(res.Err, ops.ErrS3) {
					x.Errorf("not said: %+v", res)
				}
			}
			right, wrong := behind, without
			if name == "without" {
				right, wrong = without, behind
			}
			if m := x.one(x.open(wrong)); stateOf(m) != noRecord {
				x.Errorf("the wrong one: %s, %v", m.State, m.Problem)
			}
			if m := x.one(x.open(right)); m.State != dedup.StateReleased || m.Problem != nil {
				x.Errorf("the right one: %s, %v", m.State, m.Problem)
			}
			before := x.one(x.open(right)).RecordKey
			x.redriveAll(x.redriver(right))
			x.worker(x.url, func(p *process) sqsonce.Handler {
				once := x.once(p)
				return wraps(once.Handler(func(_ context.Context, m *sqsonce.Message) error {
					if key, err := once.Key(m); key != before || err != nil {
						x.Errorf("after the redrive: key %q, %v, want %q", key, err, before)
					}
					return nil
				}))
			}).stopAfter(time.Hour)
			if left := len(x.sqs.Messages(x.url)) + len(x.sqs.Messages(x.dlq)); left != 0 {
				x.Errorf("%d messages left", left)
			}
		})
	}
}

// What a key function may do wrong is the problem of the message.
func TestKeyFunctions(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		x.fill(1)
		for name, tt := range map[string]struct {
			key  func(*sqsonce.Message) (string, error)
			want error
		}{
			"fails":  {func(*sqsonce.Message) (string, error) { return "k", errCard }, errCard},
			"panics": {func(*sqsonce.Message) (string, error) { panic(errCard) }, errCard},
			"empty":  {func(*sqsonce.Message) (string, error) { return "", nil }, sqsonce.ErrNoEventID},
		} {
			m := x.one(x.open(func(o *ops.Options) { o.Key = tt.key }))
			if !errors.Is(m.Problem, tt.want) || m.State != ops.StateUnknown || m.RecordKey != "" {
				t.Errorf("%s: %s, key %q, problem %v", name, m.State, m.RecordKey, m.Problem)
			}
		}
		m := x.one(x.open(func(o *ops.Options) { o.Store = nil }))
		if m.State != ops.StateUnknown || m.Problem != nil || m.RecordKey != consumer+"#orders|g0-1" {
			t.Errorf("without a store: %s, key %q, problem %v", m.State, m.RecordKey, m.Problem)
		}
		m = x.one(x.open(func(o *ops.Options) { o.Store, o.Key = nil, nil }))
		if m.State != ops.StateUnknown || m.Problem != nil || m.RecordKey != "" {
			t.Errorf("without a key function: %s, key %q, problem %v", m.State, m.RecordKey, m.Problem)
		}
	})
}

// No record of a message that is older than the records are retained says nothing.
func TestExpired(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		x.set(x.dlq, map[string]string{"MessageRetentionPeriod": "36000"})
		x.fill(1)
		sent := time.Now()
		d := x.open(func(o *ops.Options) { o.Retention = 3 * time.Hour })
		for _, want := range []bool{false, true} { // after 1 h 59 min, and after 2 h 1 min
			time.Sleep(time.Until(sent.Add(119 * time.Minute)))
			m := x.one(d)
			if stateOf(m) != noRecord || m.Expired != want || errors.Is(m.Problem, ops.ErrExpired) != want || m.Reason != m.Problem.Error() {
				t.Errorf("after %s: %s, expired %t, %q", time.Since(sent), m.State, m.Expired, m.Reason)
			}
			time.Sleep(2 * time.Minute)
			if !m.LostAt.Equal(sent.Add(10 * time.Hour)) {
				t.Errorf("lost at %s, want ten hours after the send", m.LostAt)
			}
		}
	})
}
