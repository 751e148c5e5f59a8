package otelsqs_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/semconv/v1.43.0/messagingconv"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/sqsworker"
)

func (f *fixture) collect() (all []metricdata.Metrics) {
	f.Helper()
	var data metricdata.ResourceMetrics
	if err := f.reader.Collect(context.Background(), &data); err != nil {
		f.Fatal(err)
	}
	for _, scope := range data.ScopeMetrics {
		all = append(all, scope.Metrics...)
	}
	slices.SortFunc(all, func(a, b metricdata.Metrics) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// point is a data point of any kind: what it counts is the sum of a counter, or the number of a histogram's values.
type point struct {
	attrs attribute.Set
	count float64
}

func points(m metricdata.Metrics) (kind string, all []point) {
	add := func(attrs attribute.Set, count float64) { all = append(all, point{attrs, count}) }
	switch d := m.Data.(type) {
	case metricdata.Sum[int64]:
		kind = "counter"
		if !d.IsMonotonic {
			kind = "updowncounter"
		}
		for _, p := range d.DataPoints {
			add(p.Attributes, float64(p.Value))
		}
	case metricdata.Gauge[float64]:
		kind = "gauge"
		for _, p := range d.DataPoints {
			add(p.Attributes, p.Value)
		}
	case metricdata.Histogram[float64]:
		kind = fmt.Sprint("histogram ", d.DataPoints[0].Bounds)
		for _, p := range d.DataPoints {
			add(p.Attributes, float64(p.Count))
		}
	case metricdata.Histogram[int64]:
		kind = fmt.Sprint("histogram ", d.DataPoints[0].Bounds)
		for _, p := range d.DataPoints {
			add(p.Attributes, float64(p.Count))
		}
	default:
		kind = fmt.Sprintf("%T", d)
	}
	slices.SortFunc(all, func(a, b point) int { return strings.Compare(encoded(a.attrs), encoded(b.attrs)) })
	return kind, all
}

func encoded(s attribute.Set) string { return s.Encoded(attribute.DefaultEncoder()) }

// Names, types, units, buckets, attributes and their values are stable: a change is a breaking one. What is counted is in
// [TestCardinality]: it is not the same in each run.
func TestMetrics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, "orders")
		f.publish("1", "2")
		dead := f.create("orders-dlq", nil)
		h := f.once().Handler(func(_ context.Context, m *sqsonce.Message) error {
			switch {
			case m.Attributes[sqsonce.AttrEventID].String == "2":
				return sqsonce.Reject(errCard)
			case m.ReceiveCount == 1:
				return sqsonce.RetryAfter(time.Second, errCard)
			}
			return nil
		})
		ctx, cancel := context.WithCancel(context.Background())
		w, err := sqsworker.New(f.sqs, f.url, h, f.tel.Worker, func(o *sqsworker.Options) { o.Logger, o.DeadLetterQueue = f.quiet, dead })
		if err != nil {
			t.Fatal(err)
		}
		stopped := make(chan error)
		go func() { stopped <- w.Run(ctx) }()
		p := f.publisher()
		if _, err := p.Publish(context.Background(), fifo.Event{}); err == nil {
			t.Error("an event without an ID was published")
		}
		time.Sleep(12 * time.Second)
		f.invoke(f.once().Handler(func(_ context.Context, m *sqsonce.Message) error {
			if m.ID == "8" {
				return errCard
			}
			return nil
		}), record("8", ""), record("9", ""))
		var b strings.Builder
		for _, m := range f.collect() {
			kind, all := points(m)
			fmt.Fprintf(&b, "%s %s %s\n", m.Name, kind, m.Unit)
			for _, p := range all {
				fmt.Fprintf(&b, "  %s\n", encoded(p.attrs))
			}
		}
		compare(t, "metrics", b.String())
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
		for _, m := range f.collect() { // what was asked of them is no longer there
			if _, all := points(m); strings.HasPrefix(m.Name, "sqsonce.worker.") && len(all) > 0 || strings.HasPrefix(m.Name, "sqsonce.publisher.") && len(all) > 0 {
				t.Errorf("%s is reported after the end", m.Name)
			}
		}
	})
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name + ".txt"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("not what %s has:\n%s\nwant:\n%s", file, got, want)
	}
}

// The metrics of the conventions have their names and units.
func TestMetricsOfTheConventions(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/metrics.txt") // see TestMetrics
	if err != nil {
		t.Fatal(err)
	}
	for name, unit := range map[string]string{
		messagingconv.ProcessDuration{}.Name():         messagingconv.ProcessDuration{}.Unit(),
		messagingconv.ClientOperationDuration{}.Name(): messagingconv.ClientOperationDuration{}.Unit(),
		messagingconv.ClientConsumedMessages{}.Name():  messagingconv.ClientConsumedMessages{}.Unit(),
		messagingconv.ClientSentMessages{}.Name():      messagingconv.ClientSentMessages{}.Unit(),
	} {
		found := slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool {
			return strings.HasPrefix(line, name+" ") && strings.HasSuffix(line, " "+unit)
		})
		if !found {
			t.Errorf("no metric %s in %s", name, unit)
		}
	}
}

// However many messages there are, with IDs that no two share, there is a small number of series, and they add up.
func TestCardinality(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const messages = 3_000
		f := newFixture(t, "orders")
		random := rand.New(rand.NewPCG(1, 2))
		p := f.publisher()
		var events []fifo.Event
		for range messages {
			events = append(events, fifo.Event{ID: fmt.Sprint(random.Uint64()), Body: fmt.Sprint(random.Uint64())})
		}
		if _, err := p.PublishAll(context.Background(), events); err != nil {
			t.Fatal(err)
		}
		if err := p.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		started := 0
		f.work(10*time.Minute, f.once().Handler(func(ctx context.Context, m *sqsonce.Message) error {
			if random.IntN(10) == 0 {
				return fmt.Errorf("message %s: %w", m.ID, errCard)
			}
			return nil
		}), func(o *sqsworker.Options) { o.Concurrency = 1 })
		series, counted := 0, map[string]float64{}
		for _, m := range f.collect() {
			_, all := points(m)
			series += len(all)
			for _, p := range all {
				counted[m.Name] += p.count
			}
		}
		started = int(counted["messaging.process.duration"])
		if series > 60 || started < messages || counted["sqsonce.deliveries"] != counted["messaging.client.consumed.messages"] || int(counted["sqsonce.deliveries"]) != started {
			t.Errorf("%d series, %d handlers: %v", series, started, counted)
		}
	})
}
