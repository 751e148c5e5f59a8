package ops_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// noRecord is the state Unknown of an event whose record was looked for, and not found. Its reason is its problem.
const noRecord dedup.RecordState = "unrecorded"

const never = "its problem"

func stateOf(m *ops.Message) dedup.RecordState {
	if m.State == ops.StateUnknown && m.Record == nil && errors.Is(m.Problem, ops.ErrNoRecord) {
		return noRecord
	}
	return m.State
}

// bring brings an event to the dead-letter queue without a record.
var bring = map[ops.Cause]func(x *fixture){
	ops.CauseRejected: func(x *fixture) {
		x.send(x.url, "a1")
		x.worker(x.url, bare(fails(sqsonce.Reject(errCard)))).stopAfter(time.Minute)
	},
	ops.CauseReceivesUsedUp: func(x *fixture) {
		x.send(x.url, "a1")
		for range 4 {
			x.receive(x.url)
			time.Sleep(2 * visibility)
		}
	},
	ops.CauseSent: func(x *fixture) { x.send(x.dlq, "a1") },
}

// again delivers the event once more, through another queue, to a worker that leaves its record in a state.
var again = map[dedup.RecordState]func(x *fixture, url string){
	noRecord:         func(*fixture, string) {},
	ops.StateUnknown: func(*fixture, string) {},
	dedup.StateReleased: func(x *fixture, url string) {
		x.worker(url, x.guarded(fails(errors.New("no stock")))).stopAfter(5 * time.Second)
	},
	dedup.StateRunning: func(x *fixture, url string) {
		h := x.worker(url, x.guarded(hangs))
		x.Cleanup(h.kill)
		time.Sleep(5 * time.Minute)
	},
	dedup.StateCrashed: func(x *fixture, url string) {
		x.worker(url, x.guarded(hangs)).killAfter(5 * time.Second)
		time.Sleep(time.Minute)
	},
	dedup.StateCompleted: func(x *fixture, url string) {
		x.worker(url, x.guarded(fails(nil))).stopAfter(5 * time.Second)
	},
	dedup.StateForeign: func(x *fixture, _ string) { // as Powertools writes it
		must.Get(x.admin.ddb.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: map[string]ddbtypes.AttributeValue{
			"id":                     &ddbtypes.AttributeValueMemberS{Value: consumer + "#orders|a1"},
			"status":                 &ddbtypes.AttributeValueMemberS{Value: "INPROGRESS"},
			"expiration":             &ddbtypes.AttributeValueMemberN{Value: fmt.Sprint(time.Now().Add(time.Hour).Unix())},
			"in_progress_expiration": &ddbtypes.AttributeValueMemberN{Value: fmt.Sprint(time.Now().Add(time.Minute).UnixMilli())},
		}}))(x)
	},
}

// Each cause with each state: the reason of a message that was rejected is its own, that of any other one is its record's.
func TestEveryCauseAndState(t *testing.T) {
	t.Parallel()
	reasons := map[dedup.RecordState]string{
		noRecord: never, dedup.StateReleased: "no stock", dedup.StateCompleted: "done: its message is a second copy, or was not deleted",
	}
	for cause := range bring {
		for state := range again {
			run(t, string(cause)+"/"+string(state), setup{}, func(x *fixture) {
				bring[cause](x)
				url := x.create("again", nil)
				x.send(url, "a1")
				again[state](x, url)
				if state == ops.StateUnknown {
					x.ddb.Set(fault.Plan{Rules: []fault.Rule{{Op: "GetItem", Prob: 1, Do: fault.Error, Code: "InternalServerError"}}})
				}
				m := x.mustList(x.open())["a1"]
				if m == nil {
					x.Fatal("the message is not listed")
				}
				want := reasons[state]
				switch {
				case cause == ops.CauseRejected:
					want = "sqsonce: rejected: card declined"
				case want == never:
					want = m.Problem.Error()
				case state == dedup.StateCrashed:
					want = "its process crashed once at least"
				case want == "":
					want = "no reason known"
				}
				if m.Cause != cause || stateOf(m) != state || m.Reason != want {
					x.Errorf("got %s, %s, %q, want %s, %s, %q", m.Cause, m.State, m.Reason, cause, state, want)
				}
				if hasRecord := state != noRecord && state != ops.StateUnknown; (m.Record != nil) != hasRecord || (m.Problem == nil) != hasRecord {
					x.Errorf("record %v, problem %v", m.Record, m.Problem)
				}
				if m.RecordKey != consumer+"#orders|a1" || m.QueueARN != arnPrefix+"jobs" {
					x.Errorf("key %q of queue %q", m.RecordKey, m.QueueARN)
				}
			})
		}
	}
}

