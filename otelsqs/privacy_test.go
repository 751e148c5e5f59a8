package otelsqs_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/fifo"
	need "github.com/sqsonce/sqsonce/internal/must" // must is in the examples
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// tap keeps what is written to it, or what SQS answers.
type tap struct {
	http.RoundTripper
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *tap) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	asked, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(asked))
	resp, err := b.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	answer = quoteHandles(asked, answer)
	_, _ = b.Write(answer)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(answer)), int64(len(answer))
	resp.Header.Del("Content-Length")
	return resp, nil
}

// quoteHandles has failed entries say what SQS says of them.
// https://github.com/bbc/sqs-consumer/issues/83, https://github.com/aws/aws-sdk-java-v2/issues/3101
func quoteHandles(asked, answer []byte) []byte {
	var in struct {
		Entries []struct{ Id, ReceiptHandle string }
	}
	var out map[string]any
	if json.Unmarshal(asked, &in) != nil || json.Unmarshal(answer, &out) != nil {
		return answer
	}
	failed, _ := out["Failed"].([]any)
	for _, f := range failed {
		entry := f.(map[string]any)
		for _, e := range in.Entries {
			if e.Id == entry["Id"] && e.ReceiptHandle != "" {
				entry["Message"] = fmt.Sprintf("Value %s for parameter ReceiptHandle is invalid. Reason: the receipt handle %q has expired.", e.ReceiptHandle, e.ReceiptHandle)
			}
		}
	}
	if len(failed) == 0 {
		return answer
	}
	text, _ := json.Marshal(out)
	return text
}

// Marks of what must be nowhere: in bodies and in values of attributes.
const bodyMark, numberMark, valueMark = "4929-1357", "77665544332211", "secret-of-a-value"

func (f *fixture) secretEvent(id string) fifo.Event {
	e := fifo.Event{ID: id, Body: `{"card":"` + bodyMark + `","amount":` + numberMark + `}`, Attributes: map[string]sqsonce.Attribute{
		"note": {Type: "String", String: valueMark}, "bytes": {Type: "Binary", Binary: []byte(valueMark)},
	}}
	if strings.HasSuffix(f.url, ".fifo") {
		e.Group = "g" + id
	}
	return e
}

// secretHandler ends in each way, by the event's ID.
func secretHandler(ctx context.Context, m *sqsonce.Message) error {
	switch m.Attributes[sqsonce.AttrEventID].String {
	case "fails":
		return errCard
	case "rejected", "rejected-2":
		return sqsonce.Reject(errCard)
	case "decoded":
		_, err := sqsonce.Decode[struct{ Card, Amount int8 }](m)
		return err
	case "number":
		_, err := sqsonce.Decode[struct{ Amount int8 }](m)
		return err
	case "text":
		_, err := sqsonce.Decode[[]string](m)
		return err
	case "panics":
		panic("oops")
	case "unavailable":
		return sqsonce.Unavailable(errCard)
	case "retried":
		return sqsonce.RetryAfter(time.Second, errCard)
	case "lost":
		return sqsonce.ErrLeaseLost
	case "slow":
		<-ctx.Done()
		return context.Cause(ctx)
	case "stuck":
		time.Sleep(5 * time.Minute)
	}
	return nil
}

