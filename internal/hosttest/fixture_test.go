package hosttest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

const (
	table    = "dedup"
	consumer = "orders"
	source   = "test"
	queueARN = "arn:aws:sqs:us-east-1:000000000000:jobs"
	dlqARN   = queueARN + "-dlq"
)

// fixture is AWS in memory, with one queue and its dead-letter queue, in virtual time.
type fixture struct {
	*testing.T
	sqs      *memsqs.Server
	ddb      *memdynamodb.Server
	net      network
	fifo     bool
	url, dlq string
	admin    *process // sends the messages, and is never killed
	checker  *checker
	log      *slog.Logger
	rejects  bool // the host sends rejected messages to the dead-letter queue
}

type setup struct {
	seed        uint64
	quiet       bool
	fifo        bool
	visibility  time.Duration
	maxReceives int
	duplicates  float64
	strict      bool          // memsqs.Options.StrictHandles
	retention   time.Duration // default: 4 days
}

func newFixture(t *testing.T, s setup) *fixture {
	t.Helper()
	w := &fixture{T: t, fifo: s.fifo, ddb: memdynamodb.New(), sqs: memsqs.New(func(o *memsqs.Options) {
		o.Seed, o.Duplicates, o.StrictHandles = s.seed, s.duplicates, s.strict
	})}
	t.Cleanup(w.sqs.Close)
	t.Cleanup(w.ddb.Close)
	w.log = slog.New(slog.NewTextHandler(t.Output(), nil))
	if s.quiet {
		w.log = slog.New(slog.DiscardHandler)
	}
	w.checker = newChecker(w.record)
	w.admin = w.newProcess()
	must.Do(t, dynamostore.CreateTable(t.Context(), w.admin.ddb, table))
	attrs := map[string]string{"VisibilityTimeout": strconv.Itoa(int(s.visibility / time.Second))}
	if w.fifo {
		attrs["FifoQueue"] = "true"
	}
	w.dlq = w.createDLQ()
	attrs["RedrivePolicy"] = w.policy(s.maxReceives)
	if s.retention > 0 {
		attrs["MessageRetentionPeriod"] = strconv.Itoa(int(s.retention / time.Second))
	}
	w.url = w.create("jobs", attrs)
	return w
}

func (w *fixture) createDLQ() (url string) {
	w.Helper()
	var attrs map[string]string
	if w.fifo {
		attrs = map[string]string{"FifoQueue": "true"}
	}
	return w.create("jobs-dlq", attrs)
}

// policy is a redrive policy; "": none.
func (w *fixture) policy(maxReceives int) string {
	if maxReceives == 0 {
		return ""
	}
	return fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, w.named(dlqARN), maxReceives)
}

// named returns the name or ARN of a queue, with .fifo for a FIFO queue.
func (w *fixture) named(name string) string {
	if w.fifo {
		return name + ".fifo"
	}
	return name
}

func (w *fixture) create(name string, attrs map[string]string) string {
	w.Helper()
	out := must.Get(w.admin.sqs.CreateQueue(w.Context(), &sqs.CreateQueueInput{QueueName: aws.String(w.named(name)), Attributes: attrs}))(w)
	return *out.QueueUrl
}

// message is an event to send.
type message struct {
	name string
	body string // "": a valid one
	copy int    // number of the copy: SQS sees another message of the same event
}

// groupOf is the group of an event by its name: "a" of a1, "g7" of g7-12.
func groupOf(name string) string {
	if group, _, found := strings.Cut(name, "-"); found {
		return group
	}
	return name[:1]
}

func (w *fixture) send(ms ...message) {
	w.Helper()
	for from := 0; from < len(ms); from += 10 {
		in := &sqs.SendMessageBatchInput{QueueUrl: &w.url}
		for i, m := range ms[from:min(from+10, len(ms))] {
			e := sqstypes.SendMessageBatchRequestEntry{
				Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(m.text()), MessageAttributes: map[string]sqstypes.MessageAttributeValue{
					sqsonce.AttrEventID:     {DataType: aws.String("String"), StringValue: aws.String(m.name)},
					sqsonce.AttrEventSource: {DataType: aws.String("String"), StringValue: aws.String(source)},
				},
			}
			if w.fifo {
				e.MessageGroupId, e.MessageDeduplicationId = aws.String(groupOf(m.name)), aws.String(fmt.Sprint(m.name, "-", m.copy))
			}
			in.Entries = append(in.Entries, e)
		}
		out, err := w.admin.sqs.SendMessageBatch(context.Background(), in)
		if err != nil || len(out.Failed) > 0 {
			w.Fatalf("SendMessageBatch: %v, failed %v", err, out)
		}
	}
}

// redrive moves the messages of the dead-letter queue to the queue, as an operator does.
func (w *fixture) redrive() {
	w.Helper()
	must.Get(w.admin.sqs.StartMessageMoveTask(context.Background(), &sqs.StartMessageMoveTaskInput{
		SourceArn: aws.String(w.named(dlqARN)), DestinationArn: aws.String(w.named(queueARN)),
	}))(w)
}

func (m message) text() string {
	if m.body != "" {
		return m.body
	}
	return fmt.Sprintf(`{"name":%q,"note":%q}`, m.name, private)
}

// record returns the record of an event. It does not use the SDK, which would be most of the cost of a simulation.
func (w *fixture) record(event string) record {
	body := fmt.Sprintf(`{"TableName":%q,"ConsistentRead":true,"Key":{"id":{"S":%q}}}`, table, consumer+"#"+source+"|"+event)
	text, err := w.call("GetItem", body)
	var out struct{ Item record }
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		w.Errorf("the record of %s: %v", event, err)
	}
	return out.Item
}

func (w *fixture) call(op, body string) ([]byte, error) {
	r, err := http.NewRequest(http.MethodPost, "http://dynamodb.local/", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	r.Header.Set("Authorization", "test")
	resp, err := w.ddb.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	return text, err
}

// record is an item of the table, with the attributes of the protocol by their documented names.
type record struct {
	Status   struct{ S string } `json:"status"`
	Owner    struct{ S string } `json:"owner"`
	Error    struct{ S string } `json:"error"`
	Attempts struct{ N string } `json:"receive_count"`
	Until    struct{ N string } `json:"in_progress_expiration"`
}

func (r record) completed() bool { return r.Status.S == "COMPLETED" }

// leasedTo reports whether owner has a lease on the record that has not ended.
func (r record) leasedTo(owner string) bool {
	ms, err := strconv.ParseInt(r.Until.N, 10, 64)
	return err == nil && r.Status.S == "INPROGRESS" && r.Owner.S == owner && time.Now().Before(time.UnixMilli(ms))
}
