package sqsworker

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// stsError is the answer of STS to AssumeRoleWithWebIdentity, with its own request ID.
func stsError(code string) error {
	answer := &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"X-Amzn-Requestid": {"r"}}}
	return &smithy.OperationError{ServiceID: "STS", OperationName: "AssumeRoleWithWebIdentity", Err: &awshttp.ResponseError{
		ResponseError: &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: answer}, Err: &smithy.GenericAPIError{Code: code, Fault: smithy.FaultClient},
		},
		RequestID: "r",
	}}
}

// failedFetches are errors of services that give credentials, with codes that would end Run, or decide something, if SQS answered them.
var failedFetches = map[string]error{
	"STS denies":           stsError("AccessDenied"),
	"STS, signature":       stsError("SignatureDoesNotMatch"),
	"STS, something new":   stsError("SomethingNew"),
	"Pod Identity denies":  &smithy.GenericAPIError{Code: "AccessDeniedException", Fault: smithy.FaultClient},
	"IMDS without a role":  errors.New("no EC2 IMDS role found, operation error ec2imds: GetMetadata, request canceled, context deadline exceeded"),
	"Pod Identity refuses": &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")},
}

// failing is a provider of credentials, which last for a minute.
type failing struct {
	mu    sync.Mutex
	err   error
	times int // how often; below 0: always
}

func (f *failing) Retrieve(context.Context) (aws.Credentials, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.times != 0 {
		f.times--
		return aws.Credentials{}, f.err
	}
	return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET", CanExpire: true, Expires: time.Now().Add(time.Minute)}, nil
}

func (f *failing) set(times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.times = times
}

// client returns a client with these credentials.
func (x *fixture) client(p aws.CredentialsProvider) *sqs.Client {
	return sqs.New(x.c.Options(), func(o *sqs.Options) { o.Credentials = aws.NewCredentialsCache(p) })
}

// proxied is a URL that does not tell the queue's ARN.
func (x *fixture) proxied() string {
	return strings.Replace(x.url, "https://sqs.us-east-1.amazonaws.com", "http://proxy.local", 1)
}

// TestFailedCredentialsDecideNothing: an error from before the request is no answer of SQS. It ends nothing, and the attributes are
// read after it.
func TestFailedCredentialsDecideNothing(t *testing.T) {
	for name, err := range failedFetches {
		for when, outage := range map[string]time.Duration{"once": 0, "for 45 s": 45 * time.Second, "for 10 min": 10 * time.Minute} {
			run(t, name+"/"+when, setup{fifo: true, maxReceives: 7}, func(x *fixture) {
				p := &failing{err: err}
				c := x.client(p)
				x.send("g:1", "g:2")
				x.url = x.proxied()
				if outage == 0 {
					p.set(1)
				}
				var r runs
				j := x.startWith(c, r.take(90*time.Second))
				time.Sleep(40 * time.Second) // the first handler runs
				if outage > 0 {
					p.set(-1)
					time.Sleep(outage)
					p.set(0)
				}
				j.stopEmptyAfter(10 * time.Minute)
				if n := len(x.dead()); n > 0 || len(r.twice) > 0 || !x.log.has("max_receive_count=7") {
					x.Errorf("%d dead-lettered, at once twice %v, runs %v; want all run by the queue's attributes", n, r.twice, r.list())
				}
			})
		}
	}
}

