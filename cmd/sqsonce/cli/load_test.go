package cli

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
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
	"github.com/sqsonce/sqsonce/status"
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

// The pages of a large dead-letter queue are small, what a look keeps of it is bounded, and each message is received, given back
// and joined once. SOAK=1 takes 100,000 messages.
func TestConsoleLoad(t *testing.T) {
	n := loaded()
	for _, tt := range []struct {
		name, queue string
		classes     int
		read        int
	}{
		{"300 classes", "orders", 300, n},
		{"one class", "orders", 1, n},
		{"FIFO", "orders.fifo", 300, n / 2}, // in groups of 20, of which SQS shows ten
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := measure(t)
			bubble(t, func(w *world) {
				dlq := strings.Replace(tt.queue, "orders", "orders-dlq", 1)
				w.load(dlq, n, tt.classes)
				b := w.browse(true)
				b.server.ServeHTTP(discard{}, b.request("GET", "/", nil)) // parses what is parsed once
				before, calls := liveHeap(), b.called()
				m.lap(w, "look", func() {
					if got := b.post("/dlq/"+tt.queue+"/look", "limit", "100000"); got.code != http.StatusSeeOther {
						t.Fatalf("%d: %s", got.code, got.text)
					}
				})
				kept := int(liveHeap() - min(before, liveHeap()))
				if most := 64<<20 + 2000*n; kept > most {
					t.Errorf("the look keeps %d bytes, want %d at most", kept, most)
				}
				t.Logf("kept: %d MB", kept>>20)
				for op, most := range map[string]int{"ReceiveMessage": tt.read/10 + 2, "ChangeMessageVisibilityBatch": tt.read / 10, "GetItem": tt.read} {
					if got := b.called()[op] - calls[op]; got > most || got < tt.read/10 {
						t.Errorf("%d calls of %s, want %d", got, op, most)
					}
				}
				if w.hidden(dlq) != 0 {
					t.Errorf("%d are hidden", w.hidden(dlq))
				}
				var page answer
				show := func(path string) answer {
					t.Helper()
					m.lap(w, path, func() { page = b.get(path) })
					if page.code != http.StatusOK || len(page.body) > mostPage {
						t.Errorf("%s: %d, %d bytes: %.500s", path, page.code, len(page.body), page.text)
					}
					return page
				}
				path := "/dlq/" + tt.queue
				first := show(path)
				if says := "Read " + thousands(tt.read) + " "; !strings.Contains(first.text, says) {
					t.Errorf("no %q in %.2000s", says, first.text)
				}
				if says := "Behind " + thousands(n-tt.read) + " behind them"; tt.read < n && !strings.Contains(first.text, says) {
					t.Errorf("no %q in %.2000s", says, first.text)
				}
				if tt.classes > 100 {
					show(path + "?page=2")
				}
				class := b.find(path+`/class/[0-9a-f]{6}\?state=[a-z]+`, first)
				listed := show(class)
				messages, err := strconv.Atoi(strings.ReplaceAll(ofMessages.FindStringSubmatch(listed.text)[1], ",", ""))
				w.must(err)
				show(class + "&page=" + strconv.Itoa((messages+99)/100))
				show(path + "/" + messageID.FindString(listed.body))
				show("/")
				show("/fragment/look/" + tt.queue)
				var plan answer
				id := regexp.MustCompile(`class/([0-9a-f]{6})\?state=([a-z]+)`).FindStringSubmatch(class)
				m.lap(w, "plan", func() { plan = b.plan("op", "redrive", "queue", tt.queue, "class", id[1], "state", id[2]) })
				if len(plan.body) > mostPage || !strings.Contains(plan.text, "Redrive") {
					t.Errorf("the plan: %d bytes: %.500s", len(plan.body), plan.text)
				}
				show(plan.path)
				if w.hidden(dlq) != 0 {
					t.Errorf("after the plan %d are hidden", w.hidden(dlq))
				}
				runtime.KeepAlive(b)
			})
		})
	}
}

var ofMessages = regexp.MustCompile(`Messages 1 to [0-9]+ of ([0-9,]+)`)

// thousands is n as a page shows it.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}

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

// top of 512 workers has a row for each, asks each twice, and keeps nothing but what they said last.
func TestTopLoad(t *testing.T) {
	m := measure(t)
	bubble(t, func(w *world) {
		w.workers = map[string]func() status.Report{}
		var urls []string
		for i := range 512 {
			host := "w" + strconv.Itoa(i)
			w.workers[host] = w.working(host, "orders", 5)
			urls = append(urls, "http://"+host)
		}
		args := []string{"top", "--worker", strings.Join(urls, ","), "--queue", "orders"}
		var got result
		m.lap(w, "top --once", func() { got = w.run(append(args, "--once")...) })
		if lines := strings.Count(got.out, "\n"); got.code != exitDone || lines < 512 || lines > 520 {
			t.Errorf("exit %d, %d lines: %.300s", got.code, lines, got.err)
		}
		w.width, w.size = 120, func() (int, int) { return 120, 40 }
		m.lap(w, "top on a terminal", func() { got = w.run(append(args, "--once")...) })
		before := liveHeap()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		m.lap(w, "two minutes of top", func() { got = w.runIn(ctx, append([]string{"top", "--json"}, args[1:]...)...) })
		snapshots := strings.Count(got.out, "\n")
		if snapshots < 59 || snapshots > 61 {
			t.Errorf("%d snapshots", snapshots)
		}
		size := len(got.out)
		got = result{}
		if grown := int(liveHeap()) - int(before); grown > 8<<20 {
			t.Errorf("%d bytes more after two minutes", grown)
		} else {
			t.Logf("%d KB more after two minutes, %d KB of JSON each time", grown>>10, size/snapshots>>10)
		}
	})
}
