package sqsworker

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/localstack/fault"
)

// clockAhead is SQS with a clock that is ahead of the client's. It refuses a signature whose time is five minutes off.
type clockAhead struct {
	next  http.RoundTripper
	ahead atomic.Int64
	code  string
	delay time.Duration // of a refusal
}

func (c *clockAhead) RoundTrip(r *http.Request) (*http.Response, error) {
	signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return nil, err
	}
	refused := time.Until(signed.Add(-time.Duration(c.ahead.Load()))).Abs() > 5*time.Minute
	var resp *http.Response
	if !refused {
		resp, err = c.next.RoundTrip(r)
	} else {
		time.Sleep(c.delay)
		resp = &http.Response{StatusCode: 403, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Request: r,
			Body: http.NoBody, ProtoMajor: 1, ProtoMinor: 1}
		resp.Header.Set("X-Amzn-ErrorType", c.code)
	}
	if err == nil {
		resp.Header.Set("Date", time.Now().Add(time.Duration(c.ahead.Load())).UTC().Format(http.TimeFormat))
	}
	return resp, err
}

func (x *fixture) clockAhead(code string, ahead time.Duration) *clockAhead {
	c := &clockAhead{next: x.srv, code: code}
	c.ahead.Store(int64(ahead))
	x.c = sqs.New(x.c.Options(), func(o *sqs.Options) { o.HTTPClient = &http.Client{Transport: c} })
	return c
}

var skewCodes = []string{"InvalidSignatureException", "SignatureDoesNotMatch", "RequestTimeTooSkewed", "RequestExpired"}

// TestClockOff: a host whose clock is wrong from the start, and one whose clock jumps while many calls are under way, go on
// when the SDK has learnt the offset.
func TestClockOff(t *testing.T) {
	for _, code := range skewCodes {
		for name, jump := range map[string]bool{"from the start": false, "jumps": true} {
			run(t, code+" "+name, setup{maxReceives: 5}, func(x *fixture) {
				sender := x.c
				ahead := 10 * time.Minute
				if jump {
					ahead = 0
				}
				c := x.clockAhead(code, ahead)
				own := x.c
				x.c = sender
				x.sendMany(200)
				var r runs
				j := x.startWith(own, r.take(10*time.Second), func(o *Options) { o.Concurrency = 30 })
				if jump {
					time.Sleep(15 * time.Second)
					c.delay = 3 * time.Second
					for _, ahead := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
						c.ahead.Store(int64(ahead))
						time.Sleep(30 * time.Second)
					}
				}
				j.stopEmptyAfter(15 * time.Minute)
				if len(x.dead()) > 0 {
					x.Errorf("%d dead-lettered", len(x.dead()))
				}
			})
		}
	}
}

// TestSignatureRefused: a secret key that is wrong ends Run soon, and after few calls, whichever kind of call is refused.
func TestSignatureRefused(t *testing.T) {
	for _, code := range []string{"InvalidSignatureException", "SignatureDoesNotMatch", "InvalidClientTokenId"} {
		for _, op := range []string{"", opAttributes, opReceive, opDelete, opChange} {
			run(t, fmt.Sprintf("%s %s", code, op), setup{}, func(x *fixture) {
				x.send("a")
				x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: op, Prob: 1, Do: fault.Error, Code: code}}})
				began := time.Now()
				var r runs
				j := x.start(r.take(20*time.Second), func(o *Options) { o.StopTimeout = -1 })
				if op == opDelete {
					began = began.Add(20 * time.Second) // the handler
				}
				if op == opChange {
					began = began.Add(15 * time.Second) // the first extension
				}
				err := j.wait()
				refused := 0
				for _, c := range x.srv.Calls() {
					if c.Fault != nil {
						refused++
					}
				}
				if !isSignature(err) || !strings.Contains(err.Error(), code) || time.Since(began) > 10*time.Second+time.Second+j.opts.WaitTime {
					x.Errorf("Run: got %v after %s", err, time.Since(began))
				}
				if refused < signatureRefusals || refused > 40 { // those of the stop included
					x.Errorf("%d calls refused", refused)
				}
			})
		}
	}
}

// TestNewKey: SQS does not know an access key yet, as in the first seconds of a new one. Run goes on, from its start and later.
func TestNewKey(t *testing.T) {
	for _, op := range []string{opAttributes, opReceive, opDelete, opChange} {
		run(t, op, setup{faults: []fault.Rule{{Op: op, Nth: 1, Times: signatureRefusals - 1, Do: fault.Error, Code: "InvalidClientTokenId"}}}, func(x *fixture) {
			x.send("a")
			var r runs
			j := x.start(r.take(20 * time.Second))
			j.stopEmptyAfter(5 * time.Minute)
		})
	}
}

// TestSignatureCounts: refusals of calls that were under way together count once, and a success starts anew.
func TestSignatureCounts(t *testing.T) {
	t.Parallel()
	refused := &entryError{code: "SignatureDoesNotMatch"}
	at := func(s int) time.Time { return time.Unix(int64(1000+s), 0) }
	for name, tc := range map[string]struct {
		calls [][2]int // start, answer; an answer below zero is a success
		ends  bool
	}{
		"together":         {calls: [][2]int{{0, 1}, {0, 2}, {0, 9}, {0, 10}}},
		"one by one":       {calls: [][2]int{{0, 1}, {2, 3}, {4, 5}}, ends: true},
		"too soon":         {calls: [][2]int{{0, 1}, {1, 2}, {2, 3}}},
		"too few":          {calls: [][2]int{{0, 1}, {9, 10}}},
		"success between":  {calls: [][2]int{{0, 1}, {2, 3}, {3, -4}, {4, 5}}},
		"success at first": {calls: [][2]int{{0, -1}, {1, 2}, {3, 4}, {5, 6}}, ends: true},
	} {
		var s signature
		ends := false
		for _, c := range tc.calls {
			if c[1] < 0 {
				ends = s.ends(nil, at(c[0]), at(-c[1]))
			} else {
				ends = s.ends(refused, at(c[0]), at(c[1]))
			}
		}
		if ends != tc.ends {
			t.Errorf("%s: ends %t", name, ends)
		}
	}
}
