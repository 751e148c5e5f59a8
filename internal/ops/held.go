package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	// giveBackTimeout bounds the giving back of each 10,000 messages, or part of these: a call may take 160 ms then.
	giveBackTimeout = 20 * time.Second
	givenBack       = 10_000
	callsAtOnce     = 8
	entryTries      = 3 // of an entry that SQS could not carry out
	entryPause      = 200 * time.Millisecond
)

// held is the messages that a listing or a redrive has received, and must delete or give back.
type held struct {
	d    *DLQ
	hold time.Duration

	mu   sync.Mutex
	byID map[string][]*heldMessage // also of messages that it holds no longer

	notExtended error // why a hold was not extended, the last time
}

// heldMessage is a receive of a message, or of one of its copies: a standard queue may deliver a message twice.
type heldMessage struct {
	handle string
	until  time.Time // when it may be visible by itself; zero: the handle is used up, or refused
}

func newHeld(d *DLQ, hold time.Duration) *held {
	return &held{d: d, hold: hold, byID: map[string][]*heldMessage{}}
}

// wallClock returns the time without the monotonic clock, which stands still while the machine sleeps.
func wallClock() time.Time { return time.Now().Round(0) }

// add holds the messages of a receive, and returns those that it has not seen before. sent is when the receive was sent.
func (h *held) add(received []sqstypes.Message, sent time.Time) (found []sqstypes.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range received {
		id := aws.ToString(m.MessageId)
		if _, seen := h.byID[id]; !seen {
			found = append(found, m)
		}
		h.byID[id] = append(h.byID[id], &heldMessage{aws.ToString(m.ReceiptHandle), sent.Add(h.hold).Round(0)})
	}
	return found
}

// handles returns all that is still held, or that of some messages.
func (h *held) handles(ids ...string) (all []*heldMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ids == nil {
		for _, messages := range h.byID {
			all = append(all, messages...)
		}
	}
	for _, id := range ids {
		all = append(all, h.byID[id]...)
	}
	return all
}

// giveBack makes the messages visible, on a context of its own: ctx may have ended.
func (h *held) giveBack(ctx context.Context) error {
	return h.giveBackThese(ctx, h.handles())
}

func (h *held) giveBackThese(ctx context.Context, messages []*heldMessage) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout*time.Duration(1+len(messages)/givenBack))
	defer cancel()
	done, open, err := h.inBatches(ctx, messages, entryTries, h.setVisibility(0))
	h.forget(done)
	if len(open) > 0 {
		last := slices.MaxFunc(open, func(a, b *heldMessage) int { return a.until.Compare(b.until) }).until
		return fmt.Errorf("%d messages stay hidden until %s: %w", len(open), last.UTC().Format(time.RFC3339), h.d.failed("ChangeMessageVisibility", err))
	}
	return nil
}

var errNotCarriedOut = errors.New("entries failed, or were not answered")

// batchCall is a batch call for up to ten messages. It returns the IDs of the entries that SQS carried out.
type batchCall func(ctx context.Context, messages []*heldMessage) (done []*string, failed []sqstypes.BatchResultErrorEntry, err error)

// inBatches returns the messages for which SQS carried the call out, and those for which that is not known, with the reason. Those
// that SQS refuses are in neither: they are visible, deleted or received by others.
func (h *held) inBatches(ctx context.Context, messages []*heldMessage, tries int, call batchCall) (done, open []*heldMessage, err error) {
	batches := slices.Collect(slices.Chunk(messages, host.MaxBatch))
	var mu sync.Mutex
	host.InParallel(len(batches), callsAtOnce, func(i int) {
		d, o, failed := h.inBatch(ctx, batches[i], tries, call)
		mu.Lock()
		defer mu.Unlock()
		done, open = append(done, d...), append(open, o...)
		if err == nil {
			err = failed
		}
	})
	return done, open, err
}

