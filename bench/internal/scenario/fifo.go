package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/endpoint"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/bench/internal/report"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// fifo: a backlog of events in many groups is published to a FIFO queue. In the variants some entries fail and some
// responses are lost. It measures what the queue holds at the end: an event behind a later one of its group is out of
// order.
var fifo = []Scenario{
	publish("fifo/0", 0),
	publish("fifo/0.1", 0.001),
	publish("fifo/1", 0.01),
}

// Twenty groups for each concurrent request: enough to fill batches of ten with one event of each group.
const (
	requests = 16
	groups   = 20 * requests
)

func publish(name string, failing float64) Scenario {
	return Scenario{
		Name:        name,
		Contestants: rates(failing),
		Latencies:   []time.Duration{shortLatency, longLatency},
		measure: func(ctx context.Context, b *Bench, r run) (report.Row, error) {
			cfg := endpoint.Config{
				Latency: r.latency, Visibility: 30, FIFO: true, Events: b.count(r.contestant), Faults: failures(failing),
			}
			j := job.Job{Slots: requests, Groups: groups}
			if r.contestant.Name == "raw" {
				j.Slots = 1
			}
			return b.publish(ctx, r, cfg, j)
		},
	}
}

// rates returns the contestants and their expected rates. With failures raw is slower: it waits for each retry.
func rates(failing float64) []Contestant {
	raw := 500
	if failing > 0 {
		raw = 250
	}
	return []Contestant{{"raw", raw}, {"raw16", 5_000}, {"raw16+a", 5_000}, {"gocloud", 2_500}, {"sqsonce", 7_000}}
}

// failures fails each entry of a batch, and loses each response, with probability p.
func failures(p float64) fault.Plan {
	if p == 0 {
		return fault.Plan{}
	}
	rules := []fault.Rule{{Op: "SendMessageBatch", Prob: p, Do: fault.LoseReply}}
	for i := range 10 {
		rules = append(rules, fault.Rule{Op: "SendMessageBatch", Prob: p, Do: fault.FailEntries, Entries: []int{i}})
	}
	return fault.Plan{Seed: 1, Rules: rules}
}

// publish starts a publisher and measures until the queue has accepted its backlog.
func (b *Bench) publish(ctx context.Context, r run, cfg endpoint.Config, j job.Job) (report.Row, error) {
	p, err := b.start(ctx, r, r.scenario.family()+":"+r.contestant.Name, cfg, j)
	if err != nil {
		return report.Row{}, err
	}
	defer p.kill()
	ctx, cancel := context.WithTimeout(ctx, b.Size.Limit)
	defer cancel()
	defer context.AfterFunc(ctx, p.kill)() // ends the call of a contestant that hangs
	begin := time.Now()
	if err := p.contestant.Call("go", nil, nil); err != nil {
		return report.Row{}, err
	}
	if err := p.contestant.Call("wait", nil, nil); err != nil {
		return report.Row{}, err
	}
	row, err := p.row(r, j, cfg, time.Since(begin))
	if err != nil {
		return report.Row{}, err
	}
	var o endpoint.Order
	if err := p.endpoint.Call("order", nil, &o); err != nil {
		return report.Row{}, err
	}
	if o.Missing > 0 {
		return report.Row{}, fmt.Errorf("%d events of the backlog are not in the queue", o.Missing)
	}
	row.Doubled, row.OutOfOrder = report.Number(o.Doubled), report.Number(o.OutOfOrder)
	row.Hidden, row.Undeleted = nil, nil // nothing is received
	return row, nil
}

// outbox: events with bodies of 1 KB in 64 groups are published from an outbox in DynamoDB, and the same events from memory, by
// one PublishAll. The write units are those of the producer's transactions and of the relay's deletes.
var outbox = Scenario{
	Name:        "outbox",
	Contestants: []Contestant{{"publishall", 8_000}, {"sqsonce", 8_000}},
	Latencies:   []time.Duration{shortLatency, longLatency},
	measure: func(ctx context.Context, b *Bench, r run) (report.Row, error) {
		cfg := endpoint.Config{Latency: r.latency, Visibility: 30, FIFO: true, Events: b.count(r.contestant)}
		if ours(r.contestant.Name) {
			cfg.OutboxGroups = outboxGroups
		}
		return b.publish(ctx, r, cfg, job.Job{Slots: requests, Groups: outboxGroups})
	},
}

const outboxGroups = 64
