package sqsworker

import (
	"context"
	"crypto/rand"
	mathrand "math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// polling decides how many receives are under way: one on an idle queue, more while they come back full and find
// handlers without work. With handlers that are all busy another one would only hold messages for longer.
type polling struct {
	target   int
	active   int       // under way, or waiting to repeat an attempt
	pause    time.Time // after errors
	failures int       // in a row
	receives uint64
}

// poll is one receive. It is never cancelled: what SQS hands to a poll that nobody reads stays hidden for its
// visibility timeout, and costs it a receive.
type poll struct {
	reserved reservation
	attempt  string // ReceiveRequestAttemptId, FIFO only
	began    time.Time
}

// attemptWindow is how long SQS repeats an answer to the same ReceiveRequestAttemptId.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
const attemptWindow = 5 * time.Minute

type incoming struct {
	m       *sqsonce.Message
	damaged bool
	size    int64
}

// ask starts the receives that there is room for. Busy, it waits until a full one fits: half-full receives would double
// their cost. It takes less only where handlers starve and nothing under way will make room.
func (l *loop) ask() {
	l.full.Store(l.room.used >= l.room.messages)
	for !l.stopping.begun && l.polling.active < l.polling.target && !l.now().Before(l.polling.pause) {
		n := l.room.fits()
		if n == 0 || n < l.room.full() && !l.starving() {
			return
		}
		p := &poll{reserved: l.room.take(n), began: l.now()}
		if l.fifo {
			p.attempt = rand.Text()
		}
		l.polling.active++
		l.receive(p)
	}
}

func (l *loop) starving() bool {
	return l.slots > 0 && len(l.ready) == 0 && l.polling.active == 0 && l.deletes.fresh() == 0 && l.releases.fresh() == 0
}

func (l *loop) receive(p *poll) {
	l.counters.receives.Add(1)
	wait := l.opts.Wait
	if l.stopping.begun {
		wait = time.Second // only to have the answer to an attempt repeated
	}
	in := &sqs.ReceiveMessageInput{
		QueueUrl:                    &l.queueURL,
		MaxNumberOfMessages:         int32(p.reserved.n),
		WaitTimeSeconds:             int32(wait / time.Second),
		VisibilityTimeout:           int32(l.opts.Visibility / time.Second),
		MessageAttributeNames:       []string{"All"},
		MessageSystemAttributeNames: systemAttributes,
	}
	if p.attempt != "" {
		in.ReceiveRequestAttemptId = &p.attempt
	}
	l.call(func() event {
		ctx, cancel := context.WithTimeout(l.pollCtx, wait+receiveMargin)
		defer cancel()
		out, err := l.client.ReceiveMessage(ctx, in, once, func(o *sqs.Options) {
			o.DisableMessageChecksumValidation = true // see bodyMatches
		})
		arrival := l.now()
		if err != nil {
			return receiveFailed{p, err}
		}
		batch := make([]incoming, len(out.Messages))
		for i := range out.Messages {
			m := decode(&out.Messages[i], l.queue.arn)
			batch[i] = incoming{m: m, damaged: !bodyMatches(&out.Messages[i]), size: size(m)}
		}
		return received{p, batch, arrival}
	})
}

// received is the answer to a receive.
type received struct {
	poll    *poll
	batch   []incoming
	arrival time.Time
}

func (l *loop) received(e received) {
	p, batch, arrival := e.poll, e.batch, e.arrival
	l.polling.active--
	l.polling.failures = 0
	l.polling.receives++
	l.counters.received.Add(int64(len(batch)))
	l.counters.lastPoll.Store(aws.Time(arrival))
	l.room.give(p.reserved)

	switch n := len(batch); {
	case n == 0:
		l.polling.target = max(1, l.polling.target-1)
	case n == p.reserved.n && l.slots > len(l.ready):
		l.polling.target = min(l.opts.Receivers, l.polling.target+1)
	}
	early := mathrand.Float64() // one for all: they are extended together
	var largest int64
	admitted := make([]*delivery, 0, len(batch))
	for i := range batch {
		largest = max(largest, batch[i].size)
		m := batch[i].m
		le := newLease(m.ReceiptHandle, m.ReceiveCount, order{l.polling.receives, i}, arrival, l.opts.Visibility, early)
		if d := l.admit(&batch[i], le); d != nil {
			admitted = append(admitted, d)
			l.beatBy(d.lease.due)
		}
	}
	l.room.learn(largest)
	l.place(admitted)
}

// place gives new deliveries their way: into their group, to the handlers, behind an orphan, or back.
func (l *loop) place(ds []*delivery) {
	var touched map[*group]bool
	for _, d := range ds {
		switch {
		case l.fifo:
			if touched == nil {
				touched = map[*group]bool{}
			}
			touched[l.joinGroup(d)] = true
		case l.stopping.begun && !l.keepAtStop(d):
			l.giveBack(d)
		case l.orphans[d.m.ID] != nil:
			l.orphans[d.m.ID].next = d // started when the handler that lost its lease has returned
		default:
			l.makeReady(d)
		}
	}
	for g := range touched {
		if l.stopping.begun {
			l.releaseUnstarted(g)
		}
		l.advance(g)
	}
}

// receiveFailed says that a receive has failed, or got no answer.
type receiveFailed struct {
	poll *poll
	err  error
}

func (l *loop) receiveFailed(e receiveFailed) {
	p, err := e.poll, e.err
	l.polling.failures++
	l.polling.target = 1
	delay := host.Jitter(100*time.Millisecond, 20*time.Second, l.polling.failures)
	if isFatal(err) {
		l.fail(err)
	} else {
		l.log.Warn("sqsworker: receive", keyError, err, keyDelay, delay)
	}
	// On FIFO an attempt without an answer may have taken messages. Repeated with its ID it gets the same ones; given up
	// it hides them, and with them their groups. After an answer the ID is spent.
	if p.attempt != "" && isUnknown(err) && l.now().Sub(p.began) < attemptWindow && l.pollCtx.Err() == nil {
		l.later(delay, func() { l.receive(p) })
		return
	}
	if isUnknown(err) {
		l.counters.unanswered.Add(1)
	}
	l.polling.active--
	l.room.give(p.reserved)
	l.polling.pause = l.now().Add(delay)
	l.later(delay, func() {}) // a turn asks again
}

// room is what is left of the two limits on what is in flight: messages and bytes. Both are taken before a receive
// asks, since what SQS has handed out is in flight whether there is room for it or not.
type room struct {
	messages int   // limits
	bytes    int64 //
	used     int
	usedSize int64
	expect   int64 // of one message, from the largest seen lately
}

// reservation is the room of a receive under way.
type reservation struct {
	n    int
	size int64
}

// firstGuess is the size of a message before any was seen: the limit that most queues have.
const firstGuess = 256 << 10

func newRoom(messages int, bytes int64) room {
	return room{messages: messages, bytes: bytes, expect: firstGuess}
}

// fits returns how many messages a receive may ask for, 0 to 10.
func (r *room) fits() int {
	n := min(maxBatch, r.messages-r.used, int((r.bytes-r.usedSize)/r.expect))
	if r.used == 0 {
		n = max(n, 1) // a message is never larger than the limit alone
	}
	return max(n, 0)
}

// full is what a receive asks for when nothing else is in flight.
func (r *room) full() int { return min(maxBatch, r.messages) }

func (r *room) take(n int) reservation {
	res := reservation{n: n, size: int64(n) * r.expect}
	r.used += res.n
	r.usedSize += res.size
	return res
}

func (r *room) give(res reservation) {
	r.used -= res.n
	r.usedSize -= res.size
}

// add counts a message that arrived.
func (r *room) add(size int64) { r.used, r.usedSize = r.used+1, r.usedSize+size }

// learn adapts the expected size: up at once, down by an eighth per receive.
func (r *room) learn(largest int64) {
	if largest > 0 {
		r.expect = max(largest, r.expect-r.expect/8, 1024)
	}
}
