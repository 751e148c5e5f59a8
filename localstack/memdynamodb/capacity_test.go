package memdynamodb_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

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
