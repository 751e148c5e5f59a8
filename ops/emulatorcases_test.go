package ops_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/suite"
	"github.com/sqsonce/sqsonce/ops"
)

// emulatorCases are what this package rests on in SQS. The records are in DynamoDB in memory.
var emulatorCases = []struct {
	name string
	run  func(x *fixture)
}{
	{"list/rejected", listRejected},
	{"list/moved by SQS", listMoved},
	{"list/moved by SQS, key of the message ID", listMovedMessageID},
	{"list/gives back", listGivesBack},
	{"redrive/as the same events", redriveSame},
	{"redrive/what is behind ten", redriveBehind},
	{"restore/what was deleted", restoreDeleted},
}

// listed lists the queue by body.
func (x *fixture) listed() (ops.Listing, map[string]*ops.Message) {
	x.Helper()
	d, err := ops.Open(context.Background(), x.admin.sqs, x.dlq, x.joined)
	if err != nil {
		suite.Failf("Open: %v", err)
	}
	l, err := d.List(context.Background())
	if err != nil {
		suite.Failf("List: %v", err)
	}
	byBody := map[string]*ops.Message{}
	for _, m := range l.Messages {
		byBody[m.Body] = m
	}
	return l, byBody
}

func (x *fixture) joined(o *ops.Options) { o.Key, o.Store = x.once(x.admin).Key, x.store(x.admin) }

// only lists the queue's one message, and expects it to have this cause and key, and the released record of a handler that failed.
func (x *fixture) only(cause ops.Cause, key string) {
	x.Helper()
	l, _ := x.listed()
	if len(l.Messages) != 1 || !l.Complete || l.Total != 1 {
		suite.Failf("%d messages of %d, complete: %t, want one", len(l.Messages), l.Total, l.Complete)
	}
	m := l.Messages[0]
	if m.Problem != nil || m.Cause != cause || m.QueueARN != x.arn(x.url) {
		suite.Failf("cause %s, source %s, problem %v, want %s, %s", m.Cause, m.QueueARN, m.Problem, cause, x.arn(x.url))
	}
	if m.RecordKey != key || m.State != dedup.StateReleased || !strings.Contains(m.Reason, errCard.Error()) {
		suite.Failf("record %s is %s: %q, want %s, released after %q", m.RecordKey, m.State, m.Reason, key, errCard)
	}
}

func listRejected(x *fixture) {
	x.rejected("a1")
	x.only(ops.CauseRejected, consumer+"#orders|a1")
}

func listMoved(x *fixture) {
	x.only(ops.CauseReceivesUsedUp, x.moved("a1", map[string]string{sqsonce.AttrEventID: "a1", sqsonce.AttrEventSource: "orders"}))
}

// The key is of the source queue and the message ID, which a move keeps.
func listMovedMessageID(x *fixture) {
	x.only(ops.CauseReceivesUsedUp, x.moved("a1", nil))
}

// A second listing sees what the first one saw: of a FIFO group no more than ten.
func listGivesBack(x *fixture) {
	x.send(x.dlq, numbered("a", 12)...)
	x.send(x.dlq, numbered("b", 3)...)
	for range 2 {
		l, byBody := x.listed()
		want := 15
		if x.fifo { // a receive has ten of the first group, or seven beside the second one's
			want = min(max(len(l.Messages), 10), 13)
		}
		for _, body := range append(numbered("a", want-3), numbered("b", 3)...) {
			if byBody[body] == nil {
				suite.Failf("%s is not listed", body)
			}
		}
		if len(l.Messages) != want || l.Total != 15 || l.Hidden != 0 || want+l.Behind != 15 || l.Complete == x.fifo {
			suite.Failf("%d messages of %d, %d hidden, %d behind, complete: %t", len(l.Messages), l.Total, l.Hidden, l.Behind, l.Complete)
		}
	}
}

// numbered returns bodies of one group.
func numbered(group string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s-%02d", group, i))
	}
	return all
}

// effects are the bodies that a consumer's handler got, in order.
type effects struct {
	mu  sync.Mutex
	all []string
}

func (e *effects) handle(_ context.Context, m *sqsonce.Message) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, m.Body)
	return nil
}

