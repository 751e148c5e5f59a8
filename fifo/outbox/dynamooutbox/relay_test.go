package dynamooutbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// onRig runs a test with a rig in virtual time, beside other tests.
func onRig(t *testing.T, f func(x *rig)) {
	t.Helper()
	t.Parallel()
	inRig(t, f)
}

// inRig runs a part of a test with a rig in virtual time.
func inRig(t *testing.T, f func(x *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(newRig(t)) })
}

// A lone event takes four requests, one less where it is the group's first or the relay has published the one before.
func TestLoneEvent(t *testing.T) {
	onRig(t, func(x *rig) {
		r := x.relay(x.box)
		drain := func(r *outbox.Relay, want string) {
			x.Helper()
			sent := len(x.queue.Calls())
			x.wantOps(want, func() {
				if err := r.Drain(x.Context(), "g"); err != nil {
					x.Error(err)
				}
			})
			if n := x.sends(sent); n != 1 {
				x.Errorf("%d requests to SQS, want 1", n)
			}
		}
		x.mustCommit("g", 0, 1)
		drain(r, "Query BatchWriteItem")
		x.mustCommit("g", 1, 1)
		drain(r, "Query BatchWriteItem")
		x.mustCommit("g", 2, 1)
		drain(x.relay(x.box), "Query TransactGetItems BatchWriteItem")
		if p := x.problem("g", 3); p != "" {
			x.Error(p)
		}
		x.wantStored("")
	})
}

// 64 groups in pages of 10: requests to DynamoDB and to SQS for each event.
func TestBusyRequests(t *testing.T) {
	onRig(t, func(x *rig) {
		const groups, each = 64, 40
		var names []string
		for g := range groups {
			name := fmt.Sprintf("g%02d", g)
			names = append(names, name)
			x.mustCommit(name, 0, each)
			if g%2 == 1 {
				if err := x.relay(x.box, func(o *outbox.Options) { o.Page = each }).Drain(x.Context(), name); err != nil { // another process's
					x.Fatal(err)
				}
				x.mustCommit(name, each, each)
			}
		}
		n := len(x.srv.Calls())
		sent := len(x.queue.Calls())
		must.Do(x, x.relay(x.box).Drain(x.Context(), names...))
		count := map[string]float64{}
		for _, c := range x.srv.Calls()[n:] {
			count[c.Op] += 1. / (groups * each)
		}
		for op, most := range map[string]float64{"Query": 0.15, "BatchWriteItem": 0.05, "TransactGetItems": 0.02, "Scan": 0} {
			if count[op] > most {
				x.Errorf("%.3f %s an event, want at most %.2f", count[op], op, most)
			}
		}
		if got := float64(x.sends(sent)) / (groups * each); got < 0.10 || got > 0.12 {
			x.Errorf("%.3f SendMessageBatch an event, want 0.10 to 0.12", got)
		}
		x.Logf("requests an event: %v, SendMessageBatch %.3f", count, float64(x.sends(sent))/(groups*each))
		x.wantStored("")
	})
}

// A relay with nothing to do makes one Scan a second, and nothing else.
func TestIdleRelay(t *testing.T) {
	onRig(t, func(x *rig) {
		ctx, cancel := context.WithTimeout(x.Context(), 100*time.Second)
		defer cancel()
		calls := x.calls(func() {
			if err := x.relay(x.box).Run(ctx); err != nil {
				x.Error(err)
			}
		})
		if n := strings.Count(ops(calls), "Scan"); n != len(calls) || n < 90 || n > 112 {
			x.Errorf("%d Scans of %d calls in 100 s, want about 100 and nothing else", n, len(calls))
		}
	})
}

// The network delivers a transaction once more, after the event was published and its ClientRequestToken was forgotten. The
// version's condition refuses it. Without a version the event is back: attribute_not_exists does not see one that is gone.
func TestLateTransaction(t *testing.T) {
	t.Parallel()
	for version, want := range map[bool]string{true: "", false: "orders#g 1"} {
		inRig(t, func(x *rig) {
			x.faults(fault.Rule{Op: "TransactWriteItems", Nth: 1, Do: fault.Replay, Delay: 20 * time.Minute})
			if version {
				x.mustCommit("g", 0, 1)
			} else {
				x.put("g", 1)
			}
			if err := x.relay(x.box).Drain(x.Context(), "g"); err != nil {
				x.Error(err)
			}
			x.wantStored("")
			time.Sleep(time.Hour)
			x.wantStored(want)
		})
	}
}

// Two events with one ID: the second is parked, and nothing that was accepted is sent in its place.
func TestSameID(t *testing.T) {
	onRig(t, func(x *rig) {
		x.put("g", 1)
		x.write(fifo.Event{ID: "g/v1", Group: "g", Body: "another"}, 2)
		x.put("g", 3)
		err := x.relay(x.box).Drain(x.Context(), "g")
		if e, ok := errors.AsType[*outbox.GroupError](err); !ok || !errors.Is(err, outbox.ErrHalted) || e.Seq != 2 {
			x.Errorf("got %v, want that event 2 halts the group", err)
		}
		x.wantRead("g", outbox.Known{}, 9, "2h 3")
	})
}

// absent is what a probe answers that finds nothing.
var absent = &dynamodb.TransactGetItemsOutput{Responses: []ddbtypes.ItemResponse{{}}}

// getProbe is a client whose probe is a GetItem.
type getProbe struct {
	Client
	ddb *dynamodb.Client
}

func (g getProbe) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	get := in.TransactItems[0].Get
	consistent := true
	out, err := g.ddb.GetItem(ctx, &dynamodb.GetItemInput{TableName: get.TableName, Key: get.Key, ConsistentRead: &consistent})
	if err != nil {
		return nil, err
	}
	return &dynamodb.TransactGetItemsOutput{Responses: []ddbtypes.ItemResponse{{Item: out.Item}}}, nil
}
