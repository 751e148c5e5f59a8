package ops

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/fifokit"
	"github.com/sqsonce/sqsonce/internal/host"
)

// reopenTimeout bounds the reopen, which the end of the caller's context does not cut: its answer says what happened.
const reopenTimeout = 20 * time.Second

// replay is a run with one message.
type replay struct {
	*run
	o    ReplayOptions
	note string
	m    *Message // as it was named; then as it was received
	key  string   // of its record, as it was named; "": not known
	res  *Result
}

// inQueue reports whether the message is to be found in the dead-letter queue, and to be deleted there.
func (r *replay) inQueue() bool { return r.m.ReceiptHandle != "" }

// refuseQueue says why nothing can be received, as Redrive does.
func (r *replay) refuseQueue(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !r.inQueue():
		return nil
	}
	if err := r.d.refuseChained("Replay"); err != nil {
		return err
	}
	return r.d.checkMoveTasks(ctx, "Replay")
}

// replay ends with everything that was not deleted given back.
func (r *replay) replay(ctx context.Context) (err error) {
	stopExtending := r.held.keep(ctx)
	defer func() {
		r.closePublishers()
		stopExtending()
		err = errors.Join(err, r.held.giveBack(ctx))
	}()
	if err := r.check(ctx); err != nil { // before anything is hidden
		return err
	}
	if r.inQueue() {
		if err := r.find(ctx); err != nil {
			return err
		}
		if err := r.check(ctx); err != nil {
			return err
		}
	}
	p, c, err := r.copy(ctx) // before the reopen: what cannot be sent is left as it is
	if err != nil {
		return err
	}
	if err := r.reopen(ctx); err != nil {
		return err
	}
	if err := r.send(ctx, p, c); err != nil {
		return stopped(err)
	}
	return errors.Join(r.deleteSent(ctx), r.await(ctx))
}

// look reads the event's record.
func (r *replay) look(ctx context.Context) error {
	r.d.join(ctx, []*Message{r.m})
	r.res.RecordKey, r.res.State, r.res.Class = r.m.RecordKey, r.m.State, r.m.Class
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if (r.m.Problem == nil || r.m.noRecord()) && r.key != "" && r.key != r.m.RecordKey {
		return fmt.Errorf("%w: %s, not %s", ErrOtherKey, r.m.RecordKey, r.key)
	}
	if r.m.noRecord() { // check refuses its state
		return nil
	}
	return r.m.Problem
}

// check looks, and returns why the event does not run again, or nil.
func (r *replay) check(ctx context.Context) error {
	if err := r.look(ctx); err != nil {
		return err
	}
	rec := r.m.Record
	switch {
	case r.m.reopened():
		return nil
	case r.m.State != dedup.StateCompleted:
		return inState(r.m)
	case r.o.Again == 0 || rec.Fence < r.o.Again:
		return fmt.Errorf("%w: record %s, fence %d", ErrNotAgain, rec.Key, rec.Fence)
	case rec.Fence > r.o.Again:
		return fmt.Errorf("%w: record %s, fence %d", ErrRanAgain, rec.Key, rec.Fence)
	case rec.Committed && !r.o.Committed:
		return fmt.Errorf("%w: record %s", ErrCommitted, rec.Key)
	}
	return nil
}

// find receives until it has the message, and gives back all others: on FIFO they would hide their groups.
func (r *replay) find(ctx context.Context) error {
	var others []string
	found := false
	for empty := 0; empty < emptyReceives && !found; empty++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		_, batch, err := r.receive(ctx)
		if err != nil {
			return err
		}
		for _, m := range batch {
			if empty = -1; m.ID == r.m.ID {
				r.m, found = m, true
			} else {
				others = append(others, m.ID)
			}
		}
	}
	if !found {
		return ErrNotShown // giveBack has the others
	}
	if len(others) == 0 {
		return nil
	}
	return r.held.giveBackThese(ctx, r.held.handles(others...))
}

// copy returns what is sent, and the publisher of the queue that it goes to.
func (r *replay) copy(ctx context.Context) (*fifo.Publisher, *sqsonce.Message, error) {
	url := r.d.destination(r.m)
	if url == "" {
		return nil, nil, ErrNoDestination
	}
	p, err := r.publisher(url)
	if err != nil {
		return nil, nil, err
	}
	c, err := r.d.copyOf(r.m, r.report.Run, func(size int) bool { return fifokit.Fits(p, ctx, int64(size)) })
	return p, c, err
}

