package scenario

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/endpoint"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/bench/internal/report"
)

// The limits of every contestant that has such limits.
const (
	slots    = 100
	inFlight = 2000
	// dedupSlots is enough that latency does not limit the rate: at 15 ms a message occupies its slot for two requests and
	// the time until they are batched, about 40 ms. With more slots, contestants that open a connection for each request
	// get slower.
	dedupSlots = 1000
)

// What users set where a worker has memory to spare.
const (
	lessGC      = "GOGC=400"
	memoryLimit = "GOGC=off GOMEMLIMIT=256MiB"
)

// smallBody is the size of an event that says what happened and little else, in bytes.
const smallBody = 256

// worker: a full queue, and handlers that do nothing. It measures the way of a message through the worker.
var worker = Scenario{
	Name: "worker",
	Contestants: []Contestant{
		{"floor", 40_000}, {"floor+http", 40_000}, {"hand", 8_000}, {"gocloud", 20_000}, {"sqs-consumer", 4_000}, {"sqsonce", 40_000},
		{"sqsonce " + lessGC, 40_000}, {"sqsonce " + memoryLimit, 40_000},
	},
	Latencies: []time.Duration{shortLatency, longLatency},
	measure: func(ctx context.Context, b *Bench, r run) (report.Row, error) {
		cfg := endpoint.Config{Latency: r.latency, Visibility: 30, Events: b.count(r.contestant), BodySize: smallBody}
		return b.consume(ctx, r, cfg, job.Job{Slots: slots, InFlight: inFlight}, b.Size.Limit)
	},
}

// dedup: worker with a record of each event in DynamoDB, written before the handler and completed after it. floor writes
// no record; it is there for comparison.
var dedup = Scenario{
	Name: "dedup",
	Contestants: []Contestant{
		{"floor", 40_000}, {"hand+ddb", 2_800}, {"sqs-consumer+powertools", 500}, {"sqsonce+ddb", 18_000},
		{"sqsonce+ddb " + lessGC, 18_000}, {"sqsonce+ddb " + memoryLimit, 18_000},
	},
	Latencies: []time.Duration{shortLatency, longLatency},
	measure: func(ctx context.Context, b *Bench, r run) (report.Row, error) {
		cfg := endpoint.Config{Latency: r.latency, Visibility: 30, Events: b.count(r.contestant), BodySize: smallBody}
		return b.consume(ctx, r, cfg, job.Job{Slots: dedupSlots, InFlight: inFlight}, b.Size.Limit)
	},
}

// slow: handlers that take longer than the visibility timeout, and twice as many messages as handlers. A contestant that
// does not extend the visibility timeout of every message it has received, started or not, runs some twice.
var slow = Scenario{
	Name: "slow",
	Contestants: []Contestant{
		{"floor", 0}, {"hand", 0}, {"hand+ddb", 0}, {"gocloud", 0}, {"sqs-consumer", 0}, {"sqs-consumer+powertools", 0},
		{"sqsonce", 0}, {"sqsonce+ddb", 0},
	},
	Latencies: []time.Duration{shortLatency},
	Rounds:    1, // of minutes
	Parallel:  true,
	measure: func(ctx context.Context, b *Bench, r run) (report.Row, error) {
		cfg := endpoint.Config{Latency: r.latency, Visibility: b.Size.Visibility, Events: 20, BodySize: smallBody}
		j := job.Job{Slots: 10, InFlight: 30, Handler: int(b.Size.Handler.Milliseconds())}
		// The messages take two handlers' time. A contestant that needs more than four never empties the queue.
		return b.consume(ctx, r, cfg, j, 4*b.Size.Handler)
	},
}

