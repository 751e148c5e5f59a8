package memdynamodb_test

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/internal/must"
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

// The order of the members of a JSON object makes no other request for a token.
func TestTokenIgnoresTheOrderOfMembers(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	wide := item{"id": str("wide")}
	for i := range 20 {
		wide[fmt.Sprint("f", i)] = num(fmt.Sprint(i))
	}
	for range 3 {
		must.Get(c.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String("wide"), TransactItems: []ddbtypes.TransactWriteItem{{Put: &ddbtypes.Put{TableName: orders, Item: wide}}}}))(t)
	}
}

// An action that the table's keys do not allow cancels the transaction before any condition is evaluated.
func TestKeysBeforeConditions(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	bad := ddbtypes.TransactWriteItem{Put: &ddbtypes.Put{TableName: orders, Item: item{"id": num("7")}}}
	codes, e := reasons(t, transact(t, c, txCheck("x", "attribute_exists(id)"), bad, bad))
	if diff := cmp.Diff([]string{"None", "ValidationError", "None"}, codes); diff != "" || !strings.Contains(aws.ToString(e.CancellationReasons[1].Message), "Type mismatch for key id") {
		t.Errorf("%s, message %q", diff, aws.ToString(e.CancellationReasons[1].Message))
	}
}

// hammer runs f on eight goroutines, n times on each. This is often enough to find a missing lock without the race
// detector.
func hammer(n int, f func(worker, i int)) {
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range n {
				f(w, i)
			}
		})
	}
	wg.Wait()
}

// TestOneWinner: of concurrent conditional writes to one key exactly one succeeds, and no concurrent addition is lost.
func TestOneWinner(t *testing.T) {
	t.Parallel()
	srv, c := start(t)
	const keys = 500
	var won atomic.Int32
	hammer(keys, func(_, i int) {
		status, _, _ := send(t, srv, "PutItem", fmt.Sprintf(`{"TableName":"orders","Item":{"id":{"S":"%d"}},"ConditionExpression":"attribute_not_exists(id)"}`, i))
		if status == http.StatusOK {
			won.Add(1)
		}
		if status, _, text := send(t, srv, "UpdateItem", `{"TableName":"orders","Key":{"id":{"S":"sum"}},"UpdateExpression":"ADD n :one","ExpressionAttributeValues":{":one":{"N":"1"}}}`); status != http.StatusOK {
			t.Errorf("ADD: %s", text)
		}
	})
	if won.Load() != keys {
		t.Errorf("%d conditional puts of %d new keys succeeded", won.Load(), keys)
	}
	wantItem(t, c, "sum", item{"id": str("sum"), "n": num("4000")})
}

// TestOneWinnerOfStatements is TestOneWinner for statements, single and in batches.
func TestOneWinnerOfStatements(t *testing.T) {
	t.Parallel()
	srv, c := start(t)
	putItem(t, c, "orders", item{"id": str("sum"), "n": num("0")})
	const keys = 500
	var won atomic.Int32
	hammer(keys, func(_, i int) {
		_, _, text := send(t, srv, "BatchExecuteStatement", fmt.Sprintf(`{"Statements":[{"Statement":"INSERT INTO orders VALUE {'id': ?}","Parameters":[{"S":"%d"}]},{"Statement":"INSERT INTO orders VALUE {'id': ?}","Parameters":[{"S":"%d again"}]}]}`, i, i))
		won.Add(int32(2 - strings.Count(text, "DuplicateItem")))
		if status, _, text := send(t, srv, "ExecuteStatement", `{"Statement":"UPDATE orders SET n = n + 1 WHERE id = 'sum'"}`); status != http.StatusOK {
			t.Errorf("UPDATE: %s", text)
		}
	})
	if won.Load() != 2*keys {
		t.Errorf("%d INSERTs of %d new keys succeeded", won.Load(), 2*keys)
	}
	wantItem(t, c, "sum", item{"id": str("sum"), "n": num("4000")})
}

// TestTransactionsAreIsolated: many goroutines move amounts between two accounts and read both in one transaction. The sum
// is the same in every read, and no transfer is lost.
func TestTransactionsAreIsolated(t *testing.T) {
	t.Parallel()
	srv, c := start(t)
	putItem(t, c, "orders", item{"id": str("a"), "n": num("100000")})
	putItem(t, c, "orders", item{"id": str("b"), "n": num("100000")})
	add := func(id string, n int) string {
		return fmt.Sprintf(`{"Update":{"TableName":"orders","Key":{"id":{"S":"%s"}},"UpdateExpression":"ADD n :n","ExpressionAttributeValues":{":n":{"N":"%d"}}}}`, id, n)
	}
	read := `{"TransactItems":[{"Get":{"TableName":"orders","Key":{"id":{"S":"a"}}}},{"Get":{"TableName":"orders","Key":{"id":{"S":"b"}}}}]}`
	hammer(300, func(w, _ int) {
		if status, _, text := send(t, srv, "TransactWriteItems", `{"TransactItems":[`+add("a", -w)+","+add("b", w)+`]}`); status != http.StatusOK {
			t.Errorf("write: %s", text)
		}
		_, _, text := send(t, srv, "TransactGetItems", read)
		sum := 0
		for _, part := range strings.Split(text, `"N":"`)[1:] {
			n, err := strconv.Atoi(part[:strings.IndexByte(part, '"')])
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			sum += n
		}
		if sum != 200000 {
			t.Errorf("sum %d seen, want 200000", sum)
		}
	})
	moved := 300 * (0 + 1 + 2 + 3 + 4 + 5 + 6 + 7)
	wantItem(t, c, "b", item{"id": str("b"), "n": num(strconv.Itoa(100000 + moved))})
}
