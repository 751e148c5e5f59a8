package emf

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/lambda"
)

// line is one line before it is written, with its metrics, and its members by name.
type line struct {
	dimensions []string
	metrics    []metric
	members    map[string]any
}

// metric is an element of the format's Metrics array.
type metric struct{ Name, Unit string }

func (l *line) add(name, unit string, value any) {
	l.metrics = append(l.metrics, metric{name, unit})
	l.members[name] = value
}

func (l *line) count(name string, n int) { l.add(name, "Count", n) }

// seldom adds a count that is not 0.
func (l *line) seldom(name string, n int) {
	if n != 0 {
		l.count(name, n)
	}
}

func (l *line) times(name string, values []float64) {
	if len(values) > 0 {
		l.add(name, "Milliseconds", values)
	}
}

// isMember reports whether lines have a member of that name, which no dimension may have.
func isMember(name string) bool {
	for _, o := range host.Outcomes {
		if o.Metric == name {
			return true
		}
	}
	for _, c := range ruleCounts {
		if c.metric == name {
			return true
		}
	}
	return slices.Contains([]string{
		"_aws", "service", "queue", "level", "timestamp", "message", "requestId", "traceId", "cold_start",
		"Records", "Duplicates", "Redelivered", "DeadLettered", "Takeovers", "StoreErrors", "NotCompleted",
		"HandlerDuration", "TimeInQueue", "RemainingTime", "rule",
	}, name)
}

// finish writes the invocation's line, and further ones for the times of more than maxValues handlers. What an abandoned handler
// does after it is in no line.
func (m *Metrics) finish(ctx context.Context, r lambda.Report) {
	m.count(ctx, func(v *invocation) {
		queue := r.QueueARN[strings.LastIndexByte(r.QueueARN, ':')+1:]
		l := m.newLine(ctx, queue)
		l.members["cold_start"] = v.cold
		l.count("Records", r.Records)
		l.count("Done", r.Outcomes[sqsonce.OutcomeDone])
		l.count("Failed", r.Outcomes[sqsonce.OutcomeFailed])
		l.count("Duplicates", v.duplicates)
		if r.Remaining > 0 {
			l.add("RemainingTime", "Milliseconds", milliseconds(r.Remaining))
		}
		l.seldom("Redelivered", v.redelivered)
		for kind, o := range host.Outcomes {
			if kind := sqsonce.OutcomeKind(kind); kind != sqsonce.OutcomeDone && kind != sqsonce.OutcomeFailed {
				l.seldom(o.Metric, r.Outcomes[kind])
			}
		}
		l.seldom("DeadLettered", r.Sent)
		l.seldom("Takeovers", v.takeovers)
		l.seldom("StoreErrors", v.storeErrors)
		l.seldom("NotCompleted", v.notCompleted)
		for {
			n, q := min(len(v.durations), maxValues), min(len(v.inQueue), maxValues)
			l.times("HandlerDuration", v.durations[:n])
			l.times("TimeInQueue", v.inQueue[:q])
			m.write(ctx, l)
			if v.durations, v.inQueue = v.durations[n:], v.inQueue[q:]; len(v.durations)+len(v.inQueue) == 0 {
				break
			}
			l = m.newLine(ctx, queue)
		}
		m.rules(ctx, queue)
	})
}

// newLine returns a line with the members of all.
func (m *Metrics) newLine(ctx context.Context, queue string) *line {
	l := &line{dimensions: m.names, members: map[string]any{
		"level": "INFO", "timestamp": time.Now().UTC().Format(time.RFC3339Nano), "message": "sqsonce: invocation", "queue": queue,
	}}
	for name, value := range m.dimensions {
		l.members[name] = value
	}
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		l.members["requestId"] = lc.AwsRequestID
	}
	header, _ := ctx.Value("x-amzn-trace-id").(string) // aws-lambda-go's key
	for field := range strings.SplitSeq(header, ";") {
		if root, ok := strings.CutPrefix(field, "Root="); ok {
			l.members["traceId"] = root
		}
	}
	return l
}

// write writes a line at once: what others write to the same file is before it or after it.
func (m *Metrics) write(ctx context.Context, l *line) {
	type directive struct {
		Namespace  string
		Dimensions [][]string
		Metrics    []metric
	}
	l.members["_aws"] = map[string]any{
		"Timestamp": time.Now().UnixMilli(), "CloudWatchMetrics": []directive{{m.namespace, [][]string{l.dimensions}, l.metrics}},
	}
	text, err := json.Marshal(l.members)
	if err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		_, err = m.w.Write(append(text, '\n'))
	}
	if err != nil {
		m.writeError.Do(func() {
			slog.WarnContext(ctx, "emf: metrics not written (logged once)", "error", err)
		})
	}
}

// invocation is the state of one invocation. It is found through the context of its messages, because several may run at
// once.
type invocation struct {
	cold bool

	mu        sync.Mutex // handlers run beside each other, and an abandoned one beside Finish
	durations []float64  // of handlers, in milliseconds
	inQueue   []float64  // the times in the queue, in milliseconds

	redelivered, duplicates, takeovers, storeErrors, notCompleted int
}

type invocationKey struct{ m *Metrics }

func (m *Metrics) begin(ctx context.Context, _ []*sqsonce.Message) context.Context {
	return context.WithValue(ctx, invocationKey{m}, &invocation{cold: !m.warm.Swap(true)})
}

// count changes the counts of the invocation of ctx. Without one, as in a worker with the same Once, it does nothing.
func (m *Metrics) count(ctx context.Context, f func(v *invocation)) {
	if v, ok := ctx.Value(invocationKey{m}).(*invocation); ok {
		v.mu.Lock()
		defer v.mu.Unlock()
		f(v)
	}
}

func (m *Metrics) start(ctx context.Context, d sqsonce.Delivery) context.Context {
	waited, known := host.TimeInQueue(d.Message)
	m.count(ctx, func(v *invocation) {
		if known {
			v.inQueue = append(v.inQueue, milliseconds(waited))
		}
		if d.Message.ReceiveCount > 1 {
			v.redelivered++
		}
	})
	return ctx
}

func (m *Metrics) end(ctx context.Context, _ sqsonce.Delivery, r sqsonce.Return) {
	m.count(ctx, func(v *invocation) { v.durations = append(v.durations, milliseconds(r.Elapsed)) })
}

func (m *Metrics) decided(ctx context.Context, d dedup.Decision) {
	m.count(ctx, func(v *invocation) {
		switch d.Outcome {
		case dedup.DecidedDuplicate:
			v.duplicates++
		case dedup.DecidedTakeover, dedup.DecidedSuspect:
			v.takeovers++
		}
	})
}

// called counts failed calls. A renewal that its handler's return has cancelled is none.
func (m *Metrics) called(ctx context.Context, c dedup.StoreCall) {
	if c.Result == "error" && !errors.Is(c.Err, context.Canceled) {
		m.count(ctx, func(v *invocation) { v.storeErrors++ })
	}
}

func (m *Metrics) incident(ctx context.Context, i dedup.Incident) {
	if i.Kind == dedup.IncidentNotCompleted {
		m.count(ctx, func(v *invocation) { v.notCompleted++ })
	}
}

// milliseconds rounds to a microsecond.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1_000 }
