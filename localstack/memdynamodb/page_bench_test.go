package memdynamodb_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// BenchmarkPages reads pages of tables of different sizes. A page's time does not depend on the table's size.
func BenchmarkPages(b *testing.B) {
	for _, size := range []int{1e4, 1e5, 1e6} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			srv := fill(b, size)
			middle := fmt.Sprintf(`"id":{"S":"one"},"pos":{"N":"%d"}`, size/2)
			byStatus := `,"IndexName":"by-status","KeyConditionExpression":"#s = :k","ExpressionAttributeNames":{"#s":"status"},"ExpressionAttributeValues":{":k":{"S":"open"}}`
			byID := `,"KeyConditionExpression":"id = :k","ExpressionAttributeValues":{":k":{"S":"one"}}`
			for _, c := range []struct{ name, op, body string }{
				{"Query100", "Query", byID + `,"Limit":100,"ExclusiveStartKey":{` + middle + `}`},
				{"QueryIndex100", "Query", byStatus + `,"Limit":100,"ExclusiveStartKey":{"status":{"S":"open"},` + middle + `}`},
				{"QueryIndex1", "Query", byStatus + `,"Limit":1`},
				{"Scan100", "Scan", `,"Limit":100,"ExclusiveStartKey":{` + middle + `}`},
				{"DescribeTable", "DescribeTable", ""},
			} {
				b.Run(c.name, func(b *testing.B) {
					body := `{"TableName":"large"` + c.body + `}`
					for b.Loop() {
						call(b, srv, c.op, body)
					}
				})
			}
			b.Run("PutItemBeside", func(b *testing.B) {
				stop, done := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(done)
					for {
						select {
						case <-stop:
							return
						default:
							call(b, srv, "Query", `{"TableName":"large"`+byStatus+`}`)
						}
					}
				}()
				for b.Loop() {
					call(b, srv, "PutItem", `{"TableName":"orders","Item":{"id":{"S":"a"}}}`)
				}
				close(stop)
				<-done
			})
		})
	}
}

// fill returns a server with the table "orders", and the table "large" with so many items, of one partition in the table and in its
// index.
func fill(b *testing.B, items int) *memdynamodb.Server {
	b.Helper()
	srv, _ := start(b, func(o *memdynamodb.Options) { o.NoRecord = true })
	call(b, srv, "CreateTable", `{"TableName":"large","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"},`+
		`{"AttributeName":"pos","AttributeType":"N"},{"AttributeName":"status","AttributeType":"S"}],"KeySchema":[{"AttributeName":"id","KeyType":"HASH"},`+
		`{"AttributeName":"pos","KeyType":"RANGE"}],"GlobalSecondaryIndexes":[{"IndexName":"by-status","KeySchema":[{"AttributeName":"status","KeyType":"HASH"},`+
		`{"AttributeName":"pos","KeyType":"RANGE"}],"Projection":{"ProjectionType":"ALL"}}]}`)
	const batch = 25
	for n := 0; n < items; n += batch {
		var puts []string
		for i := range batch {
			puts = append(puts, fmt.Sprintf(`{"PutRequest":{"Item":{"id":{"S":"one"},"pos":{"N":"%d"},"status":{"S":"open"}}}}`, n+i))
		}
		call(b, srv, "BatchWriteItem", `{"RequestItems":{"large":[`+strings.Join(puts, ",")+`]}}`)
	}
	return srv
}

// call calls the server's handler directly. The answer must be a success.
func call(b *testing.B, srv *memdynamodb.Server, op, body string) {
	r := must.Get(http.NewRequest(http.MethodPost, "http://dynamodb.local/", strings.NewReader(body)))(b)
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	r.Header.Set("Authorization", "test")
	w := httptest.NewRecorder()
	srv.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		b.Error(w.Body)
	}
}
