package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack"
)

// started runs the command until the test ends, and returns the first line that it prints, and what it prints besides by then.
func started(t *testing.T, args ...string) (url, said string) {
	t.Helper()
	o := must.Get(parse(append([]string{"-addr", "127.0.0.1:0"}, args...), io.Discard))(t)
	ctx, cancel := context.WithCancel(context.Background())
	in, out := io.Pipe()
	log := make(lines, 1)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, out, log, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v, want nil after a signal", err)
		}
	})
	url = must.Get(bufio.NewReader(in).ReadString('\n'))(t)
	return strings.TrimSpace(url), <-log
}

type lines chan string

// Write keeps the first.
func (l lines) Write(p []byte) (int, error) {
	select {
	case l <- string(p):
	default:
	}
	return len(p), nil
}

func TestServesBothServicesOnOnePort(t *testing.T) {
	ctx := t.Context()
	url, said := started(t, "-queues", "jobs,jobs.fifo", "-tables", "records")
	for _, want := range []string{"us-east-1", "AWS_ACCESS_KEY_ID", "--endpoint-url " + url} {
		if !strings.Contains(said, want) {
			t.Errorf("%q does not name %s", said, want)
		}
	}
	stack := must.Get(localstack.Start(ctx, func(o *localstack.Options) { o.Endpoint = url }))(t)
	for _, name := range []string{"jobs", "jobs-dlq", "jobs.fifo", "jobs-dlq.fifo"} {
		if _, err := stack.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(name)}); err != nil {
			t.Errorf("queue %s: %v", name, err)
		}
	}
	if _, err := stack.DynamoDB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("records")}); err != nil {
		t.Errorf("table records: %v", err)
	}
}

func do(t *testing.T, method, url string, header http.Header, body io.Reader) (status int, answer string) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), method, url, body))(t)
	maps.Copy(r.Header, header)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer resp.Body.Close() // only read
	text := must.Get(io.ReadAll(resp.Body))(t)
	return resp.StatusCode, string(text)
}

