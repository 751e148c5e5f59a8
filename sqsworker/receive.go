package sqsworker

import (
	"crypto/rand"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/sdkhttp"
)

// polling decides how many receives are under way: one on an idle queue, more while they come back full and handlers are
// without work. While all handlers are busy, another receive would only keep messages from other workers.
type polling struct {
	target   int
	active   int       // under way, or waiting to repeat an attempt
	asked    int       // messages, by those that are active
	pausing  int       // receivers that wait, since their receive came back empty at once
	warned   time.Time // of answers without use
	lacking  time.Time // when the worker last warned of messages without system attributes
	long     longPoll
	resume   time.Time // after an error
	waits    time.Time // until then SQS may hand out messages to those that were sent
	repeats  time.Time // until then a FIFO attempt is sent again
	failures int       // in a row
	failed   time.Time // when the first of them ended
	lost     lostPolls
	answered uint64
}

// poll is one receive. It is never cancelled, because messages that SQS hands to a cancelled receive stay hidden for their
// visibility timeout, and it costs them a receive.
type poll struct {
	reserved amount
	attempt  string    // ReceiveRequestAttemptId, FIFO only
	began    time.Time // when it was first sent; zero: it was not yet
	sent     time.Time // the last time, of an attempt that is repeated
	lost     bool      // it was sent, and SQS may have handed out messages that did not arrive
	wait     time.Duration
}

const shortReceive = time.Second

// attemptWindow is how long SQS repeats its answer to a ReceiveRequestAttemptId.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
const attemptWindow = 5 * time.Minute

// startReceives starts the receives for which there is capacity, and handlers.
func (l *loop) startReceives() {
	full := false
	for !l.stopping.begun && !l.control.closed() && l.polling.active+l.polling.pausing < l.polling.target && !l.now().Before(l.polling.resume) {
		n := l.toReceive()
		if l.polling.lost.n > 0 {
			n = min(n, 1)
		}
		if n = l.permitted(n); n == 0 {
			full = l.polling.active == 0
			break
		}
		p := &poll{reserved: l.capacity.reserve(n)}
		if l.fifo {
			p.attempt = rand.Text()
		}
		l.polling.active++
		l.polling.asked += n
		l.permitsUsed(n)
		l.probed()
		l.probedStanding()
		if l.behind.probed = l.now(); n < host.MaxBatch && l.parkedAs[kindPostponed].messages+l.behind.delayed > 0 {
			l.wakeAfter(probeSooner)
			l.wakeAfter(probeEvery)
		}
		l.beginPoll(p)
	}
	l.noteFull(full)
}

// endPoll frees what a poll has reserved.
func (l *loop) endPoll(p *poll) {
	if p.lost {
		l.counters.unanswered.Add(1)
	}
	l.polling.active--
	l.polling.asked -= p.reserved.messages
	l.capacity.free(p.reserved)
}

func (l *loop) receive(p *poll) {
	l.counters.receives.Add(1)
	p.sent = l.now()
	if p.began.IsZero() {
		p.began = p.sent
	}
	wait, timeout := l.polling.long.wait, l.opts.WaitTime+receiveMargin
	switch {
	case l.stopping.begun || l.control.closed(): // only to have the answer to an attempt repeated
		wait, timeout = shortReceive, shortReceive+receiveMargin
	case l.clock.refresh(l.now()):
		wait = shortReceive
	}
	p.wait = wait
	l.polling.waits = later(l.polling.waits, p.sent.Add(wait+time.Second))
	in := &sqs.ReceiveMessageInput{
		QueueUrl:                    &l.queueURL,
		MaxNumberOfMessages:         int32(p.reserved.messages),
		WaitTimeSeconds:             int32(wait / time.Second),
		VisibilityTimeout:           int32(l.opts.VisibilityTimeout / time.Second),
		MessageAttributeNames:       allAttributes,
		MessageSystemAttributeNames: systemAttributes,
	}
	if p.attempt != "" {
		in.ReceiveRequestAttemptId = &p.attempt
	}
	arn := l.queue.arn
	l.call(func() event {
		ctx, done := l.hooks.begin(l.pollEnds.After(l.pollCtx, timeout), Call{
			QueueURL: l.queueURL, Purpose: "receive", Entries: p.reserved.messages,
		})
		out, err := l.client.ReceiveMessage(ctx, in, singleAttempt, func(o *sqs.Options) {
			o.DisableMessageChecksumValidation = true // see bodyMatches
		})
		arrival := l.now()
		if err != nil {
			done(CallResult{Err: err})
			return receiveFailed{p, err}
		}
		done(CallResult{Entries: len(out.Messages)})
		batch, lacking := make([]incoming, 0, len(out.Messages)), 0
		var body []byte // of one message after the other
		for i := range out.Messages {
			m := decode(&out.Messages[i], arn)
			if m.ID == "" || m.ReceiptHandle == "" {
				continue // it cannot be deleted: no message of SQS
			}
			if lacksAttributes(&out.Messages[i], l.fifo) {
				lacking++
			}
			body = append(body[:0], m.Body...)
			batch = append(batch, incoming{m: m, damaged: !bodyMatches(body, aws.ToString(out.Messages[i].MD5OfBody)), moved: wasMoved(&out.Messages[i]), size: size(m)})
		}
		date, _ := awsmiddleware.GetServerTime(out.ResultMetadata) // else zero
		return received{p, batch, len(out.Messages) - len(batch), lacking, arrival, date}
	})
}

