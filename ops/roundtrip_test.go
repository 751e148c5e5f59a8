package ops_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sqsonce/sqsonce"
	limits "github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/opserr"
	"github.com/sqsonce/sqsonce/ops"
)

const mebibyte = 1 << 20

// legalText draws a text that SQS accepts, of any of its characters.
func legalText(rt *rapid.T, most int, what string) string {
	char := rapid.OneOf(
		rapid.SampledFrom([]rune("\t\n\r \"\\<&>\x7f\u0085\u2028\u2029\ud7ff\ue000\ufffd\U00010000\U0010ffff")),
		rapid.Rune().Filter(func(r rune) bool { return r >= 0x20 && (r < 0xd800 || r > 0xdfff) && r != 0xfffe && r != 0xffff }),
	)
	return rapid.StringOfN(char, 1, most, -1).Draw(rt, what)
}

func legalAttribute(rt *rapid.T) sqsonce.Attribute {
	a := sqsonce.Attribute{Type: rapid.SampledFrom([]string{"String", "Number", "Binary"}).Draw(rt, "type")}
	switch a.Type {
	case "Binary":
		a.Binary = rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(rt, "binary")
	case "Number":
		a.String = rapid.StringMatching(`-?[0-9]{1,18}(\.[0-9]{1,18})?`).Draw(rt, "number")
	default:
		a.String = legalText(rt, 40, "value")
	}
	a.Type += rapid.SampledFrom([]string{"", ".int", ".a b.é\t\U0010ffff"}).Draw(rt, "label")
	return a
}

// letter is a message that lands in the dead-letter queue.
type letter struct {
	FIFO  bool
	Cause ops.Cause
	In    sqsonce.Message
}

func drawLetter(rt *rapid.T) letter {
	l := letter{FIFO: rapid.Bool().Draw(rt, "fifo"), Cause: rapid.SampledFrom([]ops.Cause{ops.CauseRejected, ops.CauseReceivesUsedUp, ops.CauseSent}).Draw(rt, "cause")}
	m := &l.In
	m.Attributes = rapid.MapOfN(rapid.StringMatching(`[A-Za-z0-9_-]{1,30}`), rapid.Custom(legalAttribute), 0, 10).Draw(rt, "attributes")
	identity := rapid.SampledFrom([][]string{nil, {sqsonce.AttrEventID}, {sqsonce.AttrEventID, sqsonce.AttrEventSource}, {sqsonce.AttrEventKey}}).Draw(rt, "identity")
	for _, name := range slices.Sorted(maps.Keys(m.Attributes)) {
		if len(m.Attributes)+len(identity) > limits.MaxAttributes {
			delete(m.Attributes, name)
		}
	}
	for _, name := range identity {
		m.Attributes[name] = sqsonce.Attribute{Type: "String", String: legalText(rt, 20, name)}
	}
	m.Body = legalText(rt, 50, "body")
	if rapid.IntRange(0, 14).Draw(rt, "long") == 0 {
		room := mebibyte - limits.MessageBytes(m.Body, m.Attributes) - rapid.SampledFrom([]int{0, 40, 100, 200, 400}).Draw(rt, "room")
		m.Body += strings.Repeat(rapid.SampledFrom([]string{"x", "<", "\"", "\t"}).Draw(rt, "padding"), room)
	}
	if l.FIFO || rapid.Bool().Draw(rt, "tenant") {
		m.Group = rapid.StringMatching(`[!-~]{1,128}`).Draw(rt, "group")
	}
	if rapid.Bool().Draw(rt, "traced") {
		m.TraceHeader = "Root=1-5759e988-bd862e3fe1be46a994272793"
	}
	return l
}

// TestRoundTripProperties: a message that went through an archive and a redrive reaches its consumer as it was, with the same key. One
// without room for what keeps that is left where it is.
func TestRoundTripProperties(t *testing.T) {
	t.Parallel()
	const most = 50 // of the package's draws: each takes as long as several redrives
	draws, failed := 0, false
	rapid.Check(t, func(rt *rapid.T) {
		l := drawLetter(rt)
		if draws++; draws > most && !failed { // a failure is drawn again
			return
		}
		var problem string
		bubble(t, setup{fifo: l.FIFO, maxReceives: 1}, func(x *fixture) { problem = x.postAndBack(l) })
		if problem != "" || t.Failed() {
			failed = true
			rt.Fatalf("%s, %s: %s", x1(l), l.Cause, problem)
		}
	})
}

