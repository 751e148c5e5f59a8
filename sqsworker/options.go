package sqsworker

import (
	"cmp"
	"context"
	"log/slog"
	"runtime"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Options configure [New]. The zero value of each field is its default.
type Options struct {
	// Most users set these first.

	// Concurrency is how many handlers run at once. [Worker.SetConcurrency] changes it.
	// Default: 10. Limits: 1 to 120,000.
	Concurrency int
	// Timeout returns the time after which the context of a message's handler is cancelled with context.DeadlineExceeded. With 0
	// or a negative time it is never cancelled. Timeout is called before each run of a handler, from any goroutine, and must not
	// change the message. If it panics, the message fails with a *sqsonce.PanicError.
	// Default: nil, without a timeout.
	Timeout func(m *sqsonce.Message) time.Duration
	// StopTimeout is how long handlers may continue after Run's context was cancelled. With at least WaitTime + 5 s messages
	// don't stay hidden after the stop. A shorter WaitTime makes stops shorter, and costs more receives on an idle queue.
	//
	// The platform must wait for StopTimeout + StopGrace + 7 s before it kills the process. The defaults need at most 29 s. ECS
	// (stopTimeout) and Kubernetes (terminationGracePeriodSeconds) send SIGTERM and, 30 s later by default, SIGKILL. Handlers
	// that need longer to finish need a longer StopTimeout: 110 s for two minutes, the most that Fargate waits. In a container
	// the process must be the first one, or be run by one that passes signals on ("initProcessEnabled": true on ECS).
	//
	// Default: 20 s, with which Run returns within 30 s. A negative time is 0.
	StopTimeout time.Duration

	// Messages and their leases.

	// VisibilityTimeout is the visibility timeout sent with each receive and each extension, in whole seconds. It is how long a
	// message may stay hidden after its worker died, not a limit for handlers. A heartbeat extends it at half its length (at a
	// third below ten seconds), ten messages per call, and repeats failed extensions.
	//
	// The worker loses the lease of a message when SQS refuses an extension, or when the last extension that succeeded has
	// expired. Another worker may have the message then. The handler's context is cancelled with cause [sqsonce.ErrLeaseLost],
	// and the worker neither deletes nor changes the message. It does not start a message whose lease it can't prove. SQS hides
	// a message for at most twelve hours after its receipt, and so does the worker.
	//
	// An answer to a receive may arrive late because of a slow network, or because the process was stopped. Its Date says when
	// SQS handed the messages out. If less than half of the visibility timeout is left, the worker extends them before their
	// handlers start. If the timeout has expired, it doesn't start them. A visibility timeout below 5 s is too short for that,
	// because Dates are whole seconds.
	//
	// Default: 30 s. Limits: 1 s to 12 h.
	VisibilityTimeout time.Duration
	// MaxExtension is how long after its receipt a message is hidden by extensions. Then its lease is lost, and the context of
	// its handler is cancelled with cause sqsonce.ErrLeaseLost.
	// Default: 12 h, the limit of SQS. Limits: VisibilityTimeout to 12 h.
	MaxExtension time.Duration
	// Backoff returns the delay after a failed attempt. On a standard queue its argument is the receive count, 1 for the first
	// delivery. On FIFO it counts the runs in this process, see MaxAttempts. The delay is rounded up to whole seconds, and cut
	// to the rest of the 12 h that SQS hides a message. With a maxReceiveCount of 5 the default doesn't dead-letter a message
	// for a failure of less than eleven minutes.
	// Default: 10 s, 1 min, then 5 min, and a random part of up to a quarter more.
	Backoff func(attempt int) time.Duration
	// MaxAttempts is how often this process runs the head of a FIFO group. Then the worker sends it to the dead-letter queue
	// with its last error. Between its attempts it waits for Backoff, and its followers wait behind it. Then the next message is
	// the head. SQS does not count receives of the group meanwhile, so a follower doesn't reach the dead-letter queue without a
	// run. Waiting groups don't count in MaxInFlight, so poisoned groups don't slow down the others. See MaxHeld.
	//
	// Without a redrive policy the group is given back after so many attempts. If the dead-letter queue refuses the message, the
	// worker leaves the head to SQS at its last receive. If that queue is missing or unknown, SQS would deliver the head again,
	// after the messages behind it. So the worker holds the group, logs it once, looks for the queue every 30 s, and continues
	// within a minute after you create it.
	//
	// Default: the maxReceiveCount of the queue, at most 10, or 3 if that is not known. Limits: at least 1.
	MaxAttempts int
	// QueueARN is the queue's ARN. It is part of the key of events without an ID. Set it only if sqs:GetQueueAttributes is
	// denied and the queue's URL is that of a proxy, which lacks the ARN. Without QueueARN such messages wait.
	// Default: from the attributes, else from the URL.
	QueueARN string
	// DeadLetterQueue is the URL of the queue for rejected messages, of the same kind as the worker's.
	// Default: the dead-letter queue of the queue's RedrivePolicy.
	DeadLetterQueue string

	// Receives and deletes.

	// MaxInFlight is how many messages may be received and not yet deleted or given back. The messages of one FIFO group come
	// together, and wait for each other. SQS allows about 120,000 per queue.
	//
	// A message that waits in a worker for a slot can't be handled by another worker that has a free slot. So a worker receives
	// for its free slots. Beyond them it receives only as many messages as its handlers will start within a second, by their
	// last runs. Until some handlers have returned, it receives for its free slots only. A worker with slow handlers therefore
	// has fewer messages than MaxInFlight. Receives for quick handlers are for ten messages each, which costs least. MaxInFlight
	// and MaxBytes are the upper limits.
	//
	// Default: 2 x Concurrency + 10, at most 120,000. Limits: 1 to 120,000.
	MaxInFlight int
	// MaxHeld is how many messages may wait in this process outside MaxInFlight until they run again. They wait for the next
	// attempt of their FIFO group, for example, for the end of another delivery of their event, or for an unavailable dependency.
	// Beyond it they are given back, except near their last receive. While twice as many wait the worker doesn't receive, but
	// for postponed messages ([sqsonce.Postpone]), of which each group or key of a limit gets at most a quarter of MaxHeld.
	//
	// A held message stays hidden, extended by the heartbeat, and uses neither a slot nor a place in MaxInFlight. After
	// [sqsonce.ErrInProgress] it runs again when the other delivery of this process has ended, else when the lease of the other
	// delivery should have expired. Beyond MaxHeld and half of MaxBytes it is given back until then.
	//
	// Default: 4 x MaxInFlight, at least 30. Limits: 1 to 480,000.
	MaxHeld int
	// Delayed is how many postponed messages this worker may have given back at a time, each until its turn, to receive those
	// behind them ([sqsonce.Postpone]). Each costs its message a receive, so the worker holds messages with fewer than three
	// receives left. SQS counts them in its 120,000 in flight. Beyond Delayed the worker receives only as many messages as could
	// run of the last ones, and as it can hold.
	// Default: 10 x MaxHeld for messages without a group, and none for those with one. A number holds for both. Negative: none.
	// Limits: at most 120,000.
	Delayed int
	// Intake is asked before receives how many of n messages may be received. With 0 it is asked again after again, which the
	// worker bounds to 10 ms and a minute. Use it for a limit of the whole queue: messages then wait in the queue and cost one
	// receive. What a receive doesn't bring is left to the receives of the next second. Calls don't overlap, and ctx ends after
	// a few seconds. While Intake panics or doesn't return, the worker receives nothing. See limit.Limiter.Intake.
	// Default: nil, any number.
	Intake func(ctx context.Context, n int) (granted int, again time.Duration)
	// MaxBytes limits the size of the messages in flight. A receive asks for as many as fit if each is as large as the largest
	// of the last receives. When sizes grow, the receives under way can therefore exceed the limit once.
	// Default: 64 MiB. Limits: at least 1 MiB.
	MaxBytes int64
	// MaxReceivers is the most long polls at once. One polls an idle queue. Others join while receives come back full and
	// handlers are idle, and leave when the queue is empty. A receive of 15 ms brings 20,000 messages a second with 32 of them,
	// about as many as a CPU can receive and delete. A more distant queue may need more.
	//
	// As many deletes, and at least 16, may be under way at once, and more if they need longer than 200 ms. A stop ignores that
	// limit.
	//
	// Default: enough for MaxInFlight with ten messages each, and at most 32 for each CPU that Go uses (GOMAXPROCS). Limits: 1
	// to 12,000.
	MaxReceivers int
	// WaitTime is how long a receive waits for the first message, in whole seconds. A stop waits for receives under way.
	// Default: 15 s. Limits: 1 s to 20 s, which SQS allows.
	WaitTime time.Duration
	// DeleteLinger is how long a finished message waits for others to be deleted, or given back, in the same call. A message of
	// a FIFO group does not wait if another one of its group is next.
	// Default: 10 ms. Limits: at most 1 s. A negative time is 0.
	DeleteLinger time.Duration

	// The stop.

	// StopGrace is how long a handler may need to return after its context was cancelled before it counts as stuck.
	//
	// The worker gives the slot of a stuck handler to another message, and continues to extend the message of the stuck handler.
	// If its lease was lost, the worker may receive the message again. The new copy waits for the handler until that counts as
	// stuck. Then the worker gives it back for other workers, together with later messages of its FIFO group, after half the
	// visibility timeout, doubled with each receive. At its last receive the copy continues to wait. When as many handlers as
	// Concurrency are stuck, /live of [Worker.Health] is 503.
	//
	// Default: 2 s. A negative time is 0.
	StopGrace time.Duration

	// Logs, hooks and error texts.

	// Logger gets the events that errors don't report. docs/logs.md lists the lines. If its slog.Handler blocks, the worker drops
	// lines and goes on.
	//
	// The line "sqsworker: started" has the main settings. Each line about a message has message_id, and key if the message
	// has one. This is the key that package dedup has used, and logs after the consumer and "#". Before the handler has come so
	// far, and with a dedup.Options.Key, it is the key of [sqsonce.Message.Key] without [sqsonce.OpenEnvelope]. One line names
	// each message that is sent to the dead-letter queue, with the reason. One line names each message that is given back at its
	// last receive, so that SQS moves it there, if the dead-letter queue was found.
	//
	// Default: slog.Default().
	Logger *slog.Logger
	// OnError is called after each handler whose outcome is failed, rejected or unavailable. The rules of [sqsonce.Hooks] apply.
	// For more use Hooks.
	// Default: nil.
	OnError func(ctx context.Context, m *sqsonce.Message, err error)
	// Hooks are called for telemetry. See [Hooks].
	// Default: empty.
	Hooks []Hooks
	// ErrorText returns the text of a handler's error for the attribute reject-reason, which the readers of the dead-letter
	// queue see. If it panics, the worker writes the error's type instead.
	// Default: Error.
	ErrorText func(error) string
}

const (
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
	maxVisibility = 12 * time.Hour
	maxInFlight   = 120_000
	// Beyond these no more could be in flight. They also keep sums and products of options from overflowing.
	maxConcurrency = maxInFlight
	maxReceivers   = maxInFlight / host.MaxBatch
	maxHeld        = 4 * maxInFlight
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
	maxWait = 20 * time.Second
	maxBody = 1 << 20

	receiversPerCPU = 32

	mostAttempts    = 10 // by default
	unknownAttempts = 3
)

func (o *Options) setDefaults() {
	o.Concurrency = cmp.Or(o.Concurrency, 10)
	o.MaxInFlight = cmp.Or(o.MaxInFlight, min(2*o.Concurrency+10, maxInFlight))
	o.MaxHeld = cmp.Or(o.MaxHeld, max(30, 4*o.MaxInFlight))
	o.MaxBytes = cmp.Or(o.MaxBytes, 64<<20)
	o.MaxReceivers = cmp.Or(o.MaxReceivers, min((o.MaxInFlight+host.MaxBatch-1)/host.MaxBatch, receiversPerCPU*runtime.GOMAXPROCS(0)))
	o.WaitTime = cmp.Or(o.WaitTime, 15*time.Second)
	o.VisibilityTimeout = cmp.Or(o.VisibilityTimeout, 30*time.Second)
	o.MaxExtension = cmp.Or(o.MaxExtension, maxVisibility)
	o.DeleteLinger = cmp.Or(o.DeleteLinger, 10*time.Millisecond)
	o.StopTimeout = cmp.Or(o.StopTimeout, 20*time.Second)
	o.StopGrace = cmp.Or(o.StopGrace, 2*time.Second)
	o.Logger = host.Logger(o.Logger)
	if o.OnError != nil {
		o.Hooks = append(slices.Clip(o.Hooks), Hooks{Hooks: host.OnError(o.OnError)})
	}
	if o.Backoff == nil {
		o.Backoff = host.DefaultBackoff
	}
}

// validate checks what was given, and the defaults filled in.
func validate(c Client, queueURL string, h sqsonce.Handler, given, o *Options) error {
	p := host.Problems{Package: "sqsworker"}
	add := p.Add
	// A number that is out of range is named as the user gave it, where 0 is the default. Defaults are made of other numbers, and
	// are wrong if those are.
	count := func(field string, given, most int) {
		add(given < 0 || given > most, field, "is %d, must be 1 to %d", given, most)
	}
	sdk, isSDK := c.(*sqs.Client)
	add(c == nil || isSDK && sdk == nil, "client", "is nil")
	add(h == nil, "handler", "is nil, or was made of a nil handler or middleware")
	add(host.QueueURLProblem(queueURL) != "", "queueURL", "%s", host.QueueURLProblem(queueURL))

	whole := func(d time.Duration) bool { return d%time.Second == 0 }
	count("Options.Concurrency", given.Concurrency, maxConcurrency)
	count("Options.MaxInFlight", given.MaxInFlight, maxInFlight)
	count("Options.MaxReceivers", given.MaxReceivers, maxReceivers)
	add(given.MaxAttempts < 0, "Options.MaxAttempts", "is %d, must be at least 1", given.MaxAttempts)
	count("Options.MaxHeld", given.MaxHeld, maxHeld)
	add(given.Delayed > maxInFlight, "Options.Delayed", "is %d, must be at most %d", given.Delayed, maxInFlight)
	add(o.MaxBytes < maxBody, "Options.MaxBytes", "is %d, must be at least %d, the largest message", o.MaxBytes, maxBody)
	add(o.WaitTime < time.Second || o.WaitTime > maxWait || !whole(o.WaitTime), "Options.WaitTime",
		"is %s, must be whole seconds, 1 s to 20 s", o.WaitTime)
	badVisibility := o.VisibilityTimeout < time.Second || o.VisibilityTimeout > maxVisibility || !whole(o.VisibilityTimeout)
	add(badVisibility, "Options.VisibilityTimeout", "is %s, must be whole seconds, 1 s to 12 h", o.VisibilityTimeout)
	add(!badVisibility && o.MaxExtension < o.VisibilityTimeout || o.MaxExtension > maxVisibility || o.MaxExtension < 0,
		"Options.MaxExtension", "is %s, must be from VisibilityTimeout (%s) to 12 h", o.MaxExtension, o.VisibilityTimeout)
	add(o.DeleteLinger > time.Second, "Options.DeleteLinger", "is %s, must be at most 1 s", o.DeleteLinger)
	if arn, err := host.ParseQueueARN(o.QueueARN); o.QueueARN != "" {
		add(err != nil || arn.Name != host.QueueName(queueURL), "Options.QueueARN", "is %.256q, must be the ARN of the queue in the URL", o.QueueARN)
	}
	if u := o.DeadLetterQueue; u != "" {
		add(host.QueueURLProblem(u) != "", "Options.DeadLetterQueue", "%s", host.QueueURLProblem(u))
		add(u == queueURL, "Options.DeadLetterQueue", "is the worker's own queue")
		add(host.IsFIFO(u) != host.IsFIFO(queueURL), "Options.DeadLetterQueue", "must be FIFO if the queue is, and standard if it is not")
	}
	return p.Err()
}
