package lambda

import (
	"context"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce"
)

// The messages of a FIFO group share their receives. After the last one, by the redrive policy, SQS moves them all to the
// dead-letter queue, whether they ran or not. So a failing head leaves its group while the messages behind it have a receive
// left, and in their last one no message takes all the time.

// isSpent reports whether a message that failed is for the dead-letter queue: one that was rejected; a FIFO message in its last
// receive, or in the one before that if messages behind it would have their last one with it. That goes for the head of an invocation
// only. A message behind it may have had its first run just now. With two receives a first failure would be the last, so there it is the
// last receive. One that is unavailable is spent in its last receive, for those behind it.
//
// Nothing is spent where the redrive policy is not known, and no message that SQS has moved here from another queue: its receive
// count goes on from there.
func (v *invocation) isSpent(f failure) bool {
	outcome := sqsonce.OutcomeOf(f.err).Kind
	if outcome == sqsonce.OutcomeRejected || f.crashes {
		return true
	}
	head, behind := f.chain[0], f.chain[1:]
	most := v.policy(head).maxReceives
	switch received := v.records[head].receiveCount(); {
	case most == 0 || received < most-1, v.movedHere(head):
		return false
	case outcome == sqsonce.OutcomeUnavailable:
		return received >= most
	case received == most-1:
		return v.slots[head].head && most > 2 && v.anyReceived(behind, most-1)
	}
	return true
}

// movedHere reports whether SQS has moved a message here from another queue.
func (v *invocation) movedHere(record int) bool {
	return v.records[record].Attributes.DeadLetterQueueSource != ""
}

// isLeftToSQS reports whether SQS moves a failed message that the dead-letter queue has not taken from the function, and the messages
// behind it, in their last receive too, may run. SQS moves it where its receive count is maxReceiveCount and its dead-letter queue exists;
// else it would come again, behind those that were behind it.
func (v *invocation) isLeftToSQS(f failure) bool {
	if len(f.chain) == 1 { // asks nobody
		return false
	}
	a := v.attributes(v.sendCtx)
	if !v.mayBeLeftToSQS(f, a.maxReceives) {
		return false
	}
	ctx, cancel := context.WithTimeout(v.sendCtx, callTimeout)
	defer cancel()
	_, err := v.askURL(ctx, a.deadLetterARN)
	return err == nil
}

func (v *invocation) mayBeLeftToSQS(f failure, most int) bool {
	head := f.chain[0]
	return !v.movedHere(head) && v.records[head].receiveCount() == most && v.anyReceived(f.chain[1:], most)
}

// timeToSend bounds a send to the dead-letter queue, including the SDK's own retries: by half of the time that is left, where SQS moves the
// message all the same and those behind it may run. That goes by what is known: a send waits for no read.
func (v *invocation) timeToSend(f failure) time.Duration {
	if known, ok := v.known(); ok && v.times.limited() && v.mayBeLeftToSQS(f, known.maxReceives) {
		if left := time.Until(v.times.at(handlersStop)); left > 0 {
			return min(left/2, sendTimeout)
		}
	}
	return sendTimeout
}

func (v *invocation) anyReceived(records []int, times int) bool {
	return slices.ContainsFunc(records, func(i int) bool { return v.records[i].receiveCount() >= times })
}

// isLastReceive reports whether SQS moves a message to the dead-letter queue unless it succeeds now.
func (v *invocation) isLastReceive(record int) bool {
	if v.opts.Client == nil {
		return false
	}
	most := v.policy(record).maxReceives
	return most > 0 && v.records[record].receiveCount() >= most
}

// behind are the records that wait for the first one of a chain: those behind it, and behind a suspect the other suspects too.
func (v *invocation) behind(chain []int) []int {
	if !v.slots[chain[0]].alone {
		return chain[1:]
	}
	return slices.Concat(append(v.alone.queued(), chain[1:])...)
}

// limit returns the context of the handler for the first record of a chain, and a function to call when it has returned. The
// context ends after half of the time that is left where messages behind the record are in their last receive, but see runsOn.
//
// SQS is asked for the policy when that half has passed: quick handlers cost no call. What a send to the dead-letter queue
// needs is then known before the margin, which may leave little time.
func (v *invocation) limit(ctx context.Context, chain []int) (limited context.Context, returned func()) {
	behind := v.behind(chain)
	if len(behind) == 0 || v.opts.Client == nil || !v.times.limited() {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	left := time.Until(v.times.at(handlersStop))
	half := time.AfterFunc(left/2, func() {
		a := v.attributes(v.sendCtx)
		switch {
		case a.maxReceives == 0:
		case v.anyReceived(behind, a.maxReceives):
			if v.runsOn(chain[0], len(behind), left, ended) {
				return
			}
			cancel(sqsonce.ErrShutdown)
			v.abandonAfterGrace(chain)
		case v.anyReceived(behind, a.maxReceives-1) && v.opts.DeadLetterQueue == "":
			_, _ = v.queueURL(v.sendCtx, a.deadLetterARN) // kept; the send asks again, and logs an error
		}
	})
	return ctx, func() {
		half.Stop()
		close(ended)
	}
}

// runsOn lets the handler for the first record of a chain run on after half of the time that was left, and reports whether it has ended or
// keeps the rest. So does a message that was behind another one itself, as far as the run times say: until an eighth is left, after the
// grace, where half of that is enough for those behind it, as a send may take the other half; and to the margin, where the half of now would
// be enough for none of them.
func (v *invocation) runsOn(record, behind int, left time.Duration, ended <-chan struct{}) bool {
	rest := left / 8
	switch r := &v.runTimes; {
	case v.slots[record].head || !r.known():
		return false
	case r.noneFits(left / 2):
		return true
	case !r.fit(rest / 2 / time.Duration(behind)):
		return false
	}
	select {
	case <-time.After(time.Until(v.times.at(handlersStop)) - rest - v.grace()):
		return false
	case <-ended:
		return true
	}
}

// grace is how long a handler may go on after the end of its context.
func (v *invocation) grace() time.Duration { return v.times.between(handlersStop, handlersClosed) }

// abandonAfterGrace abandons the handler for the first record of a chain, whose context has ended, where it keeps those behind it from
// their last receive.
func (v *invocation) abandonAfterGrace(chain []int) {
	time.AfterFunc(v.grace(), func() {
		if v.slots[chain[0]].change(running, abandoned) {
			v.replaceWorker(chain[0])
			v.abandon(chain)
		}
	})
}
