package sqsworker

import (
	"cmp"
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/host"
)

// queue is the part of its queue's attributes that Run reads before the first receive, and then again and again: see age.go.
type queue struct {
	arn         string
	maxReceives int           // of the redrive policy; 0: no policy, SQS delivers a message again and again
	guessed     bool          // maxReceives is, since the policy cannot be read
	deadLetter  string        // URL; "": not known
	target      string        // ARN of the redrive policy's dead-letter queue
	confirmed   time.Time     // when SQS answered that it exists; zero: it has not
	retention   time.Duration // of its messages; 0: not known
	// longestReturn is how long after its first delivery a message can come back; 0: not known.
	longestReturn time.Duration
	denied        bool  // the role may not read the attributes
	urlUnread     error // of GetQueueUrl, which did not say whether the dead-letter queue exists
}

// unknownMaxReceives is assumed if the redrive policy cannot be read. It is low, so that a message is rather held than
// moved to the dead-letter queue.
const unknownMaxReceives = 3

func (q *queue) hasDLQ() bool { return q.deadLetter != "" }

// maxAttempts is how often the head of a FIFO group is run before it is dead-lettered.
func (q *queue) maxAttempts(asked int) int {
	switch {
	case asked != 0:
		return asked
	case q.maxReceives == 0 || q.guessed:
		return unknownAttempts
	default:
		return min(q.maxReceives, mostAttempts)
	}
}

// readQueue reads the queue's attributes, finds its dead-letter queue, and logs what is questionable.
func (w *Worker) readQueue(ctx context.Context) (queue, error) {
	q, a, err := w.readPolicy(ctx, w.log)
	if err == nil {
		w.checkQueue(ctx, &q, a)
	}
	return q, err
}

// readQueueAgain reads them once more, and logs what is questionable where they have changed.
func (w *Worker) readQueueAgain(ctx context.Context, known queue) (queue, error) {
	q, _, err := w.readPolicy(ctx, slog.New(slog.DiscardHandler))
	if err != nil {
		return q, err
	}
	if q.urlUnread != nil && q.target == known.target {
		q.deadLetter, q.confirmed = known.deadLetter, known.confirmed
	}
	if q.same(&known) {
		q.longestReturn = known.longestReturn
		return q, nil
	}
	return w.readQueue(ctx)
}

// same says that both were read to be the same, at whatever time.
func (q *queue) same(other *queue) bool {
	return q.arn == other.arn && q.maxReceives == other.maxReceives && q.guessed == other.guessed && q.target == other.target &&
		q.deadLetter == other.deadLetter && q.confirmed.IsZero() == other.confirmed.IsZero()
}

func (w *Worker) readPolicy(ctx context.Context, log *slog.Logger) (queue, attributes, error) {
	q := queue{deadLetter: w.opts.DeadLetterQueue}
	a, err := w.attributesOf(ctx, w.queueURL)
	if err == nil {
		w.readRedrivePolicy(ctx, &q, a, log)
	}
	return q, a, err
}

// guess is what the worker goes by if it cannot read the queue's attributes.
func (w *Worker) guess() queue {
	q := queue{arn: w.opts.QueueARN, deadLetter: w.opts.DeadLetterQueue, maxReceives: unknownMaxReceives, guessed: true}
	if arn, ok := host.ARNOfURL(w.queueURL); ok {
		q.arn = arn.String()
	}
	return q
}

// readRedrivePolicy sets what the queue's attributes say about failures.
func (w *Worker) readRedrivePolicy(ctx context.Context, q *queue, a attributes, log *slog.Logger) {
	q.arn, q.retention = a.get(sqstypes.QueueAttributeNameQueueArn), a.seconds(sqstypes.QueueAttributeNameMessageRetentionPeriod)
	text := a.get(sqstypes.QueueAttributeNameRedrivePolicy)
	if text == "" {
		return
	}
	target, most, err := host.ParseRedrivePolicy(text)
	if err != nil {
		log.WarnContext(ctx, "sqsworker: redrive policy cannot be parsed", keyError, err)
		q.maxReceives, q.guessed = unknownMaxReceives, true
		return
	}
	if q.maxReceives = most; most == 0 {
		q.maxReceives, q.guessed = unknownMaxReceives, true
	}
	q.target = target
	w.findDeadLetterQueue(ctx, q, log)
}

// findDeadLetterQueue asks whether the dead-letter queue of the redrive policy exists, and sets its URL where
// Options.DeadLetterQueue has none. SQS requires a dead-letter queue in the account and region of its queue, so the URLs
// differ only in the name: that is used if GetQueueUrl fails.
func (w *Worker) findDeadLetterQueue(ctx context.Context, q *queue, log *slog.Logger) {
	arn, err := host.ParseQueueARN(q.target)
	if err != nil {
		log.WarnContext(ctx, "sqsworker: redrive policy without a queue's ARN", keyError, err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := w.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &arn.Name, QueueOwnerAWSAccountId: &arn.Account}, singleAttempt)
	switch {
	case err == nil && aws.ToString(out.QueueUrl) != "":
		q.confirmed = w.now()
		q.deadLetter = cmp.Or(q.deadLetter, *out.QueueUrl)
	case isMissing(err):
		log.ErrorContext(ctx, "sqsworker: the dead-letter queue of the redrive policy does not exist", keyReason, q.target)
	case q.deadLetter != "":
		q.urlUnread = err
	default:
		q.urlUnread = cmp.Or(err, errNoDLQ)
		q.deadLetter = w.queueURL[:strings.LastIndexByte(w.queueURL, '/')+1] + arn.Name
		log.WarnContext(ctx, "sqsworker: URL of the dead-letter queue not read: the worker makes it from the queue's URL and the ARN",
			keyValue, q.deadLetter, keyError, err)
	}
}

