package scenario

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/endpoint"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/bench/internal/pipe"
)

// The roles of the processes that the bench starts from its own binary.
const (
	RoleEndpoint   = "endpoint"
	RoleContestant = "contestant"
	RoleFunction   = "function"
)

// pair is the two processes of a measurement. contestant is nil where the endpoint runs the contestant as a function.
type pair struct {
	address    endpoint.Address
	endpoint   *pipe.Process
	contestant *pipe.Process
}

// startEndpoint starts an endpoint, with the queue, the table and the messages in it.
func (b *Bench) startEndpoint(ctx context.Context, cfg endpoint.Config) (*pair, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	env, err := job.Environment(RoleEndpoint, nil)
	if err != nil {
		return nil, err
	}
	p := &pair{}
	if p.endpoint, err = pipe.Start(ctx, "endpoint", env, self); err != nil {
		return nil, err
	}
	if err := p.endpoint.Call("start", cfg, &p.address); err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

// start starts an endpoint and a contestant. name is Job.Contestant: a publisher's differs from the name in the row.
func (b *Bench) start(ctx context.Context, r run, name string, cfg endpoint.Config, j job.Job) (*pair, error) {
	p, err := b.startEndpoint(ctx, cfg)
	if err != nil {
		return nil, err
	}
	j.Contestant, j.Endpoint, j.QueueURL, j.Table = name, p.address.URL, p.address.QueueURL, endpoint.Table
	j.Events, j.Visibility = cfg.Events, cfg.Visibility
	if b.Profiles != "" && ours(r.contestant.Name) {
		j.Profile = filepath.Join(b.Profiles, strings.ReplaceAll(r.scenario.Name+"."+r.contestant.Name+"."+r.latency.String(), "/", "-"))
	}
	if p.contestant, err = b.startContestant(ctx, r.contestant.Name, j); err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

func (b *Bench) startContestant(ctx context.Context, name string, j job.Job) (*pipe.Process, error) {
	env, err := job.Environment(RoleContestant, j)
	if err != nil {
		return nil, err
	}
	if needsNode(name) {
		dir, err := b.node()
		if err != nil {
			return nil, err
		}
		return pipe.Start(ctx, name, env, "node", filepath.Join(dir, "consumer.mjs"))
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return pipe.Start(ctx, name, env, self)
}

func (p *pair) kill() {
	for _, process := range []*pipe.Process{p.contestant, p.endpoint} {
		if process != nil {
			process.Kill()
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
