//go:build unix

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox/dynamooutbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack"
)

// compiled are programs that tests share. They are of other modules: a copy of this one alone cannot build them.
var compiled = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "localaws"); err != nil {
		return "", err
	}
	compiledIn = dir
	flags, err := imageFlags()
	if err != nil {
		return "", err
	}
	for _, b := range [][3]string{
		{"../../../examples", "orders", "./orders/lambda"},
		{"../../../examples", "relay", "./orders/outboxrelay"},
		{"../../runtimeapi", "any", "./internal/testbootstrap"},
		{".", "localaws", "."},
	} {
		cmd := exec.Command("go", "build", "-tags", "lambda.norpc", "-ldflags", flags, "-o", filepath.Join(dir, b[1]), b[2])
		cmd.Dir, cmd.Env = b[0], append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go build %s: %w\n%s", b[2], err, out)
		}
	}
	return dir, nil
})

var compiledIn string

func program(t *testing.T, name string) string {
	t.Helper()
	if _, err := os.Stat("../../../examples/go.mod"); err != nil {
		t.Skip("only in the repository: the examples are not in this module")
	}
	return filepath.Join(must.Get(compiled())(t), name)
}

func TestMain(m *testing.M) {
	code := m.Run()
	if compiledIn != "" {
		_ = os.RemoveAll(compiledIn)
	}
	os.Exit(code)
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for begin := time.Now(); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begin) > 2*time.Minute {
			t.Fatalf("not within 2 min: %s", what)
		}
	}
}

func order(id string) string {
	return fmt.Sprintf(`{"id":%q,"type":"order.placed","account":"alice","order":"ord-1","amount":1200,"currency":"EUR","at":"2026-01-02T03:04:05Z"}`, id)
}

func balance(t *testing.T, s *localstack.Stack) string {
	t.Helper()
	out := must.Get(s.DynamoDB.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("LedgerTable"), Key: map[string]ddbtypes.AttributeValue{"account": &ddbtypes.AttributeValueMemberS{Value: "alice"}},
	}))(t)
	b, _ := out.Item["balance"].(*ddbtypes.AttributeValueMemberN)
	if b == nil {
		return ""
	}
	return b.Value
}

// orderMessage is a message of the event ord-1/placed.
func orderMessage(queueURL string) *sqs.SendMessageInput {
	text := func(s string) sqstypes.MessageAttributeValue {
		return sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: &s}
	}
	return &sqs.SendMessageInput{
		QueueUrl: &queueURL, MessageBody: aws.String(order("ord-1/placed")),
		MessageAttributes: map[string]sqstypes.MessageAttributeValue{"event-id": text("ord-1/placed"), "event-source": text("orders")},
	}
}

func isEmpty(t *testing.T, url, queue string) bool {
	t.Helper()
	_, body := do(t, http.MethodGet, url+"/_localaws/queues/"+queue+"/messages", nil, nil)
	return strings.TrimSpace(body) == "[]"
}

// The whole of README's template runs: a message sent twice is booked once, and an event of the outbox goes through its stream, the relay
// and the FIFO queue.
func TestTemplateRuns(t *testing.T) {
	t.Parallel()
	url, said := started(t, "-template", "../../../template.yaml", "-bootstrap", "OrdersFunction="+program(t, "orders"),
		"-bootstrap", "OrdersFifoFunction="+program(t, "orders"), "-bootstrap", "OutboxRelayFunction="+program(t, "relay"))
	if strings.Contains(said, "does not run") {
		t.Errorf("a function does not run: %s", said)
	}
	s := connected(t, url)
	send := func() { must.Get(s.SQS.SendMessage(t.Context(), orderMessage(url+"/000000000000/local-orders")))(t) }
	send()
	eventually(t, "the message is booked", func() bool { return balance(t, s) == "1200" })
	send()
	eventually(t, "both messages are deleted", func() bool { return isEmpty(t, url, "local-orders") })

	box := must.Get(dynamooutbox.New(s.DynamoDB, "OutboxTable", "orders", "orders"))(t)
	put := must.Get(box.Put(fifo.Event{ID: "ord-2/placed", Group: "alice", Body: order("ord-2/placed")}, 1))(t)
	must.Get(s.DynamoDB.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: put.TableName, Item: put.Item}))(t)
	eventually(t, "the event is booked", func() bool { return balance(t, s) != "1200" })
	if got := balance(t, s); got != "2400" {
		t.Errorf("balance %s, want 2400", got)
	}
}