// attributes of a queue, by name.
type attributes map[string]string

func (a attributes) get(name sqstypes.QueueAttributeName) string { return a[string(name)] }

// seconds returns an attribute that is a number of seconds, or 0 if it is missing.
func (a attributes) seconds(name sqstypes.QueueAttributeName) time.Duration {
	n, err := strconv.Atoi(a.get(name))
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second
}

// attributesOf reads all attributes of a queue. Asked for by name, SQS refuses those of the other kind of queue.
func (w *Worker) attributesOf(ctx context.Context, queueURL string) (attributes, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*callTimeout)
	defer cancel()
	out, err := w.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &queueURL, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll},
	}, singleAttempt)
	if err == nil && len(out.Attributes) == 0 {
		err = errNoAttributes
	}
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

// The startup check: checkOptions, checkQueue and checkDeadLetterQueue log each questionable setting in one line. None of
// them keeps the worker from running. A setting that cannot work is an error of New, or of the call that SQS refuses.

const (
	shortVisibility = 5 * time.Second
	shortWait       = 5 * time.Second
	shortRetention  = time.Hour
	fewReceives     = 3
)

// warnIf logs a questionable setting.
func (w *Worker) warnIf(questionable bool, setting string, value any, reason string) {
	if questionable {
		w.log.Warn("sqsworker: questionable setting", keySetting, setting, keyValue, value, keyReason, reason)
	}
}

func (w *Worker) checkOptions() {
	o := &w.opts
	w.warnIf(o.VisibilityTimeout < shortVisibility, "Options.VisibilityTimeout", o.VisibilityTimeout,
		"an outage or a pause of a few seconds loses every lease and cancels every handler")
	w.warnIf(o.WaitTime < shortWait, "Options.WaitTime", o.WaitTime,
		"an idle worker sends a receive after each WaitTime, and an empty receive costs as much as a full one")
	w.warnIf(o.StopTimeout < o.WaitTime+5*time.Second, "Options.StopTimeout", o.StopTimeout,
		"shorter than WaitTime + 5 s: a stop may leave messages hidden until their visibility timeout ends")
	w.warnIf(o.MaxInFlight < o.Concurrency, "Options.MaxInFlight", o.MaxInFlight,
		"less than Concurrency: so many handlers never run at once")
	w.warnIf(!w.fifo && o.MaxAttempts != 0, "Options.MaxAttempts", o.MaxAttempts,
		"no effect: the queue's URL does not end in .fifo")
}

func (w *Worker) checkQueue(ctx context.Context, q *queue, a attributes) {
	w.warnIf((a.get(sqstypes.QueueAttributeNameFifoQueue) == "true") != w.fifo, "queue.FifoQueue",
		a.get(sqstypes.QueueAttributeNameFifoQueue), "not the kind that the URL says: only the URL decides whether groups are handled in order")
	w.warnIf(q.maxReceives == 0, "queue.RedrivePolicy", "none",
		"a message that always fails is delivered again until its retention ends: sqsonce doctor --queue "+w.queueURL+" prints the command that sets one")
	w.warnIf(q.maxReceives > 0 && q.maxReceives < fewReceives, "queue.RedrivePolicy.maxReceiveCount", q.maxReceives,
		"a crash costs a receive too: messages whose handler never failed reach the dead-letter queue")
	w.warnIf(q.retention > 0 && q.retention < shortRetention, "queue.MessageRetentionPeriod", q.retention,
		"shorter than the backoff of five attempts and an outage: messages go to the dead-letter queue before they have had that many attempts")
	dead := time.Duration(0)
	if q.hasDLQ() {
		dead = w.checkDeadLetterQueue(ctx, q, q.retention)
	}
	q.longestReturn = host.LongestReturn(w.fifo, q.retention, q.hasDLQ(), dead)
}

// checkDeadLetterQueue needs sqs:GetQueueAttributes on the dead-letter queue, which the worker does not need otherwise. If
// it is not allowed, that is logged at debug level only. It returns the dead-letter queue's retention, or 0.
func (w *Worker) checkDeadLetterQueue(ctx context.Context, q *queue, retention time.Duration) time.Duration {
	dead, err := w.attributesOf(ctx, q.deadLetter)
	switch {
	case isMissing(err):
		w.warnIf(true, "Options.DeadLetterQueue", q.deadLetter, "does not exist: rejected messages are delivered again")
		return 0
	case err != nil:
		w.log.DebugContext(ctx, "sqsworker: attributes of the dead-letter queue not read", keyError, err)
		return 0
	}
	// A message that SQS moves from a standard queue keeps the time when it was sent: its time in the queue counts in the
	// dead-letter queue too. On FIFO it gets a new time. Equal retentions are no reason for a line: four days is the
	// default of both, and a message that fails from the start has some days left.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
	deadRetention := dead.seconds(sqstypes.QueueAttributeNameMessageRetentionPeriod)
	w.warnIf(!w.fifo && retention > 0 && deadRetention > 0 && deadRetention < retention,
		"deadLetterQueue.MessageRetentionPeriod", deadRetention,
		"shorter than the queue's: it counts from when a message was sent, and may be over when the message arrives")
	return deadRetention
}
