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