// The function of docs/lambda.md runs behind its queue, with the orders handler, whose ledger comes from a configuration.
func TestFunctionTemplateRuns(t *testing.T) {
	t.Parallel()
	ledger := written(t, "local.yaml", "tables: {LedgerTable: {key: account}}")
	url, _ := started(t, "-template", "../../../deploy/function.yaml", "-config", ledger, "-bootstrap", "Function="+program(t, "orders"),
		"-env", "LEDGER_TABLE=LedgerTable", "-param", "AlarmEmail=on-call@example.com")
	s := connected(t, url)
	for range 2 {
		must.Get(s.SQS.SendMessage(t.Context(), orderMessage(url+"/000000000000/Orders")))(t)
		eventually(t, "the message is deleted", func() bool { return isEmpty(t, url, "Orders") })
		if got := balance(t, s); got != "1200" {
			t.Errorf("balance %s, want 1200", got)
		}
	}
}

func lambdaClient(url string, change ...func(*lambda.Options)) *lambda.Client {
	return lambda.New(lambda.Options{Region: defaultRegion, Credentials: aws.CredentialsProviderFunc(local), BaseEndpoint: &url}, change...)
}

func code(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorCode()
	}
	return fmt.Sprint(err)
}

// Tools find functions and mappings as on AWS, invoke, pause and resume them.
func TestLambdaAPI(t *testing.T) {
	t.Parallel()
	file := written(t, "local.yaml", `
queues: {jobs: {VisibilityTimeout: 60}}
tables: {items: {key: id, stream: NEW_IMAGE}}
functions:
  any:
    bootstrap: `+program(t, "any")+`
    Timeout: 30
    Concurrency: 3
    Environment: {COLOR: green}
    Events:
      - {queue: jobs, BatchSize: 5, FunctionResponseTypes: [ReportBatchItemFailures], FilterCriteria: {Filters: [{Pattern: '{"body":{"a":[1]}}'}]}}
      - {table: items, StartingPosition: LATEST, MaximumRetryAttempts: 2}
  idle: {}
`)
	url, said := started(t, "-config", file, "-env", "SHAPE=round")
	if !strings.Contains(said, "does not run the function idle") {
		t.Errorf("does not say that a function is idle: %s", said)
	}
	ctx, c := t.Context(), lambdaClient(url)
	all := must.Get(c.ListFunctions(ctx, &lambda.ListFunctionsInput{}))(t).Functions
	if len(all) != 2 || *all[0].FunctionName != "any" || all[0].State != lambdatypes.StateActive || all[1].State != lambdatypes.StateInactive {
		t.Errorf("functions: %+v", all)
	}
	f := must.Get(c.GetFunction(ctx, &lambda.GetFunctionInput{FunctionName: all[0].FunctionArn}))(t)
	if *f.Configuration.Timeout != 30 || f.Configuration.Environment.Variables["COLOR"] != "green" || *f.Concurrency.ReservedConcurrentExecutions != 3 {
		t.Errorf("any: %+v", f)
	}
	for event, want := range map[string]string{`{"Do":"getenv","Value":"COLOR"}`: `"Value":"green"`, `{"Do":"getenv","Value":"SHAPE"}`: `"Value":"round"`,
		`{"Do":"getenv","Value":"AWS_ENDPOINT_URL"}`: url, `{"Do":"error","Value":"sold out"}`: `"errorMessage":"sold out"`} {
		out := must.Get(c.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String("any"), Payload: []byte(event)}))(t)
		if failed := strings.Contains(event, "error"); !strings.Contains(string(out.Payload), want) || (out.FunctionError != nil) != failed {
			t.Errorf("%s: %s, error %v, want %s", event, out.Payload, out.FunctionError, want)
		}
	}
	large := []byte(`"` + strings.Repeat("x", maxEvent) + `"`)
	for _, kind := range []lambdatypes.InvocationType{"RequestResponse", "Event", "DryRun"} {
		if _, err := c.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String("any"), InvocationType: kind, Payload: large}); code(err) != "RequestTooLargeException" {
			t.Errorf("an event of more than 6 MB, %s: %v", kind, err)
		}
	}
	if _, err := c.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String("idle")}); code(err) != "InvalidParameterValueException" {
		t.Errorf("an idle function: %v", err)
	}
	if _, err := c.GetFunction(ctx, &lambda.GetFunctionInput{FunctionName: aws.String("nowhere")}); code(err) != "ResourceNotFoundException" {
		t.Errorf("no function: %v", err)
	}
	if status, body := do(t, "POST", url+"/2015-03-31/functions/any/invocations", map[string][]string{"Origin": {"http://elsewhere"}}, strings.NewReader("{}")); status != 403 {
		t.Errorf("a page of another origin: %d %s", status, body)
	}
	if _, err := c.DeleteFunction(ctx, &lambda.DeleteFunctionInput{FunctionName: aws.String("any")}); code(err) != "UnknownOperationException" || !strings.Contains(err.Error(), "ListFunctions") {
		t.Errorf("an operation that is not there: %v", err)
	}

	list := must.Get(c.ListEventSourceMappings(ctx, &lambda.ListEventSourceMappingsInput{FunctionName: aws.String("any")}))(t).EventSourceMappings
	byQueue := must.Get(c.ListEventSourceMappings(ctx, &lambda.ListEventSourceMappingsInput{EventSourceArn: aws.String("arn:aws:sqs:us-east-1:000000000000:jobs")}))(t).EventSourceMappings
	if len(list) != 2 || len(byQueue) != 1 || *byQueue[0].BatchSize != 5 || byQueue[0].FunctionResponseTypes[0] != "ReportBatchItemFailures" || *byQueue[0].State != "Enabled" {
		t.Fatalf("mappings: %+v, of the queue %+v", list, byQueue)
	}
	id := byQueue[0].UUID
	state := func() string {
		return *must.Get(c.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: id}))(t).State
	}
	must.Get(c.UpdateEventSourceMapping(ctx, &lambda.UpdateEventSourceMappingInput{UUID: id, Enabled: aws.Bool(false), BatchSize: aws.Int32(7)}))(t)
	eventually(t, "the mapping is disabled", func() bool { return state() == "Disabled" })
	s := connected(t, url)
	must.Get(s.SQS.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(url + "/000000000000/jobs"), MessageBody: aws.String(`{"a":1}`)}))(t)
	time.Sleep(1500 * time.Millisecond) // longer than a poll
	if got := states(t, url); got["visible"] != 1 {
		t.Errorf("the message of a disabled mapping: %v", got)
	}
	must.Get(c.UpdateEventSourceMapping(ctx, &lambda.UpdateEventSourceMappingInput{UUID: id, Enabled: aws.Bool(true)}))(t)
	eventually(t, "the message was handled", func() bool { return len(states(t, url)) == 0 })
	jobs := aws.String(url + "/000000000000/jobs")
	must.Get(s.SQS.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: jobs, Attributes: map[string]string{"VisibilityTimeout": "29"}}))(t)
	if _, err := c.UpdateEventSourceMapping(ctx, &lambda.UpdateEventSourceMappingInput{UUID: id, BatchSize: aws.Int32(3)}); code(err) != "InvalidParameterValueException" {
		t.Errorf("a visibility timeout below the function's: %v", err)
	}
	must.Get(s.SQS.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: jobs, Attributes: map[string]string{"VisibilityTimeout": "30"}}))(t)
	if _, err := c.UpdateEventSourceMapping(ctx, &lambda.UpdateEventSourceMappingInput{UUID: id, BatchSize: aws.Int32(11)}); code(err) != "InvalidParameterValueException" {
		t.Errorf("a batch that needs a window: %v", err)
	}
}

