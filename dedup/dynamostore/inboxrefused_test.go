package dynamostore

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// A transaction that DynamoDB refuses, or that the SDK cannot send, because of the handler's writes is a failure of its
// event. It is no outage of the store, which still writes the record alone.
func TestInboxRefusedTransaction(t *testing.T) {
	t.Parallel()
	item := &ddbtypes.Put{TableName: aws.String(ledgerTable), Item: values{"account": text("alice")}}
	for name, c := range map[string]struct {
		write *ddbtypes.Put
		fault fault.Rule
		want  errorKind
	}{
		"no such table":          {write: &ddbtypes.Put{TableName: aws.String("nosuch"), Item: item.Item}, want: ofTheMessage},
		"no key in the item":     {write: &ddbtypes.Put{TableName: aws.String(ledgerTable), Item: values{"name": text("alice")}}, want: ofTheMessage},
		"a value that is nil":    {write: &ddbtypes.Put{TableName: aws.String(ledgerTable), Item: values{"account": nil}}, want: ofTheMessage},
		"denied":                 {write: item, fault: fault.Rule{Op: "TransactWriteItems", Prob: 1, Do: fault.Error, Code: "AccessDeniedException"}, want: ofTheMessage},
		"unknown code":           {write: item, fault: fault.Rule{Op: "TransactWriteItems", Prob: 1, Do: fault.Error, Code: "SomethingNew"}, want: ofTheMessage},
		"denied, the record too": {write: item, fault: fault.Rule{Prob: 1, Do: fault.Error, Code: "AccessDeniedException"}, want: misconfigured},
		"throttled":              {write: item, fault: fault.Rule{Op: "TransactWriteItems", Prob: 1, Do: fault.Error, Code: "ThrottlingException"}, want: unavailable},
		"a write throttled":      {write: item, fault: fault.Rule{Op: "TransactWriteItems", Prob: 1, Do: fault.FailEntries, Entries: []int{1}, Code: "ThrottlingError"}, want: unavailable},
		"no answer":              {write: item, fault: fault.Rule{Op: "TransactWriteItems", Prob: 1, Do: fault.Reset}, want: unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := ledgerBed(t)
				h := b.inbox(b.store()).Handler(func(_ context.Context, _ *sqsonce.Message, tx *Tx) error {
					if c.fault.Do != 0 {
						b.faults(c.fault)
					}
					tx.Put(c.write)
					return nil
				})
				err := h(t.Context(), order(1))
				if got := kindOf(err); got != c.want {
					t.Errorf("got %v, which is %s, want %s", err, got, c.want)
				}
				if item := b.item(testTable); c.want == ofTheMessage && (item[attrUntil] != "0" || item[attrError] == "") {
					t.Errorf("record: got %v, want it released with the error", item)
				}
			})
		})
	}
}
