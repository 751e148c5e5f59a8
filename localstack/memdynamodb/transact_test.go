package memdynamodb_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

var orders = aws.String("orders")

func txPut(id string, n string) ddbtypes.TransactWriteItem {
	return ddbtypes.TransactWriteItem{Put: &ddbtypes.Put{TableName: orders, Item: item{"id": str(id), "n": num(n)}}}
}

func txAdd(id string, n string) ddbtypes.TransactWriteItem {
	return ddbtypes.TransactWriteItem{Update: &ddbtypes.Update{TableName: orders, Key: item{"id": str(id)}, UpdateExpression: aws.String("ADD n :n"), ExpressionAttributeValues: item{":n": num(n)}}}
}

func txCheck(id, condition string) ddbtypes.TransactWriteItem {
	return ddbtypes.TransactWriteItem{ConditionCheck: &ddbtypes.ConditionCheck{TableName: orders, Key: item{"id": str(id)}, ConditionExpression: &condition, ReturnValuesOnConditionCheckFailure: "ALL_OLD"}}
}

func transact(t *testing.T, c *dynamodb.Client, actions ...ddbtypes.TransactWriteItem) error {
	t.Helper()
	_, err := c.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: actions})
	return err
}

// reasons are the codes of a cancelled transaction, and its message.
func reasons(t *testing.T, err error) ([]string, *ddbtypes.TransactionCanceledException) {
	t.Helper()
	e, ok := errors.AsType[*ddbtypes.TransactionCanceledException](err)
	if !ok {
		t.Fatalf("got %v, want a TransactionCanceledException", err)
	}
	var codes []string
	for _, r := range e.CancellationReasons {
		codes = append(codes, aws.ToString(r.Code))
	}
	return codes, e
}

func TestTransactionAllOrNothing(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	putItem(t, c, "orders", item{"id": str("a"), "n": num("1")})
	err := transact(t, c, txPut("b", "1"), txCheck("a", "attribute_not_exists(id)"), txAdd("c", "1"), txCheck("d", "attribute_exists(id)"))
	codes, e := reasons(t, err)
	if diff := cmp.Diff([]string{"None", "ConditionalCheckFailed", "None", "ConditionalCheckFailed"}, codes); diff != "" {
		t.Error(diff)
	}
	if want := "Transaction cancelled, please refer cancellation reasons for specific reasons [None, ConditionalCheckFailed, None, ConditionalCheckFailed]"; e.ErrorMessage() != want {
		t.Errorf("message %q, want %q", e.ErrorMessage(), want)
	}
	failed := e.CancellationReasons[1]
	if diff := cmp.Diff(item{"id": str("a"), "n": num("1")}, item(failed.Item), items); diff != "" || aws.ToString(failed.Message) != "The conditional request failed" {
		t.Errorf("reason: %s, item %s", aws.ToString(failed.Message), diff)
	}
	if e.CancellationReasons[0].Message != nil || e.CancellationReasons[3].Item != nil {
		t.Errorf("reasons %+v, %+v", e.CancellationReasons[0], e.CancellationReasons[3])
	}
	for _, id := range []string{"b", "c", "d"} {
		wantItem(t, c, id, nil)
	}
	del := ddbtypes.TransactWriteItem{Delete: &ddbtypes.Delete{TableName: orders, Key: item{"id": str("a")}, ConditionExpression: aws.String("attribute_exists(id)")}}
	if err := transact(t, c, txPut("b", "1"), txAdd("c", "2"), del, txCheck("d", "attribute_not_exists(id)")); err != nil {
		t.Fatal(err)
	}
	wantItem(t, c, "a", nil)
	wantItem(t, c, "b", item{"id": str("b"), "n": num("1")})
	wantItem(t, c, "c", item{"id": str("c"), "n": num("2")})
	wantItem(t, c, "d", nil)
}

func TestTransactionRefused(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	wantRefusal(t, "one item twice", transact(t, c, txPut("a", "1"), txCheck("a", "attribute_not_exists(id)")), "ValidationException: Transaction request cannot include multiple operations on one item")
	wantRefusal(t, "nothing", transact(t, c, make([]ddbtypes.TransactWriteItem, 0)...), "ValidationException: 1 validation error detected: Value '[]' at 'transactItems'")
	wantRefusal(t, "two actions in one", transact(t, c, ddbtypes.TransactWriteItem{Put: txPut("a", "1").Put, Update: txAdd("b", "1").Update}), "ValidationException: TransactItems can only contain one of Check, Put, Update or Delete")
	wantRefusal(t, "bad expression", transact(t, c, txCheck("a", "hello!")), "ValidationException: Invalid ConditionExpression: Syntax error")
	var many []ddbtypes.TransactWriteItem
	for i := range 101 {
		many = append(many, txPut(fmt.Sprint(i), "1"))
	}
	wantRefusal(t, "101 actions", transact(t, c, many...), "ValidationException: 1 validation error detected")
	if err := transact(t, c, many[:100]...); err != nil {
		t.Errorf("100 actions: %v", err)
	}
	large := make([]ddbtypes.TransactWriteItem, 11)
	for i := range large {
		large[i] = ddbtypes.TransactWriteItem{Put: &ddbtypes.Put{TableName: orders, Item: item{"id": str(fmt.Sprint("l", i)), "v": str(strings.Repeat("v", 390<<10))}}}
	}
	wantRefusal(t, "over 4 MB", transact(t, c, large...), "ValidationException: Transaction payload size cannot exceed")

	// An action that the table's keys do not allow cancels the transaction before any condition is evaluated.
	bad := ddbtypes.TransactWriteItem{Put: &ddbtypes.Put{TableName: orders, Item: item{"id": num("7")}}}
	codes, e := reasons(t, transact(t, c, txCheck("x", "attribute_exists(id)"), bad, bad))
	if diff := cmp.Diff([]string{"None", "ValidationError", "None"}, codes); diff != "" || !strings.Contains(aws.ToString(e.CancellationReasons[1].Message), "Type mismatch for key id") {
		t.Errorf("%s, message %q", diff, aws.ToString(e.CancellationReasons[1].Message))
	}
	putItem(t, c, "orders", item{"id": str("s"), "n": str("text")})
	codes, _ = reasons(t, transact(t, c, txPut("y", "1"), txAdd("s", "1")))
	if diff := cmp.Diff([]string{"None", "ValidationError"}, codes); diff != "" {
		t.Error(diff)
	}
	wantItem(t, c, "y", nil)
}

func TestTransactionToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := start(t)
		run := func(token, n string) error {
			_, err := c.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{ClientRequestToken: &token, TransactItems: []ddbtypes.TransactWriteItem{txAdd("a", n), txAdd("b", n), txCheck("c", "attribute_not_exists(id)")}})
			return err
		}
		for range 5 {
			if err := run("t1", "1"); err != nil {
				t.Fatal(err)
			}
		}
		wantItem(t, c, "a", item{"id": str("a"), "n": num("1")})
		wantRefusal(t, "same token, other request", run("t1", "2"), "IdempotentParameterMismatchException: ")
		if err := run("t2", "2"); err != nil {
			t.Fatal(err)
		}
		wantItem(t, c, "a", item{"id": str("a"), "n": num("3")})

		time.Sleep(10*time.Minute - time.Nanosecond)
		if err := run("t1", "1"); err != nil {
			t.Fatal(err)
		}
		wantItem(t, c, "a", item{"id": str("a"), "n": num("3")})
		time.Sleep(time.Nanosecond) // ten minutes: the token is forgotten
		if err := run("t1", "1"); err != nil {
			t.Fatal(err)
		}
		wantItem(t, c, "a", item{"id": str("a"), "n": num("4")})

		// The order of the members of a JSON object does not count.
		wide := item{"id": str("wide")}
		for i := range 20 {
			wide[fmt.Sprint("f", i)] = num(fmt.Sprint(i))
		}
		for range 3 {
			_, err := c.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String("wide"), TransactItems: []ddbtypes.TransactWriteItem{{Put: &ddbtypes.Put{TableName: orders, Item: wide}}}})
			if err != nil {
				t.Fatal(err)
			}
		}

		// The token of a cancelled transaction can be used again.
		putItem(t, c, "orders", item{"id": str("c")})
		reasons(t, run("t3", "1"))
		if _, err := c.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: orders, Key: item{"id": str("c")}}); err != nil {
			t.Fatal(err)
		}
		if err := run("t3", "1"); err != nil {
			t.Fatal(err)
		}
		wantItem(t, c, "a", item{"id": str("a"), "n": num("5")})
	})
}

func TestTransactionFaults(t *testing.T) {
	t.Parallel()
	_, c := start(t, func(o *memdynamodb.Options) {
		o.Faults = fault.Plan{Rules: []fault.Rule{
			{Op: "TransactWriteItems", Nth: 1, Do: fault.FailEntries, Code: "TransactionConflict", Entries: []int{1}},
			{Op: "TransactWriteItems", Nth: 2, Do: fault.FailEntries},
			{Op: "TransactGetItems", Nth: 1, Do: fault.FailEntries, Entries: []int{0}},
			{Op: "UpdateItem", Nth: 1, Do: fault.Error, Code: "TransactionConflictException"},
			{Op: "UpdateItem", Nth: 2, Do: fault.Error, Code: "ProvisionedThroughputExceededException"},
			{Op: "UpdateItem", Nth: 3, Do: fault.LoseReply},
		}}
	})
	codes, e := reasons(t, transact(t, c, txPut("a", "1"), txPut("b", "1"), txCheck("c", "attribute_exists(id)")))
	if diff := cmp.Diff([]string{"None", "TransactionConflict", "ConditionalCheckFailed"}, codes); diff != "" || aws.ToString(e.CancellationReasons[1].Message) != "Transaction is ongoing for the item" {
		t.Errorf("%s, reason %+v", diff, e.CancellationReasons[1])
	}
	codes, _ = reasons(t, transact(t, c, txPut("a", "1"), txPut("b", "1")))
	if diff := cmp.Diff([]string{"TransactionConflict", "TransactionConflict"}, codes); diff != "" {
		t.Error(diff)
	}
	wantItem(t, c, "a", nil)
	_, err := c.TransactGetItems(t.Context(), &dynamodb.TransactGetItemsInput{TransactItems: []ddbtypes.TransactGetItem{{Get: &ddbtypes.Get{TableName: orders, Key: item{"id": str("a")}}}}})
	reasons(t, err)
	update := func() error {
		_, err := c.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: orders, Key: item{"id": str("a")}, UpdateExpression: aws.String("ADD n :n"), ExpressionAttributeValues: item{":n": num("1")}})
		return err
	}
	if _, ok := errors.AsType[*ddbtypes.TransactionConflictException](update()); !ok {
		t.Error("no TransactionConflictException")
	}
	if _, ok := errors.AsType[*ddbtypes.ProvisionedThroughputExceededException](update()); !ok {
		t.Error("no ProvisionedThroughputExceededException")
	}
	if err := update(); err == nil {
		t.Error("the reply was not lost")
	}
	wantItem(t, c, "a", item{"id": str("a"), "n": num("1")}) // only the call with the lost reply had its effect
}
