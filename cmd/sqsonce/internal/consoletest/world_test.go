package consoletest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/chromedp/chromedp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/testworld"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testlog"
	"github.com/sqsonce/sqsonce/limit"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/sqsworker"
	"github.com/sqsonce/sqsonce/status"
)

// world is AWS in memory, on 127.0.0.1, with queues, their dead-letter queues and a table; and the command `sqsonce console` as a
// process that finds nothing else.
type world struct {
	*testing.T
	stack *localstack.Stack
	store *dynamostore.Store

	mu    sync.Mutex
	count map[string]int // the console's calls, by operation

	url  string // that the console has printed, with the token
	base string // that all pages are below
	root string // its path
	err  testlog.Book
	stop func() // ends the console
}

const (
	queue, fifo       = "orders", "payments.fifo"
	dlq, fifoDLQ      = "orders-dlq", "payments-dlq.fifo"
	consumer          = "billing"
	hostile           = "<script>alert(document.domain)</script>\u202e<img src=x onerror=alert(document.domain)>"
	classOfReleased   = "card provider: status 503 for order *"
	releasedMessages  = 7
	completedMessages = 12
	crashedMessages   = 2
	startedMessages   = 5 // of which none was
)

func newWorld(t *testing.T) *world {
	t.Helper()
	if os.Getenv("AWS_ENDPOINT_URL") != "" {
		t.Setenv("AWS_ENDPOINT_URL", "") // Start would use it
	}
	stack := testworld.Start(t, func(o *localstack.Options) {
		o.Queues, o.InMemory, o.HTTP = []localstack.Queue{{Name: queue}, {Name: fifo}}, true, true
	})
	store := testworld.Store(t, stack)
	w := &world{T: t, stack: stack, store: store}
	for _, name := range []string{dlq, fifoDLQ} { // as AWS recommends: more than the queue keeps
		must.Get(stack.SQS.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{
			QueueUrl: aws.String(stack.QueueURL[name]), Attributes: map[string]string{"MessageRetentionPeriod": "1209600"},
		}))(w)
	}
	return w
}

var quiet = slog.New(slog.DiscardHandler)

