package ops

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	// sendTimeout bounds the sending of one message. It is longer than fifo's window, and ends what SQS throttles for ever.
	sendTimeout = 5 * time.Minute
	// sendGrace is how long sends that are under way go on after the end of ctx.
	sendGrace = 20 * time.Second
)

// try returns Undeleted for a message that was sent: it is still to be deleted, unless there is an error.
func (r *run) try(ctx context.Context, m *Message) (Action, string, error) {
	if err := r.whyLeft(ctx, m); err != nil {
		return ActionLeft, "", err
	}
	return r.send(ctx, m, r.d.destination(m), dedupID(&m.Message), func(fits func(size int) bool) (*sqsonce.Message, error) {
		return r.d.copyOf(m, r.report.Run, fits)
	})
}

// send sends a copy of a message to a queue, between two lines of the journal.
func (r *run) send(ctx context.Context, m *Message, url, dedupID string, copyOf func(fits func(size int) bool) (*sqsonce.Message, error)) (Action, string, error) {
	p, err := r.publisher(url)
	if err != nil {
		r.fail(err)
		return ActionLeft, "", err
	}
	c, err := copyOf(func(size int) bool { return p.Fits(ctx, int64(size)) })
	switch {
	case err != nil:
		return ActionLeft, "", err
	case r.o.DryRun:
		return ActionPlanned, "", nil
	case r.held != nil && !r.held.has(m.ID):
		return ActionLeft, "", r.held.over()
	}
	if err := r.journal.write(journalLine{Send: m.ID}); err != nil {
		r.fail(err)
		return ActionLeft, "", err
	}
	action, copyID, err := forward(ctx, p, c, dedupID)
	if action == ActionUndeleted {
		err = r.journal.write(journalLine{Sent: m.ID, Copy: copyID})
	}
	if err != nil && action != ActionUnknownOutcome && !isOfMessage(err) {
		r.fail(err)
	}
	return action, copyID, err
}

// forward sends a copy. Undeleted means that SQS has acknowledged it.
func forward(ctx context.Context, p *fifo.Publisher, c *sqsonce.Message, dedupID string) (Action, string, error) {
	ctx, cancel := graceful(ctx)
	defer cancel()
	receipt, err := p.Forward(ctx, c, dedupID)
	switch {
	case err == nil:
		return ActionUndeleted, receipt.MessageID, nil
	case errors.Is(err, fifo.ErrUnknownOutcome):
		return ActionUnknownOutcome, "", err
	case !isOfMessage(err):
		err = fmt.Errorf("ops: sqs:SendMessage to %s: %w", p.QueueURL(), err)
	}
	return ActionSendFailed, "", err
}

// graceful returns a context that ends after sendTimeout, or sendGrace after ctx.
func graceful(ctx context.Context) (context.Context, context.CancelFunc) {
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	stop := context.AfterFunc(ctx, func() {
		host.Wait(sending, sendGrace)
		cancel()
	})
	return sending, func() { stop(); cancel() }
}

// isOfMessage reports whether a send failed because of its message alone.
func isOfMessage(err error) bool {
	if _, ok := errors.AsType[*sqsonce.OptionError](err); ok {
		return true
	}
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && (strings.Contains(api.ErrorCode(), "InvalidMessage") || strings.Contains(api.ErrorCode(), "InvalidParameter"))
}

func (r *run) publisher(url string) (*fifo.Publisher, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.publishers[url]; p != nil {
		return p, nil
	}
	// What the publisher would log is in the report.
	p, err := fifo.NewPublisher(r.d.client, url, "ops", func(o *fifo.Options) { o.Logger = slog.New(slog.DiscardHandler) })
	if err == nil {
		r.publishers[url] = p
	}
	return p, err
}

// closePublishers ends sends whose caller has given up. Their results are in the report, as unknown outcomes.
func (r *run) closePublishers() {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	for _, p := range r.publishers {
		_ = p.Close(now)
	}
}
