package fifo_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// refusing is SQS that refuses a whole request for one of its bodies, or for their number.
type refusing struct {
	next     http.RoundTripper
	status   int
	code     string
	bad      string // a request with this text is refused
	most     int    // entries in a request
	requests atomic.Int64
}

func (f *refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	entries := bytes.Count(body, []byte(`"MessageBody"`))
	if entries > 0 {
		f.requests.Add(1)
		if entries > f.most || bytes.Contains(body, []byte(f.bad)) {
			return answer(r, f.status, f.code, time.Now()), nil
		}
	}
	return f.next.RoundTrip(r)
}

// tenEvents are of ten groups. Those at the given positions have a bad body.
func tenEvents(bad ...int) []fifo.Event {
	es := each(10, 1)
	for _, i := range bad {
		es[i].Body = "poison"
	}
	return es
}

// If SQS refuses a whole request because of one of its entries, or because of their sum, only the culprit fails. A request of several
// entries that is refused for one of them says nothing of the event, until it is divided.
func TestRefusedRequestIsDivided(t *testing.T) {
	t.Parallel()
	const tooLong = "AWS.SimpleQueueService.BatchRequestTooLong"
	for _, tt := range []struct {
		name         string
		status, most int
		code         string
		bad          []int
		want         []int // failed
		requests     int64
	}{
		{"one culprit", 400, 10, "InvalidParameterValue", []int{1}, []int{1}, 9},
		{"two culprits", 400, 10, "InvalidMessageContents", []int{0, 9}, []int{0, 9}, 13},
		{"all are", 400, 10, "InvalidParameterValue", []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 19},
		{"the sum of sizes", 400, 3, tooLong, nil, nil, 7},
		{"the queue", 400, 10, "AWS.SimpleQueueService.NonExistentQueue", []int{3}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 1},
		{"the key of the queue", 400, 10, "KMS.DisabledException", []int{3}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 1},
		{"the caller", 400, 10, "AccessDeniedException", []int{3}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 1},
		{"the caller, by the status", 403, 10, "Forbidden", []int{3}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 1},
		{"the signature", 400, 10, "InvalidSignatureException", []int{3}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 1},
	} {
		runIn(t, tt.name, orders, func(x *fixture) {
			f := &refusing{next: x.srv, status: tt.status, code: tt.code, bad: "poison", most: tt.most}
			x.sent.Client = testaws.SQS(f)
			p := x.publisher()
			_, err := p.PublishAll(x.Context(), tenEvents(tt.bad...))
			var failed []int
			for _, pe := range split(err) {
				failed = append(failed, pe.Index)
				if refused := tt.code == "InvalidMessageContents"; reason(pe) != "not sent" || errors.Is(pe, fifo.ErrRefused) != refused {
					x.Errorf("%v, want ErrNotSent; ErrRefused: %t", pe, refused)
				}
			}
			x.expect("failed events", tt.want, failed)
			x.expect("requests", tt.requests, f.requests.Load())
			x.expect("messages", 10-len(tt.want), len(x.srv.Messages(x.url)))
			x.expectIdle(p)
		})
	}
}

// The context of the call ends while a request is divided: nothing more is sent.
func TestDividedRequestIsCancelled(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		ctx, cancel := context.WithCancel(x.Context())
		defer cancel()
		f := &refusing{next: x.srv, status: 400, code: "InvalidParameterValue", bad: "poison", most: 10}
		x.sent.Client = testaws.SQS(roundTripper(func(r *http.Request) (*http.Response, error) {
			if f.requests.Load() == 3 {
				cancel()
				return nil, ctx.Err()
			}
			return f.RoundTrip(r)
		}))
		p := x.publisher()
		_, err := p.PublishAll(ctx, tenEvents(1))
		if f.requests.Load() != 3 || !p.Idle() {
			x.Errorf("%d requests, idle %t, want 3 and an idle publisher", f.requests.Load(), p.Idle())
		}
		for _, pe := range split(err) {
			if want := map[bool]string{true: "unknown", false: "not sent"}[pe.Index < 2]; reason(pe) != want {
				x.Errorf("event %d: %v, want %s", pe.Index, pe, want)
			}
		}
	})
}

// brokenClient breaks over one event.
type brokenClient struct {
	fifo.Client
	breaks func() (*sqs.SendMessageBatchOutput, error)
}

func (c *brokenClient) SendMessageBatch(
	ctx context.Context, in *sqs.SendMessageBatchInput, optFns ...func(*sqs.Options),
) (*sqs.SendMessageBatchOutput, error) {
	for _, e := range in.Entries {
		if *e.MessageBody == "poison" {
			return c.breaks()
		}
	}
	return c.Client.SendMessageBatch(ctx, in, optFns...)
}

func (c *brokenClient) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	_, err := c.breaks()
	return nil, err
}

type typedNil struct{ text string }

func (e *typedNil) Error() string { return e.text }

