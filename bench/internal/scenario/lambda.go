package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/endpoint"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/bench/internal/report"
)

// lambda: a function behind an event source mapping, invoked with batches of ten, a thousand, and as many records as fit
// into Lambda's 6 MB. The bootstrap is a real process behind the Runtime API. Requests of the mapping are not delayed, since
// polling is not the function's cost. Compare the function's CPU: the rate is mostly the mapping's.
var lambda = []Scenario{
	invoke("lambda/10", 10, []Contestant{{"hand", 8_000}, {"powertools", 6_000}, {"sqsonce", 8_000}}),
	invoke("lambda/1000", 1_000, []Contestant{{"hand", 12_000}, {"powertools", 10_000}, {"sqsonce", 12_000}}),
	invoke("lambda/6000", 6_000, []Contestant{{"hand", 12_000}, {"powertools", 12_000}, {"sqsonce", 12_000}}),
}

// lambdaBody is small enough that 6,000 records fit into 6 MB.
const lambdaBody = 64

func invoke(name string, size int, contestants []Contestant) Scenario {
	return Scenario{
		Name: name, Contestants: contestants, Latencies: []time.Duration{0},
		measure: func(ctx context.Context, b *Bench, r run) (report.Row, error) {
			// Whole batches only: the mapping would wait for the rest of a partial one until its batching window ends.
			events := max(1, b.count(r.contestant)/size) * size
			cfg := endpoint.Config{Visibility: 600, Events: events, BodySize: lambdaBody}
			j := job.Job{Contestant: r.contestant.Name, Events: events}
			var err error
			if cfg.Function, err = b.function(r.contestant.Name, size, j); err != nil {
				return report.Row{}, err
			}
			return b.invoke(ctx, r, cfg, j)
		},
	}
}

// function returns the function of a contestant.
func (b *Bench) function(name string, size int, j job.Job) (*endpoint.Function, error) {
	env, err := job.Environment(RoleFunction, j)
	if err != nil {
		return nil, err
	}
	f := &endpoint.Function{Env: env, BatchSize: size}
	if !needsNode(name) {
		f.Bootstrap, err = os.Executable()
		return f, err
	}
	dir, err := b.node()
	f.Bootstrap = filepath.Join(dir, "lambda.mjs")
	return f, err
}

// invoke starts a function behind its mapping, and measures until the queue is empty.
func (b *Bench) invoke(ctx context.Context, r run, cfg endpoint.Config, j job.Job) (report.Row, error) {
	p, err := b.startEndpoint(ctx, cfg)
	if err != nil {
		return report.Row{}, err
	}
	defer p.kill()
	var pid int
	if err := p.endpoint.Call("warm", nil, &pid); err != nil {
		return report.Row{}, err
	}
	var before, after job.Usage
	if err := p.endpoint.Call("usage", nil, &before); err != nil {
		return report.Row{}, err
	}
	begin := time.Now()
	if err := p.endpoint.Call("mapping", nil, nil); err != nil {
		return report.Row{}, err
	}
	var end endpoint.Emptied
	if err := p.endpoint.Call("await", b.Size.Limit, &end); err != nil {
		return report.Row{}, err
	}
	if !end.Empty {
		return report.Row{}, fmt.Errorf("the queue is not empty after %s: %s", b.Size.Limit, p.endpoint.Stderr())
	}
	var st endpoint.State
	if err := p.endpoint.Call("usage", nil, &after); err != nil {
		return report.Row{}, err
	}
	if err := p.endpoint.Call("state", nil, &st); err != nil {
		return report.Row{}, err
	}
	after.CPU -= before.CPU
	if after.Mallocs >= 0 {
		after.Mallocs -= before.Mallocs
	}
	row := rowOf(r, j, cfg.Events, after, end.At.Sub(begin))
	addState(&row, after, st)
	row.Latency, row.Slots, row.SQS, row.Conns = nil, nil, nil, nil // the mapping makes the requests, in memory
	row.RSS = maxRSS(pid)
	return row, nil
}
