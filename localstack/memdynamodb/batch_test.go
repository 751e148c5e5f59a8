package memdynamodb_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

func batchPut(id string) ddbtypes.WriteRequest {
	return ddbtypes.WriteRequest{PutRequest: &ddbtypes.PutRequest{Item: item{"id": str(id)}}}
}

func batchWrite(t *testing.T, c *dynamodb.Client, requests ...ddbtypes.WriteRequest) (*dynamodb.BatchWriteItemOutput, error) {
	return c.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]ddbtypes.WriteRequest{"orders": requests}})
}

func batchGet(t *testing.T, c *dynamodb.Client, ids ...string) (*dynamodb.BatchGetItemOutput, error) {
	var keys []map[string]ddbtypes.AttributeValue
	for _, id := range ids {
		keys = append(keys, item{"id": str(id)})
	}
	return c.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]ddbtypes.KeysAndAttributes{"orders": {Keys: keys}}})
}

func TestBatchUnprocessed(t *testing.T) {
	t.Parallel()
	_, c := start(t, func(o *memdynamodb.Options) {
		o.Faults = fault.Plan{Rules: []fault.Rule{
			{Op: "BatchWriteItem", Nth: 1, Do: fault.FailEntries, Entries: []int{1}},
			{Op: "BatchGetItem", Nth: 1, Do: fault.FailEntries, Entries: []int{0}},
		}}
	})
	out, err := batchWrite(t, c, batchPut("a"), batchPut("b"))
	if err != nil || len(out.UnprocessedItems["orders"]) != 1 {
		t.Fatalf("%v, %v", out, err)
	}
	wantItem(t, c, "b", nil)
	if _, err := batchWrite(t, c, out.UnprocessedItems["orders"]...); err != nil {
		t.Fatal(err)
	}
	got, err := batchGet(t, c, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]map[string]ddbtypes.AttributeValue{{"id": str("a")}}, got.UnprocessedKeys["orders"].Keys, items); diff != "" || len(got.Responses["orders"]) != 1 {
		t.Errorf("unprocessed: %s", diff)
	}
}
