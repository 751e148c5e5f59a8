package lambda

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce"
)

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