// reopen returns when the record is an operator's, and no consumer remembers that the event was done.
func (r *replay) reopen(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	wait := r.m.remembered()
	if r.m.State == dedup.StateCompleted {
		if err := r.callReopen(ctx); err != nil {
			return err
		}
		wait = remembered // by this process's clock alone
		if err := r.look(ctx); err != nil {
			return stopped(err)
		}
		if !r.m.reopened() {
			return r.changed()
		}
	}
	ours := *r.m.Record
	if err := r.countDown(ctx, wait); err != nil {
		return stopped(err)
	}
	if err := r.look(ctx); err != nil {
		return stopped(err)
	}
	if !r.m.reopened() || r.m.Record.Owner != ours.Owner {
		return r.changed()
	}
	return nil
}

func (r *replay) callReopen(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reopenTimeout)
	defer cancel()
	err := host.Contain(func() error {
		return r.d.opts.Store.(dedup.Reopener).Reopen(ctx, *r.m.Record, r.note, func(o *dedup.ReopenOptions) {
			o.Name, o.Retention = r.o.Name, r.d.opts.Retention
		})
	})
	_, badField := errors.AsType[*sqsonce.OptionError](err)
	if err == nil || badField || errors.Is(err, dedup.ErrChanged) {
		return err
	}
	return fmt.Errorf("unknown whether record %s was reopened. Nothing was sent: replay the message again: %w", r.m.RecordKey, err)
}

// changed is the error for a record that is no longer as the reopen left it.
func (r *replay) changed() error {
	if r.m.State == dedup.StateCompleted {
		return fmt.Errorf("%w: record %s", ErrRanAgain, r.m.RecordKey)
	}
	return fmt.Errorf("%w: record %s is %s", dedup.ErrChanged, r.m.RecordKey, r.m.State)
}

// stopped is the error of a replay that has not sent its copy.
func stopped(err error) error { return fmt.Errorf("%w: %w", ErrReopened, err) }

func (r *replay) countDown(ctx context.Context, wait time.Duration) error {
	end := time.Now().Add(wait)
	for left := wait; left > 0; left = time.Until(end) {
		if err := r.progress(false, left); err != nil {
			return err
		}
		if !host.Wait(ctx, min(left, time.Second)) {
			return context.Cause(ctx)
		}
	}
	return nil
}

func (r *replay) progress(sent bool, left time.Duration) error {
	if r.o.Progress == nil {
		return nil
	}
	return host.Contain(func() error { r.o.Progress(sent, left); return nil })
}

// send sends the copy. Its MessageDeduplicationId is the same for all who send one for the same reopen.
func (r *replay) send(ctx context.Context, p *fifo.Publisher, c *sqsonce.Message) (err error) {
	if r.inQueue() && !r.held.has(r.m.ID) {
		return r.held.over()
	}
	r.res.Action, r.res.SentID, err = forward(ctx, p, c, replayID(r.m.Record))
	return err
}

func replayID(reopened *dedup.Record) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(reopened.Key), reopened.Key, reopened.Owner))
	return "replay|" + hex.EncodeToString(sum[:])
}

// deleteSent deletes the message from the dead-letter queue. SQS has its copy.
func (r *replay) deleteSent(ctx context.Context) error {
	if r.inQueue() {
		if err := r.delete(ctx, []*Result{r.res}); err != nil {
			return err
		}
		if r.res.Action == ActionUndeleted {
			return r.res.Err
		}
	}
	r.res.Action = ActionReplayed
	return nil
}

// await waits for the end of the delivery.
func (r *replay) await(ctx context.Context) (err error) {
	if r.o.Timeout < 0 {
		return nil
	}
	look := func(left time.Duration) error { return r.progress(true, left) }
	if r.res.After, err = r.d.awaitEnd(ctx, r.m, r.o.Timeout+r.d.delayOf(ctx, r.d.destination(r.m)), look); err != nil {
		return fmt.Errorf("%w: %w", ErrNotCompleted, err)
	}
	if r.res.After != dedup.StateCompleted {
		return context.Cause(ctx)
	}
	return nil
}
