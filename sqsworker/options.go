package sqsworker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	// What most users set first.

	// Concurrency is how many handlers run at once. [Worker.SetConcurrency] changes it. Default: 10; most 120,000.
	Concurrency int
	// Timeout returns the time after which the context of a message's handler is cancelled with context.DeadlineExceeded;
	// 0 or negative: never. It is called before each run of a handler, from any goroutine, and must not change the message.
	// If it panics, the message fails with a *sqsonce.PanicError. Default: nil, no timeout.
	Timeout func(m *sqsonce.Message) time.Duration
	// StopTimeout is how long handlers may go on after Run's context was cancelled. With at least WaitTime + 5 s no message
	// stays hidden after the stop. Default: 20 s, with which Run returns within 30 s; negative: none.
	StopTimeout time.Duration

	// Messages and their leases.

	// VisibilityTimeout is the visibility timeout sent with each receive and each extension, in whole seconds. It is how long a
	// message stays hidden after its worker died, not a limit for handlers. Default: 30 s; least 1 s, most 12 h.
	VisibilityTimeout time.Duration
	// MaxExtension is how long after its receipt a message is hidden by extensions. Then its lease is lost, and the
	// context of its handler is cancelled with cause sqsonce.ErrLeaseLost. Default and most: 12 h, the limit of SQS;
	// least VisibilityTimeout.
	MaxExtension time.Duration
	// Backoff returns the delay after a try that failed. On a standard queue the try is the receive count, 1 for the first
	// delivery; on FIFO it counts the runs in this process, see MaxAttempts. The delay is rounded up to whole seconds, and cut to
	// what remains of the 12 h that SQS hides a message. Default: 10 s, 1 min, then 5 min, and a random part of up to a
	// quarter more: with a maxReceiveCount of 5 no failure of less than eleven minutes dead-letters a message.
	Backoff func(try int) time.Duration
	// MaxAttempts is how often the head of a FIFO group is run in this process before it is sent to the dead-letter queue with its
	// last error. Between its tries it waits for Backoff, and its followers behind it. Without a redrive policy the group
	// is given back after so many tries. Default: the maxReceiveCount of the queue, at most 10; 3 where that is not known.
	// Least 1.
	MaxAttempts int
	// QueueARN is the queue's ARN. It is part of the key of events without an ID. Set it only where sqs:GetQueueAttributes is denied
	// and the queue's URL is that of a proxy, which does not tell it: without it such messages wait. Default: from the attributes, else
	// from the URL.
	QueueARN string
	// DeadLetterQueue is the URL of the queue for rejected messages, of the same kind as the worker's. Default: the one
	// of the queue's RedrivePolicy.
	DeadLetterQueue string

	// Receives and deletes.

	// MaxInFlight is how many messages may be received and not yet deleted or given back. A worker with slow handlers has
	// fewer: beyond free slots it receives only what its handlers, by their last runs, will take up within a second. The
	// messages of one FIFO group come together, and wait for each other. SQS allows about 120,000 per queue. Default: 2 x Concurrency + 10, at most 120,000.
	MaxInFlight int
	// MaxHeld is how many messages may wait in this process, outside MaxInFlight, for the next try of their FIFO group or for the
	// end of another delivery of their event. Beyond it they are given back, but for those at their last receive. While
	// twice as many wait nothing is received. Default: 4 x MaxInFlight, at least 30; least 1, most 480,000.
	MaxHeld int
	// MaxBytes limits the size of the messages in flight. A receive asks for as many as fit if each is as large as the
	// largest of the last receives. When sizes grow, the receives under way can therefore exceed the limit once.
	// Default: 64 MiB; least 1 MiB.
	MaxBytes int64
	// MaxReceivers is the most long polls at once. One polls an idle queue. Others join while receives come back full and
	// handlers are without work, and leave when the queue is empty. A receive of 15 ms brings 20,000 messages a second
	// with 32 of them, about what a CPU can receive and delete; a queue that is farther away may need more. As many
	// deletes, and at least 16, may be under way at once, and more where they take longer than 200 ms; a stop ignores that
	// limit. Default: enough for MaxInFlight with ten
	// messages each, and at most 32 for each CPU that Go uses (GOMAXPROCS); most 12,000.
	MaxReceivers int
	// WaitTime is how long a receive waits for the first message, in whole seconds. A stop waits for receives under way.
	// Default: 15 s; least 1 s, most 20 s, which SQS allows.
	WaitTime time.Duration
	// DeleteLinger is how long a finished message waits for others to be deleted, or given back, in the same call. A
	// message of a FIFO group does not wait if another one of its group is next. Default: 10 ms; most 1 s; negative: none.
	DeleteLinger time.Duration

	// The stop.

	// StopGrace is how long a handler may take to return after its context was cancelled before it counts as stuck.
	// Default: 2 s; negative: none.
	StopGrace time.Duration

	// What is told of it.

	// Logger gets the events that no error reports. Its slog.Handler is called on one goroutine and may block: up to 1,024
	// lines wait, further ones are dropped, and the next line says how many (dropped_lines). Run waits at most a second
	// for the last lines. Default: slog.Default().
	Logger *slog.Logger
	// OnError is called after each handler that failed: whose outcome is failed, rejected or unavailable. The rules of [sqsonce.Hooks]
	// apply; for more use Hooks. Default: none.
	OnError func(ctx context.Context, m *sqsonce.Message, err error)
	// Hooks are called for telemetry: see [Hooks]. Default: none.
	Hooks []Hooks
	// ErrorText is what is written of a handler's error into reject-reason, which whoever reads the dead-letter queue sees. One
	// that panics leaves the error's type. Default: Error.
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

	mostTries    = 10 // by default
	unknownTries = 3
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