// received is the answer to a receive.
type received struct {
	poll    *poll
	batch   []incoming
	useless int // messages without an ID or a receipt handle
	lacking int // messages without a receive count, or a group on FIFO
	arrival time.Time
	date    time.Time // of the answer, by SQS's clock; zero: it has none
}

// incoming is one message of a receive.
type incoming struct {
	m       *sqsonce.Message
	damaged bool // the body is not what was sent
	moved   bool // by SQS, from the queue whose dead-letter queue this is
	size    int64
}

func (l *loop) received(e received) {
	e.poll.lost = false
	l.endPoll(e.poll)
	if l.polling.failures > 0 {
		l.letOthersComplete(l.polling.failed)
		l.log.Info("sqsworker: receives are answered again", "tried_for", elapsed(e.arrival, l.polling.failed))
	}
	l.polling.failures, l.polling.lost = 0, lostPolls{}
	l.polling.long.answered(l.opts.WaitTime, e.arrival)
	l.warnLacking(e)
	l.absent(nil, e.poll.sent)
	l.signatures.receives.ends(nil, e.poll.sent, e.arrival)
	l.polling.answered++
	l.permitsLeft(e.poll.reserved.messages, len(e.batch))
	l.counters.received.Add(int64(len(e.batch)))
	l.counters.lastPoll.Store(aws.Time(e.arrival))
	l.pauseIfUseless(e)

	switch n := len(e.batch); {
	case n == 0:
		l.polling.target = max(1, l.polling.target-1)
	case n == e.poll.reserved.messages && l.freeSlots() > l.waitForSlots():
		l.polling.target = min(l.opts.MaxReceivers, l.polling.target+1)
	}
	l.clock.learn(e.poll.began, e.arrival, e.date)
	handedOut := l.clock.handedOut(e.poll.began, e.arrival, e.date, l.opts.VisibilityTimeout)
	jitter := mathrand.Float64() // one for all of them: they are extended together
	var largest int64
	added := make([]*delivery, 0, len(e.batch))
	for i, in := range e.batch {
		largest = max(largest, in.size)
		l.needs.count = in.m.ReceiveCount
		if in.damaged {
			l.counters.damaged.Add(1)
		}
		if l.dlqConfirmed() && !in.moved && in.m.ReceiveCount > l.queue.maxReceives {
			l.contradicted()
		}
		at := receiveOrder{l.polling.answered, i}
		le := newLease(in.m.ReceiptHandle, in.m.ReceiveCount, at, handedOut, l.opts.VisibilityTimeout, jitter)
		le.unproven = le.remaining(e.arrival) < l.opts.VisibilityTimeout/2
		if d := l.addDelivery(in, le); d != nil {
			d.received = e.arrival
			added = append(added, d)
			l.heartbeatBy(d.lease.due)
		}
	}
	l.capacity.learn(largest)
	l.noteBatch(added)
	if l.fifo {
		l.dispatchToGroups(added)
	} else {
		l.dispatch(added)
	}
}

// warnUselessAgain is how long answers without use are not logged again.
const warnUselessAgain = 10 * time.Minute

// pauseIfUseless lets a receiver wait for the rest of a second whose long poll came back empty at once. SQS does not answer
// so; a proxy or an emulator that does would get thousands of calls a second. Other receivers do not wait.
func (l *loop) pauseIfUseless(e received) {
	took := elapsed(e.arrival, e.poll.sent)
	early := len(e.batch) == 0 && took < shortReceive
	if early {
		l.polling.pausing++
		l.after(shortReceive-took, func() { l.polling.pausing-- })
	}
	if (early && took < shortReceive/2 || e.useless > 0) && isDue(&l.polling.warned, e.arrival, warnUselessAgain) {
		l.log.Warn("sqsworker: receive answered without use: empty long before its wait ended, or with messages that have no ID or receipt handle",
			"messages", len(e.batch), "without_id", e.useless, "took", took)
	}
}

