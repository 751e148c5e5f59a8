package ops

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/fifokit"
	"github.com/sqsonce/sqsonce/internal/host"
)

const deleteTimeout = 20 * time.Second

// sentOf returns the results of those messages that SQS has a copy of, and that are not deleted, and how many it was asked to
// take.
func (r *run) sentOf(batch []*Message) (sent []*Result, tried int) {
	for _, m := range batch {
		res := r.results[m.ID]
		if res.Action == ActionUndeleted && res.Err == nil {
			sent = append(sent, res)
		}
		if res.Action != ActionLeft && res.Action != ActionPlanned {
			tried++
		}
	}
	return sent, tried
}

// deleteAgain deletes messages that came once more, after their copies were sent, or their lines written: a delete had no effect,
// or a standard queue has a second copy.
func (r *run) deleteAgain(ctx context.Context, received []sqstypes.Message) error {
	var sent []*Result
	for _, m := range received {
		if res := r.results[aws.ToString(m.MessageId)]; res != nil && (res.Action == ActionUndeleted || res.Action == r.done) {
			res.Action = ActionUndeleted
			sent = append(sent, res)
		}
	}
	defer r.tell(sent)
	return r.delete(ctx, sent)
}

// delete deletes messages whose copies were sent, or whose lines are on the disk, on a context of its own: ctx may have ended. A
// handle that may no longer be this run's is not used. Its error ends the run, which would go on to send what it cannot delete.
func (r *run) delete(ctx context.Context, sent []*Result) error {
	if len(sent) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
	defer cancel()
	ids := make([]string, len(sent))
	for i, res := range sent {
		ids[i] = res.ID
	}
	done, open, err := r.held.inBatches(ctx, r.held.handles(ids...), entryTries, r.held.deleteBatch)
	deleted, line := map[*heldMessage]bool{}, journalLine{}
	for _, m := range done {
		deleted[m] = true
	}
	for _, res := range sent {
		switch handles := r.held.handles(res.ID); {
		case deleted[handles[len(handles)-1]]: // the newest one: SQS may accept an older one, and delete nothing
			res.Action, res.Err = r.done, nil
			line.Deleted = append(line.Deleted, res.ID)
		case len(open) > 0:
			res.Err = r.d.failed("DeleteMessage", err)
		default:
			res.Err = r.held.over()
		}
	}
	r.held.forget(done)
	if err != nil && err != errNotCarriedOut {
		return r.d.failed("DeleteMessage", err)
	}
	if len(line.Deleted) > 0 {
		return r.journal.write(line)
	}
	return nil
}

func (h *held) deleteBatch(ctx context.Context, messages []*heldMessage) (done []*string, failed []sqstypes.BatchResultErrorEntry, err error) {
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &h.d.url}
	for i, m := range messages {
		in.Entries = append(in.Entries, sqstypes.DeleteMessageBatchRequestEntry{Id: host.EntryID(i), ReceiptHandle: &m.handle})
	}
	out, err := h.d.client.DeleteMessageBatch(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range out.Successful {
		done = append(done, e.Id)
	}
	return done, out.Failed, nil
}

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
		c, err := r.d.copyOf(m, r.report.Run, fits)
		if err != nil {
			return nil, err
		}
		if _, asks := c.Attributes[sqsonce.AttrRedriven]; !asks && m.remembered() > 0 {
			return nil, ErrRemembered
		}
		return c, nil
	})
}

// send sends a copy of a message to a queue, between two lines of the journal.
func (r *run) send(ctx context.Context, m *Message, url, dedupID string, copyOf func(fits func(size int) bool) (*sqsonce.Message, error)) (Action, string, error) {
	p, err := r.publisher(url)
	if err != nil {
		r.fail(err)
		return ActionLeft, "", err
	}
	c, err := copyOf(func(size int) bool { return fifokit.Fits(p, ctx, int64(size)) })
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
	receipt, err := fifokit.Forward(p, ctx, c, dedupID)
	switch {
	case err == nil:
		return ActionUndeleted, receipt.MessageID, nil
	case errors.Is(err, fifo.ErrUnknownOutcome):
		return ActionUnknownOutcome, "", err
	case !isOfMessage(err):
		err = fmt.Errorf("sqs:SendMessage to %s: %w", p.QueueURL(), err)
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
