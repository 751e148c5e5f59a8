package fifo

import (
	"cmp"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Options configure [NewPublisher].
type Options struct {
	// Most users set these first.

	// OnFailure is called for each accepted event that fails, whichever method published it, except for an event whose own
	// caller's context ended. The calls come one after the other, in the order of the failures. A call that blocks delays only
	// the calls behind it, and a panic is logged. It may call the Publisher. It doesn't count as reading the result, see
	// [Publisher.Resume]. PublishAll, Flush and Close wait at most 100 ms for the calls that are left. After more than
	// MaxMessages of them, the publisher leaves events out, and a line gives their number.
	// Default: not called.
	OnFailure func(Event, *PublishError)
	// Linger is how long an event waits for other events to fill its request. If it is negative, an event doesn't wait.
	// Default: 10 ms.
	Linger time.Duration
	// MaxMessages is the most events that are accepted and wait for their result.
	// Default: 10,000.
	MaxMessages int

	// Requests and memory.

	// MaxRequests is the most requests at once. The HTTP client should keep as many idle connections per host. The SDK's
	// default client keeps 10.
	// Default: 8.
	MaxRequests int
	// MaxBytes is the most bytes of bodies and attributes of the events that are accepted and wait for their result.
	// Default: 64 MiB. Limits: at least 1 MiB, the size of the largest message.
	MaxBytes int64

	// Logs and telemetry.

	// Logger gets one line at ERROR for each failure that OnFailure is called for, with the number of events that are halted
	// behind it. It also gets events that errors don't report: an attempt that failed and is repeated (DEBUG), and once a
	// minute an event that has waited for a minute or more since its first attempt (WARN). If its slog.Handler blocks, the
	// publisher drops lines. PublishAll, Flush and Close wait for it at most 50 ms.
	// Default: slog.Default().
	Logger *slog.Logger
	// Hooks are called for telemetry, see [Hooks].
	// Default: none.
	Hooks []Hooks

	// attemptTimeout bounds one request. A request that takes longer doubles the time of the next ones, up to 20 s, until SQS
	// answers within attemptTimeout again. It also bounds the retries: see safeWindow. 5 s but in tests.
	attemptTimeout time.Duration
}

func (o *Options) setDefaults() {
	o.MaxRequests = cmp.Or(o.MaxRequests, 8)
	o.Linger = cmp.Or(o.Linger, 10*time.Millisecond)
	o.MaxMessages = cmp.Or(o.MaxMessages, 10_000)
	o.MaxBytes = cmp.Or(o.MaxBytes, 64<<20)
	o.attemptTimeout = cmp.Or(o.attemptTimeout, 5*time.Second)
	o.Logger = host.Logger(o.Logger)
}

// namespaces do not contain '|', so that almost every MessageDeduplicationId is readable; see sqsonce.EventKey.
var namespaces = regexp.MustCompile(`^[A-Za-z0-9._:/-]{1,48}$`)

// validate reports every bad argument of NewPublisher at once.
func validate(c Client, queueURL, namespace string, o *Options) error {
	p := host.Problems{Package: "fifo"}
	add := p.Add
	add(host.IsNil(c), "client", "is nil")
	problem := host.QueueURLProblem(queueURL)
	add(problem != "", "queueURL", "%s", problem)
	if region := clientRegion(c); region != "" {
		arn, known := host.ARNOfURL(queueURL)
		add(known && arn.Region != region, "queueURL", "is of region %s, the client's is %s: make the client with the queue's region", arn.Region, region)
	}
	add(!namespaces.MatchString(namespace), "namespace", badNamespace, namespace)
	add(o.MaxRequests < 0, "Options.MaxRequests", "is %d, must be positive", o.MaxRequests)
	add(o.MaxMessages < 0, "Options.MaxMessages", "is %d, must be positive", o.MaxMessages)
	add(o.MaxBytes < maxMessageBytes, "Options.MaxBytes", "is %d, must be at least %d, the size of the largest message", o.MaxBytes, maxMessageBytes)
	return p.Err()
}

const badNamespace = "is %.128q, must be 1 to 48 of A-Z a-z 0-9 . _ : / -"

func checkNamespace(namespace string) error {
	if !namespaces.MatchString(namespace) {
		return badField("namespace", badNamespace, namespace)
	}
	return nil
}

func badField(field, format string, args ...any) error {
	return &sqsonce.OptionError{Package: "fifo", Field: field, Problem: fmt.Sprintf(format, args...)}
}