// inBatch leaves out messages that are visible by themselves: SQS may take an old handle for that of the consumer which has the
// message now.
func (h *held) inBatch(ctx context.Context, messages []*heldMessage, tries int, call batchCall) (done, open []*heldMessage, err error) {
	open = messages
	for try := range tries {
		if try > 0 {
			time.Sleep(entryPause)
		}
		if open = h.proven(open); len(open) == 0 {
			return done, nil, nil
		}
		var ids []*string
		var failed []sqstypes.BatchResultErrorEntry
		if err := host.Contain(func() (err error) { ids, failed, err = call(ctx, open); return err }); err != nil {
			return done, open, err
		}
		carriedOut, rest := h.answered(open, ids, failed)
		if done, open = append(done, carriedOut...), rest; len(open) == 0 {
			return done, nil, nil
		}
	}
	return done, open, errNotCarriedOut
}

// proven returns the messages that are certainly hidden for this process.
func (h *held) proven(messages []*heldMessage) (proven []*heldMessage) {
	now := wallClock()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range messages {
		if now.Before(m.until) {
			proven = append(proven, m)
		}
	}
	return proven
}

// answered returns what SQS carried out, and what it did not, or did not answer. A handle that it refuses is not used again.
func (h *held) answered(messages []*heldMessage, ids []*string, failed []sqstypes.BatchResultErrorEntry) (done, open []*heldMessage) {
	over := map[int]bool{}
	for _, id := range ids {
		if i, ok := host.EntryIndex(id, len(messages)); ok && !over[i] {
			over[i] = true
			done = append(done, messages[i])
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range failed {
		if i, ok := host.EntryIndex(e.Id, len(messages)); ok && e.SenderFault && !strings.Contains(aws.ToString(e.Code), "Throttl") {
			over[i] = true
			messages[i].until = time.Time{}
		}
	}
	for i, m := range messages {
		if !over[i] {
			open = append(open, m)
		}
	}
	return done, open
}

func (h *held) setVisibility(timeout time.Duration) batchCall {
	return func(ctx context.Context, messages []*heldMessage) (done []*string, failed []sqstypes.BatchResultErrorEntry, err error) {
		in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &h.d.url}
		for i, m := range messages {
			in.Entries = append(in.Entries, sqstypes.ChangeMessageVisibilityBatchRequestEntry{
				Id: host.EntryID(i), ReceiptHandle: &m.handle, VisibilityTimeout: int32(timeout / time.Second),
			})
		}
		out, err := h.d.client.ChangeMessageVisibilityBatch(ctx, in)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range out.Successful {
			done = append(done, e.Id)
		}
		return done, out.Failed, nil
	}
}

// keep extends the hold of what is held at half of it, until the function that it returns is called, which waits for a call that is
// under way.
func (h *held) keep(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(h.hold / 4)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				h.extend(ctx)
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// extend extends what has half of its hold left, or less. What could not be extended is tried again in a quarter of the hold.
func (h *held) extend(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, h.hold/4)
	defer cancel()
	now := wallClock()
	var due []*heldMessage
	for _, m := range h.proven(h.handles()) {
		if h.untilOf(m).Sub(now) <= h.hold/2 {
			due = append(due, m)
		}
	}
	done, _, err := h.inBatches(ctx, due, 1, h.setVisibility(h.hold))
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.notExtended = err
	}
	for _, m := range done {
		if !m.until.IsZero() {
			m.until = now.Add(h.hold)
		}
	}
}

func (h *held) untilOf(m *heldMessage) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return m.until
}

// has reports whether the message is certainly hidden for this process.
func (h *held) has(id string) bool { return len(h.proven(h.handles(id))) > 0 }

// over returns the error for a message that the process does not have.
func (h *held) over() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.notExtended == nil || errors.Is(h.notExtended, errNotCarriedOut) {
		return errHoldOver
	}
	return fmt.Errorf("%w: %w", errHoldOver, h.d.failed("ChangeMessageVisibility", h.notExtended))
}

// forget drops handles that are used up.
func (h *held) forget(messages []*heldMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range messages {
		m.until = time.Time{}
	}
}