// A service that is not there is refused by name, with what to do, in the form that its client reads.
func TestOtherServices(t *testing.T) {
	t.Parallel()
	url, _ := started(t)
	for service, want := range map[string]string{"sns": "AWS_ENDPOINT_URL_SNS", "s3": "<Error><Type>", "cloudformation": "-template", "iam": "no permissions", "logs": `"__type"`} {
		header := map[string][]string{"Authorization": {"AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/" + service + "/aws4_request, SignedHeaders=host, Signature=0"}}
		if service == "logs" {
			header["X-Amz-Target"] = []string{"Logs_20140328.PutLogEvents"}
		}
		status, body := do(t, "GET", url+"/some/object", header, nil)
		if status != 400 || !strings.Contains(body, want) || !strings.Contains(body, "does not have "+service) {
			t.Errorf("%s: %d %s, want %s", service, status, body, want)
		}
	}
}

// What Lambda refuses when a mapping is created ends localaws before it serves.
func TestFunctionErrors(t *testing.T) {
	t.Parallel()
	any := program(t, "any")
	for args, want := range map[string]string{
		"-function f=/nowhere":                "function f:",
		"-bootstrap f=" + any:                 "-bootstrap f: no file has such a function",
		"-function f=" + any + " -map f=jobs": "function f: mapping of arn:aws:sqs:us-east-1:000000000000:jobs:",
		"-map f=jobs -queues jobs":            "names the function f, which is not defined",
		"-config " + written(t, "a", "queues: {jobs: {VisibilityTimeout: 5}}\nfunctions: {f: {bootstrap: "+any+", Timeout: 6, Events: [{queue: jobs}]}}"): "visibility timeout is 5 s",
		"-config " + written(t, "b", "queues: {jobs: }\nfunctions: {f: {bootstrap: "+any+", Events: [{queue: jobs, BatchSize: 11}]}}"):                    "BatchSize",
		"-config " + written(t, "c", "tables: {items: {key: id}}\nfunctions: {f: {bootstrap: "+any+", Events: [{table: items}]}}"):                        "table items has no stream",
	} {
		o := must.Get(parse(append([]string{"-addr", "127.0.0.1:0"}, strings.Fields(args)...), io.Discard))(t)
		var out strings.Builder
		if err := run(t.Context(), &out, io.Discard, o); err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("%s: %v, printed %q, want %s", args, err, &out, want)
		}
	}
}

