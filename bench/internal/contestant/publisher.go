package contestant

import (
	"context"
	"errors"

	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/fifo"
)

// publisher is fifo.Publisher with its defaults, but for the number of requests at once: one goroutine enqueues the
// backlog in its order, another takes the answers.
func publisher(ctx context.Context, j job.Job, l *Ledger) error {
	p, err := fifo.NewPublisher(sqsClient(j, httpClient()), j.QueueURL, "bench", func(o *fifo.Options) {
		o.InFlight, o.Logger = j.Slots, logger()
	})
	if err != nil {
		return err
	}
	type sent struct {
		n int
		p *fifo.Pending
	}
	pending, answered := make(chan sent, j.Events), make(chan error, 1)
	go func() {
		var failed error
		for s := range pending {
			if _, err := s.p.Wait(ctx); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			l.Done(s.n)
		}
		answered <- failed
	}()
	for _, e := range job.Backlog(j.Events, j.Groups) {
		pend, err := p.Enqueue(ctx, fifo.Event{ID: job.EventID(e.N), Group: group(e), Body: body(e)})
		if err != nil {
			close(pending)
			return errors.Join(err, <-answered)
		}
		pending <- sent{e.N, pend}
	}
	close(pending)
	return errors.Join(<-answered, p.Close(ctx))
}
