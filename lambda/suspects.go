package lambda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// A message that crashes its process takes a receive from its whole batch. So one whose event was running in a crash, as dedup
// finds by the record, is a suspect. Suspects run when the others of the batch have ended and the function has deleted them: one at a
// time, each deleted before the next one starts, the one last that had started last before its crash. One that has crashed a process
// alone leaves its FIFO group while the messages behind it have a receive left. Protocol, 17.8.

var errCrashes = errors.New("lambda: the message has crashed a process that ran it apart from other messages")

// suspects are the chains whose first record runs apart.
type suspects struct {
	mu      sync.Mutex
	waiting []suspect
	begun   bool
	beside  bool         // they run next to handlers: a crash then accuses none of them
	deleted map[int]bool // records
}

type suspect struct {
	chain   []int
	started time.Time // in the process that crashed
}

// withSuspects returns the context of a message's handler, so that dedup tells of a suspect.
func (v *invocation) withSuspects(ctx context.Context, s *slot) context.Context {
	const from = 2
	switch {
	case s.suspect && v.suspects.beside:
		return ctx
	case s.suspect:
		return settle.RunningSuspect(ctx)
	case s.message.ReceiveCount >= from:
		return settle.WithSuspects(ctx, from)
	}
	return ctx
}

// holdSuspect keeps a suspect until the others have ended. It reports false for an ordinary failure, and where the handlers are closed.
//
// Without a client it reports false for one that has crashed a process alone too, while others are in its batch, which could not be
// deleted before it: it fails, unrun, so that they are done.
func (v *invocation) holdSuspect(f failure) bool {
	s, ok := settle.SuspectOf(f.err)
	if !ok || s.Alone && v.opts.Client == nil && len(v.records) > 1 || !f.slot.change(running, unstarted) {
		return false
	}
	v.suspects.mu.Lock()
	defer v.suspects.mu.Unlock()
	if v.suspects.begun { // it was behind another suspect
		v.alone.add(f.chain)
		return true
	}
	v.suspects.waiting = append(v.suspects.waiting, suspect{f.chain, s.Started})
	if v.mayRunSuspects(); !v.suspects.begun && v.times.limited() {
		time.AfterFunc(time.Until(v.times.at(handlersStop))/2, v.suspectsAtHalf)
	}
	return true
}

// suspectsAtHalf starts the suspects next to handlers that still run when half of the time has passed, where one of them, or a message
// behind it, is at its last receive: SQS would move it unrun.
func (v *invocation) suspectsAtHalf() {
	v.suspects.mu.Lock()
	waiting, begun := slices.Clone(v.suspects.waiting), v.suspects.begun
	v.suspects.mu.Unlock()
	if begun || v.ctx.Err() != nil || !slices.ContainsFunc(waiting, func(s suspect) bool { return slices.ContainsFunc(s.chain, v.isLastReceive) }) {
		return
	}
	v.suspects.mu.Lock()
	defer v.suspects.mu.Unlock()
	if !v.suspects.begun && v.ctx.Err() == nil {
		v.suspects.beside = true
		v.runSuspects()
	}
}

// goOn runs what is behind a record that has left its group: also one at a time when the suspects run.
func (v *invocation) goOn(chain []int) {
	v.suspects.mu.Lock()
	defer v.suspects.mu.Unlock()
	if v.suspects.begun {
		v.alone.add(chain)
	} else {
		v.handlers.add(chain)
	}
}

// replaceWorker has another worker run in the place of one whose handler is abandoned, so that the chains behind it run.
func (v *invocation) replaceWorker(record int) {
	if v.slots[record].alone {
		v.alone.replace()
	} else {
		v.handlers.replace()
	}
}

