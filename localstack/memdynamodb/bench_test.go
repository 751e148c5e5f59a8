//go:build unix

package memdynamodb_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// batchSize is the usual count of statements in a batch of dynamostore with a hundred concurrent handlers.
const batchSize = 23

// BenchmarkDeliveries sends what dynamostore sends for new messages: a batch of INSERTs and then a batch of UPDATEs. The
// metric is the CPU time for the two statements of one message, with the little that the client needs.
func BenchmarkDeliveries(b *testing.B) {
	for name, connect := range map[string]func(*testing.B, *memdynamodb.Server) func(body []byte) []byte{
		"RoundTrip": throughRoundTrip, "HTTP": throughHTTP,
	} {
		b.Run(name, func(b *testing.B) {
			srv, _ := start(b)
			send := connect(b, srv)
			insert, complete := newInserts(), newUpdates()
			b.ReportAllocs()
			n, begun := 0, cpu(b)
			for b.Loop() {
				for _, body := range []*batchBody{&insert, &complete} {
					body.number(n)
					if got := send(body.text); string(got) != allWritten {
						b.Fatalf("%s", got)
					}
				}
				n += batchSize
			}
			b.ReportMetric(float64((cpu(b)-begun).Nanoseconds())/1e3/float64(n), "cpu-µs/msg")
		})
	}
}

// BenchmarkStatements measures one batch of each of the two kinds in the server, without HTTP. The table stays small, so
// that the garbage collector has little to scan; BenchmarkDeliveries has a large table.
func BenchmarkStatements(b *testing.B) {
	b.Run("INSERT", func(b *testing.B) {
		const calls = 50 // on one table
		body := newInserts()
		var srv *memdynamodb.Server
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			if n%calls == 0 {
				b.StopTimer()
				srv, _ = start(b)
				b.StartTimer()
			}
			body.number(n * batchSize)
			serve(b, srv, body.text)
		}
	})
	b.Run("UPDATE", func(b *testing.B) {
		srv, _ := start(b)
		insert, update := newInserts(), newUpdates()
		insert.number(0)
		update.number(0)
		serve(b, srv, insert.text)
		b.ReportAllocs()
		for b.Loop() {
			serve(b, srv, update.text)
		}
	})
}

// Texts that differ for each delivery: a record's key, and an owner.
const (
	sampleKey   = "billing#5f2c1a3e-9a57-4a8e-b1c4-000000000000"
	sampleOwner = "2NQ5YUNJXUH2J4YXGN00000000"
)

// allWritten is the answer to a batch in which every write succeeds.
var allWritten = `{"Responses":[` + strings.Repeat(`{"TableName":"orders"},`, batchSize-1) + `{"TableName":"orders"}],"ConsumedCapacity":[{"TableName":"orders","CapacityUnits":23}]}`

func newInserts() batchBody {
	return newBatch(`INSERT INTO \"orders\" VALUE {'id': ?, 'status': ?, 'owner': ?, 'fence': ?, 'in_progress_expiration': ?, 'expiration': ?, 'attempts': ?}`,
		`{"S":"`+sampleKey+`"},{"S":"INPROGRESS"},{"S":"`+sampleOwner+`"},{"N":"1795309200017"},{"N":"1795309260017"},{"N":"1797901200"},{"N":"1"}`)
}

func newUpdates() batchBody {
	return newBatch(`UPDATE \"orders\" SET \"status\"=? WHERE \"id\"=? AND \"owner\"=?`,
		`{"S":"COMPLETED"},{"S":"`+sampleKey+`"},{"S":"`+sampleOwner+`"}`)
}

// batchBody is the body of a request. Its keys and owners can be changed in place.
type batchBody struct {
	text    []byte
	samples [batchSize][]int // the offsets behind their last digits
}

