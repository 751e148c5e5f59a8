package endpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/fifo/outbox/dynamooutbox"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// State is what an endpoint has counted so far, and what remains in its queue.
type State struct {
	Connections      int64   `json:"connections"`
	SQSRequests      int64   `json:"sqsRequests"`
	DynamoDBRequests int64   `json:"dynamodbRequests"`
	WriteUnits       float64 `json:"writeUnits"`
	// Remaining are the messages in the queue that were received at least once.
	Remaining []Remaining `json:"remaining"`
}

// Remaining is a message that was received and is still in the queue.
type Remaining struct {
	Event    int  `json:"event"`
	InFlight bool `json:"inFlight"`
}

func (s *server) state() State {
	st := State{
		Connections: s.connections.Load(), SQSRequests: s.sqsRequests.Load(), DynamoDBRequests: s.dynamodbRequests.Load(),
		WriteUnits: writeUnits(s.dynamodb.Calls()), Remaining: []Remaining{},
	}
	for _, m := range s.sqs.Messages(s.address.QueueURL) {
		if m.ReceiveCount > 0 {
			st.Remaining = append(st.Remaining, Remaining{Event: job.Number(m.Body), InFlight: m.InFlight})
		}
	}
	return st
}

// writes are the DynamoDB operations that consume write units. No contestant reads by PartiQL.
var writes = map[string]bool{
	"PutItem": true, "UpdateItem": true, "DeleteItem": true, "BatchWriteItem": true,
	"TransactWriteItems": true, "ExecuteStatement": true, "BatchExecuteStatement": true,
}

func writeUnits(calls []fault.Call) (sum float64) {
	for _, c := range calls {
		if writes[c.Op] {
			sum += c.Units
		}
	}
	return sum
}

// Order is what the queue of a publisher holds, compared with its backlog.
type Order struct {
	OutOfOrder int `json:"outOfOrder"` // messages behind a later one of their group
	Doubled    int `json:"doubled"`    // events that are in the queue more than once
	Missing    int `json:"missing"`    // events that are not in the queue
}

func (s *server) order() Order { return orderOf(s.sqs.Messages(s.address.QueueURL), s.cfg.Events) }

// orderOf compares the messages of a queue, in the order SQS accepted them, with a backlog of as many events.
func orderOf(messages []memsqs.QueuedMessage, events int) Order {
	var o Order
	seen, last := job.NewBits(events), map[string]int{}
	for _, m := range messages {
		n := job.Number(m.Body)
		if n < 0 || n >= events {
			continue
		}
		if seen.Has(n) {
			o.Doubled++
			continue // a second copy changes the order of nothing
		}
		seen.Add(n)
		if before, ok := last[m.Group]; ok && before > n {
			o.OutOfOrder++
			continue
		}
		last[m.Group] = n
	}
	for n := range events {
		if !seen.Has(n) {
			o.Missing++
		}
	}
	return o
}

// Emptied is how the wait for an empty queue ended.
type Emptied struct {
	Empty bool      `json:"empty"` // false: the time was over first
	At    time.Time `json:"at"`
	CPU   int64     `json:"cpu"` // of the endpoint during the wait, in microseconds
}

// awaitEmpty waits until everything was sent and the queue is empty. It asks the queue through the SDK, which takes CPU
// time: every 20 ms, and every 2 ms when few messages remain.
func (s *server) awaitEmpty(ctx context.Context, with json.RawMessage) (any, error) {
	var limit time.Duration
	if err := json.Unmarshal(with, &limit); err != nil {
		return nil, err
	}
	before, err := job.CPU()
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(limit); ; {
		fed := s.fed.Load() // before the depth: messages that are sent between the two reads are then counted
		n, err := s.depth(ctx)
		now, empty := time.Now(), fed && n == 0
		if err != nil {
			return nil, err
		}
		if empty || now.After(deadline) {
			after, err := job.CPU()
			return Emptied{Empty: empty, At: now, CPU: after - before}, err
		}
		wait := 2 * time.Millisecond
		if n > 1000 {
			wait = 20 * time.Millisecond
		}
		time.Sleep(wait)
	}
}

// depth is how many messages the queue holds, in flight included.
func (s *server) depth(ctx context.Context) (int, error) {
	out, err := s.direct.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl:       aws.String(s.address.QueueURL),
		AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll},
	})
	if err != nil {
		return 0, err
	}
	sum := 0
	for _, name := range []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"} {
		n, err := strconv.Atoi(out.Attributes[name])
		if err != nil {
			return 0, fmt.Errorf("endpoint: attribute %s: %w", name, err)
		}
		sum += n
	}
	return sum, nil
}

// fillOutbox commits the events, up to a hundred in a transaction. Its requests are not counted, its write units are.
func (s *server) fillOutbox(ctx context.Context, ddb *dynamodb.Client) error {
	if err := dynamooutbox.CreateTable(ctx, ddb, job.OutboxTable); err != nil {
		return err
	}
	box, err := dynamooutbox.New(ddb, job.OutboxTable, job.OutboxName, job.OutboxSource)
	if err != nil {
		return err
	}
	const most = 100
	var writes []ddbtypes.TransactWriteItem
	commit := func() error {
		if len(writes) == 0 {
			return nil
		}
		_, err := ddb.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: writes})
		writes = nil
		return err
	}
	seqs := make([]int64, s.cfg.OutboxGroups)
	for _, e := range job.Backlog(s.cfg.Events, s.cfg.OutboxGroups) {
		seqs[e.Group]++
		put, err := box.Put(job.OutboxEvent(e), seqs[e.Group])
		if err != nil {
			return err
		}
		if writes = append(writes, ddbtypes.TransactWriteItem{Put: put}); len(writes) == most {
			if err := commit(); err != nil {
				return err
			}
		}
	}
	return commit()
}