// dispatch sends new deliveries of a standard queue on: to the handlers, behind an orphan, or back to SQS.
func (l *loop) dispatch(ds []*delivery) {
	for _, d := range ds {
		switch orphan := l.orphans[d.m.ID]; {
		case l.stopping.begun && !l.mustRunInStop(d):
			l.releaseUnstarted(d)
		case orphan != nil:
			orphan.next = d
			l.giveBackBehind(orphan)
		default:
			l.makeReady(d)
		}
	}
}

// dispatchToGroups adds new deliveries of a FIFO queue to their groups. In a stop it is the whole group that decides what
// is given back.
func (l *loop) dispatchToGroups(ds []*delivery) {
	var groups []*group
	for _, d := range ds {
		if g := l.joinGroup(d); !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	for _, g := range groups {
		if l.stopping.begun {
			l.releaseUnstartedOf(g)
		}
		if g.head != nil {
			l.giveBackBehind(g.head)
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
	if l.polling.failures++; l.polling.failures == 1 {
		l.polling.failed = l.now()
	}
	l.polling.target = 1
	delay := host.Jitter(100*time.Millisecond, mostDelayAfter(e.err), l.polling.failures)
	unknown := isOutcomeUnknown(e.err) && !isUnsent(e.err)
	e.poll.lost = e.poll.lost || unknown
	if sdkhttp.Unanswered(e.err) && unknown {
		l.polling.lost.add(e.poll.sent, l.now(), l.opts.VisibilityTimeout)
		delay = max(delay, l.polling.lost.delay(l.opts.VisibilityTimeout))
	} else if sdkhttp.Answered(e.err) {
		l.polling.lost = lostPolls{}
	}
	if l.absent(e.err, e.poll.sent) || isFatal(e.err) || l.signatures.receives.ends(e.err, e.poll.sent, l.now()) {
		l.stopBecause(e.err)
	} else {
		l.log.Warn("sqsworker: receive failed", keyError, e.err, keyDelay, delay)
	}
	if age := elapsed(l.now(), e.poll.sent); unknown && l.polling.long.unanswered(e.poll.wait, age, l.now()) {
		l.log.Warn("sqsworker: long polls are cut, and messages in them stay hidden: receives wait shorter now. Set Options.WaitTime below the HTTP client's and proxies' timeouts",
			"cut_after", age, "wait", l.polling.long.wait)
	}
	if isOutcomeUnknown(e.err) && l.mayRepeat(e.poll, delay) {
		l.polling.repeats = later(l.polling.repeats, l.now().Add(delay+callTimeout))
		l.after(delay, func() { l.beginPoll(e.poll) })
		return
	}
	l.endPoll(e.poll)
	l.polling.resume = l.now().Add(delay)
	l.wakeAfter(delay)
}

// amount is a number of messages and their size.
type amount struct {
	messages int
	bytes    int64
}

func (a amount) plus(b amount) amount  { return amount{a.messages + b.messages, a.bytes + b.bytes} }
func (a amount) minus(b amount) amount { return amount{a.messages - b.messages, a.bytes - b.bytes} }

// capacity is the two limits of the messages in flight, and their use. A receive reserves its part before it is sent, because
// every message that SQS hands out is in flight, whether it fits or not.
type capacity struct {
	limit, used amount
	expected    int64 // size of a message: the largest of the last receives
}

// firstExpected is the expected size before any message came: 256 KiB, the limit that most queues have.
const firstExpected = 256 << 10

func newCapacity(messages int, bytes int64) capacity {
	return capacity{limit: amount{messages, bytes}, expected: firstExpected}
}

// available returns how many messages a receive may ask for, 0 to 10.
func (c *capacity) available() int {
	rest := c.limit.minus(c.used)
	n := min(host.MaxBatch, rest.messages, int(rest.bytes/c.expected))
	if c.used.bytes == 0 && rest.messages > 0 {
		n = max(n, 1) // one message always fits
	}
	return max(n, 0)
}

func (c *capacity) reserve(n int) amount {
	a := amount{n, int64(n) * c.expected}
	c.use(a)
	return a
}

func (c *capacity) use(a amount)  { c.used = c.used.plus(a) }
func (c *capacity) free(a amount) { c.used = c.used.minus(a) }

// learn adapts the expected size to the largest message of a receive: up at once, down by at most an eighth.
func (c *capacity) learn(largest int64) {
	if largest > 0 {
		c.expected = max(largest, c.expected-c.expected/8, 1024)
	}
}