// TestNoRequestSent: before the first receive Run ends where no request could be sent for 30 s, and at once without a Region. Nothing
// was received.
func TestNoRequestSent(t *testing.T) {
	clients := map[string]func(*sqs.Options){
		"no Region": func(o *sqs.Options) { o.Region, o.BaseEndpoint = "", nil },
		"another's certificate": func(o *sqs.Options) {
			o.HTTPClient = &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
				return nil, &tls.CertificateVerificationError{Err: errors.New("certificate is valid for example.org")}
			})}
		},
		"no name": func(o *sqs.Options) {
			o.HTTPClient = &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
				return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "sqs.us-esat-1.amazonaws.com"}}
			})}
		},
	}
	for name, err := range failedFetches {
		clients[name] = func(o *sqs.Options) { o.Credentials = aws.NewCredentialsCache(&failing{err: err, times: -1}) }
	}
	for name, opt := range clients {
		for where, url := range map[string]func(*fixture) string{"known": func(x *fixture) string { return x.url }, "not known": (*fixture).proxied} {
			run(t, name+"/ARN "+where, setup{maxReceives: 2}, func(x *fixture) {
				x.send("a")
				x.url = url(x)
				began := time.Now()
				j := x.startWith(sqs.New(x.c.Options(), opt), ok)
				err := j.wait()
				patience, cure := 30*time.Second, "check the credentials (the SDK tries the environment"
				switch name {
				case "no Region": // which a wait gives nobody
					patience, cure = 0, "AWS_REGION"
				case "another's certificate", "no name": // the request was signed
					cure = "check the endpoint (AWS_REGION, AWS_ENDPOINT_URL)"
				}
				if took := time.Since(began); err == nil || took < patience || took > patience+time.Second {
					x.Errorf("Run: got %v after %v, want an error after %v", err, took, patience)
				}
				if err != nil && !strings.Contains(err.Error(), cure) {
					x.Errorf("%v does not name the cure", err)
				}
				if want := failedFetches[name]; want != nil && !errors.Is(err, want) {
					x.Errorf("Run: got %v, want it to wrap the SDK's error", err)
				}
				if n := x.calls(opReceive); n > 0 {
					x.Errorf("%d receives, want none", n)
				}
			})
		}
	}
}

// through is a client whose requests and answers pass a function.
func (x *fixture) through(do transport) *sqs.Client {
	return sqs.New(x.c.Options(), func(o *sqs.Options) { o.HTTPClient = &http.Client{Transport: do} })
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestPageOfAProxy: an answer without a request ID is not SQS's, whatever it says.
func TestPageOfAProxy(t *testing.T) {
	for _, page := range []string{
		`<html>403 Forbidden</html>`, `{"message":"Forbidden"}`, `{"__type":"AccessDenied"}`, `{"__type":"com.amazonaws.sqs#QueueDoesNotExist"}`,
	} {
		run(t, page, setup{maxReceives: 3}, func(x *fixture) {
			var mu sync.Mutex
			var until time.Time
			block := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); until = time.Now().Add(d) }
			blocked := func() bool { mu.Lock(); defer mu.Unlock(); return time.Now().Before(until) }
			c := x.through(func(r *http.Request) (*http.Response, error) {
				if blocked() {
					return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(page))}, nil
				}
				return x.srv.RoundTrip(r)
			})
			x.send("a")
			x.url = x.proxied()
			block(time.Minute)
			var r runs
			j := x.startWith(c, r.take(10*time.Second))
			time.Sleep(85 * time.Second) // it runs
			block(2 * time.Minute)
			j.stopEmptyAfter(10 * time.Minute)
			if n := len(x.dead()); n > 0 || r.count("a") != 1 || !x.log.has("max_receive_count=3") {
				x.Errorf("%d dead-lettered, %d runs; want one run by the queue's attributes", n, r.count("a"))
			}
		})
	}
}

// TestPageAfterAReceive: a proxy may answer so after it has passed the request on. The attempt, which has hidden the group, is repeated.
func TestPageAfterAReceive(t *testing.T) {
	bubble(t, setup{fifo: true}, func(x *fixture) {
		x.send("g:a")
		lost := false // there is one receive at a time
		c := x.through(func(r *http.Request) (*http.Response, error) {
			response, err := x.srv.RoundTrip(r)
			if lost || !strings.HasSuffix(r.Header.Get("X-Amz-Target"), "ReceiveMessage") {
				return response, err
			}
			lost = true
			page := io.NopCloser(strings.NewReader(`{"__type":"AccessDenied"}`))
			return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: page}, err
		})
		var r runs
		j := x.startWith(c, r.take(0), func(o *Options) { o.MaxReceivers = 1 })
		time.Sleep(5 * time.Second)
		if n := r.count("g:a"); n != 1 {
			t.Errorf("%d runs after 5 s, want one", n)
		}
		j.stopClean()
	})
}