// Reasons that differ in details are one class, and those that differ in codes are not.
func TestClass(t *testing.T) {
	t.Parallel()
	for text, reasons := range map[string][]string{
		"order * of * at *: don't know *, it's *": {
			`order 17 of "Ann" at 2026-11-23T17:00:00.5Z: don't know arn:aws:sqs:us-east-1:1:a, it's 0123456789abcdef`,
			`order 4711 of "Bob \"B\"" at 2025-01-02 03:04:05: don't know arn:aws:sqs:eu-west-1:2:b, it's FFFFFFFF00000000`,
		},
		"tenant * of * took * ms": {
			"tenant `x y` of 6ba7b810-9dad-11d1-80b4-00c04fd430c8 took 1,000.5 ms", "tenant 'z' of 7ba7b810-9dad-11d1-80b4-00c04fd430c9 took 7 ms",
		},
		"card provider: status 404 for order ord-*": {"card provider: status 404 for order ord-17", "card provider: status 404 for order ord-123"},
		"card provider: status 503 for order ord-*": {"card provider: status 503 for order ord-17"},
		"rpc: status code 14 for *":                 {"rpc: status code 14 for 7", "rpc: status code 14 for 8"},
		"rpc: status code 4 for *":                  {"rpc: status code 4 for 7"},
		"pq: SQLSTATE code 40001":                   {"pq: SQLSTATE code 40001"},
		"pq: SQLSTATE code 23505":                   {"pq: SQLSTATE code 23505"},
		`HTTP/1.1 status: 402, {"code":"card_declined",*:*}`: {
			`HTTP/1.1 status: 402, {"code":"card_declined","message":"card 17"}`, `HTTP/1.1 status: 402, {"code":"card_declined","message":"card 18"}`,
		},
		`{"code": "expired_card", *: *}`:                {`{"code": "expired_card", "id": "a b"}`},
		`{\"code\":\"expired_card\"}`:                   {`{\"code\":\"expired_card\"}`},
		`status: * of *`:                                {`status: "no order 7" of "a"`, `status: "no order 8" of "b c"`},
		"exit status 0xc0000005":                        {"exit status 0xc0000005"},
		"exit status 0xc0000374":                        {"exit status 0xc0000374"},
		"exit status 3221225477":                        {"exit status 3221225477"},
		"exit status 3221226356":                        {"exit status 3221226356"},
		"customer * is unconfirmed":                     {"customer 01ARZ3NDEKTSV4RRFFQ69G5FAV is unconfirmed", "customer 01BX5ZZKBKACTAV9WEVGEMMVRZ is unconfirmed"},
		"No such customer: cus_*":                       {"No such customer: cus_9s6XKzkNRiz8i3", "No such customer: cus_4QxKZvNRiz8i3a"},
		"no parcel to postcode *, barcode *":            {"no parcel to postcode 90210, barcode 978316148", "no parcel to postcode 10115, barcode 978316149"},
		"GET /orders/*: 404 not found":                  {"GET /orders/123: 404 not found", "GET /orders/4711: 404 not found"},
		"ERROR: duplicate key in * (SQLSTATE 23505)":    {`ERROR: duplicate key in "orders_pkey" (SQLSTATE 23505)`},
		"ERROR: could not serialize (SQLSTATE 40001)":   {"ERROR: could not serialize (SQLSTATE 40001)"},
		"Error 1062 (23000): Duplicate entry * for *":   {"Error 1062 (23000): Duplicate entry '17' for 'id'"},
		"response error StatusCode: 400, *, no order *": {"response error StatusCode: 400, RequestID: QJ2TG9, no order 1.200,50", "response error StatusCode: 400, RequestID: 07UB, no order 7"},
		"charging ord-*: Post https://provider.example/*: dial tcp 10.0.3.7:443: connect: connection refused": {
			`charging ord-1: Post "https://provider.example/charges/1": dial tcp 10.0.3.7:443: connect: connection refused`,
			`charging ord-2: Post "https://provider.example/charges?order=2": dial tcp 10.0.3.7:443: connect: connection refused`,
		},
		"get http://10.0.0.1:8080/orders/*: dial tcp: lookup db1.internal on *: no such host": {
			"get http://10.0.0.1:8080/orders/7: dial tcp: lookup db1.internal on 10.0.0.2:53: no such host",
		},
		"read tcp *->*: connection reset":   {"read tcp 10.0.0.1:50123->10.0.3.7:443: connection reset", "read tcp 10.0.0.1:50124->10.0.3.7:443: connection reset"},
		"postgres://user:*@db: * and *":     {"postgres://user:4711@db: \"https://u:4711@h/x\" and 3", "postgres://user:4712@db: \"https://u:4712@h/y\" and -4"},
		"amount * of ord-* is out of range": {"amount -3 of ord-1 is out of range", "amount 0 of ord-2 is out of range", "amount -2.50 of ord-3 is out of range"},
		strings.Repeat("\u20ac", 341):       {strings.Repeat("\u20ac", 400)},
	} {
		for _, reason := range reasons {
			if c := ops.ClassOf(reason); c.Text != text || len(c.ID) != 6 || c.ID != ops.ClassOf(reasons[0]).ID {
				t.Errorf("class of %q: %+v, want %q", reason, c, text)
			}
		}
	}
	if long := strings.Repeat("\u20ac", 400); ops.ClassOf(long+"a").ID == ops.ClassOf(long+"b").ID {
		t.Error("reasons with different ends are one class")
	}
}
