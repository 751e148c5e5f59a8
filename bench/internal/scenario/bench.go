package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/endpoint"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/bench/internal/pipe"
	"github.com/sqsonce/sqsonce/bench/internal/report"
	"github.com/sqsonce/sqsonce/bench/node"
)

// Bench runs scenarios.
type Bench struct {
	Size Size
	// Only are the contestants that take part. Empty: all.
	Only []string
	// Profiles is the folder for the profiles of sqsonce's rows. "": none.
	Profiles string
	// Log gets a line for each contestant that is skipped, and for each row with a problem.
	Log io.Writer

	logging sync.Mutex
	node    func() (string, error) // installs once
}

// Run measures the scenarios and prints their rows. The error of a row does not end the run: Run returns the errors of all
// rows, joined.
func (b *Bench) Run(ctx context.Context, scenarios []Scenario, out report.Printer) error {
	b.node = sync.OnceValues(func() (string, error) {
		ctx, cancel := context.WithTimeout(ctx, b.Size.Install)
		defer cancel()
		return node.Install(ctx)
	})
	var failed error
	for _, s := range scenarios {
		latencies := s.Latencies
		if !b.Size.AllLatencies {
			latencies = latencies[:1]
		}
		for _, latency := range latencies {
			failed = errors.Join(failed, b.scenario(ctx, s, latency, out))
			if ctx.Err() != nil {
				return errors.Join(failed, ctx.Err())
			}
		}
	}
	return errors.Join(failed, out.Close())
}

// scenario runs the rounds of a scenario: all contestants once, then all again. Other load on the machine then affects all
// of them.
func (b *Bench) scenario(ctx context.Context, s Scenario, latency time.Duration, out report.Printer) error {
	contestants := b.available(s)
	rounds := make([][]report.Row, len(contestants))
	errs := make([]error, len(contestants))
	n := b.Size.Rounds
	if s.Rounds > 0 {
		n = min(n, s.Rounds)
	}
	for range n {
		var measuring sync.WaitGroup
		for i, c := range contestants {
			measure := func() {
				row, err := s.measure(ctx, b, run{s, c, latency})
				if err != nil {
					errs[i] = errors.Join(errs[i], fmt.Errorf("%s, %s: %w", s.Name, c.Name, err))
					return
				}
				rounds[i] = append(rounds[i], row)
			}
			if s.Parallel {
				measuring.Go(measure)
			} else {
				measure()
			}
		}
		measuring.Wait()
	}
	failed := errors.Join(errs...)
	for _, rows := range rounds {
		if len(rows) > 0 {
			failed = errors.Join(failed, out.Print(report.Median(rows)))
		}
	}
	return failed
}

// available returns the contestants that can run here. It logs those that cannot: a table with fewer rows does not show it.
func (b *Bench) available(s Scenario) []Contestant {
	return slices.DeleteFunc(slices.Clone(s.Contestants), func(c Contestant) bool {
		if len(b.Only) > 0 && !slices.Contains(b.Only, c.Name) {
			return true
		}
		if !needsNode(c.Name) {
			return false
		}
		_, err := b.node()
		if err != nil {
			b.logf("SKIPPED %s, %s: %v", s.Name, c.Name, err)
		}
		return err != nil
	})
}

func (b *Bench) logf(format string, args ...any) {
	b.logging.Lock()
	defer b.logging.Unlock()
	fmt.Fprintf(b.Log, "bench: "+format+"\n", args...)
}

// needsNode reports whether a contestant is written for Node.
func needsNode(contestant string) bool {
	return strings.HasPrefix(contestant, "sqs-consumer") || strings.HasPrefix(contestant, "powertools")
}

// ours reports whether a contestant is sqsonce: profiles are written of these rows.
func ours(contestant string) bool { return strings.HasPrefix(contestant, "sqsonce") }

// count returns how many messages a contestant gets.
func (b *Bench) count(c Contestant) int { return max(200, int(float64(c.Rate)*b.Size.Work.Seconds())) }

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
// settings are for the contestant's environment.
func (b *Bench) start(ctx context.Context, r run, name string, cfg endpoint.Config, j job.Job, settings ...string) (*pair, error) {
	p, err := b.startEndpoint(ctx, cfg)
	if err != nil {
		return nil, err
	}
	j.Contestant, j.Endpoint, j.QueueURL, j.Table = name, p.address.URL, p.address.QueueURL, endpoint.Table
	j.Events, j.Visibility = cfg.Events, cfg.Visibility
	if b.Profiles != "" && ours(r.contestant.Name) {
		j.Profile = filepath.Join(b.Profiles, strings.NewReplacer("/", "-", " ", "-").Replace(r.scenario.Name+"."+r.contestant.Name+"."+r.latency.String()))
	}
	if p.contestant, err = b.startContestant(ctx, r.contestant.Name, j, settings); err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

func (b *Bench) startContestant(ctx context.Context, name string, j job.Job, settings []string) (*pipe.Process, error) {
	env, err := job.Environment(RoleContestant, j)
	if err != nil {
		return nil, err
	}
	env = append(env, settings...)
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
