package memdynamodb_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

func TestTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, c := start(t)
		ctx := t.Context()
		now := time.Now()
		at := func(d time.Duration) ddbtypes.AttributeValue { return num(fmt.Sprint(now.Add(d).Unix())) }
		for id, v := range map[string]ddbtypes.AttributeValue{
			"past": at(-time.Second), "now": at(0), "future": at(time.Hour), "text": str("1"),
			"old": at(-5*365*24*time.Hour + time.Hour), "ancient": at(-5*365*24*time.Hour - time.Hour),
		} {
			putItem(t, c, "orders", item{"id": str(id), "expiration": v})
		}
		putItem(t, c, "orders", item{"id": str("none")})
		if n := srv.SweepTTL(); n != 0 {
			t.Errorf("%d items deleted without TTL", n)
		}
		set := func(enabled bool) error {
			_, err := c.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{TableName: orders, TimeToLiveSpecification: &ddbtypes.TimeToLiveSpecification{AttributeName: aws.String("expiration"), Enabled: &enabled}})
			return err
		}
		must.Do(t, set(true))
		wantRefusal(t, "twice", set(true), "ValidationException: TimeToLive is already enabled")
		d, err := c.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: orders})
		if err != nil || d.TimeToLiveDescription.TimeToLiveStatus != "ENABLED" || aws.ToString(d.TimeToLiveDescription.AttributeName) != "expiration" {
			t.Errorf("%+v, %v", d, err)
		}
		if get(t, c, "past") == nil {
			t.Error("an expired item vanished without a sweep")
		}
		if n := srv.SweepTTL(); n != 2 || get(t, c, "past") != nil || get(t, c, "old") != nil {
			t.Errorf("%d items deleted, want past and old", n)
		}
		time.Sleep(2 * time.Hour)
		if n := srv.SweepTTL(); n != 2 || len(srv.Items("orders")) != 3 {
			t.Errorf("%d items deleted after two hours, want now and future; left %s", n, srv.Items("orders"))
		}
	})
}

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
	must.Get(batchWrite(t, c, out.UnprocessedItems["orders"]...))(t)
	got := must.Get(batchGet(t, c, "a", "b"))(t)
	if diff := cmp.Diff([]map[string]ddbtypes.AttributeValue{{"id": str("a")}}, got.UnprocessedKeys["orders"].Keys, items); diff != "" || len(got.Responses["orders"]) != 1 {
		t.Errorf("unprocessed: %s", diff)
	}
}

// TestRecordedCapacity: the record of calls has the units that each consumed, also where the answer has none. A failed condition
// costs what the item that is there does.
func TestRecordedCapacity(t *testing.T) {
	t.Parallel()
	srv, c := start(t)
	putItem(t, c, "orders", item{"id": str("a"), "v": str(strings.Repeat("v", 4097-4))})
	_, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: orders, Item: item{"id": str("a")}, ConditionExpression: aws.String("attribute_not_exists(id)")})
	wantRefusal(t, "the second put", err, "ConditionalCheckFailedException")
	get(t, c, "a")
	var units []float64
	for _, call := range srv.Calls() {
		units = append(units, call.Units)
	}
	if want := []float64{0, 5, 5, 2}; !slices.Equal(units, want) {
		t.Errorf("recorded %v units, want %v", units, want)
	}
}

// items compares attribute values.
var items = cmpopts.IgnoreUnexported(ddbtypes.AttributeValueMemberS{}, ddbtypes.AttributeValueMemberN{}, ddbtypes.AttributeValueMemberM{}, ddbtypes.AttributeValueMemberL{}, ddbtypes.AttributeValueMemberSS{})

// refusal is an error's code and message: "ValidationException: The expression...".
func refusal(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorCode() + ": " + e.ErrorMessage()
	}
	return fmt.Sprint(err)
}

func wantRefusal(t *testing.T, what string, err error, want string) {
	t.Helper()
	if got := refusal(err); !strings.HasPrefix(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func putItem(t *testing.T, c *dynamodb.Client, table string, i item) {
	t.Helper()
	must.Get(c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: i}))(t)
}

// get returns the item with the id, nil if there is none.
func get(t *testing.T, c *dynamodb.Client, id string) item {
	t.Helper()
	out := must.Get(c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("orders"), Key: item{"id": str(id)}, ConsistentRead: aws.Bool(true)}))(t)
	return out.Item
}

func wantItem(t *testing.T, c *dynamodb.Client, id string, want item) {
	t.Helper()
	if diff := cmp.Diff(want, get(t, c, id), items); diff != "" {
		t.Errorf("item %s: %s", id, diff)
	}
}

func TestPageOfOneMegabyte(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	for i := range 5 {
		putItem(t, c, "orders", item{"id": str(fmt.Sprint(i)), "v": str(strings.Repeat("v", 300<<10))})
	}
	n, pages := 0, 0
	in := &dynamodb.ScanInput{TableName: orders, Select: "COUNT"}
	for {
		out := must.Get(c.Scan(t.Context(), in))(t)
		pages++
		n += int(out.Count)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; out.LastEvaluatedKey == nil {
			break
		}
	}
	if n != 5 || pages != 2 {
		t.Errorf("%d items in %d pages, want 5 in 2", n, pages)
	}
}
