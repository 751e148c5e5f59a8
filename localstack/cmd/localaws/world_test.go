package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack"
)

// filled is a localaws with two messages in jobs, one of them received, and an item in records.
func filled(t *testing.T, args ...string) (url string, stack *localstack.Stack) {
	t.Helper()
	url, _ = started(t, append([]string{"-queues", "jobs", "-tables", "records"}, args...)...)
	stack = must.Get(localstack.Start(t.Context(), func(o *localstack.Options) { o.Endpoint = url }))(t)
	queue := url + "/000000000000/jobs"
	for _, body := range []string{"one", "<b>two"} {
		must.Get(stack.SQS.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: &body}))(t)
	}
	must.Get(stack.SQS.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: aws.String("late"), DelaySeconds: 900}))(t)
	must.Get(stack.SQS.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &queue}))(t)
	put(t, stack, "a", "x")
	return url, stack
}

func put(t *testing.T, stack *localstack.Stack, id, value string) {
	t.Helper()
	must.Get(stack.DynamoDB.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("records"), Item: map[string]ddbtypes.AttributeValue{
		"id": &ddbtypes.AttributeValueMemberS{Value: id}, "value": &ddbtypes.AttributeValueMemberS{Value: value},
	}}))(t)
}

// states are those of the messages of jobs.
func states(t *testing.T, url string) map[string]int {
	t.Helper()
	status, body := do(t, http.MethodGet, url+"/_localaws/queues/jobs/messages", nil, nil)
	var all []message
	if err := json.Unmarshal([]byte(body), &all); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	n := map[string]int{}
	for _, m := range all {
		n[m.State]++
	}
	return n
}

func items(t *testing.T, stack *localstack.Stack) int32 {
	t.Helper()
	return must.Get(stack.DynamoDB.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("records")}))(t).Count
}

// A look at a queue is no receive.
func TestMessages(t *testing.T) {
	t.Parallel()
	url, _ := filled(t)
	want := map[string]int{"visible": 1, "in flight": 1, "delayed": 1}
	for range 2 {
		if got := states(t, url); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	if status, _ := do(t, http.MethodGet, url+"/_localaws/queues/nowhere/messages", nil, nil); status != http.StatusNotFound {
		t.Errorf("a queue that does not exist: %d", status)
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	url, stack := filled(t)
	reset := func(query string, header http.Header) int {
		status, _ := do(t, http.MethodPost, url+"/_localaws/reset"+query, header, nil)
		return status
	}
	if got := reset("", http.Header{"Origin": {"http://elsewhere"}}); got != http.StatusForbidden || items(t, stack) != 1 {
		t.Errorf("a page of another origin: %d, want 403 and no change", got)
	}
	allowing, _ := started(t, "-queues", "jobs", "-cors", "http://app")
	for origin, want := range map[string]int{"http://app": http.StatusNoContent, "http://elsewhere": http.StatusForbidden} {
		if got, _ := do(t, http.MethodPost, allowing+"/_localaws/reset", http.Header{"Origin": {origin}}, nil); got != want {
			t.Errorf("with -cors http://app, from %s: %d, want %d", origin, got, want)
		}
	}
	if got := reset("?queue=jobs", nil); got != http.StatusNoContent || len(states(t, url)) != 0 || items(t, stack) != 1 {
		t.Errorf("a queue: %d, %v, %d items", got, states(t, url), items(t, stack))
	}
	if got := reset("?table=records", nil); got != http.StatusNoContent || items(t, stack) != 0 {
		t.Errorf("a table: %d, %d items", got, items(t, stack))
	}
	for _, query := range []string{"?queue=nowhere", "?table=nowhere"} {
		if got := reset(query, nil); got != http.StatusNotFound && got != http.StatusBadRequest {
			t.Errorf("%s: %d", query, got)
		}
	}
	other := must.Get(stack.SQS.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("other")}))(t)
	polled := make(chan error, 1)
	go func() {
		_, err := stack.SQS.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: other.QueueUrl, WaitTimeSeconds: 20})
		polled <- err
	}()
	for polls := `ReceiveMessage<td class="n">2`; ; { // the first is filled's
		if _, page := do(t, http.MethodGet, url, nil, nil); strings.Contains(page, polls) {
			break
		}
	}
	put(t, stack, "b", "x")
	begin := time.Now()
	if got := reset("", nil); got != http.StatusNoContent || items(t, stack) != 0 {
		t.Errorf("all: %d, %d items", got, items(t, stack))
	}
	must.Do(t, <-polled)
	if took := time.Since(begin); took > 15*time.Second {
		t.Errorf("a poll ended %s after the reset", took)
	}
	list := must.Get(stack.SQS.ListQueues(t.Context(), &sqs.ListQueuesInput{}))(t)
	if want := []string{url + "/000000000000/jobs", url + "/000000000000/jobs-dlq"}; !reflect.DeepEqual(list.QueueUrls, want) {
		t.Errorf("after the reset: %q, want %q", list.QueueUrls, want)
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	url, _ := filled(t)
	status, body := do(t, http.MethodGet, url, nil, nil)
	for _, want := range []string{"jobs-dlq", "records", "SendMessage", `href="/_localaws/queues/jobs/messages"`, `href="/_localaws/tables/records/items"`} {
		if status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%d, the page lacks %q", status, want)
		}
	}
	for request, want := range map[string]struct {
		status int
		has    string
	}{
		"GET /_localaws/health":               {200, `"running"`},
		"GET /_localstack/health":             {200, `"running"`},
		"GET /_localaws/tables/records/items": {200, `[{"id":{"S":"a"},"value":{"S":"x"}}]`},
		"GET /_localaws/tables/nowhere/items": {404, "no table nowhere"},
		"GET /nothing":                        {404, "/_localaws/health"},
		"GET /_localaws/nothing":              {404, "/_localaws/health"},
		"POST /nothing":                       {404, "/_localaws/health"},
		"POST /_localaws/nothing":             {404, "/_localaws/health"},
		"PUT /nothing":                        {404, "/_localaws/health"},
		"DELETE /_localaws/nothing":           {404, "/_localaws/health"},
		"POST /_localaws/health":              {404, "/_localaws/health"},
	} {
		method, path, _ := strings.Cut(request, " ")
		if got, body := do(t, method, url+path, nil, nil); got != want.status || !strings.Contains(body, want.has) {
			t.Errorf("%s: %d %s, want %d with %s", request, got, body, want.status, want.has)
		}
	}
	if status, body := do(t, http.MethodPost, url+"/_localaws/reset?table=records", nil, nil); status != http.StatusNoContent {
		t.Errorf("reset: %d %s", status, body)
	}
	if status, body := do(t, http.MethodGet, url+"/_localaws/tables/records/items", nil, nil); status != http.StatusOK || body != "[]\n" {
		t.Errorf("the items of an empty table: %d %q, want []", status, body)
	}
}

