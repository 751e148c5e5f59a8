package fifo_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// changingClient changes the responses of a client.
type changingClient struct {
	fifo.Client
	change func(n int, out *sqs.SendMessageBatchOutput)
	calls  int
}

func (c *changingClient) SendMessageBatch(
	ctx context.Context, in *sqs.SendMessageBatchInput, optFns ...func(*sqs.Options),
) (*sqs.SendMessageBatchOutput, error) {
	out, err := c.Client.SendMessageBatch(ctx, in, optFns...)
	if c.calls++; err == nil {
		c.change(c.calls, out)
	}
	return out, err
}

// A response that names an entry twice, does not name it, or has another checksum for it proves nothing.
func TestWrongResponses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(out *sqs.SendMessageBatchOutput)
	}{
		{"other checksum", func(out *sqs.SendMessageBatchOutput) { out.Successful[0].MD5OfMessageBody = aws.String("00") }},
		{"no checksum", func(out *sqs.SendMessageBatchOutput) { out.Successful[0].MD5OfMessageBody = nil }},
		{"unknown ID", func(out *sqs.SendMessageBatchOutput) { out.Successful[0].Id = aws.String("7") }},
		{"no ID", func(out *sqs.SendMessageBatchOutput) { out.Successful[0].Id = nil }},
		{"sent and refused", func(out *sqs.SendMessageBatchOutput) {
			out.Failed = append(out.Failed, sqstypes.BatchResultErrorEntry{Id: aws.String("0"), Code: aws.String("Strange"), SenderFault: true})
		}},
	}
	for _, tt := range tests {
		runIn(t, tt.name, orders, func(x *fixture) {
			x.sent.Client = &changingClient{Client: x.sqs, change: func(n int, out *sqs.SendMessageBatchOutput) {
				if n == 1 {
					tt.change(out)
				}
			}}
			r, err := x.publisher().Publish(x.Context(), event("g", 1))
			if err != nil || r.Attempts != 2 {
				x.Errorf("Publish: %+v, %v, want the result of the second attempt", r, err)
			}
			x.expect("messages", 1, len(x.queued("g")))
		})
	}
}

// A wrong checksum of one entry does not change the results of the others. The SDK's own check would drop all of them, so
// the test changes the HTTP response.
func TestChecksumsAreComparedByEntry(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		sum := func(e fifo.Event) string { return fmt.Sprintf("%x", md5.Sum([]byte(e.Body))) }
		changed := false
		x.sent.Client = testaws.SQS(roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := x.srv.RoundTrip(r)
			if err != nil || changed {
				return resp, err
			}
			changed = true
			body, err := io.ReadAll(resp.Body)
			body = bytes.Replace(body, []byte(sum(event("b", 1))), []byte(sum(event("x", 1))), 1)
			resp.Body = io.NopCloser(bytes.NewReader(body))
			return resp, err
		}))
		receipts := must.Get(x.publisher().PublishAll(x.Context(), []fifo.Event{event("a", 1), event("b", 1), event("c", 1)}))(x)
		for i, want := range []int{1, 2, 1} {
			if receipts[i].Attempts != want {
				x.Errorf("event %d took %d attempts, want %d", i, receipts[i].Attempts, want)
			}
		}
	})
}

// Something between the publisher and SQS may lose the answer, and say so with a status and a code of its own.
func TestCodesThatProveNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		code   string
	}{
		{403, "RequestTimeout"}, {403, "GatewayTimeout"}, {400, "ServiceUnavailable"}, {400, "InternalFailure"}, {400, "InternalError"}, {429, ""},
	} {
		inBubble(t, orders, func(x *fixture) {
			lost := false
			x.sent.Client = testaws.SQS(roundTripper(func(r *http.Request) (*http.Response, error) {
				resp, err := x.srv.RoundTrip(r)
				if err == nil && !lost {
					lost = true
					return answer(r, tt.status, tt.code, time.Now()), nil
				}
				return resp, err
			}))
			ctx, cancel := context.WithTimeout(x.Context(), time.Millisecond)
			defer cancel()
			p := x.publisher(func(o *fifo.Options) { o.Linger = -1 })
			if _, err := p.Publish(ctx, event("g", 1)); reason(err) != "unknown" {
				x.Errorf("%d %q: %v, want an unknown outcome: SQS has the event", tt.status, tt.code, err)
			}
			must.Do(x, p.Close(x.Context()))
		}, fault.Rule{Op: "SendMessageBatch", Nth: 2, Do: fault.Delay, Delay: time.Second})
	}
}