// idle: one message, and then none. Its figures per message are those of the whole time: the cost of an empty queue.
var idle = Scenario{
	Name: "idle",
	Contestants: []Contestant{
		{"floor", 0}, {"hand", 0}, {"gocloud", 0}, {"sqs-consumer", 0}, {"sqsonce", 0}, {"sqsonce+ddb", 0},
	},
	Latencies: []time.Duration{shortLatency},
	Rounds:    1, // of a minute
	Parallel:  true,
	measure: func(ctx context.Context, b *Bench, r run) (report.Row, error) {
		cfg := endpoint.Config{Latency: r.latency, Visibility: 30, Events: 1, BodySize: smallBody}
		j := job.Job{Slots: slots, InFlight: inFlight}
		p, err := b.start(ctx, r, r.contestant.Name, cfg, j)
		if err != nil {
			return report.Row{}, err
		}
		defer p.kill()
		if err := p.contestant.Call("go", nil, nil); err != nil {
			return report.Row{}, err
		}
		if err := sleep(ctx, b.Size.Idle); err != nil {
			return report.Row{}, err
		}
		return p.row(r, j, cfg, 0)
	},
}

// duplicates: every twentieth receive leaves a copy of the message in the queue, as a standard queue may, and the
// producer sends every twentieth event twice. floor runs all of them, which shows how many there are. A copy that is
// received while its event is in progress waits for its visibility timeout or for the record lease: this decides how long
// it takes until the queue is empty, not the speed of the contestant.
var duplicates = Scenario{
	Name: "duplicates",
	Contestants: []Contestant{
		{"floor", 2_500}, {"hand+ddb", 1_000}, {"sqs-consumer+powertools", 150}, {"sqsonce+ddb", 1_500},
	},
	Latencies: []time.Duration{shortLatency},
	Parallel:  true,
	measure: func(ctx context.Context, b *Bench, r run) (report.Row, error) {
		cfg := endpoint.Config{
			Latency: r.latency, Visibility: 4, Events: b.count(r.contestant), BodySize: smallBody,
			EventIDs: true, Resend: 20, Duplicates: 0.05,
		}
		// The lease is as long as the visibility timeout, so that all contestants wait for the same time.
		j := job.Job{Slots: slots, InFlight: inFlight, Lease: cfg.Visibility}
		return b.consume(ctx, r, cfg, j, 25*time.Second)
	},
}

// bodies: sqsonce's rows of worker and dedup with larger messages.
var bodies = []Scenario{
	withBodies("bodies/1KB", 1<<10, []Contestant{{"sqsonce", 16_000}, {"sqsonce+ddb", 2_500}}),
	withBodies("bodies/64KB", 64<<10, []Contestant{{"sqsonce", 2_000}, {"sqsonce+ddb", 1_000}}),
}

func withBodies(name string, size int, contestants []Contestant) Scenario {
	return Scenario{
		Name: name, Contestants: contestants, Latencies: []time.Duration{shortLatency},
		measure: func(ctx context.Context, b *Bench, r run) (report.Row, error) {
			cfg := endpoint.Config{Latency: r.latency, Visibility: 30, Events: b.count(r.contestant), BodySize: size}
			return b.consume(ctx, r, cfg, oursJob(r.contestant), b.Size.Limit)
		},
	}
}

// memory: a million messages through one process, sent while it works. It shows memory that grows with the number of
// handled messages. The bench's own memory is four bytes for each message.
var memory = Scenario{
	Name:        "memory",
	Contestants: []Contestant{{"sqsonce", 15_000}, {"sqsonce+ddb", 2_500}},
	Rounds:      1, // of minutes
	Latencies:   []time.Duration{shortLatency},
	measure: func(ctx context.Context, b *Bench, r run) (report.Row, error) {
		events, limit := b.count(r.contestant), b.Size.Limit
		if b.Size.Memory > 0 {
			events, limit = b.Size.Memory, 30*time.Minute
		}
		cfg := endpoint.Config{Latency: r.latency, Visibility: 30, Events: events, BodySize: smallBody, Backlog: 20_000}
		return b.consume(ctx, r, cfg, oursJob(r.contestant), limit)
	},
}

