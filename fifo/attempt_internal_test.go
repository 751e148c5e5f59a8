package fifo

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func TestRequestsTakeOneWrite(t *testing.T) {
	t.Parallel()
	o := sqs.Options{HTTPClient: http.DefaultClient}
	once(&o)
	if o.HTTPClient == sqs.HTTPClient(http.DefaultClient) {
		t.Error("a request's head goes by itself: see package onewrite")
	}
}
