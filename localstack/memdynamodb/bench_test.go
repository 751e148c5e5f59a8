//go:build unix

package memdynamodb_test

import (
	"net/http"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// BenchmarkConditionalPut is the server alone: bare requests through the RoundTripper. The metric is by CPU time, the
// client's part included, so that a busy machine does not change it: puts a second on one core.
func BenchmarkConditionalPut(b *testing.B) {
	srv, _ := start(b)
	b.ReportAllocs()
	n, begun := 0, cpu(b)
	for b.Loop() {
		n++
		if status, _, text := send(b, srv, "PutItem", conditionalPut(n)); status != http.StatusOK {
			b.Fatal(text)
		}
	}
	b.ReportMetric(float64(n)/(cpu(b)-begun).Seconds(), "puts/cpu-s")
}

// BenchmarkConditionalPutSDK is the same through the real client, which signs and encodes.
func BenchmarkConditionalPutSDK(b *testing.B) {
	_, c := start(b)
	b.ReportAllocs()
	n, begun := 0, cpu(b)
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
	b.ReportMetric(float64(n)/(cpu(b)-begun).Seconds(), "puts/cpu-s")
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
