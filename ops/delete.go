package ops

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

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
