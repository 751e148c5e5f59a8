// Package contestant holds the Go contestants, one per file, each a process of its own. A contestant is built by its job,
// begins when it is told to, and is asked what it used when the work is done.
package contestant

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/bench/internal/pipe"
)

// run works until ctx ends, or until there is nothing more to do where the contestant is a publisher. What it returns
// after ctx has ended is how its stop went.
type run func(ctx context.Context, j job.Job, l *Ledger) error

// contestants are all of them, by the name of the job: consumers of a queue, and publishers to a FIFO queue.
var contestants = map[string]run{
	"floor":       floor,
	"floor+http":  floorHTTP,
	"hand":        hand,
	"hand+ddb":    handDDB,
	"gocloud":     gocloud,
	"sqsonce":     worker,
	"sqsonce+ddb": workerDDB,

	"fifo:raw":     rawPublisher,
	"fifo:raw16":   rawPublisher,
	"fifo:raw16+a": rawPublisherWithAttributes,
	"fifo:gocloud": gocloudPublisher,
	"fifo:sqsonce": publisher,
}

// Serve is a contestant's process.
func Serve(ctx context.Context, in io.Reader, out io.Writer, j job.Job) error {
	work := contestants[j.Contestant]
	if work == nil {
		return fmt.Errorf("contestant: there is none called %q", j.Contestant)
	}
	s := &session{job: j, work: work, ledger: NewLedger(j.Events), ended: make(chan error, 1)}
	return pipe.Serve(in, out, map[string]pipe.Handler{
		"go":    func(json.RawMessage) (any, error) { return nil, s.begin(ctx) },
		"wait":  func(json.RawMessage) (any, error) { return nil, <-s.ended },
		"usage": func(json.RawMessage) (any, error) { return s.usage() },
		"stop":  func(json.RawMessage) (any, error) { return nil, s.stop() },
	})
}

type session struct {
	job     job.Job
	work    run
	ledger  *Ledger
	meter   job.Meter
	profile *profile
	cancel  context.CancelFunc
	ended   chan error
}

func (s *session) begin(ctx context.Context) error {
	var err error
	if s.profile, err = startProfile(s.job.Profile); err != nil {
		return err
	}
	if s.meter, err = job.StartMeter(); err != nil {
		return err
	}
	ctx, s.cancel = context.WithCancel(ctx)
	go func() { s.ended <- s.work(ctx, s.job, s.ledger) }()
	return nil
}

func (s *session) usage() (job.Usage, error) {
	u, err := s.meter.Read()
	if err != nil {
		return u, err
	}
	s.ledger.Report(&u)
	return u, s.profile.stop()
}

// stop is SIGTERM: the contestant ends as its own documentation has it, and returns when it would let the process end.
func (s *session) stop() error {
	s.cancel()
	return <-s.ended
}