func TestCrossOrigin(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"-cors", "http://app"}} {
		url, _ := started(t, args...)
		r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodOptions, url, nil))(t)
		r.Header.Set("Access-Control-Request-Headers", "x-amz-target")
		resp := must.Get(http.DefaultClient.Do(r))(t)
		must.Do(t, resp.Body.Close())
		got, want := resp.Header.Get("Access-Control-Allow-Origin"), strings.Join(args[min(1, len(args)):], "")
		if got != want || want != "" && resp.Header.Get("Access-Control-Allow-Headers") != "x-amz-target" {
			t.Errorf("%q: %v", args, resp.Header)
		}
		exposed, methods := resp.Header.Get("Access-Control-Expose-Headers"), resp.Header.Get("Access-Control-Allow-Methods")
		if want != "" && (!strings.Contains(exposed, "X-Amz-Function-Error") || !strings.Contains(methods, "PUT")) {
			t.Errorf("exposes %q, allows %q", exposed, methods)
		}
	}
}

// A client that asks for gzip checks DynamoDB's checksum of what it gets.
func TestGzip(t *testing.T) {
	t.Parallel()
	url, stack := filled(t)
	put(t, stack, "long", strings.Repeat("x", 10<<10))
	var encodings []string
	c := dynamodb.New(dynamodb.Options{
		Region: defaultRegion, Credentials: aws.CredentialsProviderFunc(local), BaseEndpoint: &url, EnableAcceptEncodingGzip: true,
		HTTPClient: doer(func(r *http.Request) (*http.Response, error) {
			resp, err := http.DefaultClient.Do(r)
			if err == nil {
				encodings = append(encodings, resp.Header.Get("Content-Encoding"))
			}
			return resp, err
		}),
	})
	for range 2 {
		if out := must.Get(c.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("records")}))(t); out.Count != 2 {
			t.Errorf("%d items, want 2", out.Count)
		}
	}
	if want := []string{"gzip", "gzip"}; !reflect.DeepEqual(encodings, want) {
		t.Errorf("answers were %q, want %q", encodings, want)
	}
}

type doer func(*http.Request) (*http.Response, error)

func (f doer) Do(r *http.Request) (*http.Response, error) { return f(r) }

// The two rules of 60 s are AWS's, unless you switch them off.
func TestNoPurgeDelay(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"-no-purge-delay"}} {
		url, stack := filled(t, args...)
		queue := url + "/000000000000/jobs"
		var codes []string
		note := func(err error) {
			if e, ok := errors.AsType[smithy.APIError](err); ok {
				codes = append(codes, e.ErrorCode())
			}
		}
		for range 2 {
			_, err := stack.SQS.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &queue})
			note(err)
		}
		must.Get(stack.SQS.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &queue}))(t)
		_, err := stack.SQS.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("jobs")})
		note(err)
		if want := 2 * (1 - len(args)); len(codes) != want {
			t.Errorf("%q: errors %q, want %d", args, codes, want)
		}
	}
}

// A shell evaluates what localaws env prints.
func TestEnv(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	must.Do(t, printEnv([]string{"-addr", "0.0.0.0:4577"}, &out, io.Discard))
	said, err := exec.CommandContext(t.Context(), "sh", "-c", out.String()+"\n"+`echo "$AWS_ENDPOINT_URL $AWS_REGION $AWS_DEFAULT_REGION $AWS_ACCESS_KEY_ID$AWS_SECRET_ACCESS_KEY"`).Output()
	if want := "http://127.0.0.1:4577 us-east-1 us-east-1 locallocal\n"; err != nil || string(said) != want {
		t.Errorf("%q, %v, want %q", said, err, want)
	}
	out.Reset()
	must.Do(t, printEnv([]string{"--json"}, &out, io.Discard))
	var all map[string]string
	if err := json.Unmarshal(out.Bytes(), &all); err != nil || all["AWS_ENDPOINT_URL"] != "http://127.0.0.1:4566" {
		t.Errorf("%s: %v", &out, err)
	}
	out.Reset()
	must.Do(t, printEnv([]string{"-region", "eu-west-1"}, &out, io.Discard))
	if want := "AWS_REGION=eu-west-1\nexport AWS_DEFAULT_REGION=eu-west-1\n"; !strings.Contains(out.String(), want) {
		t.Errorf("%s, want %s", &out, want)
	}
	for _, args := range [][]string{{"x"}, {"-addr", "nowhere"}, {"-nothing"}, {"-region", "Frankfurt"}, {"-region", ""}} {
		if err := printEnv(args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
