package hosttest

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/must"
)

type spanKey struct{}

// spans is a log that writes into each line whether its context has a span, as a handler that adds trace IDs does.
type spans struct{ slog.Handler }

func (s spans) Handle(ctx context.Context, r slog.Record) error {
	r.AddAttrs(slog.Bool("span", ctx.Value(spanKey{}) != nil))
	return s.Handler.Handle(ctx, r)
}

func (s spans) WithAttrs(attrs []slog.Attr) slog.Handler { return spans{s.Handler.WithAttrs(attrs)} }

// A host's line about a handler has the key of dedup's lines, also where that is from an envelope: without the consumer. Each line about
// a message whose handler was started has the context of the Start hooks.
func TestLinesOfAnEventHaveOneKey(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"CloudEvent in SNS": inSNS(cloudEventBody), "EventBridge": eventBridgeBody, "none": "{}"} {
		for _, host := range []string{worker, function} {
			must.RunParallel(t, name+"/"+host, func(t *testing.T) {
				w := newFixture(t, setup{visibility: 30 * time.Second, maxReceives: 3, quiet: true})
				var book bytes.Buffer
				w.log = slog.New(spans{slog.NewJSONHandler(&book, nil)})
				once := must.Get(dedup.New(memstore.New(), consumer))(t)
				var record string
				var err error
				stop := w.start(host, sqsonce.OpenEnvelope(once.Handler(func(_ context.Context, m *sqsonce.Message) error {
					if record, err = once.Key(m); err != nil {
						return err
					}
					return []error{errCard, sqsonce.ErrLeaseLost, sqsonce.Reject(errCard)}[m.ReceiveCount-1]
				})), sqsonce.Hooks{Start: func(ctx context.Context, _ sqsonce.Delivery) context.Context {
					return context.WithValue(ctx, spanKey{}, true)
				}})
				must.Get(w.admin.sqs.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &w.url, MessageBody: aws.String(body)}))(t)
				time.Sleep(time.Hour)
				stop()
				seen := map[string]bool{"handler failed": false, "message sent to the dead-letter queue": false}
				for d := json.NewDecoder(&book); d.More(); {
					var line struct {
						Msg, Key string
						Message  string `json:"message_id"`
						Span     bool
					}
					must.Do(t, d.Decode(&line))
					if line.Message != "" && !line.Span {
						t.Errorf("without the context of Start: %s", line.Msg)
					}
					_, text, _ := strings.Cut(line.Msg, ": ")
					if _, ok := seen[text]; !ok {
						continue
					}
					seen[text] = true
					if consumer+"#"+line.Key != record {
						t.Errorf("%s: key %q, want that of the record %q", line.Msg, line.Key, record)
					}
				}
				for text, ok := range seen {
					if !ok {
						t.Errorf("no line %q", text)
					}
				}
			})
		}
	}
}

func init() {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what is logged without a logger of the test's own is not printed
	debug.SetGCPercent(400)                        // simulations allocate much and keep little: a quarter of their time
}

// private is in the bodies of messages, and must be in no line of a log, at any level.
const private = "4929-1357"

// noBodies is a log in which lines must not have bodies.
type noBodies struct{ *testing.T }

func (n noBodies) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(private)) {
		n.Errorf("a line has a message's body: %s", line)
	}
	return len(line), nil
}
