package memdynamodb_test

import (
	"net/http"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// conditionalPut is a request to put a record of the idempotency protocol with the key n.
func conditionalPut(n int) string {
	return `{"TableName":"orders","Item":{"id":{"S":"` + strconv.Itoa(n) + `"},"status":{"S":"INPROGRESS"},"fence":{"N":"1700000000000"}},` +
		`"ConditionExpression":"attribute_not_exists(id) OR #s = :d","ExpressionAttributeNames":{"#s":"status"},"ExpressionAttributeValues":{":d":{"S":"COMPLETED"}}}`
}

// BenchmarkMemory fills a table with small records and reports their overhead.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		over := overhead(b, 100_000)
		b.ReportMetric(over, "B/item")
	}
}

// TestMemoryOfAnItem: the table and the record of calls stay small enough for millions of items.
func TestMemoryOfAnItem(t *testing.T) {
	if over := overhead(t, 20_000); over > 300 {
		t.Errorf("an item has %.0f bytes of overhead, want at most 300", over)
	}
}

// overhead is the heap of n items, divided by n, without the bytes of their names and values. It includes the record of
// the calls that put them.
func overhead(t testing.TB, n int) float64 {
	t.Helper()
	srv, c := start(t)
	before := heap()
	for i := range n {
		if status, _, text := send(t, srv, "PutItem", conditionalPut(i)); status != http.StatusOK {
			t.Fatal(text)
		}
	}
	held := heap() - before
	out := must.Get(c.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("orders")}))(t)
	if got := aws.ToInt64(out.Table.ItemCount); got != int64(n) {
		t.Fatalf("%d items, want %d", got, n)
	}
	runtime.KeepAlive(srv)
	return float64(int64(held)-aws.ToInt64(out.Table.TableSizeBytes)) / float64(n)
}

// TestMemoryOfTokens: tokens of transactions are forgotten after twenty minutes at most.
func TestMemoryOfTokens(t *testing.T) {
	now := time.Now()
	srv := memdynamodb.New(func(o *memdynamodb.Options) { o.Now, o.NoRecord = func() time.Time { return now }, true })
	defer srv.Close()
	createTable(t, client(srv), "orders", "id", "")
	transact := func(n int) {
		t.Helper()
		body := `{"ClientRequestToken":"token ` + strconv.Itoa(n) + `","TransactItems":[{"Put":{"TableName":"orders","Item":{"id":{"S":"a"}}}}]}`
		if status, _, text := send(t, srv, "TransactWriteItems", body); status != http.StatusOK {
			t.Fatal(text)
		}
	}
	const n = 20_000
	transact(0)
	before := heap()
	for i := range n {
		transact(1 + i)
	}
	held := int64(heap() - before)
	for i := range 2 {
		now = now.Add(10 * time.Minute)
		transact(n + 1 + i)
	}
	if left := int64(heap() - before); held < n*40 || left > held/4 {
		t.Errorf("%d tokens hold %d bytes, and twenty minutes later %d", n, held, left)
	}
	runtime.KeepAlive(srv)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // frees what the finalizers of the first one released
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
