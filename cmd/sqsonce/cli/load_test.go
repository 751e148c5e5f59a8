package cli

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
)

const (
	loadBody = 4 << 10
	mostPage = 100 << 10 // bytes of a page
)

// loaded is how many messages the tests of a large queue have.
func loaded() int {
	if os.Getenv("SOAK") != "" {
		return 100_000
	}
	return 3_000
}

// load sends n messages of 4 KiB to a dead-letter queue, of so many classes, on FIFO in groups of 20. Every tenth has a record.
func (w *world) load(queue string, n, classes int) (last string) {
	w.Helper()
	body, url := strings.Repeat("b", loadBody), w.stack.QueueURL[queue]
	for at := 0; at < n; at += 10 {
		in := &sqs.SendMessageBatchInput{QueueUrl: &url}
		for i := at; i < min(n, at+10); i++ {
			id := strconv.Itoa(i)
			text := func(s string) sqstypes.MessageAttributeValue {
				return sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: &s}
			}
			e := sqstypes.SendMessageBatchRequestEntry{Id: &id, MessageBody: &body, MessageAttributes: map[string]sqstypes.MessageAttributeValue{
				sqsonce.AttrEventID: text(id), sqsonce.AttrEventSource: text("orders"),
				sqsonce.AttrRejectReason: text(fmt.Sprintf("order %d: the provider says %s", i, strings.Repeat("x", 1+i%classes/100)+strings.Repeat("y", i%classes%100))),
			}}
			if strings.HasSuffix(queue, ".fifo") {
				e.MessageGroupId, e.MessageDeduplicationId = aws.String("g"+strconv.Itoa(i/20)), &id
			}
			in.Entries = append(in.Entries, e)
		}
		out, err := w.stack.SQS.SendMessageBatch(context.Background(), in)
		if err != nil || len(out.Failed) > 0 {
			w.Fatal(err, out)
		}
		last = *out.Successful[0].MessageId
		claim := dedup.Claim{Key: consumer + "#orders|" + strconv.Itoa(at), Owner: "o", Lease: lease, Retention: 29 * 24 * time.Hour}
		l, err := granted.Lease(w.store.Acquire(context.Background(), claim))
		w.must(err)
		w.must(w.store.Release(context.Background(), l, errFor(strconv.Itoa(at))))
	}
	return last
}

// meter is outside of the bubble, where time is virtual: it has the time that things take, and the most that the heap was.
type meter struct {
	now  atomic.Int64
	peak atomic.Uint64
}

func measure(t *testing.T) *meter {
	m, begun, ended := &meter{}, time.Now(), make(chan struct{})
	go func() {
		for i := 0; ; i++ {
			select {
			case <-ended:
				return
			case <-time.After(5 * time.Millisecond):
			}
			if m.now.Store(int64(time.Since(begun))); i%20 == 0 {
				var s runtime.MemStats
				runtime.ReadMemStats(&s)
				m.peak.Store(max(m.peak.Load(), s.HeapAlloc))
			}
		}
	}()
	t.Cleanup(func() { close(ended) })
	return m
}

func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// lap logs how long something took since the last time.
func (m *meter) lap(w *world, what string, f func()) {
	w.Helper()
	before := liveHeap()
	m.peak.Store(before)
	began := m.now.Load()
	f()
	took := time.Duration(m.now.Load() - began)
	w.Logf("%s: %s, %d MB above what there was at the most", what, took.Round(time.Millisecond), (m.peak.Load()-min(before, m.peak.Load()))>>20)
}

// dlq ls prints a large queue: by class as many lines as there are classes, and each message once where that is asked for.
func TestListLoad(t *testing.T) {
	n := loaded()
	m := measure(t)
	bubble(t, func(w *world) {
		w.load("orders-dlq", n, 300)
		args := []string{"dlq", "ls", "--queue", "orders", "--consumer", consumer, "--table", "dedup", "--limit", "-1"}
		for _, tt := range []struct {
			flags []string
			width int
			lines int
		}{{nil, 0, 300}, {nil, 120, 0}, {[]string{"--messages"}, 0, n}, {[]string{"--messages"}, 120, 0}, {[]string{"--json"}, 0, 1}, {[]string{"--json", "--messages"}, 0, 1}} {
			var got result
			w.width = tt.width
			m.lap(w, fmt.Sprint("ls ", tt.flags, " width ", tt.width), func() { got = w.run(append(args, tt.flags...)...) })
			lines := strings.Count(got.out, "\n")
			if got.code != exitDone || tt.lines > 0 && lines != tt.lines || !strings.Contains(got.err, strconv.Itoa(n)+" messages, all that there are") {
				t.Errorf("%v: exit %d, %d lines, %s", tt.flags, got.code, lines, got.err)
			}
			t.Logf("%d lines, %d bytes", lines, len(got.out))
		}
		for _, message := range w.stack.MemSQS().Messages("orders-dlq") {
			if message.InFlight || message.ReceiveCount != 6 {
				t.Fatalf("hidden %t, %d receives", message.InFlight, message.ReceiveCount)
			}
		}
	})
}