// A client that breaks over one event fails that one. What it did before it broke is not known.
func TestClientThatBreaks(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func() (*sqs.SendMessageBatchOutput, error){
		"panics":                     func() (*sqs.SendMessageBatchOutput, error) { panic("broken") },
		"calls Goexit":               func() (*sqs.SendMessageBatchOutput, error) { runtime.Goexit(); return nil, nil },
		"neither answer nor error":   func() (*sqs.SendMessageBatchOutput, error) { return nil, nil },
		"an error whose text panics": func() (*sqs.SendMessageBatchOutput, error) { var e *typedNil; return nil, e },
	} {
		for _, queue := range []string{orders, standard} {
			runIn(t, name+" "+queue, queue, func(x *fixture) {
				x.sent.Client = &brokenClient{Client: x.sqs, breaks: breaks}
				p := x.publisher()
				start := time.Now()
				var pending []*fifo.PublishResult
				for _, e := range tenEvents(4) {
					pd := must.Get(p.Enqueue(x.Context(), e))(x)
					pending = append(pending, pd)
				}
				for i, pd := range pending {
					if i == 4 {
						continue
					}
					r, err := pd.Get(x.Context())
					if took := time.Since(start); err != nil || r.Attempts != 2 || took != 0 {
						x.Errorf("event %d: %+v, %v after %v, want success alone, right after the request that broke", i, r, err, took)
					}
				}
				_, err := pending[4].Get(x.Context())
				if reason(err) != "unknown" {
					x.Errorf("the event over which the client breaks: %v, want an unknown outcome", err)
				}
				x.expect("messages", 9, len(x.srv.Messages(x.url)))
				big := event("big", 1)
				big.Body = strings.Repeat("x", 2<<10)
				must.Get(p.Publish(x.Context(), big))(x)
				x.expectIdle(p)
				if panicked, ok := errors.AsType[*sqsonce.PanicError](err); name == "panics" && (!ok || panicked.Value != "broken") {
					x.Errorf("%v, want the panic", err)
				}
			})
		}
	}
}

// outage makes every send fail in the given way until d has passed.
func (x *fixture) outage(d time.Duration, rule fault.Rule) {
	rule.Op, rule.Prob = "SendMessageBatch", 1
	x.srv.Set(fault.Plan{Rules: []fault.Rule{rule}})
	go func() { // ends within the bubble
		time.Sleep(d)
		x.srv.Set(fault.Plan{})
	}()
}

// The server deduplicates as SQS does: if it does not recognise a copy, the event is in the queue twice.
func TestWindow(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		outage time.Duration
		fault  fault.Rule
		want   error // nil: sent
		copies int
	}{
		{"reply lost, back at once", time.Second, fault.Rule{Do: fault.LoseReply}, nil, 1},
		{"reply lost, back before the last attempt", 283 * time.Second, fault.Rule{Do: fault.LoseReply}, nil, 1},
		{"reply lost, back after the last attempt", 286 * time.Second, fault.Rule{Do: fault.LoseReply}, fifo.ErrUnknownOutcome, 1},
		{"never arrived, back after the last attempt", 286 * time.Second, fault.Rule{Do: fault.Reset}, fifo.ErrUnknownOutcome, 0},
		{"no result, back after the last attempt", 286 * time.Second, fault.Rule{Do: fault.DropEntries}, fifo.ErrUnknownOutcome, 1},
		{"refused for now, back before the last attempt", 283 * time.Second, fault.Rule{Do: fault.FailEntries}, nil, 1},
		{"refused for now for an hour", time.Hour, fault.Rule{Do: fault.FailEntries}, nil, 1},
		{"throttled for an hour", time.Hour, fault.Rule{Do: fault.Error, Code: "RequestThrottled"}, nil, 1},
	}
	for _, tt := range tests {
		runIn(t, tt.name, orders, func(x *fixture) {
			x.outage(tt.outage, tt.fault)
			p := x.publisher()
			start := time.Now()
			_, err := p.Publish(x.Context(), event("g", 1))
			if !errors.Is(err, tt.want) {
				x.Errorf("Publish: %v, want %v", err, tt.want)
			}
			most := tt.outage + 10*time.Second
			if tt.want != nil {
				most = 285 * time.Second
			}
			if took := time.Since(start); took > most || tt.want != nil && took < 280*time.Second {
				x.Errorf("returned after %v, want at most %v", took, most)
			}
			time.Sleep(time.Minute) // no further attempt is made
			x.expect("copies", tt.copies, len(x.queued("g")))
		})
	}
}

// A process that was frozen notices right before an attempt that the window is over, by the clock that went on.
func TestWindowOfAFrozenProcess(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		mono, wall time.Duration // what passes in the freeze
		want       error
	}{
		{"wall clock goes on, 284 s", 0, 284 * time.Second, nil},
		{"wall clock goes on, 286 s", 0, 286 * time.Second, fifo.ErrUnknownOutcome},
		{"monotonic clock goes on, 284 s", 284 * time.Second, 0, nil},
		{"monotonic clock goes on, 286 s", 286 * time.Second, 0, fifo.ErrUnknownOutcome},
		{"wall clock set back", 0, -time.Hour, nil},
	}
	for _, tt := range tests {
		runIn(t, tt.name, orders, func(x *fixture) {
			p := x.publisher()
			begin := time.Now()
			reads := 0
			p.SetClocks(func() (time.Duration, time.Time) {
				reads++
				// The reads: the start of the first attempt, its failure, and the start of the second one after the freeze.
				if reads <= 2 {
					return 0, begin
				}
				return tt.mono, begin.Add(tt.wall)
			})
			if _, err := p.Publish(x.Context(), event("g", 1)); !errors.Is(err, tt.want) {
				x.Errorf("Publish: %v, want %v", err, tt.want)
			}
			want := 2
			if tt.want != nil {
				want = 1
			}
			x.expect("attempts", want, x.sent.attemptsOf("g/v1"))
		}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.LoseReply})
	}
}
