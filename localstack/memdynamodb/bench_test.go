package memdynamodb_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// BenchmarkConditionalPut is the server alone: bare requests through the RoundTripper.
func BenchmarkConditionalPut(b *testing.B) {
	srv, _ := start(b)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		if status, _, text := send(b, srv, "PutItem", `{"TableName":"orders","Item":{"id":{"S":"`+strconv.Itoa(n)+`"},"status":{"S":"INPROGRESS"},"fence":{"N":"1700000000000"}},"ConditionExpression":"attribute_not_exists(id) OR #s = :d","ExpressionAttributeNames":{"#s":"status"},"ExpressionAttributeValues":{":d":{"S":"COMPLETED"}}}`); status != http.StatusOK {
			b.Fatal(text)
		}
	}
}

// BenchmarkConditionalPutSDK is the same through the real client, which signs and encodes.
func BenchmarkConditionalPutSDK(b *testing.B) {
	_, c := start(b)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		if _, err := c.PutItem(b.Context(), &dynamodb.PutItemInput{
			TableName:                aws.String("orders"),
			Item:                     item{"id": str(strconv.Itoa(n)), "status": str("INPROGRESS"), "fence": num("1700000000000")},
			ConditionExpression:      aws.String("attribute_not_exists(id) OR #s = :d"),
			ExpressionAttributeNames: map[string]string{"#s": "status"}, ExpressionAttributeValues: item{":d": str("COMPLETED")},
		}); err != nil {
			b.Fatal(err)
		}
	}
}