// judge has a suspect that has crashed a process alone fail as one that is for the dead-letter queue, where another crash would cost a
// message behind it its last receive but one.
func (v *invocation) judge(f failure) failure {
	s, ok := settle.SuspectOf(f.err)
	if !ok || !s.Alone || v.opts.Client == nil {
		return f
	}
	head, behind := f.chain[0], 0
	for _, i := range f.chain[1:] {
		behind = max(behind, v.records[i].receiveCount())
	}
	if host.CrashCosts(v.policy(head).maxReceives, v.records[head].receiveCount(), behind, v.movedHere(head)) {
		f.err, f.crashes = fmt.Errorf("%w: %s", errCrashes, f.err.Error()), true // it is no outage
	}
	return f
}

// mayRunSuspects starts the suspects when no other chain is left. It is called after each change of that, with the lock of suspects.
func (v *invocation) mayRunSuspects() {
	s := &v.suspects
	if !s.begun && len(s.waiting) > 0 && v.open.Load() == int64(len(s.waiting)) {
		v.runSuspects()
	}
}

func (v *invocation) runSuspects() {
	s := &v.suspects
	s.begun = true
	v.alone.limit, v.alone.run = 1, v.runSuspect
	slices.SortStableFunc(s.waiting, func(a, b suspect) int { return a.started.Compare(b.started) })
	for _, waiting := range s.waiting {
		v.alone.add(waiting.chain)
	}
}

func (v *invocation) runSuspect(chain []int, w *worker) {
	if v.opts.Client != nil {
		v.deleteSucceeded()
	}
	v.slots[chain[0]].suspect = true
	for _, i := range chain {
		v.slots[i].alone = true
	}
	v.runChain(chain, w)
}

// deleteSucceeded deletes what has succeeded, or was sent to the dead-letter queue unrun, so that a crash does not bring it back. The mapping deletes it again.
func (v *invocation) deleteSucceeded() {
	ctx, cancel := context.WithTimeout(v.sendCtx, callTimeout)
	defer cancel()
	var succeeds []int
	v.suspects.mu.Lock()
	for i := range v.slots {
		s := &v.slots[i]
		done := s.is(succeeded) || s.is(notStarted) && s.sent.Load()
		if done && v.records[i].ReceiptHandle != "" && !v.suspects.deleted[i] {
			succeeds = append(succeeds, i)
		}
	}
	v.suspects.mu.Unlock()
	if len(succeeds) == 0 {
		return
	}
	url, err := v.queueURL(ctx, v.records[0].QueueARN)
	for batch := range slices.Chunk(succeeds, host.MaxBatch) {
		var out *sqs.DeleteMessageBatchOutput
		if err == nil {
			out, err = v.deleteBatch(ctx, url, batch)
		}
		if err != nil {
			v.log.WarnContext(ctx, "lambda: messages not deleted before a suspect runs: they come back if it crashes the process", "messages", len(batch), keyError, err)
			continue
		}
		for _, f := range out.Failed {
			v.log.WarnContext(ctx, "lambda: messages not deleted before a suspect runs: they come back if it crashes the process", "messages", 1, "code", aws.ToString(f.Code))
		}
	}
}

// deleteBatch deletes records. What SQS does not confirm is deleted again before the next suspect.
func (v *invocation) deleteBatch(ctx context.Context, url string, records []int) (*sqs.DeleteMessageBatchOutput, error) {
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &url}
	for n, i := range records {
		in.Entries = append(in.Entries, sqstypes.DeleteMessageBatchRequestEntry{Id: host.EntryID(n), ReceiptHandle: &v.records[i].ReceiptHandle})
	}
	out, err := v.client.DeleteMessageBatch(ctx, in)
	if err != nil {
		return nil, err
	}
	v.suspects.mu.Lock()
	defer v.suspects.mu.Unlock()
	if v.suspects.deleted == nil {
		v.suspects.deleted = map[int]bool{}
	}
	for _, e := range out.Successful {
		if n, ok := host.EntryIndex(e.Id, len(records)); ok {
			v.suspects.deleted[records[n]] = true
		}
	}
	return out, nil
}
