package fifo_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/internal/thaw/thawtest"
)

var errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// Without a connection the event is certainly not in the queue, and it is sent when there is one.
func TestNoConnection(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		n := thawtest.New(x.T, x.srv)
		back := time.Now().Add(10 * time.Minute)
		transport := n.Client().Transport.(*http.Transport)
		dial := transport.DialContext
		transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if time.Now().Before(back) {
				return nil, errRefused
			}
			return dial(ctx, network, addr)
		}
		x.sent.Client = testaws.SQS(transport)
		p := x.publisher()
		ctx, cancel := context.WithTimeout(x.Context(), time.Minute)
		defer cancel()
		if _, err := p.Publish(ctx, event("g", 1)); reason(err) != "not sent" {
			x.Errorf("Publish: %v, want ErrNotSent", err)
		}
		if _, err := p.Publish(x.Context(), event("g", 2)); err != nil || time.Now().Before(back) {
			x.Errorf("Publish: %v, want a success after the outage", err)
		}
		transport.CloseIdleConnections()
	})
}

// That an error has the word dial proves nothing: another request may be the one that was not sent.
func TestErrorThatLooksLikeNoConnection(t *testing.T) {
	t.Parallel()
	refuse := func(r *http.Request) (*http.Response, error) { return nil, errRefused }
	for _, tt := range []struct {
		name string
		do   func(x *fixture, r *http.Request) (*http.Response, error)
	}{
		{"of a transport that reports nothing", func(_ *fixture, r *http.Request) (*http.Response, error) { return refuse(r) }},
		{"after another request", func(x *fixture, r *http.Request) (*http.Response, error) {
			n := thawtest.New(x.T, x.srv)
			defer n.Client().CloseIdleConnections()
			resp, err := n.Client().Transport.RoundTrip(r)
			if err != nil {
				return nil, err
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			return refuse(r)
		}},
	} {
		runIn(t, tt.name, orders, func(x *fixture) {
			x.sent.Client = testaws.SQS(roundTripper(func(r *http.Request) (*http.Response, error) { return tt.do(x, r) }))
			ctx, cancel := context.WithTimeout(x.Context(), 10*time.Second)
			defer cancel()
			if _, err := x.publisher().PublishAll(ctx, []fifo.Event{event("g", 1)}); reason(err) != "unknown" {
				x.Errorf("PublishAll: %v, want an unknown outcome", err)
			}
		})
	}
}

// withCredentials returns a client whose fetches of credentials fail where provide does.
func withCredentials(c *sqs.Client, provide func(context.Context) error) *sqs.Client {
	return sqs.New(c.Options(), func(o *sqs.Options) {
		o.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, provide(ctx)
		})
	})
}

// Without credentials no request leaves the process, and the events fail soon: the first ones after a few seconds, later ones
// at once. When there are credentials again, events are sent.
func TestNoCredentials(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		noCredentials := &smithy.GenericAPIError{Code: "InternalFailure"} // of the service that gives them, and not of SQS
		var there atomic.Bool
		x.sent.Client = withCredentials(x.sqs, func(context.Context) error {
			if there.Load() {
				return nil
			}
			return noCredentials
		})
		p := x.publisher()
		start := time.Now()
		_, err := p.Publish(x.Context(), event("g", 1))
		if took := time.Since(start); reason(err) != "not sent" || !errors.Is(err, noCredentials) || took < 5*time.Second || took > 10*time.Second {
			x.Errorf("Publish: %v after %v, want ErrNotSent after five seconds", err, took)
		}
		start = time.Now()
		if _, err := p.Publish(x.Context(), event("g", 2)); reason(err) != "not sent" || time.Since(start) > time.Second {
			x.Errorf("the next one: %v after %v, want ErrNotSent at once", err, time.Since(start))
		}
		time.Sleep(2 * time.Minute)
		time.AfterFunc(time.Second, func() { there.Store(true) })
		must.Get(p.Publish(x.Context(), event("g", 3)))(x)
	})
}

// A client that is not the SDK's, or that drops the option functions: the code of an answer counts, and nothing else.
func TestForeignClient(t *testing.T) {
	t.Parallel()
	denied := &smithyhttp.ResponseError{Err: &smithy.GenericAPIError{Code: "AccessDenied"},
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusForbidden}}}
	for want, err := range map[string]error{"not sent": denied, "unknown": errRefused} {
		inBubble(t, orders, func(x *fixture) {
			x.sent.Client = &brokenClient{Client: x.sqs, breaks: func() (*sqs.SendMessageBatchOutput, error) { return nil, err }}
			e := event("g", 1)
			e.Body = "poison"
			if _, err := x.publisher().Publish(x.Context(), e); reason(err) != want {
				x.Errorf("Publish: %v, want %s", err, want)
			}
			if n := x.sent.attemptsOf("g/v1"); (n == 1) != (want == "not sent") {
				x.Errorf("%s: %d attempts", want, n)
			}
		})
	}
}

