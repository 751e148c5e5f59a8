package sqstest

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce/internal/suite"
)

// exam is one run of a case on one server. Its methods end the case at the first result that breaks a rule.
type exam struct {
	Backend
	ctx    context.Context
	c      *sqs.Client
	passed time.Duration
	urls   []string // of the queues created
}

func (x *exam) fatalf(format string, args ...any) { suite.Failf(format, args...) }

// pass lets d pass on the server's clock.
func (x *exam) pass(d time.Duration) {
	x.passed += d
	time.Sleep(d)
}

// hidden lets d pass, and expects that nothing can be received from q before its end.
func (x *exam) hidden(q *queue, d time.Duration) {
	// The rest of d at the check: as little as the clock allows.
	left := d
	if x.Virtual {
		left = time.Millisecond
	}
	x.pass(d - left)
	x.none(q)
	x.pass(left)
}

// after runs f after d of real or virtual time. wait ends the case if f has returned an error.
func (x *exam) after(d time.Duration, f func() error) (wait func()) {
	done := make(chan error, 1)
	go func() {
		time.Sleep(d)
		done <- f()
	}()
	return func() { x.ok(<-done) }
}

// slow is how late something may happen on a busy server with timers of its own.
const slow = 3 * time.Second

// lasts expects f to take d: exactly in virtual time, and up to slow longer in real time.
func (x *exam) lasts(what string, d time.Duration, f func()) {
	start := time.Now()
	f()
	got := time.Since(start)
	if x.Virtual && got != d || got < d-100*time.Millisecond || got > d+slow {
		x.fatalf("%s took %v, want %v", what, got.Round(time.Millisecond), d)
	}
}

// queue is a queue of the case's own.
type queue struct {
	url, name string
	fifo      bool
}

type attrs = map[string]string

// standard creates a standard queue.
func (x *exam) standard(a ...attrs) *queue { return x.create(x.name(), a...) }

// fifo creates a FIFO queue.
func (x *exam) fifo(a ...attrs) *queue {
	return x.create(x.name()+".fifo", append(a, attrs{"FifoQueue": "true"})...)
}

func (x *exam) create(name string, a ...attrs) *queue {
	q, err := x.tryCreate(name, a...)
	if err != nil {
		x.fatalf("CreateQueue(%s, %v): got error %v, want none", name, a, err)
	}
	return q
}

func (x *exam) tryCreate(name string, a ...attrs) (*queue, error) {
	all := attrs{}
	for _, one := range a {
		for k, v := range one {
			all[k] = v
		}
	}
	out, err := x.c.CreateQueue(x.ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: all})
	if err != nil {
		return nil, err
	}
	x.urls = append(x.urls, *out.QueueUrl)
	return &queue{*out.QueueUrl, name, strings.HasSuffix(name, ".fifo")}, nil
}

// cleanUp deletes the case's queues from a shared server. An error is ignored: some cases delete their queues themselves.
func (x *exam) cleanUp() {
	if x.Virtual {
		return
	}
	for _, u := range x.urls {
		_, _ = x.c.DeleteQueue(x.ctx, &sqs.DeleteQueueInput{QueueUrl: &u})
	}
}

// name returns a queue name that nothing else uses: cases share a server.
func (x *exam) name() string { return x.Prefix + "sqstest-" + rand.Text()[:16] }

func (x *exam) ok(err error) {
	if err != nil {
		x.fatalf("got error %v, want none", err)
	}
}

// fails expects an AWS error with one of the codes.
func (x *exam) fails(what string, err error, codes ...string) {
	e, ok := errors.AsType[smithy.APIError](err)
	if ok {
		for _, c := range codes {
			if code(e.ErrorCode()) == c {
				return
			}
		}
	}
	x.fatalf("%s: got error %v, want code %s", what, err, strings.Join(codes, " or "))
}

// code returns one spelling for those of an error code. AWS sends the name of a shape and, for clients of the Query protocol,
// an older code, which the SDK prefers. The cases "wire/errors ..." check the spellings.
func code(s string) string {
	s = s[strings.LastIndexByte(s, '#')+1:]
	s = strings.TrimPrefix(s, "AWS.SimpleQueueService.")
	switch s {
	case "QueueDoesNotExist":
		return "NonExistentQueue"
	case "QueueNameExists":
		return "QueueAlreadyExists"
	case "MissingRequiredParameterException":
		return "MissingParameter"
	}
	return strings.TrimSuffix(s, "Exception")
}

// The codes that cases expect most.
const (
	invalidValue  = "InvalidParameterValue"
	missing       = "MissingParameter"
	invalidHandle = "ReceiptHandleIsInvalid"
	notInFlight   = "MessageNotInflight"
	noQueue       = "NonExistentQueue"
)

// failed expects one failed entry of a batch, by its ID, with one of the codes and the sender at fault.
func (x *exam) failed(all []types.BatchResultErrorEntry, id string, codes ...string) {
	for _, f := range all {
		if f.Id == nil || *f.Id != id {
			continue
		}
		for _, c := range codes {
			if f.Code != nil && code(*f.Code) == c {
				if !f.SenderFault {
					x.fatalf("entry %s failed with %s and SenderFault false, want true", id, c)
				}
				return
			}
		}
		x.fatalf("entry %s failed with code %s, want %s", id, str(f.Code), strings.Join(codes, " or "))
	}
	x.fatalf("entry %s did not fail, want %s", id, strings.Join(codes, " or "))
}

func str(s *string) string {
	if s == nil {
		return "(none)"
	}
	return *s
}

func ptr[T any](v T) *T { return &v }
