package lambda

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testlog"
)

const (
	standardARN = "arn:aws:sqs:us-east-1:000000000000:jobs"
	fifoARN     = standardARN + ".fifo"
)

var errTest = errors.New("it failed")

type function = func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)

// decoded is a record of a standard queue, as Lambda sends it.
func decoded(id string) events.SQSMessage {
	return events.SQSMessage{
		MessageId: id, ReceiptHandle: "handle-" + id, Body: id, EventSource: "aws:sqs", EventSourceARN: standardARN, AWSRegion: "us-east-1",
		Attributes: map[string]string{"ApproximateReceiveCount": "1", "SentTimestamp": "1545082649183", "ApproximateFirstReceiveTimestamp": "1545082649185"},
	}
}

func batch(ids ...string) events.SQSEvent {
	e := events.SQSEvent{}
	for _, id := range ids {
		e.Records = append(e.Records, decoded(id))
	}
	return e
}

// fifoBatch is an event of a FIFO queue. An ID begins with its group: "a1", "a2", "b1".
func fifoBatch(ids ...string) events.SQSEvent {
	e := batch(ids...)
	for i := range e.Records {
		e.Records[i].EventSourceARN = fifoARN
		e.Records[i].Attributes["MessageGroupId"] = ids[i][:1]
	}
	return e
}

func numbered(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("m%05d", i)
	}
	return ids
}

func wrap(t testing.TB, h sqsonce.Handler, optFns ...func(*Options)) function {
	t.Helper()
	f := must.Get(Wrap(h, optFns...))(t)
	return f
}

// failures returns the IDs that a response names, joined.
func failures(r events.SQSEventResponse) string {
	var ids []string
	for _, f := range r.BatchItemFailures {
		ids = append(ids, f.ItemIdentifier)
	}
	return strings.Join(ids, " ")
}

// invoke calls f, wants no error and returns the failed IDs.
func invoke(t testing.TB, f function, ctx context.Context, e events.SQSEvent) string {
	t.Helper()
	r := must.Get(f(ctx, e))(t)
	if r.BatchItemFailures == nil {
		t.Error("BatchItemFailures is nil, which is null in JSON")
	}
	return failures(r)
}

// handlers has a handler for each message ID; "" is for all others.
type handlers map[string]sqsonce.Handler

func (hs handlers) handle(ctx context.Context, m *sqsonce.Message) error {
	if h := hs[m.ID]; h != nil {
		return h(ctx, m)
	}
	if h := hs[""]; h != nil {
		return h(ctx, m)
	}
	return nil
}

func fails(err error) sqsonce.Handler {
	return func(context.Context, *sqsonce.Message) error { return err }
}

// takes is a handler that takes d, or until its context ends.
func takes(d time.Duration) sqsonce.Handler {
	return func(ctx context.Context, _ *sqsonce.Message) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ignores is a handler that takes d and ignores its context.
func ignores(d time.Duration) sqsonce.Handler {
	return func(context.Context, *sqsonce.Message) error {
		time.Sleep(d)
		return nil
	}
}

// runs records the starts of a handler.
type runs struct {
	mu      sync.Mutex
	started []string
	active  int
	most    int // at once
}

func (r *runs) wrap(h sqsonce.Handler) sqsonce.Handler {
	return func(ctx context.Context, m *sqsonce.Message) error {
		r.mu.Lock()
		r.started = append(r.started, m.ID)
		r.active++
		r.most = max(r.most, r.active)
		r.mu.Unlock()
		defer func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.active--
		}()
		return h(ctx, m)
	}
}

func (r *runs) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.started...)
}

func (r *runs) count() int { return len(r.list()) }

// timeout is a context with a deadline after d, as the runtime's.
func timeout(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// settlements records how the host settled messages.
type settlements struct {
	mu   sync.Mutex
	dead []bool
	at   time.Time // of the last settlement
}

func (s *settlements) note(dead bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead, s.at = append(s.dead, dead), time.Now()
}

// want compares all settlements.
func (s *settlements) want(t testing.TB, want ...bool) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.dead, want) {
		t.Errorf("settled with %v, want %v", s.dead, want)
	}
}

func (s *settlements) last() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

type logBook struct{ testlog.Book }

func (b *logBook) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (b *logBook) count(s string) int { return strings.Count(b.String(), s) }
