package memdynamodb_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TestCapacity: the answer and the record of calls have the units that a call consumed. The record has them for every call.
func TestCapacity(t *testing.T) {
	t.Parallel()
	srv, c := start(t)
	ctx := t.Context()
	sized := func(id string, size int) item { // "id" and "v" are three bytes
		return item{"id": str(id), "v": str(strings.Repeat("v", size-3-len(id)))}
	}
	want := func(what string, got *ddbtypes.ConsumedCapacity, err error, units float64) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		if got == nil || *got.CapacityUnits != units || *got.TableName != "orders" {
			t.Errorf("%s: got %+v, want %g units", what, got, units)
		}
		calls := srv.Calls()
		if last := calls[len(calls)-1]; last.Units != units {
			t.Errorf("%s: %g units recorded, want %g", what, last.Units, units)
		}
	}
	write := func(i item) (*ddbtypes.ConsumedCapacity, error) {
		out, err := c.PutItem(ctx, &dynamodb.PutItemInput{TableName: orders, Item: i, ReturnConsumedCapacity: "TOTAL"})
		if err != nil {
			return nil, err
		}
		return out.ConsumedCapacity, nil
	}
	for _, tt := range []struct {
		what  string
		size  int
		units float64
	}{{"put of 1 KB", 1024, 1}, {"grown to 1 KB and a byte", 1025, 2}, {"grown to 10 KB", 10240, 10}, {"shrunk to 100 bytes", 100, 10}, {"100 bytes again", 100, 1}} {
		cc, err := write(sized("a", tt.size))
		want(tt.what, cc, err, tt.units)
	}
	read := func(id string, consistent bool) (*ddbtypes.ConsumedCapacity, error) {
		out, err := c.GetItem(ctx, &dynamodb.GetItemInput{TableName: orders, Key: item{"id": str(id)}, ConsistentRead: &consistent, ReturnConsumedCapacity: "TOTAL"})
		if err != nil {
			return nil, err
		}
		return out.ConsumedCapacity, nil
	}
	if _, err := write(sized("b", 4097)); err != nil {
		t.Fatal(err)
	}
	cc, err := read("b", true)
	want("consistent read of 4 KB and a byte", cc, err, 2)
	cc, err = read("b", false)
	want("eventually consistent read", cc, err, 1)
	cc, err = read("missing", false)
	want("read of nothing", cc, err, 0.5)

	_, err = c.PutItem(ctx, &dynamodb.PutItemInput{TableName: orders, Item: item{"id": str("b")}, ConditionExpression: aws.String("attribute_not_exists(id)")})
	if calls := srv.Calls(); err == nil || calls[len(calls)-1].Units != 5 {
		t.Errorf("a failed condition is billed for the item that is there: %v, %+v", err, calls[len(calls)-1])
	}
	tx, err := c.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []ddbtypes.TransactWriteItem{
		{Put: &ddbtypes.Put{TableName: orders, Item: sized("c", 2000)}}, txCheck("a", "attribute_exists(id)"),
	}, ClientRequestToken: aws.String("once"), ReturnConsumedCapacity: "TOTAL"})
	if err != nil {
		t.Fatal(err)
	}
	want("transaction: two units a KB", &tx.ConsumedCapacity[0], nil, 6)
	if n := aws.ToFloat64(tx.ConsumedCapacity[0].WriteCapacityUnits); n != 6 {
		t.Errorf("%g write units, want 6", n)
	}
	tx, err = c.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []ddbtypes.TransactWriteItem{
		{Put: &ddbtypes.Put{TableName: orders, Item: sized("c", 2000)}}, txCheck("a", "attribute_exists(id)"),
	}, ClientRequestToken: aws.String("once"), ReturnConsumedCapacity: "TOTAL"})
	if err != nil {
		t.Fatal(err)
	}
	want("its repetition only reads", &tx.ConsumedCapacity[0], nil, 4)
	page, err := c.Scan(ctx, &dynamodb.ScanInput{TableName: orders, ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: "INDEXES"})
	if err != nil {
		t.Fatal(err)
	}
	want("scan: the sum rounded up once", page.ConsumedCapacity, nil, 2) // 100 + 4097 + 2000 bytes
	if page.ConsumedCapacity.Table == nil || *page.ConsumedCapacity.Table.CapacityUnits != 2 {
		t.Errorf("INDEXES: %+v", page.ConsumedCapacity)
	}
	out, err := c.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: orders, Key: item{"id": str("b")}, ReturnConsumedCapacity: "TOTAL"})
	if err != nil {
		t.Fatal(err)
	}
	want("delete: the deleted size", out.ConsumedCapacity, nil, 5)
}