// No body, no value of an attribute and no receipt handle is in a log line at DEBUG, a span or a metric, however messages and events
// end.
func TestNothingPrivate(t *testing.T) {
	t.Parallel()
	ids := []string{
		"done", "fails", "rejected", "rejected-2", "decoded", "number", "text", "panics", "unavailable", "retried", "lost", "slow", "stuck",
	}
	consumers := map[string]func(f *fixture, h sqsonce.Handler, dead string){
		"worker": func(f *fixture, h sqsonce.Handler, dead string) {
			f.work(time.Minute, h, func(o *sqsworker.Options) {
				o.DeadLetterQueue, o.Concurrency, o.VisibilityTimeout, o.StopTimeout = dead, 20, 10*time.Second, -1
				o.Timeout = func(m *sqsonce.Message) time.Duration { return 20 * time.Second }
			})
		},
		"function": func(f *fixture, h sqsonce.Handler, dead string) {
			f.mapped(time.Minute, h, func(o *lambda.Options) { o.DeadLetterQueue = dead })
		},
	}
	for _, queue := range []string{"orders", "orders.fifo"} {
		for host, consume := range consumers {
			t.Run(queue+" "+host, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t, queue)
					log, wire := &tap{}, &tap{RoundTripper: f.server}
					f.quiet = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
					f.sqs = sqs.New(f.sqs.Options(), func(o *sqs.Options) { o.HTTPClient = &http.Client{Transport: wire} })
					dead := f.create(strings.Replace(queue, "orders", "dead", 1), nil)
					f.publishSecrets(ids)
					f.server.Set(fault.Plan{Rules: []fault.Rule{
						{Op: "SendMessage", Nth: 1, Times: 2, Do: fault.Error, Code: "InvalidMessageContents"},
						{Op: "DeleteMessageBatch", Nth: 2, Times: 2, Do: fault.FailEntries, Code: "InternalError"},
						{Op: "ChangeMessageVisibilityBatch", Nth: 1, Times: 2, Do: fault.FailEntries, Code: "ReceiptHandleIsInvalid"},
						{Op: "ChangeMessageVisibilityBatch", Nth: 4, Do: fault.Error, Code: "InternalError"},
						{Op: "ReceiveMessage", Nth: 3, Do: fault.LoseReply},
					}})
					store := &failing{Store: memstore.New(), renew: sqsonce.Unavailable(errCard), complete: sqsonce.Unavailable(errCard)}
					consume(f, f.onceOn(store, func(o *dedup.Options) { o.LeaseDuration = 5 * time.Second }).Handler(secretHandler), dead)
					consume(f, f.once().Handler(secretHandler), dead)
					time.Sleep(time.Hour)

					log.mu.Lock()
					defer log.mu.Unlock()
					all := map[string]string{"log": log.text.String(), "spans": fmt.Sprintf("%+v", f.spans.GetSpans()), "metrics": fmt.Sprintf("%+v", f.collect())}
					private := []string{
						bodyMark, numberMark, valueMark,
						base64.StdEncoding.EncodeToString([]byte(valueMark)), strings.Trim(fmt.Sprint([]byte(valueMark)), "[]"),
					}
					marks := len(private)
					wire.mu.Lock()
					defer wire.mu.Unlock()
					for _, m := range regexp.MustCompile(`"ReceiptHandle":"([^"]+)"`).FindAllStringSubmatch(wire.text.String(), -1) {
						private = append(private, m[1])
					}
					if n := len(private) - marks; n < len(ids) {
						t.Errorf("%d receipt handles, want at least %d", n, len(ids))
					}
					for where, text := range all {
						for _, p := range private {
							if i := strings.Index(text, p); i >= 0 {
								t.Errorf("%s: %s in ...%s", where, p, text[max(0, i-300):i+len(p)])
							}
						}
					}
					for _, level := range []string{"DEBUG", "WARN", "ERROR"} {
						if !strings.Contains(all["log"], "level="+level) {
							t.Errorf("no line at %s", level)
						}
					}
					for _, component := range []string{"fifo: ", "dedup: ", map[string]string{"worker": "sqsworker: ", "function": "lambda: "}[host]} {
						if strings.Count(all["log"], component) < 3 {
							t.Errorf("%d lines of %q", strings.Count(all["log"], component), component)
						}
					}
				})
			})
		}
	}
}

// publishSecrets publishes an event of each ID, and others that fail in each way.
func (f *fixture) publishSecrets(ids []string) {
	f.Helper()
	p := f.publisher()
	ctx := context.Background()
	refused := 0
	try := func(e fifo.Event) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if _, err := p.Publish(ctx, e); err != nil {
			refused++
		}
	}
	f.server.Set(fault.Plan{Rules: []fault.Rule{
		{Op: "SendMessageBatch", Nth: 1, Do: fault.LoseReply}, {Op: "SendMessageBatch", Nth: 2, Do: fault.Error, Code: "ThrottlingException"},
	}})
	for _, id := range append(ids, "done") {
		try(f.secretEvent(id))
	}
	other := f.secretEvent("done")
	other.Body += " "
	try(other) // a conflict, on a FIFO queue
	for _, bad := range []func(e *fifo.Event){
		func(e *fifo.Event) { e.ID = "" },
		func(e *fifo.Event) { e.Body += "\x00" },
		func(e *fifo.Event) { e.Body += strings.Repeat("x", 1<<20) },
		func(e *fifo.Event) {
			e.Attributes["bad"] = sqsonce.Attribute{Type: "String", String: valueMark + "\x00"}
		},
		func(e *fifo.Event) { e.Attributes["bad"] = sqsonce.Attribute{Type: "Number", String: valueMark} },
		func(e *fifo.Event) { e.Attributes["bad"] = sqsonce.Attribute{Type: "Boolean", String: valueMark} },
	} {
		e := f.secretEvent("bad")
		bad(&e)
		try(e)
	}
	for _, rule := range []fault.Rule{
		{Do: fault.FailEntries, Code: "InvalidMessageContents"}, {Do: fault.Error, Code: "AccessDenied"}, {Do: fault.LoseReply}, {Do: fault.Reset},
	} {
		rule.Op, rule.Prob = "SendMessageBatch", 1
		f.server.Set(fault.Plan{Rules: []fault.Rule{rule}})
		try(f.secretEvent(fmt.Sprint("refused-", rule.Code, rule.Do)))
		need.Get(p.Enqueue(ctx, f.secretEvent(fmt.Sprint("enqueued-", rule.Code, rule.Do))))(f)
		time.Sleep(10 * time.Minute)
	}
	f.server.Set(fault.Plan{})
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_ = p.Close(ended) // the failures of what was enqueued
	if refused < 10 {
		f.Errorf("%d events failed, want at least 10", refused)
	}
}