// What clients other than today's SDKs send is answered in their own protocol, with what is wrong.
func TestOtherClients(t *testing.T) {
	t.Parallel()
	url, _ := started(t, "-queues", "jobs")
	json := http.Header{"X-Amz-Target": {"AmazonSQS.ListQueues"}, "Authorization": {"x"}}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	must.Get(z.Write([]byte(`{"QueueNamePrefix":"jobs-"}`)))(t)
	must.Do(t, z.Close())
	zipped := json.Clone()
	zipped.Set("Content-Encoding", "gzip")
	for name, w := range map[string]struct {
		method, path string
		header       http.Header
		body         io.Reader
		status       int
		has          string
	}{
		"a query in the URL": {"GET", "/?Action=ListQueues&Version=2012-11-05", nil, nil, 400, "<Code>InvalidAction</Code>"},
		"a query as a form":  {"POST", "/", http.Header{"Content-Type": {"application/x-www-form-urlencoded; charset=utf-8"}}, strings.NewReader("Action=Publish"), 400, "does not offer the query protocol"},
		"no such operation":  {"POST", "/", http.Header{"X-Amz-Target": {"AmazonSQS.AddPermission"}, "Authorization": {"x"}}, strings.NewReader("{}"), 400, "memsqs does not implement the operation AddPermission"},
		"no such table call": {"POST", "/", http.Header{"X-Amz-Target": {"DynamoDB_20120810.CreateBackup"}, "Authorization": {"x"}}, strings.NewReader("{}"), 400, "memdynamodb does not implement the operation CreateBackup"},
		"no Region":          {"POST", "/", http.Header{"X-Amz-Target": {"AmazonSQS.ListQueues"}, "Authorization": {"AWS4-HMAC-SHA256 Credential=local/20261129/Frankfurt/sqs/aws4_request"}}, strings.NewReader("{}"), 403, "InvalidSignatureException"},
		"streams":            {"POST", "/", http.Header{"X-Amz-Target": {"DynamoDBStreams_20120810.ListStreams"}, "Authorization": {"x"}}, strings.NewReader("{}"), 200, `"Streams":[]`},
		"another service":    {"POST", "/", http.Header{"X-Amz-Target": {"Logs_20140328.PutLogEvents"}, "Authorization": {"x"}}, strings.NewReader("{}"), 400, "X-Amz-Target"},
		"gzip":               {"POST", "/", zipped, &packed, 200, "/jobs-dlq"},
		"no gzip":            {"POST", "/", zipped, strings.NewReader("{}"), 400, "SerializationException"},
		"too large":          {"POST", "/", json, io.LimitReader(zeros{}, 64<<20), 413, "RequestEntityTooLarge"},
	} {
		status, body := do(t, w.method, url+w.path, w.header, w.body)
		if status != w.status || !strings.Contains(body, w.has) {
			t.Errorf("%s: %d %s, want %d with %s", name, status, body, w.status, w.has)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// Queue URLs have the host that the client has called.
func TestQueueURLs(t *testing.T) {
	t.Parallel()
	url, _ := started(t, "-queues", "jobs")
	other := strings.Replace(url, "127.0.0.1", "localhost", 1)
	_, body := do(t, http.MethodPost, other, http.Header{"X-Amz-Target": {"AmazonSQS.GetQueueUrl"}, "Authorization": {"x"}}, strings.NewReader(`{"QueueName":"jobs"}`))
	if want := other + "/000000000000/jobs"; !strings.Contains(body, want) {
		t.Errorf("%s, want %s", body, want)
	}
	if got := localURL(&net.TCPAddr{IP: net.IPv6unspecified, Port: 1}); got != "http://127.0.0.1:1" {
		t.Errorf("%s", got)
	}
}

// A handle that a later receive has replaced works as on AWS, or is refused.
func TestStrictHandles(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"-strict-handles"}} {
		url, _ := started(t, append(args, "-queues", "jobs")...)
		stack := must.Get(localstack.Start(t.Context(), func(o *localstack.Options) { o.Endpoint = url }))(t)
		queue := url + "/000000000000/jobs"
		must.Get(stack.SQS.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: aws.String("a")}))(t)
		var handles []*string
		for range 2 {
			out, err := stack.SQS.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &queue})
			if err != nil || len(out.Messages) != 1 {
				t.Fatalf("received %v, %v, want a message", out, err)
			}
			handles = append(handles, out.Messages[0].ReceiptHandle)
			_, err = stack.SQS.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &queue, ReceiptHandle: handles[0]})
			if want := len(handles) == 2 && len(args) == 1; (err != nil) != want {
				t.Errorf("%q, change with handle 1 of %d: %v, want an error: %t", args, len(handles), err, want)
			}
		}
	}
}

// Items whose time to live has ended are deleted.
func TestTTLInterval(t *testing.T) {
	t.Parallel()
	url, _ := started(t, "-tables", "records", "-ttl-interval", "1ms")
	stack := must.Get(localstack.Start(t.Context(), func(o *localstack.Options) { o.Endpoint = url }))(t)
	must.Get(stack.DynamoDB.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("records"), Item: map[string]ddbtypes.AttributeValue{
		"id": &ddbtypes.AttributeValueMemberS{Value: "a"}, "expiration": &ddbtypes.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().Unix()-10, 10)},
	}}))(t)
	for {
		out := must.Get(stack.DynamoDB.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("records")}))(t)
		if out.Count == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"jobs":                       `unexpected arguments: ["jobs"]`,
		"-queues a b":                `unexpected arguments: ["b"]`,
		"-nothing":                   "not defined: -nothing",
		"-ttl-interval -1s":          "must be 0 or more",
		"-region Frankfurt":          "must be a Region",
		"-queues a -ttl-interval no": "invalid value",
	} {
		var said strings.Builder
		if _, err := parse(strings.Fields(args), &said); err == nil || !strings.Contains(said.String(), want) {
			t.Errorf("%s: %v, %s, want %s", args, err, &said, want)
		}
	}
}

func TestAddressInUse(t *testing.T) {
	stack, err := localstack.Start(t.Context(), func(o *localstack.Options) { o.HTTP = true })
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stack.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	err = run(t.Context(), io.Discard, io.Discard, options{addr: strings.TrimPrefix(stack.URL, "http://")})
	if err == nil || errors.Is(err, http.ErrServerClosed) {
		t.Errorf("got %v, want that the address is in use", err)
	}
}