func x1(l letter) string { return fmt.Sprintf("%d attributes, %.60q", len(l.In.Attributes), l.In.Body) }

// post sends a letter to a queue.
func (x *fixture) post(url string, m sqsonce.Message) {
	x.Helper()
	in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &m.Body, MessageAttributes: attributes(m.Attributes)}
	if m.Group != "" {
		in.MessageGroupId = &m.Group
	}
	if m.TraceHeader != "" {
		in.MessageSystemAttributes = traceHeader(m.TraceHeader)
	}
	if x.fifo {
		in.MessageDeduplicationId = aws.String("sent")
	}
	if _, err := x.admin.sqs.SendMessage(context.Background(), in); err != nil {
		x.Fatal(err)
	}
}

// postAndBack has a letter land in the dead-letter queue, archived, restored and redriven.
func (x *fixture) postAndBack(l letter) (problem string) {
	switch l.Cause {
	case ops.CauseSent:
		x.post(x.dlq, l.In)
	case ops.CauseReceivesUsedUp:
		x.post(x.url, l.In)
		x.receive(x.url)
		time.Sleep(time.Minute)
		x.receive(x.url)
	case ops.CauseRejected:
		x.post(x.url, l.In)
		h := x.worker(x.url, x.guarded(fails(sqsonce.Reject(errCard))))
		time.Sleep(time.Minute)
		h.stop()
	}
	d := x.redriver()
	before := x.one(d)
	r := x.restore(d, x.drained(d))
	if full := r.Results[0].Err; full != nil {
		return x.wantFull(before, full)
	}
	after := x.one(d)
	want, got := shownOf(before), shownOf(after)
	if _, lost := after.Attributes[sqsonce.AttrDeadLetterSource]; !lost { // it had no room
		want.Cause, want.Reason, want.Class = got.Cause, got.Reason, got.Class
	}
	if diff := cmp.Diff(want, got); diff != "" || before.Body != after.Body || before.RecordKey == "" {
		return "listed before and after:\n" + diff
	}
	redriven, err := d.Redrive(context.Background(), noCanary)
	if full := redriven.Results[0].Err; full != nil || err != nil {
		return x.wantFull(after, errors.Join(full, err))
	}
	var mu sync.Mutex
	var handled *sqsonce.Message
	var key string
	once := x.once(x.admin)
	h := x.worker(x.url, x.guarded(func(_ context.Context, m *sqsonce.Message) (err error) {
		mu.Lock()
		defer mu.Unlock()
		handled = m
		key, err = once.Key(m)
		return err
	}))
	time.Sleep(time.Minute)
	h.stop()
	if handled == nil || key != before.RecordKey {
		return fmt.Sprintf("its consumer has %v, with the key %q; want %q", handled != nil, key, before.RecordKey)
	}
	sent := sqsonce.Message{Body: handled.Body, Group: handled.Group, TraceHeader: handled.TraceHeader, Attributes: maps.Clone(handled.Attributes)}
	delete(sent.Attributes, sqsonce.AttrRedriven)
	if _, own := l.In.Attributes[sqsonce.AttrEventKey]; !own {
		delete(sent.Attributes, sqsonce.AttrEventKey)
	}
	if l.In.Attributes == nil || len(sent.Attributes) == 0 {
		sent.Attributes = l.In.Attributes
	}
	return cmp.Diff(l.In, sent)
}

// wantFull: what is left for want of room has none, and has lost nothing.
func (x *fixture) wantFull(m *ops.Message, left error) string {
	key := len(sqsonce.AttrEventKey) + len("String") + len(m.RecordKey)
	if size := limits.MessageBytes(m.Body, m.Attributes); !errors.Is(left, opserr.ErrNoRoom) || len(m.Attributes) < limits.MaxAttributes && size+key <= mebibyte {
		return fmt.Sprintf("%v, with %d attributes and %d bytes", left, len(m.Attributes), size)
	}
	return ""
}
