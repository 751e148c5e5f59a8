package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func deposit(account string) *ddbtypes.Put {
	return &ddbtypes.Put{TableName: aws.String(ledgerTable), Item: values{"account": text(account), "balance": number(1)}}
}

func TestTxIsCheckedBeforeTheCall(t *testing.T) {
	t.Parallel()
	remove := func(account string) *ddbtypes.Delete {
		return &ddbtypes.Delete{TableName: aws.String(ledgerTable), Key: values{"account": text(account)}}
	}
	for _, c := range []struct {
		name  string
		fill  func(*Tx)
		want  error
		index int
		sent  int // transactions
	}{
		{"no write", func(*Tx) {}, nil, 0, 0}, // an update completes the record, which costs half of a transaction
		{"99 writes", func(tx *Tx) { fill(tx, maxWrites) }, nil, 0, 1},
		{"100 writes", func(tx *Tx) { fill(tx, maxWrites+1) }, errTooManyWrites, maxWrites, 0},
		{"update and delete of one item", func(tx *Tx) { tx.Update(book("a")); tx.Update(book("b")); tx.Delete(remove("a")) }, errSameItem, 2, 0},
		{"put and delete of one item", func(tx *Tx) { tx.Put(deposit("a")); tx.Delete(remove("a")) }, errSameItem, 1, 0},
		{"two puts of one item, the key known", func(tx *Tx) { tx.Put(deposit("a")); tx.Put(deposit("a")); tx.Delete(remove("b")) }, errSameItem, 1, 0},
		{"two puts of one item, the key unknown", func(tx *Tx) { tx.Put(deposit("a")); tx.Put(deposit("a")) }, errSameItem, -1, 1},
		{"two puts", func(tx *Tx) { tx.Put(deposit("a")); tx.Put(deposit("b")) }, nil, 0, 1},
		{"the record itself", func(tx *Tx) {
			tx.Delete(&ddbtypes.Delete{TableName: aws.String(testTable), Key: values{attrID: text("billing#orders|42")}})
		}, errSameItem, 0, 0},
		{"nil", func(tx *Tx) { tx.Update(book("a")); tx.Put(nil) }, errNoWrite, 1, 0},
		{"without a table", func(tx *Tx) { tx.Delete(&ddbtypes.Delete{Key: values{"account": text("a")}}) }, errNoWrite, 0, 0},
		{"without a key", func(tx *Tx) { tx.Update(&ddbtypes.Update{TableName: aws.String(ledgerTable)}) }, errNoWrite, 0, 0},
	} {
		runLedger(t, c.name, func(t *testing.T, b *bed) {
			err := b.inbox(b.store()).Handler(func(_ context.Context, _ *sqsonce.Message, tx *Tx) error {
				c.fill(tx)
				return nil
			})(t.Context(), order(1))
			sent := strings.Count(fmt.Sprint(b.ops(0)), "TransactWriteItems")
			if sent != c.sent {
				t.Errorf("%d transactions sent, want %d", sent, c.sent)
			}
			if c.want == nil {
				if err != nil {
					t.Errorf("delivery: got error %v, want nil", err)
				}
				return
			}
			if e, ok := errors.AsType[*writeError](err); !ok || e.Index != c.index || !errors.Is(err, c.want) || strings.Contains(err.Error(), fmt.Sprint(": write ", c.index, ":")) != (c.index >= 0) {
				t.Errorf("delivery: got error %v, want a *writeError of write %d: %v", err, c.index, c.want)
			}
			if n := len(b.srv.Items(ledgerTable)); n != 0 {
				t.Errorf("%d items written, want none", n)
			}
		})
	}
}

func fill(tx *Tx, n int) {
	for i := range n {
		tx.Update(book(fmt.Sprintf("account-%d", i)))
	}
}

// The handler may use a struct again for its next write.
func TestTxCopiesTheCallersStruct(t *testing.T) {
	onLedger(t, func(t *testing.T, b *bed) {
		err := b.inbox(b.store()).Handler(func(_ context.Context, _ *sqsonce.Message, tx *Tx) error {
			u := book("a")
			tx.Update(u)
			u.Key = values{"account": text("b")}
			tx.Update(u)
			return nil
		})(t.Context(), order(1))
		if n := len(b.srv.Items(ledgerTable)); err != nil || n != 2 {
			t.Errorf("delivery: got error %v and %d accounts, want two accounts", err, n)
		}
	})
}

// A write that a goroutine of the handler adds after the handler has returned is ignored and logged.
func TestTxAfterTheHandlerIsLogged(t *testing.T) {
	onLedger(t, func(t *testing.T, b *bed) {
		var logged strings.Builder
		var used *Tx
		err := b.inbox(b.store(), func(o *dedup.Options) {
			o.Logger = slog.New(slog.NewTextHandler(&logged, nil))
		}).Handler(func(ctx context.Context, m *sqsonce.Message, tx *Tx) error {
			used = tx
			return bookAlice(ctx, m, tx)
		})(t.Context(), order(1))
		if err != nil {
			t.Fatal(err)
		}
		used.Update(book("bob"))
		synctest.Wait() // for the log
		if !strings.Contains(logged.String(), "message-1") {
			t.Errorf("log: got %q, want a line that names the message", logged.String())
		}
		b.balance("10")
	})
}

// A transaction that DynamoDB refuses, or that the SDK cannot send, because of the handler's writes is a failure of its
// event. It is no outage of the store, which still writes the record in a transaction alone.
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
		"denied":                 {write: item, fault: fault.Rule{Op: "TransactWriteItems", Nth: 1, Do: fault.Error, Code: "AccessDeniedException"}, want: ofTheMessage},
		"unknown code":           {write: item, fault: fault.Rule{Op: "TransactWriteItems", Nth: 1, Do: fault.Error, Code: "SomethingNew"}, want: ofTheMessage},
		"unknown reason":         {write: item, fault: fault.Rule{Op: "TransactWriteItems", Nth: 1, Do: fault.FailEntries, Entries: []int{0}, Code: "SomethingNew"}, want: ofTheMessage},
		"unknown code, for all":  {write: item, fault: fault.Rule{Op: "TransactWriteItems", Prob: 1, Do: fault.Error, Code: "SomethingNew"}, want: unavailable},
		"unknown reason for all": {write: item, fault: fault.Rule{Op: "TransactWriteItems", Prob: 1, Do: fault.FailEntries, Entries: []int{0}, Code: "SomethingNew"}, want: unavailable},
		"no transactions":        {write: item, fault: fault.Rule{Op: "TransactWriteItems", Prob: 1, Do: fault.Error, Code: "UnknownOperationException"}, want: misconfigured},
		"denied, the record too": {write: item, fault: fault.Rule{Prob: 1, Do: fault.Error, Code: "AccessDeniedException"}, want: misconfigured},
		"throttled":              {write: item, fault: fault.Rule{Op: "TransactWriteItems", Prob: 1, Do: fault.Error, Code: "ThrottlingException"}, want: unavailable},
		"a write throttled":      {write: item, fault: fault.Rule{Op: "TransactWriteItems", Prob: 1, Do: fault.FailEntries, Entries: []int{1}, Code: "ThrottlingError"}, want: unavailable},
		"no answer":              {write: item, fault: fault.Rule{Op: "TransactWriteItems", Prob: 1, Do: fault.Reset}, want: unavailable},
	} {
		runLedger(t, name, func(t *testing.T, b *bed) {
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
			if item := b.records()["billing#orders|42"]; c.want == ofTheMessage && (item[attrUntil] != "0" || item["error"] == "") {
				t.Errorf("record: got %v, want it released with the error", item)
			}
		})
	}
}
