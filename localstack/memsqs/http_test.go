package memsqs_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

func TestOverHTTP(t *testing.T) {
	t.Parallel()
	srv := memsqs.New(faults(fault.Rule{Op: "DeleteMessage", Nth: 1, Do: fault.LoseReply}))
	h := httptest.NewServer(srv)
	t.Cleanup(h.Close)
	t.Cleanup(srv.Close)
	c := client(http.DefaultTransport, h.URL)
	q := must.Get(c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("jobs")}))(t)
	polled := make(chan *sqs.ReceiveMessageOutput)
	go func() {
		out, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: q.QueueUrl, WaitTimeSeconds: 20})
		if err != nil {
			t.Error(err)
		}
		polled <- out
	}()
	must.Get(c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: q.QueueUrl, MessageBody: aws.String("é\n<>&\u2028")}))(t)
	out := <-polled
	if len(out.Messages) != 1 || *out.Messages[0].Body != "é\n<>&\u2028" {
		t.Fatalf("received %v", out.Messages)
	}
	if _, err := c.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: q.QueueUrl, ReceiptHandle: out.Messages[0].ReceiptHandle}); err == nil {
		t.Error("the reply was not lost")
	}
	if messages := srv.Messages("jobs"); len(messages) != 0 {
		t.Errorf("messages %v, want none: the delete had its effect", messages)
	}
}

// FuzzRequest posts any body to any operation. The response is always JSON: a success, or an error of AWS's shape that is
// not an internal error.
func FuzzRequest(f *testing.F) {
	const url = `"QueueUrl":"https://sqs.us-east-1.amazonaws.com/000000000000/jobs`
	for _, seed := range []struct{ op, body string }{
		{"SendMessage", `{` + url + `","MessageBody":"a","DelaySeconds":1,"MessageAttributes":{"a":{"DataType":"Number","StringValue":"1"}}}`},
		{"SendMessageBatch", `{` + url + `.fifo","Entries":[{"Id":"a","MessageBody":"b","MessageGroupId":"c","MessageDeduplicationId":"d"}]}`},
		{"ReceiveMessage", `{` + url + `","MaxNumberOfMessages":10,"VisibilityTimeout":0,"MessageSystemAttributeNames":["All"],"MessageAttributeNames":["a.*"]}`},
		{"ReceiveMessage", `{` + url + `.fifo","ReceiveRequestAttemptId":"a"}`},
		{"DeleteMessage", `{` + url + `","ReceiptHandle":"AAAA"}`},
		{"ChangeMessageVisibilityBatch", `{` + url + `","Entries":[{"Id":"a","ReceiptHandle":"x","VisibilityTimeout":1}]}`},
		{"CreateQueue", `{"QueueName":"new.fifo","Attributes":{"FifoQueue":"true","RedrivePolicy":"{\"maxReceiveCount\":\"1\"}"}}`},
		{"SetQueueAttributes", `{` + url + `","Attributes":{"RedrivePolicy":"{\"deadLetterTargetArn\":\"arn:aws:sqs:us-east-1:000000000000:jobs\",\"maxReceiveCount\":1}"}}`},
		{"GetQueueAttributes", `{` + url + `","AttributeNames":["All"]}`},
		{"ListQueues", `{"MaxResults":1,"NextToken":"a"}`},
		{"StartMessageMoveTask", `{"SourceArn":"arn:aws:sqs:us-east-1:000000000000:jobs"}`},
		{"CancelMessageMoveTask", `{"TaskHandle":"x"}`},
		{"TagQueue", `{` + url + `","Tags":{"a":"b"}}`},
	} {
		f.Add(seed.op, seed.body)
	}
	f.Fuzz(func(t *testing.T, op, body string) {
		if strings.Contains(body, "WaitTimeSeconds") || strings.ContainsAny(op, "\r\n") {
			t.Skip("would wait in real time, or is not a header")
		}
		srv := memsqs.New()
		defer srv.Close()
		raw := func(op, body string) (int, string) {
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
			r.Header.Set("X-Amz-Target", "AmazonSQS."+op)
			r.Header.Set("Authorization", "x")
			w := httptest.NewRecorder()
			srv.ServeHTTP(w, r)
			reply, _ := io.ReadAll(w.Body)
			return w.Code, string(reply)
		}
		raw("CreateQueue", `{"QueueName":"jobs"}`)
		raw("CreateQueue", `{"QueueName":"jobs.fifo","Attributes":{"FifoQueue":"true"}}`)
		raw("SendMessage", `{`+url+`","MessageBody":"a"}`)
		for range 2 {
			status, reply := raw(op, body)
			var e struct {
				Type string `json:"__type"`
			}
			if err := json.Unmarshal([]byte(reply), &e); err != nil {
				t.Fatalf("%s %q: reply %q: %v", op, body, reply, err)
			}
			if status >= 500 || status != 200 && !strings.HasPrefix(e.Type, "com.amazonaws.sqs#") || status == 200 && e.Type != "" {
				t.Fatalf("%s %q: status %d, reply %q", op, body, status, reply)
			}
		}
	})
}
