package memdynamodb_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

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
	if _, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: i}); err != nil {
		t.Fatalf("PutItem: %v", err)
	}
}

// get returns the item with the id, nil if there is none.
func get(t *testing.T, c *dynamodb.Client, id string) item {
	t.Helper()
	out, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("orders"), Key: item{"id": str(id)}, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatalf("GetItem: %v", err)
	}
	return out.Item
}

func wantItem(t *testing.T, c *dynamodb.Client, id string, want item) {
	t.Helper()
	if diff := cmp.Diff(want, get(t, c, id), items); diff != "" {
		t.Errorf("item %s: %s", id, diff)
	}
}

func TestConditionFailureReturnsItem(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	old := item{"id": str("a"), "n": num("1")}
	putItem(t, c, "orders", old)
	condition, names := aws.String("#n = :two"), map[string]string{"#n": "n"}
	values := item{":two": num("2")}
	for _, tt := range []struct {
		returns ddbtypes.ReturnValuesOnConditionCheckFailure
		id      string
		want    item
	}{{"ALL_OLD", "a", old}, {"NONE", "a", nil}, {"", "a", nil}, {"ALL_OLD", "missing", nil}} {
		_, err1 := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: item{"id": str(tt.id)}, ConditionExpression: condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: tt.returns})
		_, err2 := c.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("orders"), Key: item{"id": str(tt.id)}, ConditionExpression: condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: tt.returns})
		_, err3 := c.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String("orders"), Key: item{"id": str(tt.id)}, UpdateExpression: aws.String("SET #n = :two"), ConditionExpression: condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: tt.returns})
		for i, err := range []error{err1, err2, err3} {
			e, ok := errors.AsType[*ddbtypes.ConditionalCheckFailedException](err)
			if !ok {
				t.Fatalf("%v, call %d: got %v, want a ConditionalCheckFailedException", tt, i, err)
			}
			if diff := cmp.Diff(tt.want, item(e.Item), items, cmpopts.EquateEmpty()); diff != "" || e.ErrorMessage() != "The conditional request failed" {
				t.Errorf("%v, call %d: message %q, item %s", tt, i, e.ErrorMessage(), diff)
			}
		}
	}
	wantItem(t, c, "a", old)
	wantItem(t, c, "missing", nil)
}

func TestReturnValues(t *testing.T) {
	t.Parallel()
	srv, c := start(t)
	if _, _, text := send(t, srv, "PutItem", `{"TableName":"orders","Item":{"id":{"S":"b"}},"ReturnValues":"ALL_OLD"}`); text != "{}" {
		t.Errorf("PutItem of a new item: %s, want no Attributes", text)
	}
	update := func(id, expression string, returns ddbtypes.ReturnValue, values item) item {
		t.Helper()
		out, err := c.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String("orders"), Key: item{"id": str(id)}, UpdateExpression: aws.String(expression), ExpressionAttributeValues: values, ReturnValues: returns})
		if err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		return out.Attributes
	}
	m := func(i item) ddbtypes.AttributeValue { return &ddbtypes.AttributeValueMemberM{Value: i} }
	for _, tt := range []struct {
		expression string
		returns    ddbtypes.ReturnValue
		want       item
	}{
		{"SET n = :v", "", nil}, {"SET n = :v", "NONE", nil},
		{"SET n = :v", "ALL_OLD", item{"id": str("a"), "n": num("1"), "m": m(item{"x": num("2"), "y": num("3")})}},
		{"SET n = :v", "ALL_NEW", item{"id": str("a"), "n": num("9"), "m": m(item{"x": num("2"), "y": num("3")})}},
		{"SET n = :v, k = :v", "UPDATED_OLD", item{"n": num("1")}}, {"SET n = :v, k = :v", "UPDATED_NEW", item{"n": num("9"), "k": num("9")}},
		{"SET m.x = :v", "UPDATED_OLD", item{"m": m(item{"x": num("2")})}}, {"SET m.x = :v", "UPDATED_NEW", item{"m": m(item{"x": num("9")})}},
		{"SET k = :v", "UPDATED_OLD", nil}, {"ADD n :v", "UPDATED_NEW", item{"n": num("10")}},
	} {
		putItem(t, c, "orders", item{"id": str("a"), "n": num("1"), "m": m(item{"x": num("2"), "y": num("3")})})
		if diff := cmp.Diff(tt.want, update("a", tt.expression, tt.returns, item{":v": num("9")}), items, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s %s: %s", tt.expression, tt.returns, diff)
		}
	}
	if got := update("new", "REMOVE n, x.y", "ALL_NEW", nil); len(got) != 0 || get(t, c, "new") != nil {
		t.Errorf("an update that only removes made an item: %v", got)
	}
	if _, err := c.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String("orders"), Key: item{"id": str("new")}}); err != nil {
		t.Fatal(err)
	}
	wantItem(t, c, "new", item{"id": str("new")}) // no expression at all does make one
	out, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: item{"id": str("new"), "n": num("1")}, ReturnValues: "ALL_OLD"})
	if err != nil || cmp.Diff(item{"id": str("new")}, item(out.Attributes), items) != "" {
		t.Errorf("PutItem ALL_OLD: %v, %v", out, err)
	}
	_, err = c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: item{"id": str("new")}, ReturnValues: "ALL_NEW"})
	wantRefusal(t, "PutItem ALL_NEW", err, "ValidationException: Return values set to invalid value")
}

