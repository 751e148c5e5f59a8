package hosttest

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
)

type spanKey struct{}

// spans is a log that looks for the span of each line about a message, as a handler that adds trace IDs does.
type spans struct {
	mu      sync.Mutex
	with    int
	without []string
}

func (s *spans) Enabled(context.Context, slog.Level) bool { return true }

func (s *spans) Handle(ctx context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "message_id" {
			return true
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if ctx.Value(spanKey{}) == nil {
			s.without = append(s.without, r.Message)
		} else {
			s.with++
		}
		return false
	})
	return nil
}

func (s *spans) WithAttrs([]slog.Attr) slog.Handler { return s }

func (s *spans) WithGroup(string) slog.Handler { return s }

// A line about a message whose handler was started has the context of the Start hooks.
func TestLinesHaveTheContextOfStart(t *testing.T) {
	t.Parallel()
	for _, host := range []string{worker, function} {
		must.RunParallel(t, host, func(t *testing.T) {
			w := newFixture(t, setup{visibility: 30 * time.Second, maxReceives: 3, quiet: true})
			var book spans
			w.log = slog.New(&book)
			hooks := sqsonce.Hooks{Start: func(ctx context.Context, _ sqsonce.Delivery) context.Context {
				return context.WithValue(ctx, spanKey{}, true)
			}}
			stop := w.start(host, func(_ context.Context, m *sqsonce.Message) error {
				switch {
				case m.ReceiveCount == 1:
					return errCard
				case strings.HasPrefix(m.Body, "r"):
					return sqsonce.Reject(errCard)
				}
				return sqsonce.ErrLeaseLost
			}, hooks)
			for _, body := range []string{"rejected", "lost"} {
				must.Get(w.admin.sqs.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &w.url, MessageBody: aws.String(body)}))(t)
			}
			time.Sleep(time.Hour)
			stop()
			if len(book.without) > 0 || book.with < 4 {
				t.Errorf("%d lines with the span, want at least 4; without: %q", book.with, book.without)
			}
		})
	}
}
