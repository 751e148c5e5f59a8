package ops

import (
	"context"
	"slices"
	"time"
)

// waitingTimeout bounds the reading of a source queue's depth, which is not needed.
const waitingTimeout = 5 * time.Second

// Waiting is how many messages a redrive found in a queue that messages go back to, just before it decided about the first of
// these. What is redriven comes behind them, a canary too.
type Waiting struct {
	QueueURL string
	Messages int   // visible ones, by SQS's approximate count
	Err      error // why that is not known; nil: it is
}

// readWaiting reads once how much waits in each queue that messages of the batch would go to.
func (r *run) readWaiting(ctx context.Context, batch []*Message) {
	for _, m := range batch {
		url := r.d.destination(m)
		if url == "" || slices.ContainsFunc(r.report.Waiting, func(w Waiting) bool { return w.QueueURL == url }) {
			continue
		}
		source, w := *r.d, Waiting{QueueURL: url}
		source.url = url
		ctx, cancel := context.WithTimeout(ctx, waitingTimeout)
		w.Messages, _, w.Err = source.count(ctx)
		cancel()
		r.report.Waiting = append(r.report.Waiting, w)
	}
}
