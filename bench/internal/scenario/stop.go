package scenario

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/endpoint"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/bench/internal/report"
)

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
