package dynamooutbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// versions is the table of the aggregates: the groups' versions.
const versions = "versions"

// rig is a bed with a queue, relays, and writers that give seqs as Put asks for.
type rig struct {
	*bed
	queue *memsqs.Server
	sqs   *sqs.Client
	url   string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	x := &rig{bed: newBed(t), queue: memsqs.New()}
	t.Cleanup(x.queue.Close)
	x.sqs = testaws.SQS(x.queue)
	x.url = testaws.Queue(t, x.sqs, "orders.fifo", nil)
	_, err := x.ddb.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(versions), BillingMode: ddbtypes.BillingModePayPerRequest,
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: ddbtypes.ScalarAttributeTypeS}},
		KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: ddbtypes.KeyTypeHash}},
	})
	must.Do(t, err)
	return x
}

// relay is a process of its own, over a client that may show it something else.
func (x *rig) relay(box *Outbox, optFns ...func(*outbox.Options)) *outbox.Relay {
	x.Helper()
	p := x.publisher()
	r := must.Get(outbox.NewRelay(box, p, append(optFns, func(o *outbox.Options) { o.Logger = slog.New(slog.DiscardHandler) })...))(x)
	return r
}

func (x *rig) publisher() *fifo.Publisher {
	x.Helper()
	p := must.Get(fifo.NewPublisher(x.sqs, x.url, source, func(o *fifo.Options) { o.Logger = slog.New(slog.DiscardHandler) }))(x)
	x.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = p.Close(ctx) // what is in flight is given up
	})
	return p
}

// commit writes the group's next events in one transaction, under the condition that the version is the one before.
func (x *rig) commit(group string, version, n int) error {
	var es []fifo.Event
	for i := range n {
		es = append(es, event(group, version+i+1))
	}
	return x.commitEvents(es, int64(version+1), true)
}

// commitEvents writes events of one group, the first of which has that seq.
func (x *rig) commitEvents(es []fifo.Event, first int64, versioned bool) error {
	in := &dynamodb.TransactWriteItemsInput{}
	if versioned {
		in.TransactItems = append(in.TransactItems, ddbtypes.TransactWriteItem{Update: &ddbtypes.Update{
			TableName: aws.String(versions), Key: item{"id": text(es[0].Group)},
			UpdateExpression: aws.String("SET version = :new"), ConditionExpression: aws.String("version = :old OR attribute_not_exists(id) AND :old = :zero"),
			ExpressionAttributeValues: item{":old": number(first - 1), ":new": number(first - 1 + int64(len(es))), ":zero": number(0)},
		}})
	}
	for i, e := range es {
		p, err := x.box.Put(e, first+int64(i))
		if err != nil {
			return err
		}
		in.TransactItems = append(in.TransactItems, ddbtypes.TransactWriteItem{Put: p})
	}
	_, err := x.ddb.TransactWriteItems(x.Context(), in)
	return err
}

// mustCommit commits, after any transaction that is in progress.
func (x *rig) mustCommit(group string, version, n int) {
	x.Helper()
	x.untilDecided(func() error { return x.commit(group, version, n) })
}

func (x *rig) mustCommitEvents(es []fifo.Event, first int64, versioned bool) {
	x.Helper()
	x.untilDecided(func() error { return x.commitEvents(es, first, versioned) })
}

func (x *rig) untilDecided(commit func() error) {
	x.Helper()
	for {
		err := commit()
		if err == nil {
			return
		}
		if cancelled, ok := errors.AsType[*ddbtypes.TransactionCanceledException](err); !ok || aws.ToString(cancelled.CancellationReasons[0].Code) != "TransactionConflict" {
			x.Fatalf("commit: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// arrived returns the bodies of a group's messages in the queue's order, each where it was accepted first.
func (x *rig) arrived(group string) (bodies []string) {
	seen := map[string]bool{}
	for _, m := range x.queue.Messages(x.url) {
		if m.Group == group && !seen[m.Body] {
			seen[m.Body] = true
			bodies = append(bodies, m.Body)
		}
	}
	return bodies
}

// problem says what is wrong with a group of which n events were committed and all are published.
func (x *rig) problem(group string, n int) string {
	got := x.arrived(group)
	for i, body := range got {
		if want := event(group, i+1).Body; body != want {
			return fmt.Sprintf("group %s: %q is where %q must be", group, body, want)
		}
	}
	if len(got) != n {
		return fmt.Sprintf("group %s: %d events arrived, %d were committed", group, len(got), n)
	}
	return ""
}

// sends returns the number of requests to SQS since a count of calls.
func (x *rig) sends(since int) (n int) {
	for _, c := range x.queue.Calls()[since:] {
		if c.Op == "SendMessageBatch" {
			n++
		}
	}
	return n
}

func (x *rig) sqsFaults(rules ...fault.Rule) { x.queue.Set(fault.Plan{Seed: 1, Rules: rules}) }
