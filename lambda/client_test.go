package lambda

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
	"github.com/sqsonce/sqsonce/localstack/runtimeapi"
)

// functionEnv is the environment of a function.
func functionEnv(change map[string]string) func(string) string {
	env := map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "SECRET", "AWS_SESSION_TOKEN": "TOKEN",
	}
	for name, v := range change {
		env[name] = v
	}
	return func(name string) string { return env[name] }
}

func TestNewClient(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		env      map[string]string
		endpoint string
		missing  []string
	}{
		{name: "on Lambda"},
		{name: "an endpoint", env: map[string]string{"AWS_ENDPOINT_URL": "http://all"}, endpoint: "http://all"},
		{name: "an endpoint of SQS", env: map[string]string{"AWS_ENDPOINT_URL": "http://all", "AWS_ENDPOINT_URL_SQS": "http://sqs"}, endpoint: "http://sqs"},
		{name: "no region", env: map[string]string{"AWS_REGION": ""}, missing: []string{"AWS_REGION"}},
		{name: "no credentials", env: map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, missing: []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}},
	} {
		c, err := newClient(functionEnv(tt.env))
		if tt.missing != nil {
			if err == nil || c != nil || !strings.HasSuffix(err.Error(), ": "+strings.Join(tt.missing, ", ")) {
				t.Errorf("%s: got %v, %v; want an error that names %v", tt.name, c, err, tt.missing)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		o := c.(*sqs.Client).Options()
		credentials, err := o.Credentials.Retrieve(t.Context())
		got := []string{o.Region, aws.ToString(o.BaseEndpoint), credentials.AccessKeyID, credentials.SecretAccessKey, credentials.SessionToken}
		if diff := cmp.Diff([]string{"eu-west-1", tt.endpoint, "AKID", "SECRET", "TOKEN"}, got); diff != "" || err != nil {
			t.Errorf("%s (-want +got):\n%s%v", tt.name, diff, err)
		}
	}
}

// TestStartMakesAClient: only where the options have none and want one. A failure is logged and not fatal, whatever options
// need a client.
func TestStartMakesAClient(t *testing.T) {
	t.Parallel()
	stub := &stubClient{}
	needs := func(o *Options) { o.DeadLetterQueue, o.Backoff = stubDLQ, func(int) time.Duration { return 0 } }
	for name, tt := range map[string]struct {
		set  func(*Options)
		err  error
		made bool
		want Client
	}{
		"nothing set":            {func(*Options) {}, nil, true, stub},
		"options need it":        {needs, nil, true, stub},
		"the environment is bad": {needs, errTest, true, nil},
		"a client":               {func(o *Options) { o.Client = sqs.New(sqs.Options{Region: "us-east-1"}) }, nil, false, &sqs.Client{}},
		"no client":              {func(o *Options) { o.Client = NoClient }, nil, false, nil},
	} {
		var book logBook
		made := false
		a, err := newAdapter(fails(sqsonce.Reject(errTest)), []func(*Options){func(o *Options) { o.Logger = book.logger() }, tt.set}, func() (Client, error) {
			made = true
			if tt.err != nil {
				return nil, tt.err
			}
			return stub, nil
		})
		if err != nil || made != tt.made {
			t.Errorf("%s: error %v, made %t; want %t", name, err, made, tt.made)
			continue
		}
		if (a.opts.Client == nil) != (tt.want == nil) || tt.want == Client(stub) && a.opts.Client != tt.want {
			t.Errorf("%s: got client %v, want %v", name, a.opts.Client, tt.want)
		}
		if got := book.count("no SQS client"); got > 0 != (tt.err != nil) {
			t.Errorf("%s: logged %d times:\n%s", name, got, &book)
		}
		if a.opts.Client == nil {
			if got := invoke(t, a.invoke, t.Context(), batch("1")); got != "1" {
				t.Errorf("%s: failed %q, want 1", name, got)
			}
		}
	}
}

// TestErrorsThatNeedAClientAreLoggedOnce: the first one of a process, at error level. With NoClient only a Reject is: the
// others are what the user has chosen.
func TestErrorsThatNeedAClientAreLoggedOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err            error
		want, noClient int
	}{
		"reject":      {sqsonce.Reject(errTest), 1, 1},
		"retry":       {sqsonce.RetryAfter(time.Hour, errTest), 1, 0},
		"in progress": {sqsonce.ErrInProgress, 1, 0},
		"any other":   {errTest, 0, 0},
		"lease lost":  {sqsonce.ErrLeaseLost, 0, 0},
	} {
		for _, noClient := range []bool{false, true} {
			var book logBook
			f := wrap(t, fails(tt.err), func(o *Options) {
				o.Logger = book.logger()
				if noClient {
					o.Client = NoClient
				}
			})
			for range 3 {
				invoke(t, f, t.Context(), batch("1", "2"))
			}
			want := tt.want
			if noClient {
				want = tt.noClient
			}
			if got := book.count("level=ERROR"); got != want || book.count("there is no Options.Client") != want {
				t.Errorf("%s, NoClient %t: logged %d times, want %d:\n%s", name, noClient, got, want, &book)
			}
		}
	}
}