func newBatch(statement, parameters string) batchBody {
	var b batchBody
	b.text = []byte(`{"ReturnConsumedCapacity":"TOTAL","Statements":[`)
	for i := range b.samples {
		from := len(b.text)
		// Five deliveries in a row have the same times, as if they came in the same millisecond.
		b.text = fmt.Appendf(b.text, `{"Parameters":[%s],"Statement":"%s"},`, strings.ReplaceAll(parameters, "017", "01"+strconv.Itoa(i/5)), statement)
		for _, sample := range []string{sampleKey, sampleOwner} {
			if at := bytes.Index(b.text[from:], []byte(sample)); at >= 0 {
				b.samples[i] = append(b.samples[i], from+at+len(sample))
			}
		}
	}
	b.text = append(b.text[:len(b.text)-1], "]}"...)
	return b
}

// number sets the keys and owners to those of the deliveries n, n+1 and so on.
func (b *batchBody) number(n int) {
	for i, ends := range b.samples {
		for _, end := range ends {
			for at, rest := end-1, n+i; rest > 0; at, rest = at-1, rest/10 {
				b.text[at] = byte('0' + rest%10)
			}
		}
	}
}

// serve calls the server's handler directly, without a network and without a goroutine.
func serve(b *testing.B, srv *memdynamodb.Server, body []byte) {
	w := httptest.NewRecorder()
	srv.ServeHTTP(w, newBatchRequest(b, body))
	if w.Body.String() != allWritten {
		b.Fatal(w.Body)
	}
}

func newBatchRequest(b *testing.B, body []byte) *http.Request {
	r := must.Get(http.NewRequest(http.MethodPost, "http://dynamodb.local/", bytes.NewReader(body)))(b)
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810.BatchExecuteStatement")
	r.Header.Set("Authorization", "test")
	return r
}

func throughRoundTrip(b *testing.B, srv *memdynamodb.Server) func([]byte) []byte {
	return func(body []byte) []byte {
		resp := must.Get(srv.RoundTrip(newBatchRequest(b, body)))(b)
		return must.Get(io.ReadAll(resp.Body))(b)
	}
}

// throughHTTP writes the bytes of an SDK request to a socket. With an http.Client its CPU time would be measured too.
func throughHTTP(b *testing.B, srv *memdynamodb.Server) func([]byte) []byte {
	web := httptest.NewServer(srv)
	b.Cleanup(web.Close)
	conn := must.Get(net.Dial("tcp", web.Listener.Addr().String()))(b)
	b.Cleanup(func() { _ = conn.Close() })
	in := bufio.NewReader(conn)
	var out []byte
	return func(body []byte) []byte {
		out = fmt.Appendf(out[:0], "POST / HTTP/1.1\r\nHost: %s\r\nUser-Agent: aws-sdk-go-v2/1.47.5 ua/2.1 os/linux lang/go#1.26.8 md/GOOS#linux md/GOARCH#amd64 api/dynamodb#1.72.3\r\nContent-Length: %d\r\n"+
			"Accept-Encoding: identity\r\nAmz-Sdk-Invocation-Id: 28c46c15-ca93-4781-834b-4dda548c3131\r\nAmz-Sdk-Request: attempt=1; max=1\r\n"+
			"Authorization: AWS4-HMAC-SHA256 Credential=test/20261122/us-east-1/dynamodb/aws4_request, SignedHeaders=accept-encoding;amz-sdk-invocation-id;amz-sdk-request;content-length;content-type;host;x-amz-date;x-amz-target, Signature=29f109c877f1ff35e628beb9a2fc3fac0f73e45399b741bbf7c455fbda778278\r\n"+
			"Content-Type: application/x-amz-json-1.0\r\nX-Amz-Date: 20261122T011802Z\r\nX-Amz-Target: DynamoDB_20120810.BatchExecuteStatement\r\n\r\n", web.Listener.Addr(), len(body))
		out = append(out, body...)
		must.Get(conn.Write(out))(b)
		resp := must.Get(http.ReadResponse(in, nil))(b)
		return must.Get(io.ReadAll(resp.Body))(b)
	}
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	must.Do(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
