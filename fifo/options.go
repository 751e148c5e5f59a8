package fifo

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
)

// Options configure [NewPublisher].
type Options struct {
	// InFlight is the most requests at once. The HTTP client should keep as many idle connections per host; the SDK's
	// default keeps ten. Default: 8.
	InFlight int
	// Linger is how long an event waits for others to fill its request. Default: 10 ms; negative: none.
	Linger time.Duration
	// MaxMessages is the most events that are accepted and not yet answered. Default: 10,000.
	MaxMessages int
	// MaxBytes is the most bytes of bodies and attributes that are accepted and not yet answered. Default: 64 MiB; least
	// 1 MiB, the largest message.
	MaxBytes int64
	// AttemptTimeout bounds one request. The last attempt to send an event starts AttemptTimeout + 10 s before the end
	// of SQS's five-minute deduplication interval, and never later than 285 s after the first. Default: 5 s; most 60 s.
	AttemptTimeout time.Duration
	// Logger gets what no error carries: attempts that failed and are repeated. Default: discard.
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	o.InFlight = cmp.Or(o.InFlight, 8)
	o.Linger = cmp.Or(o.Linger, 10*time.Millisecond)
	o.MaxMessages = cmp.Or(o.MaxMessages, 10_000)
	o.MaxBytes = cmp.Or(o.MaxBytes, 64<<20)
	o.AttemptTimeout = cmp.Or(o.AttemptTimeout, 5*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

func (o *Options) check() error {
	var errs []error
	if o.InFlight < 0 {
		errs = append(errs, badField("Options.InFlight", "%d, must be positive", o.InFlight))
	}
	if o.MaxMessages < 0 {
		errs = append(errs, badField("Options.MaxMessages", "%d, must be positive", o.MaxMessages))
	}
	if o.MaxBytes < maxMessageBytes {
		errs = append(errs, badField("Options.MaxBytes", "%d, must be at least %d: the largest message would never fit", o.MaxBytes, maxMessageBytes))
	}
	if o.AttemptTimeout < 0 || o.AttemptTimeout > time.Minute {
		errs = append(errs, badField("Options.AttemptTimeout", "%v, must be positive and at most 1m", o.AttemptTimeout))
	}
	return errors.Join(errs...)
}

// namespaces hold no '|', so that a MessageDeduplicationId stays readable in almost every case; see sqsonce.EventKey.
var namespaces = regexp.MustCompile(`^[A-Za-z0-9._:/-]{1,48}$`)

func checkNamespace(ns string) error {
	if !namespaces.MatchString(ns) {
		return badField("namespace", "%.128q, must be 1 to 48 of A-Z a-z 0-9 . _ : / -", ns)
	}
	return nil
}

// queueNames are those of CreateQueue.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html
var queueNames = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// checkQueueURL returns whether the URL is that of a FIFO queue.
func checkQueueURL(queueURL string) (fifo bool, err error) {
	const field = "queueURL"
	if queueURL == "" {
		return false, badField(field, "empty")
	}
	u, err := url.Parse(queueURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return false, badField(field, "%.256q, must be a URL such as https://sqs.eu-west-1.amazonaws.com/123456789012/orders.fifo", queueURL)
	}
	name := u.Path[strings.LastIndexByte(u.Path, '/')+1:]
	base, fifo := strings.CutSuffix(name, ".fifo")
	if len(name) > 80 || !queueNames.MatchString(base) {
		return false, badField(field, "%.256q, must end in a queue's name: 1 to 80 of A-Z a-z 0-9 _ -, a FIFO queue's with .fifo", queueURL)
	}
	return fifo, nil
}

func badField(field, format string, args ...any) error {
	return &sqsonce.FieldError{Package: "fifo", Field: field, Problem: fmt.Sprintf(format, args...)}
}