// redriven runs a consumer whose handler has been mended, redrives, and waits until the consumer has got everything. What is left
// is still in the dead-letter queue.
func (x *fixture) redriven(redriven, left int) []string {
	x.Helper()
	var e effects
	h := x.worker(x.url, x.guarded(e.handle))
	defer h.stop()
	d, err := ops.Open(context.Background(), x.admin.sqs, x.dlq, x.joined)
	if err != nil {
		suite.Failf("Open: %v", err)
	}
	r, err := d.Redrive(context.Background(), withUnknown)
	if err != nil {
		suite.Failf("Redrive: %v", err)
	}
	if r.Total != redriven+left || r.Count(ops.ActionRedriven) != redriven || r.Count(ops.ActionLeft) != left {
		var all []string
		for _, res := range r.Results {
			all = append(all, fmt.Sprintf("%s is %s: %s, %v", res.RecordKey, res.State, res.Action, res.Err))
		}
		suite.Failf("of %d, want %d redriven and %d left:\n%s", r.Total, redriven, left, strings.Join(all, "\n"))
	}
	x.eventually("the consumer has got everything", func() bool { return x.count(x.url) == 0 })
	if n := x.count(x.dlq); n != left {
		suite.Failf("%d messages in the dead-letter queue, want %d", n, left)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all
}

// Each event runs once, under the key that it had. What is done is left.
func redriveSame(x *fixture) {
	x.rejected("rejected-1")
	keys := []string{consumer + "#orders|rejected-1"}
	keys = append(keys, x.moved("moved-1", map[string]string{sqsonce.AttrEventID: "moved-1", sqsonce.AttrEventSource: "orders"}))
	keys = append(keys, x.moved("plain-1", nil))
	x.send(x.dlq, "never-1", "done-1")
	keys = append(keys, consumer+"#orders|never-1")
	once := x.once(x.admin)
	if err := once.Handler(func(context.Context, *sqsonce.Message) error { return nil })(context.Background(), &sqsonce.Message{
		ID: "m-1", Body: "done-1", Attributes: map[string]sqsonce.Attribute{
			sqsonce.AttrEventID: {Type: "String", String: "done-1"}, sqsonce.AttrEventSource: {Type: "String", String: "orders"},
		},
	}); err != nil {
		x.Fatal(err)
	}
	ran := x.redriven(4, 1)
	slices.Sort(ran)
	if want := []string{"moved-1", "never-1", "plain-1", "rejected-1"}; !slices.Equal(ran, want) {
		suite.Failf("the consumer ran %q, want %q", ran, want)
	}
	for _, key := range keys {
		if r, err := x.store(x.admin).Inspect(context.Background(), key); err != nil || r.State(time.Now()) != dedup.StateCompleted {
			suite.Failf("record %s: %+v, %v, want it completed", key, r, err)
		}
	}
}

// On FIFO the deletes show what is behind the first ten, and the order of the group stays.
func redriveBehind(x *fixture) {
	want := numbered("a", 23)
	x.send(x.dlq, want...)
	ran := x.redriven(23, 0)
	if !x.fifo {
		slices.Sort(ran)
	}
	if !slices.Equal(ran, want) {
		suite.Failf("the consumer ran %q, want %q", ran, want)
	}
}

// What was deleted into an archive comes back with the key, the cause and the reason that it had, and a group in its order.
func restoreDeleted(x *fixture) {
	x.rejected("rejected-1")
	x.moved("moved-1", map[string]string{sqsonce.AttrEventID: "moved-1", sqsonce.AttrEventSource: "orders"})
	x.moved("plain-1", nil)
	x.send(x.dlq, numbered("a", 5)...)
	before, _ := x.listed()

	d, err := ops.Open(context.Background(), x.admin.sqs, x.dlq, x.joined)
	if err != nil {
		suite.Failf("Open: %v", err)
	}
	file := filepath.Join(x.TempDir(), "archive")
	r, err := d.Delete(context.Background(), file, func(o *ops.ExportOptions) { o.All = true })
	if err != nil || r.Count(ops.ActionDeleted) != 8 || x.count(x.dlq) != 0 {
		suite.Failf("Delete: %+v, %v; %d messages in the queue", r, err, x.count(x.dlq))
	}
	f, err := os.Open(file)
	if err != nil {
		x.Fatal(err)
	}
	defer f.Close() // it is only read
	if r, err = d.Restore(context.Background(), f); err != nil || r.Count(ops.ActionRestored) != 8 {
		suite.Failf("Restore: %+v, %v", r, err)
	}
	after, _ := x.listed()
	if diff := cmp.Diff(x.known(before), x.known(after)); diff != "" {
		suite.Failf("restored with other values:\n%s", diff)
	}
}

// known returns what is known of each message, on FIFO in the order of the group.
func (x *fixture) known(l ops.Listing) []string {
	var all []string
	for _, m := range l.Messages {
		all = append(all, fmt.Sprintf("%s %s: %s, %s, from %s, %s: %s, problem %v", m.Group, m.Body, m.RecordKey, m.Cause, m.QueueARN, m.State, m.Reason, m.Problem))
	}
	if x.fifo {
		slices.SortStableFunc(all, func(a, b string) int { return strings.Compare(strings.Fields(a)[0], strings.Fields(b)[0]) })
	} else {
		slices.Sort(all)
	}
	return all
}
