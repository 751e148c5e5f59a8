package dynamostore

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

func TestRequestsTakeOneWrite(t *testing.T) {
	t.Parallel()
	o := dynamodb.Options{HTTPClient: http.DefaultClient}
	new(trace).single(&o)
	if o.HTTPClient == dynamodb.HTTPClient(http.DefaultClient) {
		t.Error("a request's head goes by itself: see package onewrite")
	}
}