// problems collects the bad fields, so that New reports all of them at once.
type problems []error

func (p *problems) add(bad bool, field, format string, args ...any) {
	if bad {
		*p = append(*p, &sqsonce.OptionError{Package: "sqsworker", Field: field, Problem: fmt.Sprintf(format, args...)})
	}
}

// count reports a number that is out of range as the user gave it, where 0 is the default. Defaults are made of other
// numbers, and are wrong if those are.
func (p *problems) count(field string, given, most int) {
	p.add(given < 0 || given > most, field, "is %d, must be 1 to %d", given, most)
}

// validate checks what was given, and the defaults filled in.
func validate(c Client, queueURL string, h sqsonce.Handler, given, o *Options) error {
	var p problems
	sdk, isSDK := c.(*sqs.Client)
	p.add(c == nil || isSDK && sdk == nil, "client", "is nil")
	p.add(h == nil, "handler", "is nil")
	p.add(host.QueueURLProblem(queueURL) != "", "queueURL", "%s", host.QueueURLProblem(queueURL))

	whole := func(d time.Duration) bool { return d%time.Second == 0 }
	p.count("Options.Concurrency", given.Concurrency, maxConcurrency)
	p.count("Options.MaxInFlight", given.MaxInFlight, maxInFlight)
	p.count("Options.MaxReceivers", given.MaxReceivers, maxReceivers)
	p.add(given.MaxAttempts < 0, "Options.MaxAttempts", "is %d, must be at least 1", given.MaxAttempts)
	p.count("Options.MaxHeld", given.MaxHeld, maxHeld)
	p.add(o.MaxBytes < maxBody, "Options.MaxBytes", "is %d, must be at least %d, the largest message", o.MaxBytes, maxBody)
	p.add(o.WaitTime < time.Second || o.WaitTime > maxWait || !whole(o.WaitTime), "Options.WaitTime",
		"is %s, must be whole seconds, 1 s to 20 s", o.WaitTime)
	badVisibility := o.VisibilityTimeout < time.Second || o.VisibilityTimeout > maxVisibility || !whole(o.VisibilityTimeout)
	p.add(badVisibility, "Options.VisibilityTimeout", "is %s, must be whole seconds, 1 s to 12 h", o.VisibilityTimeout)
	p.add(!badVisibility && o.MaxExtension < o.VisibilityTimeout || o.MaxExtension > maxVisibility || o.MaxExtension < 0,
		"Options.MaxExtension", "is %s, must be from VisibilityTimeout (%s) to 12 h", o.MaxExtension, o.VisibilityTimeout)
	p.add(o.DeleteLinger > time.Second, "Options.DeleteLinger", "is %s, must be at most 1 s", o.DeleteLinger)
	if arn, err := host.ParseQueueARN(o.QueueARN); o.QueueARN != "" {
		p.add(err != nil || arn.Name != host.QueueName(queueURL), "Options.QueueARN", "is %.256q, must be the ARN of the queue in the URL", o.QueueARN)
	}
	if u := o.DeadLetterQueue; u != "" {
		p.add(host.QueueURLProblem(u) != "", "Options.DeadLetterQueue", "%s", host.QueueURLProblem(u))
		p.add(u == queueURL, "Options.DeadLetterQueue", "is the worker's own queue")
		p.add(host.IsFIFO(u) != host.IsFIFO(queueURL), "Options.DeadLetterQueue", "must be FIFO if the queue is, and standard if it is not")
	}
	return errors.Join(p...)
}
