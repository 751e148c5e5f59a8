package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// clientsOver are clients of services that answer so.
func clientsOver(f roundTripper) Clients {
	c := aws.Config{Region: "us-east-1", Credentials: aws.AnonymousCredentials{}, HTTPClient: &http.Client{Transport: f}}
	return Clients{
		SQS: sqs.NewFromConfig(c), DynamoDB: dynamodb.NewFromConfig(c), Lambda: lambda.NewFromConfig(c), IAM: iam.NewFromConfig(c),
		CloudWatch: cloudwatch.NewFromConfig(c), STS: sts.NewFromConfig(c),
	}
}

// Services that say nothing are each waited for once.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := healthy(t, "orders")
		silent := clientsOver(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		a.clients.Lambda, a.clients.CloudWatch = silent.Lambda, silent.CloudWatch
		start := time.Now()
		found := a.examine(queueSideChecks()...)
		if took := time.Since(start); took != 2*callTimeout {
			t.Errorf("took %v, want %v", took, 2*callTimeout)
		}
		for id, text := range map[string]string{
			"Q6": "lambda does not answer: nothing within 10s", "Q7": "lambda does not answer", "L1": "lambda does not answer",
			"A1": "cloudwatch does not answer",
		} {
			if f := found[id]; f.Verdict != Unknown || !strings.Contains(f.Text, text) {
				t.Errorf("%s", f)
			}
		}

		a.clients.SQS = silent.SQS
		start = time.Now()
		for id, f := range a.examine(queueSideChecks()...) {
			if f.Verdict != Unknown && (id != "Q1" || f.Verdict != Fail) || !strings.Contains(f.Text, "sqs does not answer") {
				t.Errorf("%s", f)
			}
		}
		if took := time.Since(start); took != callTimeout {
			t.Errorf("without SQS: took %v, want %v", took, callTimeout)
		}
	})
}

// Every client is bounded.
func TestEveryService(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clientsOver(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}).bounded()
		ctx := t.Context()
		for service, call := range map[string]func() error{
			"sqs":        func() error { _, err := c.SQS.ListQueues(ctx, nil); return err },
			"dynamodb":   func() error { _, err := c.DynamoDB.ListTables(ctx, nil); return err },
			"lambda":     func() error { _, err := c.Lambda.ListFunctions(ctx, nil); return err },
			"iam":        func() error { _, err := c.IAM.ListRoles(ctx, nil); return err },
			"cloudwatch": func() error { _, err := c.CloudWatch.DescribeAlarms(ctx, nil); return err },
			"sts":        func() error { _, err := c.STS.GetCallerIdentity(ctx, nil); return err },
		} {
			for _, want := range []time.Duration{callTimeout, 0} {
				start := time.Now()
				away, ok := errors.AsType[*awayError](call())
				if !ok || away.service != service || time.Since(start) != want {
					t.Errorf("%s: %v after %v, want it after %v", service, away, time.Since(start), want)
				}
			}
		}
	})
}

// A service that refuses connections is not asked again.
func TestNoConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		a := healthy(t, "orders")
		a.clients.Lambda = clientsOver(func(*http.Request) (*http.Response, error) {
			asked.Add(1)
			return nil, errors.New("dial tcp 192.0.2.1:443: connect: connection refused")
		}).Lambda
		start := time.Now()
		found := a.examine(queueSideChecks()...)
		if f := found["L2"]; f.Verdict != Unknown || !strings.Contains(f.Text, "connection refused") {
			t.Errorf("%s", f)
		}
		if n := asked.Load(); n != 3 { // the SDK's tries of one call
			t.Errorf("asked %d times", n)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// A list whose pages come slowly ends.
func TestSlowPages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := healthy(t, "orders")
		answer(a.cloudwatch, func(*cloudwatch.DescribeAlarmsInput) (*cloudwatch.DescribeAlarmsOutput, error) {
			time.Sleep(callTimeout - time.Second)
			return &cloudwatch.DescribeAlarmsOutput{NextToken: aws.String("more")}, nil
		})
		start := time.Now()
		f := a.examine(queueSideChecks()...)["A1"]
		if took := time.Since(start); f.Verdict != Unknown || took > questionTimeout+callTimeout {
			t.Errorf("%s after %v", f, took)
		}
	})
}