// A function's lines have its name, and it ends when localaws ends, even by a kill.
func TestEndsWithLocalaws(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		cmd := exec.Command(program(t, "localaws"), "-addr", "127.0.0.1:0", "-queues", "jobs", "-function", "worker="+program(t, "any"), "-map", "worker=jobs")
		stdout, stderr := must.Get(cmd.StdoutPipe())(t), must.Get(cmd.StderrPipe())(t)
		must.Do(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		printed := make(chan bool, 1)
		go func() {
			for lines := bufio.NewScanner(stderr); lines.Scan(); {
				if lines.Text() == "[worker] hello" {
					printed <- true
				}
			}
		}()
		url := strings.TrimSpace(must.Get(bufio.NewReader(stdout).ReadString('\n'))(t))
		c := lambdaClient(url)
		out := must.Get(c.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("worker"), Payload: []byte(`{"Do":"print","Value":"hello"}`)}))(t)
		pid := must.Get(strconv.Atoi(regexp.MustCompile(`"PID":(\d+)`).FindStringSubmatch(string(out.Payload))[1]))(t)
		select {
		case <-printed:
		case <-time.After(2 * time.Minute):
			t.Fatal("the function's line was not printed within 2 min")
		}
		must.Do(t, cmd.Process.Signal(s))
		err := cmd.Wait()
		if (err == nil) != (s == syscall.SIGTERM) {
			t.Errorf("after %s: %v", s, err)
		}
		eventually(t, "the function has ended after "+s.String(), func() bool { return ended(pid) })
	}
}

// ended reports whether a process has ended, maybe as one that its new parent has not waited for.
func ended(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return syscall.Kill(pid, 0) != nil || err == nil && strings.Contains(string(stat), ") Z ")
}
