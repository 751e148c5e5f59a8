package memdynamodb_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

const (
	byStatus = `,"IndexName":"by-status","KeyConditionExpression":"#s = :k","ExpressionAttributeNames":{"#s":"status"},"ExpressionAttributeValues":{":k":{"S":"open"}}`
	byID     = `,"KeyConditionExpression":"id = :k","ExpressionAttributeValues":{":k":{"S":"one"}}`
)

// reads are calls of the table of fill whose time does not depend on its size.
func reads(size int) map[string]func(testing.TB, *memdynamodb.Server) {
	middle := fmt.Sprintf(`"id":{"S":"one"},"pos":{"N":"%d"}`, size/2)
	of := func(op, body string) func(testing.TB, *memdynamodb.Server) {
		return func(t testing.TB, srv *memdynamodb.Server) { call(t, srv, op, `{"TableName":"large"`+body+`}`) }
	}
	return map[string]func(testing.TB, *memdynamodb.Server){
		"Query100":      of("Query", byID+`,"Limit":100,"ExclusiveStartKey":{`+middle+`}`),
		"QueryIndex100": of("Query", byStatus+`,"Limit":100,"ExclusiveStartKey":{"status":{"S":"open"},`+middle+`}`),
		"QueryIndex1":   of("Query", byStatus+`,"Limit":1`),
		"Scan100":       of("Scan", `,"Limit":100,"ExclusiveStartKey":{`+middle+`}`),
		"DescribeTable": of("DescribeTable", ""),
		"SweepTTL":      func(_ testing.TB, srv *memdynamodb.Server) { srv.SweepTTL() }, // no table has a TTL
	}
}

// TestPages compares the fastest of some calls, so that it needs no quick machine: one that walks all items takes longer than its bound.
func TestPages(t *testing.T) {
	if os.Getenv("SOAK") == "" {
		t.Skip("SOAK=1 fills a table with a million items")
	}
	fastest := func(size int) map[string]time.Duration {
		srv, all := fill(t, size), map[string]time.Duration{}
		for name, read := range reads(size) {
			all[name] = time.Hour
			for range 20 {
				begin := time.Now()
				read(t, srv)
				all[name] = min(all[name], time.Since(begin))
			}
		}
		return all
	}
	small, large := fastest(1e4), fastest(1e6)
	for name, got := range large {
		most := 5*small[name] + 200*time.Microsecond
		t.Logf("%s: %s, of 10,000 items %s", name, got, small[name])
		if got > most {
			t.Errorf("%s of 1,000,000 items took %s, want at most %s", name, got, most)
		}
	}
}

// BenchmarkPages reads pages of tables of different sizes. A page's time does not depend on the table's size.
func BenchmarkPages(b *testing.B) {
	for _, size := range []int{1e4, 1e5, 1e6} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			srv := fill(b, size)
			for name, read := range reads(size) {
				b.Run(name, func(b *testing.B) {
					for b.Loop() {
						read(b, srv)
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
func fill(t testing.TB, items int) *memdynamodb.Server {
	t.Helper()
	srv, _ := start(t, func(o *memdynamodb.Options) { o.NoRecord = true })
	call(t, srv, "CreateTable", `{"TableName":"large","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"},`+
		`{"AttributeName":"pos","AttributeType":"N"},{"AttributeName":"status","AttributeType":"S"}],"KeySchema":[{"AttributeName":"id","KeyType":"HASH"},`+
		`{"AttributeName":"pos","KeyType":"RANGE"}],"GlobalSecondaryIndexes":[{"IndexName":"by-status","KeySchema":[{"AttributeName":"status","KeyType":"HASH"},`+
		`{"AttributeName":"pos","KeyType":"RANGE"}],"Projection":{"ProjectionType":"ALL"}}]}`)
	const batch = 25
	for n := 0; n < items; n += batch {
		var puts []string
		for i := range batch {
			puts = append(puts, fmt.Sprintf(`{"PutRequest":{"Item":{"id":{"S":"one"},"pos":{"N":"%d"},"status":{"S":"open"}}}}`, n+i))
		}
		call(t, srv, "BatchWriteItem", `{"RequestItems":{"large":[`+strings.Join(puts, ",")+`]}}`)
	}
	return srv
}

// call calls the server's handler directly. The answer must be a success.
func call(t testing.TB, srv *memdynamodb.Server, op, body string) {
	r := must.Get(http.NewRequest(http.MethodPost, "http://dynamodb.local/", strings.NewReader(body)))(t)
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	r.Header.Set("Authorization", "test")
	w := httptest.NewRecorder()
	srv.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Error(w.Body)
	}
}