// TestRejectGoesToTheQueueOfTheRedrivePolicy: without Options.DeadLetterQueue that is where it goes. Its URL is read once.
func TestRejectGoesToTheQueueOfTheRedrivePolicy(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		withQueue(t, fifo, nil, func(x *fixture) {
			x.redrive(5)
			f := x.wrap(byBody(handlers{"a1": fails(sqsonce.Reject(errTest)), "b1": fails(sqsonce.Reject(errTest))}), func(o *Options) { o.DeadLetterQueue = "" })
			for _, body := range []string{"a1", "b1"} {
				x.send(body)
				if got := x.failed(f, 30*time.Second, x.receive()); got != "" {
					t.Errorf("failed %q, want none", got)
				}
			}
			if got, want := x.dead(), "a1: sqsonce: rejected: it failed, b1: sqsonce: rejected: it failed"; got != want {
				t.Errorf("in the dead-letter queue %q, want %q", got, want)
			}
			if got := x.calls(opURL) + x.calls(opAttributes); got != 3 {
				t.Errorf("%d calls, want the URLs of two queues and the attributes once", got)
			}
		})
	}
}

// TestDeadLetterQueueThatIsNotFound: then the rejected message is a failure as any other.
func TestDeadLetterQueueThatIsNotFound(t *testing.T) {
	for name, rule := range map[string]fault.Rule{
		"its URL is not known":             {Op: opURL, Nth: 2, Do: fault.Error, Code: "QueueDoesNotExist"},
		"its dead-letter queue is unknown": {Op: opAttributes, Prob: 1, Do: fault.Error, Code: "AccessDenied"},
		"queue's URL is made from its ARN": {Op: opURL, Nth: 2, Do: fault.Error, Code: "AccessDenied"}, // and is right
	} {
		withQueue(t, false, []fault.Rule{rule}, func(x *fixture) {
			x.redrive(5)
			x.send("1")
			got := x.failed(x.wrap(fails(sqsonce.Reject(errTest)), func(o *Options) { o.DeadLetterQueue = "" }), 30*time.Second, x.receive())
			want := "1"
			if rule.Code == "AccessDenied" && rule.Op == opURL {
				want = ""
			}
			if got != want || (x.dead() == "") != (want != "") {
				t.Errorf("%s: failed %q, in the dead-letter queue %q; want failed %q", name, got, x.dead(), want)
			}
			if x.log.count(name) != 1 {
				t.Errorf("%q is not logged once:\n%s", name, &x.log)
			}
		})
	}
}

// TestFunctionOfTheREADME runs a function of one line, Start(handler), in a process of its own behind a mapping: its client is
// made from its environment. RetryAfter changes the visibility timeout once, and a rejected message is in the dead-letter queue
// with its reason.
func TestFunctionOfTheREADME(t *testing.T) {
	t.Parallel()
	srv := memsqs.New()
	defer srv.Close()
	ts := httptest.NewServer(srv)
	defer ts.Close()
	x := &fixture{T: t, srv: srv, arn: standardARN, c: testaws.SQS(http.DefaultTransport, func(o *sqs.Options) { o.BaseEndpoint = &ts.URL })}
	x.createQueues("")
	x.redrive(5)
	x.send("later", "bad", "good")

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var output logBook
	f := must.Get(runtimeapi.Start(ctx, os.Args[0], func(o *runtimeapi.Options) {
		o.Env, o.Timeout, o.Stderr = []string{mode + "=delays and rejects", "AWS_ENDPOINT_URL=" + ts.URL}, 30*time.Second, &output
	}))(t)
	mapping, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- esm.Run(mapping, x.c, esm.Config{
			QueueURL: x.url, FunctionTimeout: 30 * time.Second, InvokerTimesOut: true, ReportBatchItemFailures: true, Wait: time.Second,
		}, f.Invoke)
	}()
	settled := func() bool {
		ms := srv.Messages(x.url)
		return len(ms) == 1 && time.Until(ms[0].VisibleAt) > time.Hour && x.dead() != ""
	}
	for !settled() && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
	}
	stop()
	if err := errors.Join(<-ended, f.Close(ctx)); err != nil {
		t.Error(err)
	}
	if got := x.calls(opChange); !settled() || got != 1 { // a call is counted after its effect: when all have ended
		t.Errorf("%d visibility changes, want 1; in the queue %v", got, srv.Messages(x.url))
	}
	if got, want := x.dead(), "bad: sqsonce: rejected: it failed"; got != want {
		t.Errorf("in the dead-letter queue %q, want %q", got, want)
	}
	if t.Failed() {
		t.Logf("the function's output:\n%s", &output)
	}
}

// TestFailedCredentialsDecideNothing: an error of credentials is no answer of SQS. The next invocation asks for the queue's URL and
// attributes, and dead-letters with the reason.
func TestFailedCredentialsDecideNothing(t *testing.T) {
	withQueue(t, false, nil, func(x *fixture) {
		x.redrive(5)
		x.send("bad")
		var works atomic.Bool
		c := sqs.New(x.c.Options(), func(o *sqs.Options) {
			next := o.Credentials
			o.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
				if !works.Load() {
					return aws.Credentials{}, &smithy.GenericAPIError{Code: "AccessDeniedException", Fault: smithy.FaultClient}
				}
				return next.Retrieve(ctx)
			})
		})
		f := x.wrap(fails(sqsonce.Reject(errTest)), func(o *Options) { o.Client, o.DeadLetterQueue = c, "" })
		if got := x.failed(f, 30*time.Second, x.receive()); got != "bad" || x.dead() != "" {
			t.Errorf("without credentials: failed %q, dead-lettered %q, want it to fail", got, x.dead())
		}
		works.Store(true)
		time.Sleep(visibility)
		if got := x.failed(f, 30*time.Second, x.receive()); got != "" || x.dead() == "" {
			t.Errorf("with credentials: failed %q, dead-lettered %q, want it dead-lettered", got, x.dead())
		}
	})
}
