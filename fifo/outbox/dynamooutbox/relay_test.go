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
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func inRig(t *testing.T, f func(x *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(newRig(t)) })
}

// A lone event takes four requests, one less where it is the group's first or the relay has published the one before.
func TestLoneEvent(t *testing.T) {
	t.Parallel()
	inRig(t, func(x *rig) {
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
	t.Parallel()
	inRig(t, func(x *rig) {
		const groups, each = 64, 100
		var names []string
		for g := range groups {
			name := fmt.Sprintf("g%02d", g)
			names = append(names, name)
			for n := 0; n < each; n += 50 {
				x.mustCommit(name, n, 50)
			}
			if g%2 == 1 {
				if err := x.relay(x.box, func(o *outbox.Options) { o.Page = each }).Drain(x.Context(), name); err != nil { // another process's
					x.Fatal(err)
				}
				x.mustCommit(name, each, 50)
				x.mustCommit(name, each+50, 50)
			}
		}
		n := len(x.srv.Calls())
		sent := len(x.queue.Calls())
		if err := x.relay(x.box).Drain(x.Context(), names...); err != nil {
			x.Fatal(err)
		}
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
	t.Parallel()
	inRig(t, func(x *rig) {
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

// A relay that may not delete stops after its first page: the events are in the queue once, and nothing is sent again.
func TestDeleteIsDenied(t *testing.T) {
	t.Parallel()
	inRig(t, func(x *rig) {
		x.mustCommit("g", 0, 30)
		x.faults(fault.Rule{Op: "BatchWriteItem", Prob: 1, Do: fault.Error, Code: "AccessDeniedException"})
		r := x.relay(x.box)
		for range 5 {
			if err := r.Drain(x.Context(), "g"); !errors.Is(err, outbox.ErrDenied) {
				x.Errorf("Drain: got %v, want ErrDenied", err)
			}
			if _, err := r.Sweep(x.Context()); !errors.Is(err, outbox.ErrDenied) {
				x.Errorf("Sweep: got %v, want ErrDenied", err)
			}
			time.Sleep(10 * time.Minute)
		}
		if got := len(x.queue.Messages(x.url)); got != 10 {
			x.Errorf("%d messages, want the 10 of the first page", got)
		}
		x.faults()
		if err := r.Drain(x.Context(), "g"); err != nil {
			x.Error(err)
		}
		if got, p := len(x.queue.Messages(x.url)), x.problem("g", 30); got != 30 || p != "" {
			x.Errorf("%d messages, want 30 %s", got, p)
		}
	})
}

// A broken item, and one of another namespace, hold their groups and no other. Neither is parked.
func TestItemsThatAreNotSent(t *testing.T) {
	t.Parallel()
	inRig(t, func(x *rig) {
		later := encode(x.box.partition("later"), 1, source, event("later", 1), time.Now())
		later[attrVersion] = number(2)
		x.set(later)
		x.set(encode(x.box.partition("foreign"), 1, "another", event("foreign", 1), time.Now()))
		x.mustCommit("good", 0, 3)
		time.Sleep(time.Minute)
		r := x.relay(x.box)
		err := r.Drain(x.Context(), "later", "foreign", "good")
		if failed, rest := failures(err); len(failed) != 2 || !failed["later"] || !failed["foreign"] || len(rest) > 0 {
			x.Errorf("got %v, want errors of two groups", err)
		}
		if e, ok := errors.AsType[*outbox.BrokenError](err); !ok || e.Group != "later" || !errors.Is(err, outbox.ErrWrongSource) {
			x.Errorf("got %v, want a BrokenError and ErrWrongSource", err)
		}
		if _, err := r.Sweep(x.Context()); err == nil {
			x.Error("Sweep: got nil, want the same errors")
		}
		if p := x.problem("good", 3); p != "" {
			x.Error(p)
		}
		x.wantStored("orders#foreign 1, orders#later 1")
		if parked, err := x.box.Parked(x.Context(), 9); len(parked) > 0 || err != nil {
			x.Errorf("parked: %v, %v", parked, err)
		}
	})
}

// An event that SQS refuses halts its group. An operator discards it, and the group goes on, by a relay that has not seen it.
func TestRefusedEvent(t *testing.T) {
	t.Parallel()
	inRig(t, func(x *rig) {
		x.mustCommit("g", 0, 5)
		it := encode(x.box.partition("g"), 3, source, fifo.Event{ID: "g/v3", Group: "g", Body: "\x00"}, time.Now())
		x.set(it) // of another writer
		err := x.relay(x.box).Drain(x.Context(), "g")
		if failed, rest := failures(err); len(failed)+len(rest) > 0 {
			x.Errorf("got %v, want that the group is halted and no other error", err)
		}
		x.wantRead("g", outbox.Known{}, 9, "3h 4 5")
		parked, err := x.box.Parked(x.Context(), 9)
		if err != nil || len(parked) != 1 || parked[0].Reason == "" {
			x.Fatalf("parked: %v, %v", parked, err)
		}
		r := x.relay(x.box)
		if err := r.Discard(x.Context(), parked[0]); err != nil {
			x.Error(err)
		}
		if err := r.Drain(x.Context(), "g"); err != nil {
			x.Error(err)
		}
		if got, want := strings.Join(x.arrived("g"), ", "), "body 1, body 2, body 4, body 5"; got != want {
			x.Errorf("arrived: %s, want %s", got, want)
		}
	})
}

// A relay whose publisher has another namespace would send under other keys: there is none.
func TestNamespaceOfTheRelay(t *testing.T) {
	t.Parallel()
	inRig(t, func(x *rig) {
		o, err := New(x.ddb, testTable, testBox, "another")
		if err != nil {
			x.Fatal(err)
		}
		p, err := fifo.NewPublisher(x.sqs, x.url, source)
		if err != nil {
			x.Fatal(err)
		}
		if _, err := outbox.NewRelay(o, p); fields(err) != "publisher" {
			x.Errorf("got %v, want a FieldError of the publisher", err)
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
	t.Parallel()
	inRig(t, func(x *rig) {
		x.put("g", 1)
		x.write(fifo.Event{ID: "g/v1", Group: "g", Body: "another"}, 2)
		x.put("g", 3)
		err := x.relay(x.box).Drain(x.Context(), "g")
		if e, ok := errors.AsType[*outbox.HaltedError](err); !ok || e.Seq != 2 {
			x.Errorf("got %v, want that event 2 halts the group", err)
		}
		x.wantRead("g", outbox.Known{}, 9, "2h 3")
	})
}

// The reader of a half-applied transaction: without the probe, or with one by GetItem, event 3 is accepted before 2.
func TestOrderNeedsTheProbe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		probe func(x *rig) Client
		lost  bool
	}{
		"as it is": {func(x *rig) Client { return x.ddb }, false},
		"no probe": {func(x *rig) Client {
			return &lens{Client: x.ddb, get: func(func() (*dynamodb.TransactGetItemsOutput, error)) (*dynamodb.TransactGetItemsOutput, error) {
				return absent, nil
			}}
		}, true},
		"GetItem": {func(x *rig) Client { return getProbe{x.ddb, x.ddb} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inRig(t, func(x *rig) {
				x.mustCommit("g", 0, 1)
				if err := x.relay(x.box).Drain(x.Context(), "g"); err != nil {
					x.Fatal(err)
				}
				// The version is there at once, the event ten seconds later.
				x.faults(fault.Rule{Op: "TransactWriteItems", Nth: 1, Do: fault.HalfApplied, Delays: []time.Duration{0, 10 * time.Second}})
				x.mustCommit("g", 1, 1)
				x.mustCommit("g", 2, 1)
				r := x.relay(x.outbox(c.probe(x), testBox))
				if err := r.Drain(x.Context(), "g"); err != nil {
					x.Error(err)
				}
				time.Sleep(time.Minute)
				if err := r.Drain(x.Context(), "g"); err != nil {
					x.Error(err)
				}
				if p := x.problem("g", 3); (p != "") != c.lost {
					x.Errorf("got %q, want the order to be lost: %t", p, c.lost)
				}
			})
		})
	}
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