// oursJob is the job of sqsonce as in the scenario worker, or dedup.
func oursJob(c Contestant) job.Job {
	if c.Name == "sqsonce+ddb" {
		return job.Job{Slots: dedupSlots, InFlight: inFlight}
	}
	return job.Job{Slots: slots, InFlight: inFlight}
}

// consume starts a contestant on a queue, and measures until the queue is empty or limit has passed.
func (b *Bench) consume(ctx context.Context, r run, cfg endpoint.Config, j job.Job, limit time.Duration) (report.Row, error) {
	program, env := r.contestant.program()
	p, err := b.start(ctx, r, program, cfg, j, env...)
	if err != nil {
		return report.Row{}, err
	}
	defer p.kill()
	begin := time.Now()
	if err := p.contestant.Call("go", nil, nil); err != nil {
		return report.Row{}, err
	}
	var end endpoint.Emptied
	if err := p.endpoint.Call("await", limit, &end); err != nil {
		return report.Row{}, err
	}
	if !end.Empty {
		b.logf("%s, %s: the queue is not empty after %s. %s", r.scenario.Name, r.contestant.Name, limit, p.contestant.Stderr())
	}
	row, err := p.row(r, j, cfg, end.At.Sub(begin))
	if err == nil {
		row.EndpointCPU = perMessage(float64(end.CPU), int(*row.Messages))
	}
	return row, err
}

// stop: ten handlers of 300 ms that ignore their context, and the signal to stop after two seconds. It measures what
// remains in the queue when the contestant would let its process end: hidden messages, and undeleted ones.
//
// stop/busy: the queue is full. stop/quiet: the queue is empty, every receive is a long poll, and fifty messages arrive
// just after the signal. SQS does not notice that the client of a poll has closed its connection: the messages that a
// cancelled poll receives stay hidden.
var stop = []Scenario{
	stopping("stop/busy", 5000, func(p *pair) error { return nil }),
	stopping("stop/quiet", 50, func(p *pair) error {
		time.Sleep(50 * time.Millisecond)
		return p.endpoint.Call("feed", nil, nil)
	}),
}

// stopping runs meanwhile after the signal, while the contestant stops.
func stopping(name string, events int, meanwhile func(*pair) error) Scenario {
	return Scenario{
		Name: name,
		Contestants: []Contestant{
			{"floor", 0}, {"hand", 0}, {"hand+ddb", 0}, {"gocloud", 0}, {"sqs-consumer", 0}, {"sqs-consumer+powertools", 0},
			{"sqsonce", 0}, {"sqsonce+ddb", 0},
		},
		Latencies: []time.Duration{shortLatency},
		Parallel:  true,
		measure: func(ctx context.Context, b *Bench, r run) (report.Row, error) {
			cfg := endpoint.Config{
				Latency: r.latency, Visibility: 120, Events: events, BodySize: smallBody, FeedLater: name == "stop/quiet",
			}
			j := job.Job{Slots: 10, InFlight: 30, Handler: 300}
			p, err := b.start(ctx, r, r.contestant.Name, cfg, j)
			if err != nil {
				return report.Row{}, err
			}
			defer p.kill()
			if err := p.contestant.Call("go", nil, nil); err != nil {
				return report.Row{}, err
			}
			if err := sleep(ctx, 2*time.Second); err != nil {
				return report.Row{}, err
			}
			stopped := make(chan error, 1)
			go func() { stopped <- p.contestant.Call("stop", nil, nil) }()
			if err := meanwhile(p); err != nil {
				return report.Row{}, err
			}
			// An error of the stop does not end the measurement: the queue shows what went wrong.
			if err := <-stopped; err != nil {
				b.logf("%v", err)
			}
			// Requests that are still on their way arrive.
			if err := sleep(ctx, 20*r.latency); err != nil {
				return report.Row{}, err
			}
			return p.row(r, j, cfg, 0)
		},
	}
}
