package orders

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// workerActions are the actions that the worker's policy must allow, and no others, with the queue or table of each.
var workerActions = []string{
	"dedup dynamodb:DescribeTable", "dedup dynamodb:DescribeTimeToLive", "dedup dynamodb:GetItem", "dedup dynamodb:PartiQLInsert", "dedup dynamodb:PartiQLUpdate", "dedup dynamodb:UpdateItem",
	"ledger dynamodb:UpdateItem",
	"orders sqs:ChangeMessageVisibility", "orders sqs:DeleteMessage", "orders sqs:GetQueueAttributes", "orders sqs:ReceiveMessage",
	"orders-dlq sqs:GetQueueAttributes", "orders-dlq sqs:GetQueueUrl", "orders-dlq sqs:SendMessage",
}

// TestWorkerActions runs two workers one after the other through success, failure, reject and events that the first one has
// completed, and compares their calls with workerActions.
func TestWorkerActions(t *testing.T) {
	inMemory(t)
	synctest.Test(t, func(t *testing.T) {
		_, stack := newHandler(t, "", func(o *localstack.Options) { o.Queues = []localstack.Queue{{Name: "orders"}} })
		url := aws.String(stack.QueueURL["orders"])
		bodies := []string{`not json`, `{"id":"ord-0/placed","account":"","amount":250}`} // rejected; fails: DynamoDB refuses an empty key
		for i := range 20 {
			bodies = append(bodies, fmt.Sprintf(`{"id":"ord-%d/placed","account":"acct-1","amount":250}`, i))
		}
		used := &actionRecorder{actions: map[string]bool{}}
		for range 2 {
			for i, body := range bodies {
				must.Get(stack.SQS.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: url, MessageBody: &body,
					MessageAttributes: map[string]sqstypes.MessageAttributeValue{
						"event-key": {DataType: aws.String("String"), StringValue: aws.String(fmt.Sprint("ord-", i))},
					}}))(t)
			}
			used.runWorker(t, stack, *url)
		}
		if dead := stack.MemSQS().Messages("orders-dlq"); len(dead) != 2 {
			t.Fatalf("%d messages in the dead-letter queue, want the two that are not JSON", len(dead))
		}
		if got := slices.Sorted(maps.Keys(used.actions)); !slices.Equal(got, workerActions) {
			t.Errorf("used %q\nwant %q", got, workerActions)
		}
	})
}

// actionRecorder collects the actions that requests need, with the queue or table of each.
type actionRecorder struct {
	mu      sync.Mutex
	actions map[string]bool
}

// runWorker runs a new process for a minute: Check, as README's program calls it, a worker and a handler with clients of their own.
func (r *actionRecorder) runWorker(t *testing.T, stack *localstack.Stack, url string) {
	t.Helper()
	ddb := dynamodb.New(stack.DynamoDB.Options(), func(o *dynamodb.Options) { o.HTTPClient = recorded{r, o.HTTPClient} })
	handler := must.Get(NewHandler(ddb, Config{DedupTable: "dedup", LedgerTable: "ledger", Consumer: "orders"}))(t)
	must.Do(t, must.Get(dynamostore.New(ddb, "dedup"))(t).Check(t.Context()))
	client := sqs.New(stack.SQS.Options(), func(o *sqs.Options) { o.HTTPClient = recorded{r, o.HTTPClient} })
	w := must.Get(sqsworker.New(client, url, handler, func(o *sqsworker.Options) {
		o.Logger = slog.New(slog.DiscardHandler)
		o.Backoff = func(int) time.Duration { return time.Hour }
	}))(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	must.Do(t, w.Run(ctx))
}

type recorded struct {
	*actionRecorder
	client interface {
		Do(*http.Request) (*http.Response, error)
	}
}

func (r recorded) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	if err := r.note(req.Header.Get("X-Amz-Target"), body); err != nil {
		return nil, err
	}
	return r.client.Do(req)
}

// note notes the actions of a request. SQS's batch operations need the action of the single operation; a transaction and a
// batch of statements need the action of each write.
func (r recorded) note(target string, body []byte) error {
	var in struct {
		QueueUrl, QueueName, TableName string
		TransactItems                  []map[string]struct{ TableName string }
		Statements                     []struct{ Statement string }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	service, op, _ := strings.Cut(target, ".")
	switch {
	case service == "AmazonSQS":
		r.actions[path.Base(in.QueueUrl+in.QueueName)+" sqs:"+strings.TrimSuffix(op, "Batch")] = true
	case in.TableName != "":
		r.actions[in.TableName+" dynamodb:"+op] = true
	}
	for _, item := range in.TransactItems {
		for write, of := range item {
			r.actions[of.TableName+" dynamodb:"+write+"Item"] = true
		}
	}
	for _, s := range in.Statements {
		table := strings.Split(s.Statement, `"`)[1]
		verb := strings.ToLower(strings.Fields(s.Statement)[0])
		r.actions[table+" dynamodb:PartiQL"+strings.ToUpper(verb[:1])+verb[1:]] = true
	}
	return nil
}