// A fetch of credentials that the caller ends says nothing about the next one.
func TestCancelledCredentials(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		x.sent.Client = withCredentials(x.sqs, func(ctx context.Context) error {
			select {
			case <-time.After(time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		p := x.publisher()
		for n := range 100 {
			ctx, cancel := context.WithTimeout(x.Context(), 100*time.Millisecond)
			if _, err := p.PublishAll(ctx, []fifo.Event{event("g", n)}); reason(err) != "not sent" {
				x.Errorf("PublishAll: %v, want ErrNotSent", err)
			}
			cancel()
		}
		failed := false
		x.sent.Client = withCredentials(x.sqs, func(context.Context) error {
			if !failed {
				failed = true
				return errors.New("once")
			}
			return nil
		})
		must.Get(p.Publish(x.Context(), event("h", 1)))(x)
	})
}

// clock is SQS with a clock that is ahead of the client's: it refuses a signature whose time is five minutes off.
type clock struct {
	next  http.RoundTripper
	ahead time.Duration
	code  string
	deny  bool // whatever the time is
}

func (c *clock) RoundTrip(r *http.Request) (*http.Response, error) {
	signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return nil, err
	}
	now := time.Now().Add(c.ahead)
	if !c.deny && now.Sub(signed).Abs() <= 5*time.Minute {
		resp, err := c.next.RoundTrip(r)
		if err == nil {
			resp.Header.Set("Date", now.UTC().Format(http.TimeFormat))
		}
		return resp, err
	}
	return answer(r, http.StatusForbidden, c.code, now), nil
}

// answer is a refusal of a whole request.
func answer(r *http.Request, status int, code string, now time.Time) *http.Response {
	return &http.Response{
		StatusCode: status, Request: r, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Errortype": {code}, "Date": {now.UTC().Format(http.TimeFormat)}},
		Body:   io.NopCloser(strings.NewReader(fmt.Sprintf(`{"__type":%q}`, code))),
	}
}

// A refused signature is tried again where a clock is the reason, and fails at once where the key is.
func TestClockSkew(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"InvalidSignature", "InvalidSignatureException", "SignatureDoesNotMatch", "RequestTimeTooSkewed", "RequestExpired"} {
		runIn(t, code, orders, func(x *fixture) {
			c := &clock{next: x.srv, ahead: 10 * time.Minute, code: code}
			x.sent.Client = testaws.SQS(c)
			p := x.publisher()
			for n, ahead := range []time.Duration{10 * time.Minute, -time.Hour, 0} {
				c.ahead = ahead
				if r, err := p.Publish(x.Context(), event("g", n)); err != nil || r.Attempts != 2 {
					x.Errorf("clock off by %v: %+v, %v, want success by the second attempt", ahead, r, err)
				}
			}
		})
	}
	inBubble(t, orders, func(x *fixture) {
		x.sent.Client = testaws.SQS(&clock{next: x.srv, code: "SignatureDoesNotMatch", deny: true})
		if _, err := x.publisher().Publish(x.Context(), event("g", 1)); reason(err) != "not sent" || x.sent.attemptsOf("g/v1") != 1 {
			x.Errorf("a wrong key: %v after %d attempts, want ErrNotSent at once", err, x.sent.attemptsOf("g/v1"))
		}
	})
	inBubble(t, orders, func(x *fixture) {
		c := testaws.SQS(&clock{next: x.srv, code: "SignatureDoesNotMatch", ahead: time.Hour})
		x.sent.Client = sqs.New(c.Options(), func(o *sqs.Options) { o.DisableClockSkewCorrection = true })
		start := time.Now()
		if _, err := x.publisher().Publish(x.Context(), event("g", 1)); reason(err) != "not sent" || time.Since(start) > 10*time.Second {
			x.Errorf("a client that does not correct its clock: %v after %v, want ErrNotSent after a few seconds", err, time.Since(start))
		}
	})
}

// A certificate that is not trusted is a wrong configuration: no attempt can succeed.
func TestUntrustedCertificate(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // it logs each handshake that fails
	srv.StartTLS()
	t.Cleanup(srv.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c := sqs.New(testaws.SQS(transport).Options(), func(o *sqs.Options) { o.BaseEndpoint = aws.String(srv.URL) })
	rec := &recorder{Client: c}
	// A busy machine may need seconds for a handshake.
	p := must.Get(fifo.NewPublisher(rec, srv.URL+"/000000000000/orders.fifo", "orders", func(o *fifo.Options) { fifo.SetAttemptTimeout(o, time.Minute) }))(t)
	_, err := p.Publish(t.Context(), event("g", 1))
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); !ok || reason(err) != "not sent" || rec.attemptsOf("g/v1") != 1 {
		t.Errorf("Publish: %v after %d attempts, want ErrNotSent at once", err, rec.attemptsOf("g/v1"))
	}
}