func TestWriteRefused(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	putRefused := func(what string, i item, want string) {
		t.Helper()
		_, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: i})
		wantRefusal(t, what, err, "ValidationException: "+want)
	}
	putRefused("no key", item{"n": num("1")}, "One or more parameter values were invalid: Missing the key id in the item")
	putRefused("key type", item{"id": num("1")}, "One or more parameter values were invalid: Type mismatch for key id expected: S actual: N")
	putRefused("empty key", item{"id": str("")}, "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: id")
	putRefused("long key", item{"id": str(strings.Repeat("k", 2049))}, "One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes")
	putRefused("large item", item{"id": str("a"), "v": str(strings.Repeat("v", 400<<10-3))}, "Item size has exceeded the maximum allowed size")
	putRefused("39 digits", item{"id": str("a"), "v": num(strings.Repeat("1", 39))}, "Attempting to store more than 38 significant digits in a Number")
	putItem(t, c, "orders", item{"id": str(strings.Repeat("k", 2048)), "empty": str("")})
	putItem(t, c, "orders", item{"id": str("a"), "v": str(strings.Repeat("v", 400<<10-4))}) // 400 KB to the byte

	_, err := c.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String("orders"), Key: item{"id": str("a")}, UpdateExpression: aws.String("SET w = :w"), ExpressionAttributeValues: item{":w": str("")}})
	wantRefusal(t, "grown item", err, "ValidationException: Item size to update has exceeded the maximum allowed size")
	for what, key := range map[string]item{"other name": {"n": str("a")}, "other type": {"id": num("1")}, "one more": {"id": str("a"), "n": num("1")}} {
		_, err := c.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("orders"), Key: key})
		wantRefusal(t, what, err, "ValidationException: The provided key element does not match the schema")
	}
	_, err = c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("gone"), Item: item{"id": str("a")}})
	wantRefusal(t, "no table", err, "ResourceNotFoundException: Requested resource not found")
	_, err = c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: item{"id": str("a")}, ExpressionAttributeValues: item{":v": num("1")}})
	wantRefusal(t, "values without expression", err, "ValidationException: ExpressionAttributeValues can only be specified when using expressions")
	_, err = c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: item{"id": str("a")}, Expected: map[string]ddbtypes.ExpectedAttributeValue{"id": {Exists: aws.Bool(false)}}})
	wantRefusal(t, "legacy", err, "UnknownOperationException: memdynamodb does not implement the member Expected")
}