var consoleURL = regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/\S*`)

// console starts the command, and returns when it has printed its URL.
func (w *world) console(flags ...string) {
	w.Helper()
	program, err := os.Executable()
	must.Do(w, err)
	cmd := exec.Command(program, append([]string{"console"}, flags...)...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "AWS_ENDPOINT_URL="+w.endpoint(), "AWS_ENDPOINT_URL_CLOUDWATCH="+w.cloudWatch(), "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test",
		"AWS_SECRET_ACCESS_KEY=test", "AWS_CONFIG_FILE="+os.DevNull, "AWS_SHARED_CREDENTIALS_FILE="+os.DevNull, "AWS_EC2_METADATA_DISABLED=true",
		"XDG_STATE_HOME="+w.TempDir(), "SQSONCE_CONSUMER="+consumer, "SQSONCE_TABLE=dedup", "USER=ann", "TZ=UTC")
	out := &testlog.Book{}
	cmd.Stdout, cmd.Stderr = out, &w.err
	must.Do(w, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	w.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-ended:
		case <-time.After(waiting):
			_ = cmd.Process.Kill()
			w.Errorf("the console does not end after SIGTERM: %s", &w.err)
		}
	})
	w.Cleanup(func() {
		w.stop()
		if w.Failed() {
			w.Logf("the console printed: %s%s", out, &w.err)
		}
	})
	testworld.Eventually(w.T, "the console prints its URL", func() bool {
		select {
		case err := <-ended:
			ended <- err
			w.Fatalf("the console ended: %v: %s%s", err, out, &w.err)
		default:
		}
		found := consoleURL.FindStringSubmatch(out.String() + w.err.String())
		if found != nil {
			w.url, w.base = found[0], found[1]+strings.TrimSuffix(cookieOf(w.T, found[0]).Path, "/")
			w.root = strings.TrimPrefix(w.base, found[1])
		}
		return found != nil
	})
}

// open opens the console's first page in a tab of its own, by the URL that was printed.
func (w *world) open() *tab {
	w.Helper()
	b := newTab(w.T)
	if status := b.load(chromedp.Navigate(w.url)); status != http.StatusOK {
		w.Fatalf("status %d\n%s", status, b.dump())
	}
	return b
}

// visit opens a page of the console in a tab.
func (w *world) visit(b *tab, path string) int {
	w.Helper()
	return b.load(chromedp.Navigate(w.base + path))
}

// reads are the operations that pages may call without being asked to do anything: they change nothing, and receive nothing.
var reads = []string{
	"GetQueueUrl", "GetQueueAttributes", "ListDeadLetterSourceQueues", "ListMessageMoveTasks", "ListQueueTags",
	"GetItem", "DescribeTable", "DescribeTimeToLive", "DescribeContinuousBackups",
	"", // a call of another service, which is refused
}

// endpoint starts a server that hands the calls of the console on and counts them, and returns its URL. The consumer has calls too.
func (w *world) endpoint() (url string) {
	w.Helper()
	to := must.Get(neturl.Parse(w.stack.URL))(w)
	w.count = map[string]int{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body) // the proxy's client must not read what its server has closed
		if err != nil {
			return // the console has gone
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		w.mu.Lock()
		w.count[op]++
		w.mu.Unlock()
		proxy.ServeHTTP(rw, r)
	}))
	w.Cleanup(s.Close)
	return s.URL
}

// calls are those of the console so far, by operation.
func (w *world) calls() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.count)
}

// acted returns the calls since before that do more than read.
func (w *world) acted(before map[string]int) (acts []string) {
	for op, n := range w.calls() {
		if n > before[op] && !slices.Contains(reads, op) {
			acts = append(acts, fmt.Sprintf("%s x%d", op, n-before[op]))
		}
	}
	slices.Sort(acts)
	return acts
}

// send sends a message of an event and returns its ID.
func (w *world) send(queue, event, body string, attrs ...string) string {
	w.Helper()
	group, _, _ := strings.Cut(event, "/")
	return testworld.Send(w, w.stack, queue, group, body, append(attrs, testworld.Event(event)...)...)
}

// key is that of the record of an event.
func (w *world) key(event string) string {
	w.Helper()
	key := must.Get(sqsonce.EventKey("orders", event))(w)
	return consumer + "#" + key
}

// put makes the record of an event.
func (w *world) put(event string, state dedup.RecordState, lastError string) {
	w.Helper()
	claim := dedup.Claim{
		Key: w.key(event), Owner: "owner-" + event, Lease: time.Minute, Retention: 29 * 24 * time.Hour, ReceiveCount: 3, NoTakeover: true,
	}
	if state == dedup.StateCrashed {
		claim.Lease, claim.Owner = 100*time.Millisecond, event+"@billing-7d9c5b6f4-x2x8k.ABCDEFGH"
	}
	l := must.Get(granted.Lease(w.store.Acquire(w.Context(), claim)))(w)
	switch state {
	case dedup.StateReleased:
		must.Do(w, w.store.Release(w.Context(), l, fmt.Errorf("%s", lastError)))
	case dedup.StateCompleted:
		must.Do(w, w.store.Complete(w.Context(), l, dedup.Result{}))
	case dedup.StateCrashed:
		testworld.Eventually(w.T, "the lease ends", func() bool { return time.Now().After(l.Until) })
	}
}

// seed fills the dead-letter queues with every state, and with what is meant to break pages.
func (w *world) seed() {
	w.Helper()
	for i := range releasedMessages {
		event := fmt.Sprintf("ord-%d", 1001+i)
		w.put(event, dedup.StateReleased, fmt.Sprintf("card provider: status 503 for order %d", 1001+i))
		w.send(dlq, event, fmt.Sprintf(`{"order":%d,"amount":"12.50"}`, 1001+i))
	}
	for i := range completedMessages {
		event := fmt.Sprintf("ord-%d", 2001+i)
		w.put(event, dedup.StateCompleted, "")
		w.send(dlq, event, `{"order":2001}`)
	}
	for i := range crashedMessages {
		event := fmt.Sprintf("ord-%d", 3001+i)
		w.put(event, dedup.StateCrashed, "")
		w.send(dlq, event, `{"order":3001}`)
	}
	for i := range startedMessages {
		w.send(dlq, fmt.Sprintf("ord-%d", 4001+i), `{"order":4001}`)
	}
}

// seedHostile adds messages whose every text is meant to break a page. They return in this order: markup, a body of 1 MiB.
func (w *world) seedHostile() (markup, large string) {
	w.Helper()
	w.put(hostile, dedup.StateReleased, hostile)
	markup = w.send(dlq, hostile, "the body: "+hostile, "name", hostile)
	const rest = len("event-id" + "String" + "large" + "event-source" + "String" + "orders") // attributes count too
	large = w.send(dlq, "large", strings.Repeat("0123456789abcdef", 1<<16)[:1<<20-rest])
	return markup, large
}

// seedGroups fills the FIFO dead-letter queue: groups of 14 and 2 messages.
func (w *world) seedGroups() {
	w.Helper()
	for group, n := range map[string]int{"customer-1": 14, "customer-2": 2} {
		for i := range n {
			event := fmt.Sprintf("%s/%d", group, i)
			w.put(event, dedup.StateReleased, "card provider: status 503")
			w.send(fifoDLQ, event, `{"payment":"`+event+`"}`)
		}
	}
}

// consume runs the consumer of the queue until the test ends, with its status handler at an address, which it returns. Its handler
// succeeds; while a message of the event "slow" is there it runs that one.
func (w *world) consume() (statusURL string) {
	w.Helper()
	worker, once := testworld.Consume(w, w.stack, w.store, queue, func(_ context.Context, m *sqsonce.Message) error {
		if m.Body == slow {
			<-w.Context().Done()
		}
		return nil
	})
	limits := must.Get(limit.New([]limit.Rule{
		{Name: "payments.of.a.provider.whose.name.is.long", Key: limit.All, Plan: limit.Plan{Rate: limit.Rate{N: 10}}}, {Name: "tenant", Plan: limit.Plan{Concurrency: 3}},
	}))(w)
	must.Do(w, limits.Pause(w.Context(), "payments.of.a.provider.whose.name.is.long", "*", time.Hour))
	server := httptest.NewServer(must.Get(status.Handler(func(o *status.Options) {
		o.Name, o.Version, o.Identifiers, o.Logger = "billing-7f9c", "v1.4.2", true, quiet
		o.Limits = map[string]*limit.Limiter{"billing": limits}
		o.Workers, o.Consumers, o.Stores = []*sqsworker.Worker{worker}, map[string]status.Consumer{consumer: once}, map[string]status.Store{"dedup": w.store}
	}))(w))
	w.Cleanup(server.Close)
	return server.URL
}

// slow is the body of a message whose handler runs until the end of the test.
const slow = "slow"

func cookieOf(t *testing.T, url string) *http.Cookie {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp := must.Get(client.Get(url))(t)
	resp.Body.Close()
	if len(resp.Cookies()) != 1 || resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s with %d cookies", resp.Status, len(resp.Cookies()))
	}
	return resp.Cookies()[0]
}
