package memsqs_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// direct calls a server without a client or a network.
type direct struct {
	b       *testing.B
	srv     *memsqs.Server
	url     string
	request []byte
	reply   recorder
}

func newDirect(b *testing.B, name, attributes string) *direct {
	d := &direct{b: b, srv: memsqs.New(), url: `"QueueUrl":"https://sqs.us-east-1.amazonaws.com/000000000000/` + name + `"`}
	b.Cleanup(d.srv.Close)
	d.call("CreateQueue", []byte(`{"QueueName":"`+name+`"`+attributes+`}`))
	return d
}

func (d *direct) call(op string, body []byte) []byte {
	r := &http.Request{Method: http.MethodPost, Body: io.NopCloser(bytes.NewReader(body)), Header: http.Header{
		"X-Amz-Target": {"AmazonSQS." + op}, "Authorization": {"x"},
	}}
	d.reply = recorder{body: d.reply.body[:0], header: http.Header{}}
	d.srv.ServeHTTP(&d.reply, r)
	if d.reply.code != http.StatusOK {
		d.b.Fatalf("%s: %d %s", op, d.reply.code, d.reply.body)
	}
	return d.reply.body
}

// recorder is an http.ResponseWriter that does next to nothing: the benchmark measures the server.
type recorder struct {
	code   int
	header http.Header
	body   []byte
}

func (r *recorder) Header() http.Header  { return r.header }
func (r *recorder) WriteHeader(code int) { r.code = code }
func (r *recorder) Write(b []byte) (int, error) {
	r.body = append(r.body, b...)
	return len(b), nil
}

var bodyOf100 = strings.Repeat("b", 100)

// send sends ten messages of 100 bytes; entry appends the other members of an entry.
func (d *direct) send(entry func(out []byte) []byte) {
	d.request = append(d.request[:0], `{`+d.url+`,"Entries":[`...)
	for i := range 10 {
		if i > 0 {
			d.request = append(d.request, ',')
		}
		d.request = append(d.request, `{"Id":"`...)
		d.request = append(d.request, byte('0'+i))
		d.request = append(d.request, `","MessageBody":"`+bodyOf100+`"`...)
		d.request = append(entry(d.request), '}')
	}
	d.call("SendMessageBatch", append(d.request, `]}`...))
}

// cycle receives ten messages and deletes them.
func (d *direct) cycle() {
	rest := d.call("ReceiveMessage", []byte(`{`+d.url+`,"MaxNumberOfMessages":10}`))
	d.request = append(d.request[:0], `{`+d.url+`,"Entries":[`...)
	for i := range 10 {
		_, after, ok := bytes.Cut(rest, []byte(`"ReceiptHandle":"`))
		if !ok {
			d.b.Fatalf("received %d messages", i)
		}
		handle, after, _ := bytes.Cut(after, []byte{'"'})
		rest = after
		if i > 0 {
			d.request = append(d.request, ',')
		}
		d.request = append(d.request, `{"Id":"`...)
		d.request = append(d.request, byte('0'+i))
		d.request = append(d.request, `","ReceiptHandle":"`...)
		d.request = append(d.request, handle...)
		d.request = append(d.request, `"}`...)
	}
	d.call("DeleteMessageBatch", append(d.request, `]}`...))
}

// inGroups appends a new group and a new deduplication ID to every entry.
func inGroups() func([]byte) []byte {
	n := uint64(0)
	return func(out []byte) []byte {
		n++
		out = append(out, `,"MessageGroupId":"g`...)
		out = strconv.AppendUint(out, n, 10)
		out = append(out, `","MessageDeduplicationId":"`...)
		out = strconv.AppendUint(out, n, 10)
		return append(out, '"')
	}
}

// inTenants appends one of 1,000 groups to every entry, the first of them to every second entry.
func inTenants() func([]byte) []byte {
	n := uint64(0)
	return func(out []byte) []byte {
		n++
		out = append(out, `,"MessageGroupId":"g`...)
		out = strconv.AppendUint(out, n%2*(1+n%999), 10)
		return append(out, '"')
	}
}

func noGroup(out []byte) []byte { return out }

const fifoAttributes = `,"Attributes":{"FifoQueue":"true"}`

// BenchmarkTen measures one send, receive and delete of ten messages, with a backlog of messages or of groups behind them.
func BenchmarkTen(b *testing.B) {
	for _, c := range []struct {
		name, attributes string
		backlog          int
		entry            func([]byte) []byte
	}{
		{"jobs", "", 0, noGroup}, {"jobs", "", 100_000, noGroup}, {"jobs", "", 1_000_000, noGroup},
		{"tenants", "", 0, inTenants()}, {"tenants", "", 100_000, inTenants()}, {"tenants", "", 1_000_000, inTenants()},
		{"jobs.fifo", fifoAttributes, 0, inGroups()}, {"jobs.fifo", fifoAttributes, 100_000, inGroups()},
	} {
		b.Run(fmt.Sprintf("%s/backlog=%d", c.name, c.backlog), func(b *testing.B) {
			d := newDirect(b, c.name, c.attributes)
			for range c.backlog / 10 {
				d.send(c.entry)
			}
			for b.Loop() {
				d.send(c.entry)
				d.cycle()
			}
			b.ReportMetric(10*float64(b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

// BenchmarkMemory measures the memory of a message of 100 bytes in a queue, without its body.
func BenchmarkMemory(b *testing.B) {
	const messages = 200_000
	for _, c := range []struct {
		name, attributes string
		entry            func([]byte) []byte
	}{{"jobs", "", noGroup}, {"tenants", "", inTenants()}, {"jobs.fifo", fifoAttributes, inGroups()}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				before := heapInUse()
				d := newDirect(b, c.name, c.attributes)
				for range messages / 10 {
					d.send(c.entry)
				}
				b.ReportMetric(float64(heapInUse()-before)/messages-100, "bytes/message")
				runtime.KeepAlive(d)
			}
		})
	}
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
