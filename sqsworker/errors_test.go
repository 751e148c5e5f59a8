package sqsworker

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/localstack/fault"
)

func TestErrorKinds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		code, text        string
		dead, fatal, slow bool
	}{
		{"ReceiptHandleIsInvalid", "", true, false, false},
		{"InvalidParameterValue", "Value x for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.", true, false, false},
		{"InvalidParameterValue", "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]", true, false, false},
		{"InvalidParameterValue", "something else", false, false, false},
		{"InvalidClientTokenId", "", false, true, false},
		{"SignatureDoesNotMatch", "", false, false, false}, // at first: see signature,
		{"MissingAuthenticationToken", "", false, true, false},
		{"UnrecognizedClientException", "", false, true, false},
		{"OptInRequired", "", false, true, false},
		{"ExpiredToken", "", false, false, false},
		{"AWS.SimpleQueueService.NonExistentQueue", "", false, true, false},
		{"RequestThrottled", "", false, false, true},
		{"KmsThrottled", "", false, false, true},
		{"InternalError", "", false, false, false},
	} {
		err := error(&entryError{code: tc.code, message: tc.text})
		if isHandleDead(err) != tc.dead || isFatal(err) != tc.fatal || isThrottle(err) != tc.slow {
			t.Errorf("%v: dead %t, fatal %t, throttle %t", err, isHandleDead(err), isFatal(err), isThrottle(err))
		}
	}
	for code, want := range map[string]bool{"AccessDenied": true, "AccessDeniedException": true, "InternalError": false, "": false} {
		if isAccessDenied(&entryError{code: code}) != want {
			t.Errorf("%q is access denied: %t, want %t", code, !want, want)
		}
	}
	if !isOutcomeUnknown(errors.New("connection reset")) {
		t.Error("a broken connection is an answer")
	}
}

func TestFatalErrorsEndRun(t *testing.T) {
	for _, code := range []string{"AccessDenied", "AccessDeniedException", "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", "KmsDisabled"} {
		t.Run(code, func(t *testing.T) {
			rule := fault.Rule{Op: opReceive, Nth: 2, Times: 100, Do: fault.Error, Code: code}
			bubble(t, setup{faults: []fault.Rule{rule}}, func(x *fixture) {
				x.send("a")
				var r runs
				j := x.start(r.take(5 * time.Second))
				err := j.wait()
				if !isFatal(err) {
					t.Errorf("Run: got %v, want %s", err, code)
				}
				x.wantEmpty() // what is in flight is finished first
				if n := x.log.count("stopping because"); n != 1 {
					t.Errorf("%d lines with the reason, want one", n)
				}
			})
		})
	}
}

// TestDeniedCalls: a call that is not allowed ends Run with that answer, and no message is lost.
func TestDeniedCalls(t *testing.T) {
	for _, op := range []string{opReceive, opDelete, opChange} {
		t.Run(op, func(t *testing.T) {
			rule := fault.Rule{Op: op, Prob: 1, Do: fault.Error, Code: "AccessDenied"}
			bubble(t, setup{faults: []fault.Rule{rule}}, func(x *fixture) {
				x.send("a")
				var r runs
				j := x.start(r.take(20 * time.Second))
				if err := j.wait(); !isAccessDenied(err) {
					t.Errorf("Run: got %v, want AccessDenied", err)
				}
				if len(x.queued()) != 1 && op != opChange {
					t.Error("the message is lost")
				}
				j.wantHealth("after a fatal error", 503, 503)
			})
		})
	}
}

// credentials is a provider under the SDK's cache. Its credentials last for a minute.
type credentials struct {
	mu  sync.Mutex
	err error
}

func (c *credentials) Retrieve(context.Context) (aws.Credentials, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET", CanExpire: true, Expires: time.Now().Add(time.Minute)}, c.err
}

func (c *credentials) set(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// client returns a client with these credentials.
func (x *fixture) client(c *credentials) *sqs.Client {
	return sqs.New(x.c.Options(), func(o *sqs.Options) { o.Credentials = aws.NewCredentialsCache(c) })
}

// errNoRole is the error of the last provider of the default chain, on a laptop and while the metadata service is away.
var errNoRole = errors.New("no EC2 IMDS role found, operation error ec2imds: GetMetadata, request canceled, context deadline exceeded")

// TestNoCredentials: a worker that is started without credentials says so at once.
func TestNoCredentials(t *testing.T) {
	for _, missing := range []error{errNoRole, errors.New("static credentials are empty"), errors.New("unexpected empty EC2 IMDS role list")} {
		t.Run(missing.Error(), func(t *testing.T) {
			bubble(t, setup{}, func(x *fixture) {
				x.c = x.client(&credentials{err: missing})
				began := time.Now()
				j := x.start(ok)
				if err := j.wait(); !errors.Is(err, missing) || time.Since(began) > 0 {
					t.Errorf("Run: got %v after %s, want the SDK's error at once", err, time.Since(began))
				}
			})
		})
	}
}

// TestCredentialsAreAway: credentials that were there, or whose source has failed, are waited for.
func TestCredentialsAreAway(t *testing.T) {
	for name, tc := range map[string]struct {
		before, later error
	}{
		"at the start": {before: errors.New("operation error STS: AssumeRoleWithWebIdentity, i/o timeout")},
		"later":        {later: errNoRole},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, setup{}, func(x *fixture) {
				c := &credentials{err: tc.before}
				sender := x.c
				x.c = x.client(c)
				j := x.start(ok)
				time.Sleep(time.Minute)
				c.set(tc.later)
				time.Sleep(10 * time.Minute)
				c.set(nil)
				x.c = sender
				x.send("a")
				time.Sleep(time.Minute)
				j.stopClean()
				x.wantEmpty()
			})
		})
	}
}

// A worker that is stopped before it ever received returns why, so that a misspelt endpoint does not look like a clean stop.
func TestStoppedBeforeItEverReceived(t *testing.T) {
	for _, op := range []string{opReceive, "GetQueueAttributes"} {
		t.Run(op, func(t *testing.T) {
			bubble(t, setup{faults: []fault.Rule{{Op: op, Prob: 1, Do: fault.Reset}}}, func(x *fixture) {
				j := x.start(ok)
				time.Sleep(20 * time.Second)
				if err := j.stop(); err == nil {
					t.Error("Run: got nil, want the last error")
				}
			})
		})
	}
}

// A 4xx is an answer, also with a code that the SDK does not know: a FIFO receive does not repeat its attempt after it.
func TestUnknownCodeIsAnAnswer(t *testing.T) {
	bubble(t, setup{fifo: true, faults: []fault.Rule{{Op: opReceive, Nth: 1, Times: 1, Do: fault.Error, Code: "SomethingNew"}}}, func(x *fixture) {
		x.send("g:a")
		j := x.start(ok)
		time.Sleep(time.Minute)
		j.stopClean()
		x.wantEmpty()
		if s := j.Stats(); s.Unanswered != 0 {
			t.Errorf("%d receives unanswered, want none", s.Unanswered)
		}
	})
}
