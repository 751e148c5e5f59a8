package sqsworker

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Options configure [New]. The zero value of each field is its default.
type Options struct {
	// Concurrency is how many handlers run at once. Default: 10.
	Concurrency int
	// InFlight is how many messages may be received and not yet deleted or given back. SQS allows about 120,000 per
	// queue. Default: 2 x Concurrency + 10.
	InFlight int
	// Bytes bounds the bodies in flight. A receive asks for no more than fits by the largest size seen lately, so the
	// limit can be passed by what one round of receives brings when sizes grow. Default: 64 MiB; least 1 MiB.
	Bytes int64
	// Receivers is the most long polls at once. One polls an idle queue; others join while receives come back full and
	// find handlers without work, and leave when the queue is empty. Default: enough for InFlight, ten messages each, and
	// at most 32 for each of the CPUs Go uses (GOMAXPROCS): where a receive takes 15 ms they bring 20,000 messages a
	// second, about what a CPU can receive and delete. A queue that is farther away may need more. So many deletes too, and
	// at least 16, are under way at once; a stop does not wait for its turn.
	Receivers int
	// Wait is how long a receive waits for the first message, in whole seconds. A stop waits for receives under way, so
	// it bounds how fast a worker can stop. Default: 20 s, the most SQS allows; least 1 s.
	Wait time.Duration
	// Visibility is the visibility timeout sent with each receive and each extension, in whole seconds. It is how long a
	// message stays hidden after its worker died, not a limit for handlers. Default: 30 s; least 1 s, most 12 h.
	Visibility time.Duration
	// MaxExtension is how long after its receipt a message is kept from others; then its handler's context is cancelled
	// with cause sqsonce.ErrLeaseLost. Default and most: 12 h, SQS's own limit; least Visibility.
	MaxExtension time.Duration
	// HandlerTimeout ends a handler's context with context.DeadlineExceeded. Default and negative: none.
	HandlerTimeout time.Duration
	// DeleteLinger is how long a finished message waits for others to be deleted, or given back, in one call. Messages
	// of a FIFO group whose next message waits do not linger. Default: 10 ms; most 1 s; negative: none.
	DeleteLinger time.Duration
	// Backoff returns the delay after a failure, from the receive count, 1 for the first delivery. It is rounded up to
	// whole seconds and bounded by what is left of SQS's 12 h. Default: a random part of 1 s, doubling with each receive
	// up to 15 min.
	Backoff func(receiveCount int) time.Duration
	// DeadLetterQueue is the URL of the queue for rejected messages, of the same kind as the worker's. Default: the one
	// of the queue's RedrivePolicy.
	DeadLetterQueue string
	// FIFORetries is how often the failing head of a FIFO group is run again in this process, its followers held back,
	// before the group is given back. Default: 2; negative: none.
	FIFORetries int
	// StopTimeout is how long handlers may go on after Run's context ended. For a stop that strands nothing it must be
	// at least Wait + 5 s. Default: 25 s; negative: none.
	StopTimeout time.Duration
	// StopGrace is how long a handler may take to return after its context was cancelled before it counts as stuck.
	// Default: 2 s; negative: none.
	StopGrace time.Duration
	// Logger gets what no error carries. Default: discard.
	Logger *slog.Logger
}

const (
	maxVisibility = 12 * time.Hour // https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
	maxWait       = 20 * time.Second
	maxInFlight   = 120_000
	maxBody       = 1 << 20

	receiversPerCPU = 32

	defaultFIFORetries = 2
)

func (o *Options) setDefaults() {
	o.Concurrency = cmp.Or(o.Concurrency, 10)
	o.InFlight = cmp.Or(o.InFlight, 2*o.Concurrency+10)
	o.Bytes = cmp.Or(o.Bytes, 64<<20)
	o.Receivers = cmp.Or(o.Receivers, min((o.InFlight+maxBatch-1)/maxBatch, receiversPerCPU*runtime.GOMAXPROCS(0)))
	o.Wait = cmp.Or(o.Wait, maxWait)
	o.Visibility = cmp.Or(o.Visibility, 30*time.Second)
	o.MaxExtension = cmp.Or(o.MaxExtension, maxVisibility)
	o.DeleteLinger = cmp.Or(o.DeleteLinger, 10*time.Millisecond)
	o.FIFORetries = cmp.Or(o.FIFORetries, defaultFIFORetries)
	o.StopTimeout = cmp.Or(o.StopTimeout, 25*time.Second)
	o.StopGrace = cmp.Or(o.StopGrace, 2*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Backoff == nil {
		o.Backoff = host.DefaultBackoff
	}
}

// problems collects every bad field, so that all are seen at once.
type problems []error

func (p *problems) add(bad bool, field, format string, args ...any) {
	if bad {
		*p = append(*p, &sqsonce.FieldError{Package: "sqsworker", Field: field, Problem: fmt.Sprintf(format, args...)})
	}
}

func validate(c Client, queueURL string, h sqsonce.Handler, o *Options) error {
	var p problems
	sdk, isSDK := c.(*sqs.Client)
	p.add(c == nil || isSDK && sdk == nil, "client", "is nil")
	p.add(h == nil, "handler", "is nil")
	p.add(host.QueueURLProblem(queueURL) != "", "queueURL", "%s", host.QueueURLProblem(queueURL))

	whole := func(d time.Duration) bool { return d%time.Second == 0 }
	p.add(o.Concurrency < 1, "Options.Concurrency", "is %d, must be at least 1", o.Concurrency)
	// A bad Concurrency makes bad defaults: it is reported alone.
	if o.Concurrency >= 1 {
		p.add(o.InFlight < 1 || o.InFlight > maxInFlight, "Options.InFlight", "is %d, must be 1 to %d", o.InFlight, maxInFlight)
		p.add(o.InFlight >= 1 && o.Receivers < 1, "Options.Receivers", "is %d, must be at least 1", o.Receivers)
	}
	p.add(o.Bytes < maxBody, "Options.Bytes", "is %d, must be at least %d, the largest message", o.Bytes, maxBody)
	p.add(o.Wait < time.Second || o.Wait > maxWait || !whole(o.Wait), "Options.Wait",
		"is %s, must be whole seconds, 1 s to 20 s", o.Wait)
	badVisibility := o.Visibility < time.Second || o.Visibility > maxVisibility || !whole(o.Visibility)
	p.add(badVisibility, "Options.Visibility", "is %s, must be whole seconds, 1 s to 12 h", o.Visibility)
	p.add(!badVisibility && o.MaxExtension < o.Visibility || o.MaxExtension > maxVisibility || o.MaxExtension < 0,
		"Options.MaxExtension", "is %s, must be from Visibility (%s) to 12 h", o.MaxExtension, o.Visibility)
	p.add(o.DeleteLinger > time.Second, "Options.DeleteLinger", "is %s, must be at most 1 s", o.DeleteLinger)
	if u := o.DeadLetterQueue; u != "" {
		p.add(host.QueueURLProblem(u) != "", "Options.DeadLetterQueue", "%s", host.QueueURLProblem(u))
		p.add(u == queueURL, "Options.DeadLetterQueue", "is the worker's own queue")
		p.add(host.IsFIFO(u) != host.IsFIFO(queueURL), "Options.DeadLetterQueue", "must be FIFO if the queue is, and standard if it is not")
	}
	return errors.Join(p...)
}