// A check that panics is unknown, with each of its IDs, and the others are made.
func TestPanic(t *testing.T) {
	t.Parallel()
	found := examine(t.Context(), &examination{Deployment: Deployment{Table: "dedup"}}, []check{
		{[]string{"X1", "X2"}, func(context.Context, *examination) []Finding { panic("boom") }},
		{[]string{"X3"}, func(context.Context, *examination) []Finding { return []Finding{{ID: "X3", Verdict: OK}} }},
	})
	if len(found) != 3 || found[0].Verdict != Unknown || found[1].ID != "X2" || !strings.Contains(found[1].Text,
		"the check panicked: boom") || found[2].Verdict != OK {
		t.Errorf("%v", found)
	}
}

// A user's interrupt ends it at once.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	a := healthy(t, "orders")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, f := range examine(ctx, &examination{Clients: a.clients.bounded(), Deployment: a.deployment}, queueSideChecks()) {
		if f.Verdict == OK {
			t.Errorf("%s", f)
		}
	}
}

// A queue that is named and has no URL is a finding, and what needs it is unknown and says why.
func TestNoQueue(t *testing.T) {
	t.Parallel()
	refused := func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	var away error
	synctest.Test(t, func(t *testing.T) {
		_, away = clientsOver(refused).bounded().SQS.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("orders")})
	})
	busy := &smithy.OperationError{ServiceID: "SQS", OperationName: "GetQueueUrl", Err: &smithy.GenericAPIError{Code: "ThrottlingException"}}
	for name, test := range map[string]struct {
		err     error
		verdict Verdict
		text    string
	}{
		"refused":   {away, Fail, "queue orders is not reachable: sqs does not answer at https://sqs.us-east-1.amazonaws.com: connect: connection refused"},
		"throttled": {busy, Unknown, "sqs:GetQueueUrl: ThrottlingException"},
		"no answer": {errors.New("the answer has no URL"), Fail, "not reachable: could not look: the answer has no URL"},
		"missing":   {&NoSuchQueue{errors.New("there is no queue orders")}, Fail, "there is no queue orders"},
	} {
		run(t, name, func(a *account) {
			a.deployment.QueueURL, a.deployment.NoQueue = "orders", test.err
			a.sqs.calls = nil
			found := a.examine(queueSideChecks()...)
			for _, id := range []string{"Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7", "L1", "L2", "L3", "L4", "A1"} {
				verdict, text := Unknown, reason(test.err)
				if id == "Q1" {
					verdict, text = test.verdict, test.text
				}
				if f := found[id]; f.Verdict != verdict || !strings.Contains(f.Text, text) {
					a.Errorf("%s: %s, want %s with %q", id, f, verdict, text)
				}
			}
			a.deployment.Probe = true
			e := &examination{Clients: a.clients, Deployment: a.deployment}
			checkClock(a.Context(), e)
			probe(a.Context(), e)
			if len(a.sqs.calls) > 0 {
				a.Errorf("SQS is asked about a queue without URL: %v", a.sqs.calls)
			}
		})
	}
}

// What answers in the place of AWS, with a page, an empty object or nothing, is no reason for an ok or for a fix of what AWS has.
func TestNotAWS(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"a page": "<html>log in</html>", "an object": "{}", "nothing": "", "null": "null", "a list": "[]"} {
		for _, status := range []int{200, 302, 400, 403, 500} {
			must.RunParallel(t, fmt.Sprint(name, status), func(t *testing.T) {
				a := healthy(t, "orders")
				whole := a.clients
				a.clients = clientsOver(func(r *http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Request: r,
						Header: http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}}}, nil
				})
				start := time.Now()
				for id, f := range a.examine() {
					if f.Verdict != Unknown && (id != "Q1" || f.Verdict != Fail) && (id[0] != 'C' || body != "" && body != "{}" || status != 200) {
						t.Errorf("%s", f)
					}
				}
				if took := time.Since(start); took > 20*time.Second {
					t.Errorf("took %v", took)
				}
				a.clients.SQS = whole.SQS // with a queue that is known more is asked
				for id, f := range a.examine() {
					if f.Verdict == OK && !slices.Contains([]string{"Q1", "Q2", "Q3", "Q4", "Q5", "Q9", "C1", "C2"}, id) {
						t.Errorf("beside SQS: %s", f)
					}
				}
			})
		}
	}
}
