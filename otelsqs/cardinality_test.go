package otelsqs_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/otelsqs"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// goldenValues returns the attributes of each metric in the golden list, as "key=value", and the number of its series.
func goldenValues(t *testing.T) (golden map[string][]string, series int) {
	t.Helper()
	text, err := os.ReadFile("testdata/metrics.txt") // see TestMetrics
	if err != nil {
		t.Fatal(err)
	}
	metric := ""
	golden = map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if attrs, ok := strings.CutPrefix(line, "  "); ok {
			series++
			golden[metric] = append(golden[metric], strings.Split(strings.TrimSpace(attrs), ",")...)
		} else {
			metric, _, _ = strings.Cut(line, " ")
		}
	}
	return golden, series
}

// However many messages there are, with IDs that no two share, no metric has a value that is not in the golden list, and they add up.
// SOAK=1 takes 100,000 messages.
func TestCardinality(t *testing.T) {
	t.Parallel()
	messages := 10_000
	if os.Getenv("SOAK") != "" {
		messages = 100_000
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, "orders", func(o *otelsqs.Options) { o.TracerProvider = noop.NewTracerProvider() })
		dead := f.create("orders-dlq", nil)
		random := rand.New(rand.NewPCG(1, 2))
		p := f.publisher()
		var all []fifo.Event
		for range messages {
			e := fifo.Event{ID: fmt.Sprint(random.Uint64()), Body: fmt.Sprint(random.Uint64())}
			if all = append(all, e); random.IntN(10) == 0 {
				all = append(all, e) // a duplicate
			}
		}
		if _, err := p.PublishAll(context.Background(), all); err != nil {
			t.Fatal(err)
		}
		if err := p.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		var started atomic.Int64
		counted := func(h sqsonce.Handler) sqsonce.Handler {
			return func(ctx context.Context, m *sqsonce.Message) error {
				started.Add(1)
				return h(ctx, m)
			}
		}
		h := counted(f.once().Handler(func(ctx context.Context, m *sqsonce.Message) error {
			time.Sleep(10 * time.Millisecond)
			err := fmt.Errorf("message %s: %w", m.ID, errCard)
			last := m.Body[len(m.Body)-1]
			switch first := m.ReceiveCount == 1; {
			case last == '0':
				return sqsonce.Reject(err)
			case last == '1' && first:
				panic(err)
			case last == '2' && first:
				return err
			case last == '3' && first:
				return sqsonce.RetryAfter(0, context.DeadlineExceeded)
			}
			return nil
		}))
		f.work(time.Hour, h, func(o *sqsworker.Options) { o.Concurrency, o.DeadLetterQueue = 100, dead })
		for range messages / 1000 {
			var records []events.SQSMessage
			for range 30 { // slow ones take all slots, and the rest is not started
				records = append(records, record(fmt.Sprint(random.Uint64()), []string{"slow", "fast"}[random.IntN(2)]))
			}
			f.invoke(counted(func(ctx context.Context, m *sqsonce.Message) error {
				if m.Body == "slow" {
					<-ctx.Done()
				}
				return ctx.Err()
			}), records...)
		}

		golden, mostSeries := goldenValues(t)
		series := 0
		metrics := map[string][]point{}
		for _, m := range f.collect() {
			_, metrics[m.Name] = points(m)
			series += len(metrics[m.Name])
			for _, p := range metrics[m.Name] {
				for _, kv := range p.attrs.ToSlice() {
					if value := fmt.Sprintf("%s=%s", kv.Key, kv.Value.String()); !slices.Contains(golden[m.Name], value) {
						t.Errorf("%s has %s, which is not in the golden list", m.Name, value)
					}
				}
			}
		}
		sum := func(metric string, with ...string) (n float64) {
			for _, p := range metrics[metric] {
				if !slices.ContainsFunc(with, func(value string) bool { return !strings.Contains(encoded(p.attrs), value) }) {
					n += p.count
				}
			}
			return n
		}
		const inWorker, inFunction = "server.address=sqs.us-east-1", "server.address=sqs.eu-west-1"
		for what, both := range map[string][2]float64{
			"handlers and deliveries":            {float64(started.Load()), sum("sqsonce.deliveries") - sum("sqsonce.deliveries", "outcome=not_started")},
			"handlers and durations":             {float64(started.Load()), sum("messaging.process.duration")},
			"events and results":                 {float64(len(all)), sum("messaging.client.sent.messages")},
			"events and messages that ended":     {float64(len(all)), sum("sqsonce.deliveries", inWorker, "outcome=done") + sum("sqsonce.deliveries", inWorker, "outcome=rejected")},
			"received by the worker and started": {sum("messaging.client.consumed.messages", inWorker), sum("sqsonce.message.receives", inWorker)},
			"records of the function and ended":  {sum("messaging.client.consumed.messages", inFunction), sum("sqsonce.deliveries", inFunction)},
		} {
			if both[0] != both[1] || both[0] == 0 {
				t.Errorf("%s: %g and %g", what, both[0], both[1])
			}
		}
		if n := sum("sqsonce.deliveries", "outcome=not_started"); series > mostSeries || n == 0 {
			t.Errorf("%d series, %g messages that were not started; want at most %d, and some", series, n, mostSeries)
		}
	})
}
