package hosttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync/atomic"
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

// keepsFirst is a store that refuses the first release.
type keepsFirst struct {
	*memstore.Store
	released atomic.Bool
}

func (k *keepsFirst) Release(ctx context.Context, l dedup.Lease, cause error) error {
	if !k.released.Swap(true) {
		return &sqsonce.OptionError{Package: "store", Field: "error", Problem: "is refused"}
	}
	return k.Store.Release(ctx, l, cause)
}

// A host's line about a handler has the key of dedup's lines, without the consumer, also where that is from an envelope or a key
// function. All have the message's ID, so that either line leads to the other. Each line about a message whose handler was started has
// the context of the Start hooks.
func TestLinesOfAnEventHaveOneKey(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"CloudEvent in SNS": inSNS(cloudEventBody), "EventBridge": eventBridgeBody, "none": "{}", "function": eventBridgeBody} {
		for _, host := range []string{worker, function} {
			must.RunParallel(t, name+"/"+host, func(t *testing.T) {
				w := newFixture(t, setup{visibility: 30 * time.Second, maxReceives: 9, quiet: true})
				var book bytes.Buffer
				w.log = slog.New(spans{slog.NewJSONHandler(&book, nil)})
				once, err := dedup.New(&keepsFirst{Store: memstore.New()}, consumer, func(o *dedup.Options) {
					if o.Logger = w.log; name == "function" {
						o.Key = func(m *sqsonce.Message) (string, error) { return "own|" + m.ID, nil }
					}
				})
				must.Do(t, err)
				var record string
				runs := 0
				stop := w.start(host, sqsonce.OpenEnvelope(once.Handler(func(_ context.Context, m *sqsonce.Message) error {
					if record, err = once.Key(m); err != nil {
						return err
					}
					runs++
					return []error{errCard, sqsonce.ErrLeaseLost, sqsonce.Reject(errCard)}[runs-1]
				})), sqsonce.Hooks{Start: func(ctx context.Context, _ sqsonce.Delivery) context.Context {
					return context.WithValue(ctx, spanKey{}, true)
				}})
				must.Get(w.admin.sqs.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &w.url, MessageBody: aws.String(body)}))(t)
				time.Sleep(time.Hour)
				stop()
				seen := map[string]bool{"handler failed": false, "message sent to the dead-letter queue": false, "record not released, the event waits until its lease ends": false}
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
					pkg, text, _ := strings.Cut(line.Msg, ": ")
					if _, ok := seen[text]; !ok {
						continue
					}
					seen[text] = true
					if pkg != "dedup" {
						line.Key = consumer + "#" + line.Key
					}
					if line.Key != record || line.Message == "" {
						t.Errorf("%s: key %q of message %q, want that of the record %q", line.Msg, line.Key, line.Message, record)
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

// narrow is a store with a pool of connections to a server that allows some.
type narrow struct {
	*memstore.Store
	most, allowed int
}

func (n narrow) MaxOpenConnections() int { return n.most }
func (n narrow) ServerConnections() int  { return n.allowed }

// One line says that a pool has fewer connections than its host runs handlers, and one that it may open more than the server allows. A
// pool without a limit opens one for each handler.
func TestSmallPoolIsSaid(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ most, allowed, few, many int }{{}, {most: 1, few: 1}, {most: 10, allowed: 10}, {most: 10, allowed: 9, many: 1},
		{allowed: 1, many: 1}, {allowed: 100}} {
		for _, host := range []string{worker, function} {
			must.RunParallel(t, fmt.Sprintf("%d of %d/%s", tt.most, tt.allowed, host), func(t *testing.T) {
				w := newFixture(t, setup{visibility: 30 * time.Second, maxReceives: 3, quiet: true})
				var book bytes.Buffer
				w.log = slog.New(slog.NewTextHandler(&book, nil))
				once := must.Get(dedup.New(narrow{memstore.New(), tt.most, tt.allowed}, consumer, func(o *dedup.Options) { o.Logger = w.log }))(t)
				for range 2 {
					must.Get(w.admin.sqs.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &w.url, MessageBody: aws.String("{}")}))(t)
				}
				stop := w.start(host, once.Handler(func(context.Context, *sqsonce.Message) error { return nil }))
				time.Sleep(time.Minute)
				stop()
				few, many := strings.Count(book.String(), "connections=1 concurrency="), strings.Count(book.String(), " server_connections=")
				s := once.Stats()
				if few != tt.few || many != tt.many || s.Connections != int64(tt.most) || s.ServerConnections != int64(tt.allowed) {
					t.Errorf("%d and %d lines, want %d and %d; %+v\n%s", few, many, tt.few, tt.many, s, &book)
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
