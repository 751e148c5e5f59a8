package hosttest

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// byProxy is a URL of the queue that does not tell its ARN.
func (w *fixture) byProxy() string {
	return strings.Replace(w.url, "https://sqs.us-east-1.amazonaws.com", "https://proxy.internal", 1)
}

// runWorker runs a worker with a record for each event until stop.
func (w *fixture) runWorker(c *sqs.Client, url string, once *dedup.Once, h sqsonce.Handler) (stop func()) {
	w.Helper()
	k := must.Get(sqsworker.New(c, url, once.Handler(h), func(o *sqsworker.Options) { o.Logger = w.log }))(w)
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- k.Run(ctx) }()
	return func() {
		cancel()
		must.Do(w, <-stopped)
	}
}

// sendBare sends the event 1 with its ID alone, as a producer without sqsonce does.
func (w *fixture) sendBare() {
	w.Helper()
	must.Get(w.admin.sqs.SendMessage(context.Background(), &sqs.SendMessageInput{
		QueueUrl: &w.url, MessageBody: aws.String("{}"), MessageAttributes: map[string]types.MessageAttributeValue{
			sqsonce.AttrEventID: {DataType: aws.String("String"), StringValue: aws.String("1")},
		},
	}))(w)
}

// Two workers, of which one could not fetch its credentials at first: they give an event the same key, and its effect is there once.
func TestOneKeyAfterFailedCredentials(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"AccessDenied", "AccessDeniedException", "QueueDoesNotExist", "SomethingNew"} {
		for _, failsFirst := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				w := newFixture(t, setup{visibility: 30 * time.Second, maxReceives: 3, quiet: true})
				once := must.Get(dedup.New(memstore.New(), consumer, func(o *dedup.Options) { o.Logger = w.log }))(t)
				var failed atomic.Bool
				withFailure := sqs.New(w.newProcess().sqs.Options(), func(o *sqs.Options) {
					next := o.Credentials
					o.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
						if failed.CompareAndSwap(false, true) {
							return aws.Credentials{}, &smithy.OperationError{ServiceID: "STS", OperationName: "AssumeRoleWithWebIdentity", Err: &smithy.GenericAPIError{Code: code, Fault: smithy.FaultClient}}
						}
						return next.Retrieve(ctx)
					})
				})
				clients := []*sqs.Client{withFailure, w.newProcess().sqs}
				if !failsFirst {
					clients[0], clients[1] = clients[1], clients[0]
				}
				var effects atomic.Int64
				for _, c := range clients {
					w.sendBare()
					stop := w.runWorker(c, w.byProxy(), once, func(context.Context, *sqsonce.Message) error { effects.Add(1); return nil })
					time.Sleep(time.Minute)
					stop()
				}
				if n, left, dead := effects.Load(), len(w.sqs.Messages(w.url)), len(w.sqs.Messages(w.dlq)); n != 1 || left+dead > 0 {
					t.Errorf("%s: %d effects, %d left in the queue, %d dead-lettered; want one effect", code, n, left, dead)
				}
			})
		}
	}
}

// While the queue's ARN is not known, a message whose key needs it waits, and is neither run nor dead-lettered. Others are handled.
func TestNoKeyWithoutTheARN(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, setup{visibility: 30 * time.Second, maxReceives: 3, quiet: true})
		denied := fault.Plan{Rules: []fault.Rule{{Op: "GetQueueAttributes", Prob: 1, Do: fault.Error, Code: "AccessDenied"}}}
		w.sqs.Set(denied)
		once := must.Get(dedup.New(memstore.New(), consumer, func(o *dedup.Options) { o.Logger = w.log }))(t)
		w.send(message{name: "a1"})
		var mu sync.Mutex
		var keys []string
		stop := w.runWorker(w.newProcess().sqs, w.byProxy(), once, func(_ context.Context, m *sqsonce.Message) error {
			key, _, err := m.Key()
			mu.Lock()
			defer mu.Unlock()
			keys = append(keys, key)
			return err
		})
		time.Sleep(time.Minute)
		w.sendBare()
		must.Get(w.admin.sqs.SendMessage(context.Background(), &sqs.SendMessageInput{QueueUrl: &w.url, MessageBody: aws.String("bare")}))(t)
		time.Sleep(6 * time.Hour)
		mu.Lock()
		if got := strings.Join(keys, " "); got != source+"|a1" || len(w.sqs.Messages(w.dlq)) > 0 || len(w.sqs.Messages(w.url)) != 2 {
			t.Errorf("ran %q, %d dead-lettered; want a1 alone", got, len(w.sqs.Messages(w.dlq)))
		}
		mu.Unlock()
		w.sqs.Set(fault.Plan{})
		time.Sleep(3 * time.Minute)
		stop()
		if len(keys) != 3 || !strings.Contains(strings.Join(keys, " "), "sqs-event|"+queueARN+"|1") || len(w.sqs.Messages(w.url)) > 0 {
			t.Errorf("ran %q, %d left; want all, with keys of the queue's ARN", keys, len(w.sqs.Messages(w.url)))
		}
	})
}
