package memsqs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// direct calls a server without a client and without a network.
type direct struct {
	b   *testing.B
	srv *memsqs.Server
	url string
}

func newDirect(b *testing.B, name, attributes string) *direct {
	d := &direct{b: b, srv: memsqs.New(), url: `"QueueUrl":"https://sqs.us-east-1.amazonaws.com/000000000000/` + name + `"`}
	b.Cleanup(d.srv.Close)
	d.call("CreateQueue", `{"QueueName":"`+name+`"`+attributes+`}`)
	return d
}

func (d *direct) call(op, body string) []byte {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("X-Amz-Target", "AmazonSQS."+op)
	r.Header.Set("Authorization", "x")
	w := httptest.NewRecorder()
	d.srv.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		d.b.Fatalf("%s: %d %s", op, w.Code, w.Body)
	}
	return w.Body.Bytes()
}

// send sends ten messages of 100 bytes; entry gives the rest of an entry.
func (d *direct) send(entry func(i int) string) {
	var out bytes.Buffer
	out.WriteString(`{` + d.url + `,"Entries":[`)
	for i := range 10 {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, `{"Id":"%d","MessageBody":"%0100d"%s}`, i, i, entry(i))
	}
	out.WriteString(`]}`)
	d.call("SendMessageBatch", out.String())
}

// cycle receives ten messages and deletes them.
func (d *direct) cycle() {
	var got struct {
		Messages []struct{ ReceiptHandle string }
	}
	if err := json.Unmarshal(d.call("ReceiveMessage", `{`+d.url+`,"MaxNumberOfMessages":10}`), &got); err != nil || len(got.Messages) != 10 {
		d.b.Fatalf("received %d messages, %v", len(got.Messages), err)
	}
	var out bytes.Buffer
	out.WriteString(`{` + d.url + `,"Entries":[`)
	for i, m := range got.Messages {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, `{"Id":"%d","ReceiptHandle":"%s"}`, i, m.ReceiptHandle)
	}
	out.WriteString(`]}`)
	d.call("DeleteMessageBatch", out.String())
}

// BenchmarkTen is one send, receive and delete of ten messages, with a backlog of messages or of groups behind them.
func BenchmarkTen(b *testing.B) {
	for _, c := range []struct {
		name, attributes string
		backlog          int
	}{
		{"jobs", "", 0}, {"jobs", "", 1_000_000}, {"jobs.fifo", `,"Attributes":{"FifoQueue":"true"}`, 0}, {"jobs.fifo", `,"Attributes":{"FifoQueue":"true"}`, 100_000},
	} {
		b.Run(fmt.Sprintf("%s/backlog=%d", c.name, c.backlog), func(b *testing.B) {
			d := newDirect(b, c.name, c.attributes)
			n := 0
			entry := func(int) string {
				n++
				if c.attributes == "" {
					return ""
				}
				return fmt.Sprintf(`,"MessageGroupId":"g%d","MessageDeduplicationId":"%d"`, n, n)
			}
			for range c.backlog / 10 {
				d.send(entry)
			}
			for b.Loop() {
				d.send(entry)
				d.cycle()
			}
			b.ReportMetric(10*float64(b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}
