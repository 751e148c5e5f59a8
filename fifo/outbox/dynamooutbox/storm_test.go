package dynamooutbox

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/outboxstorm"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// TestStorm: relays in processes that are killed and frozen between any two requests to DynamoDB or SQS, which fail, lose their
// answers or arrive up to 20 minutes late; transactions that reach their items one by one, and once more 20 minutes later; throttling;
// scans that are behind; deletes that fail for ten minutes; refusals, and an operator who unparks. Nothing is lost, nothing invented,
// nothing accepted first out of its order, and nothing twice within five minutes.
func TestStorm(t *testing.T) {
	t.Parallel()
	outboxstorm.NoProblem(t, storm)
}

// Each of these is seen in some run.
func TestStormSees(t *testing.T) {
	t.Parallel()
	outboxstorm.Sees(t, storm, outboxstorm.NoProbe, outboxstorm.ProbeByGetItem, outboxstorm.Payloads, outboxstorm.EarlyDelete,
		outboxstorm.BlindPark, outboxstorm.NoLock)
}

// storm runs a plan over DynamoDB.
func storm(t *testing.T, p outboxstorm.Plan) (problem string) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		rules := []fault.Rule{
			{Op: "TransactWriteItems", Prob: 0.3, Do: fault.HalfApplied, Delay: 20 * time.Second},
			{Op: "TransactWriteItems", Prob: 0.1, Do: fault.Replay, Delay: 20 * time.Minute},
		}
		if p.Throttle {
			rules = append(rules, fault.Rule{Op: "TransactGetItems", Prob: 0.05, Do: fault.Error, Code: "ThrottlingException"},
				fault.Rule{Op: "BatchWriteItem", Prob: 0.05, Do: fault.FailEntries, Entries: []int{0}})
		}
		x.srv.Set(fault.Plan{Seed: p.Seed, Rules: rules})
		problem = outboxstorm.Run(t.Context(), p, outboxstorm.World{
			Source: source,
			Commit: func(es []fifo.Event, first int64) func() {
				x.mustCommitEvents(es, first, p.Defect != outboxstorm.NoLock)
				return nil
			},
			Open: func(process *outboxstorm.Process) outbox.Store {
				return x.outbox(defectiveClient(p.Defect, testaws.DynamoDB(process.Through(x.srv))), testBox)
			},
			Left: x.left,
			Calm: func() { x.srv.Set(fault.Plan{}) },
		})
	})
	return problem
}

// left are the IDs of a group's items.
func (x *rig) left(group string) (ids []string) {
	for _, raw := range x.srv.Items(testTable) {
		var it struct {
			PK  struct{ S string } `json:"pk"`
			Seq struct{ N string } `json:"seq"`
		}
		must.Do(x, json.Unmarshal(raw, &it))
		if it.PK.S == x.box.partition(group) {
			ids = append(ids, fmt.Sprintf("%s/v%s", group, it.Seq.N))
		}
	}
	return ids
}

// defectiveClient returns a client by which an outbox breaks a clause of the protocol.
func defectiveClient(d outboxstorm.Defect, c *dynamodb.Client) Client {
	switch d {
	case outboxstorm.NoProbe:
		return &lens{Client: c, get: func(func() (*dynamodb.TransactGetItemsOutput, error)) (*dynamodb.TransactGetItemsOutput, error) {
			return absent, nil
		}}
	case outboxstorm.ProbeByGetItem:
		return getProbe{c, c}
	case outboxstorm.BlindPark:
		return blindPark{c}
	}
	return c
}

// blindPark is a client that marks events without a condition.
type blindPark struct{ Client }

func (b blindPark) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if strings.HasPrefix(aws.ToString(in.UpdateExpression), "SET #parked") {
		blind := *in
		blind.ConditionExpression = nil
		blind.ExpressionAttributeNames = map[string]string{"#parked": attrParked, "#error": attrError, "#at": attrParkedAt}
		blind.ExpressionAttributeValues = item{}
		for name, v := range in.ExpressionAttributeValues {
			if name != ":id" {
				blind.ExpressionAttributeValues[name] = v
			}
		}
		in = &blind
	}
	return b.Client.UpdateItem(ctx, in, optFns...)
}

// A relay of 64 groups, in pages of 10, has 0.8 of the rate at which PublishAll sends the same events of 1 KB from memory. A
// request to SQS takes 15 ms and one to DynamoDB 5 ms; the clock is virtual, so that no other work on the machine is measured. With
// as slow a DynamoDB as SQS it is 0.7: a page waits for its Query and its delete, which are two requests beside ten.
func TestThroughput(t *testing.T) {
	t.Parallel()
	const groups, each, least = 64, 50, 0.8
	body := strings.Repeat("b", 1<<10)
	events := func() (es []fifo.Event) {
		for n := range each {
			for g := range groups {
				es = append(es, fifo.Event{ID: fmt.Sprintf("g%02d/v%d", g, n+1), Group: fmt.Sprintf("g%02d", g), Body: body})
			}
		}
		return es
	}()
	slow := func(d time.Duration) fault.Rule { return fault.Rule{Prob: 1, Do: fault.Delay, Delay: d} }
	var fromMemory, relayed time.Duration
	inRig(t, func(x *rig) {
		x.sqsFaults(slow(15 * time.Millisecond))
		p := x.publisher()
		start := time.Now()
		must.Get(p.PublishAll(x.Context(), events))(x)
		fromMemory = time.Since(start)
	})
	inRig(t, func(x *rig) {
		var names []string
		seqs := map[string]int64{}
		for _, e := range events {
			if seqs[e.Group]++; seqs[e.Group] == 1 {
				names = append(names, e.Group)
			}
			x.write(e, seqs[e.Group])
		}
		x.sqsFaults(slow(15 * time.Millisecond))
		x.faults(slow(5 * time.Millisecond))
		r := x.relay(x.box)
		start := time.Now()
		must.Do(x, r.Drain(x.Context(), names...))
		relayed = time.Since(start)
		x.faults()
		x.wantStored("")
	})
	t.Logf("PublishAll %v, relay %v: %.2f of its rate", fromMemory, relayed, fromMemory.Seconds()/relayed.Seconds())
	if got := fromMemory.Seconds() / relayed.Seconds(); got < least {
		t.Errorf("the relay has %.2f of the rate of PublishAll, want %.2f", got, least)
	}
}
