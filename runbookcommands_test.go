package sqsonce_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/localstack"
)

// night is what the commands of the runbook find: a queue with a message; in its dead-letter queue a copy that a host sent, and a
// message that SQS moved; and the record of an event whose owner crashed. The server is that of the command localaws.
type night struct {
	*localstack.Stack
	dir, aws string
	page     string
}

const nightKey = "orders|order-42" // of the record, and of the host's copy

func startNight(t *testing.T) *night {
	t.Helper()
	n := &night{dir: t.TempDir()}
	stack, err := localstack.Start(t.Context(), func(o *localstack.Options) {
		o.Queues, o.Tables, o.HTTP = []localstack.Queue{{Name: "orders", Attributes: map[string]string{"VisibilityTimeout": "0"}}}, []string{"dedup"}, true
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stack.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	n.Stack = stack
	n.page = strings.ReplaceAll(readText(t, "docs/runbook.md"), "https://sqs.eu-west-1.amazonaws.com/111122223333/orders", stack.QueueURL["orders"])

	n.send(t, "orders", "moved", nil)
	for range 6 { // the sixth receive moves it
		if _, err := stack.SQS.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(stack.QueueURL["orders"])}); err != nil {
			t.Fatal(err)
		}
	}
	n.send(t, "orders-dlq", "sent by a host", map[string]string{sqsonce.AttrEventKey: nightKey, sqsonce.AttrRejectReason: "nothing to charge"})
	n.send(t, "orders", "waiting", nil)
	n.crash(t)
	return n
}

func (n *night) send(t *testing.T, queue, body string, attributes map[string]string) {
	t.Helper()
	in := &sqs.SendMessageInput{
		QueueUrl: aws.String(n.QueueURL["orders"] + strings.TrimPrefix(queue, "orders")), MessageBody: &body,
		MessageAttributes: map[string]sqstypes.MessageAttributeValue{},
	}
	for name, value := range attributes {
		in.MessageAttributes[name] = sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(value)}
	}
	if _, err := n.SQS.SendMessage(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// crash writes the record that a process has left which died in the handler a minute ago.
func (n *night) crash(t *testing.T) {
	t.Helper()
	number := func(n int64) types.AttributeValue { return &types.AttributeValueMemberN{Value: fmt.Sprint(n)} }
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	died := time.Now().Add(-time.Minute)
	_, err := n.DynamoDB.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("dedup"), Item: map[string]types.AttributeValue{
		"id": text("billing#" + nightKey), "status": text("INPROGRESS"), "owner": text("dead"), "fence": number(died.UnixMilli()), "attempts": number(1),
		"in_progress_expiration": number(died.UnixMilli()), "expiration": number(died.Add(time.Hour).Unix()),
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// once handles the event with a record.
func (n *night) once(t *testing.T, h sqsonce.Handler) {
	t.Helper()
	store, err := dynamostore.New(n.DynamoDB, "dedup")
	if err != nil {
		t.Fatal(err)
	}
	once, err := dedup.New(store, "billing")
	if err != nil {
		t.Fatal(err)
	}
	m := &sqsonce.Message{ID: "1", Attributes: map[string]sqsonce.Attribute{sqsonce.AttrEventKey: {Type: "String", String: nightKey}}}
	if err := once.Handler(h)(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

var (
	consoleBlock = regexp.MustCompile("(?ms)^```console\n(.*?)^```")
	settingLine  = regexp.MustCompile(`(?m)^\$ (?:export )?[A-Z_]+=[^$\n]*\n`)
	promptLine   = regexp.MustCompile(`(?m)^\$ `)
)

// run runs the commands of a section, or of some of its blocks, after the settings of the first section, in one shell. It returns
// what they print.
func (n *night) run(t *testing.T, section string, blocks ...int) (string, error) {
	t.Helper()
	sections := runbookSections(n.page)
	settings := strings.Join(settingLine.FindAllString(sections["first"], -1), "")
	script := "aws() { '" + n.aws + "' --endpoint-url " + n.URL + ` "$@"; }` + "\n" + settings
	for i, m := range consoleBlock.FindAllStringSubmatch(sections[section], -1) {
		if blocks == nil || slices.Contains(blocks, i) {
			script += m[1]
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", promptLine.ReplaceAllString(script, ""))
	cmd.Dir = n.dir
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_CONFIG_FILE=/dev/null",
		"AWS_SHARED_CREDENTIALS_FILE=/dev/null", "PYTHONUTF8=1", "USER=test")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	return string(out) + stderr.String(), err
}

// Each command of the runbook is run, in the order of its section. What the sections say of them is so.
func TestRunbookCommands(t *testing.T) {
	t.Parallel()
	cli := testserver.LocalStack.Program(t, "aws")
	n, commands := startNight(t), 0
	n.aws = cli
	want := map[string][]string{
		"first":          {"ApproximateNumberOfMessagesNotVisible", "maxReceiveCount"},
		"dlq":            {"sent by a host", "nothing to charge", "moved", "DeadLetterQueueSourceArn"},
		"store-errors":   {"ACTIVE"},
		"table":          {"PAY_PER_REQUEST", "ACTIVE"},
		"no-dlq":         {"orders-dlq", "maxReceiveCount", n.QueueURL["orders"] + `"`},
		"dlq-send":       {"orders-dlq"},
		"worker-stopped": {n.QueueURL["orders"]},
		"late-write":     {`"dead"`},
		"expiring":       {""},
		"one-record":     {"INPROGRESS", `"dead"`, `"operator/`},
		"redrive":        {"ReceiptHandle", "TaskHandle", `"Status": "COMPLETED"`, `"ApproximateNumberOfMessagesMoved": 1`},
	}
	last := []string{"expiring", "one-record", "redrive"} // they change something
	for section, text := range runbookSections(n.page) {
		found := len(regexp.MustCompile(`(?m)^\$ aws |\$\(aws `).FindAllString(text, -1))
		if commands += found; found > 0 && want[section] == nil {
			t.Errorf("#%s: its commands are not run", section)
		}
		if found > 0 && !slices.Contains(last, section) {
			last = append([]string{section}, last...)
		}
	}
	if commands < 15 {
		t.Errorf("%d commands, want at least 15: were they found?", commands)
	}
	before := n.messages(t, "orders-dlq")
	for _, section := range last {
		if section == "redrive" {
			n.wantVisible(t, "orders-dlq", len(before)) // other sections look at them
			n.page = strings.ReplaceAll(n.page, "--visibility-timeout 120 ", "--visibility-timeout 20 ")
			const look = 0 // one message is looked at and kept: it is hidden, and is to be moved all the same
			if out, err := n.run(t, section, look); err != nil || !strings.Contains(out, "ReceiptHandle") {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		out, err := n.run(t, section)
		if err != nil {
			t.Fatalf("#%s: %v\n%s", section, err, out)
		}
		for _, text := range want[section] {
			if !strings.Contains(out, text) {
				t.Errorf("#%s: no %q in\n%s", section, text, out)
			}
		}
	}

	retention, err := n.SQS.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(n.QueueURL["orders"]), AttributeNames: []sqstypes.QueueAttributeName{"MessageRetentionPeriod"},
	})
	if err != nil || retention.Attributes["MessageRetentionPeriod"] != "1209600" {
		t.Errorf("retention: %v, %v", retention, err)
	}
	n.checkRecord(t)
	// One message was deleted by its receipt handle, and is in the file; the other was redriven, and is new.
	kept, err := os.ReadFile(filepath.Join(n.dir, "deleted.json"))
	if err != nil || !strings.Contains(string(kept), "ReceiptHandle") {
		t.Errorf("deleted.json: %s, %v", kept, err)
	}
	if left := n.messages(t, "orders-dlq"); len(left) != 0 {
		t.Errorf("%d messages are left in the dead-letter queue", len(left))
	}
	after := n.messages(t, "orders")
	for body, id := range before {
		if inFile := strings.Contains(string(kept), body); inFile == (after[body] != "") || after[body] == id {
			t.Errorf("%q: ID %q before, %q after the redrive, in the file: %t", body, id, after[body], inFile)
		}
	}
	if len(before) != 2 || len(after) != 2 {
		t.Errorf("%d messages before, want 2; %d after, want the one that waited and one more", len(before), len(after))
	}
}

// checkRecord compares what is done to a record with what the section says.
func (n *night) checkRecord(t *testing.T) {
	t.Helper()
	const reopen, complete = 1, 2 // of the section's blocks
	n.once(t, func(context.Context, *sqsonce.Message) error {
		t.Error("the event runs after it was marked as done")
		return nil
	})
	n.crash(t)
	if out, err := n.run(t, "one-record", reopen); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ran := false
	n.once(t, func(context.Context, *sqsonce.Message) error {
		ran = true
		for _, block := range []int{reopen, complete} {
			if out, err := n.run(t, "one-record", block); err == nil || !strings.Contains(out, "ConditionalCheckFailedException") {
				t.Errorf("%v\n%s\nwant that a live lease is refused", err, out)
			}
		}
		return nil
	})
	if !ran {
		t.Error("the event does not run after its record was reopened")
	}
}

// wantVisible waits until so many messages of a queue are visible.
func (n *night) wantVisible(t *testing.T, queue string, want int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		out, err := n.SQS.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
			QueueUrl: aws.String(n.QueueURL[queue]), AttributeNames: []sqstypes.QueueAttributeName{"ApproximateNumberOfMessages"},
		})
		switch {
		case err != nil:
			t.Fatal(err)
		case out.Attributes["ApproximateNumberOfMessages"] == strconv.Itoa(want):
			return
		case time.Now().After(end):
			t.Fatalf("%s messages of %s are visible, want %d", out.Attributes["ApproximateNumberOfMessages"], queue, want)
		}
	}
}

// messages are the IDs of a queue's messages by their bodies.
func (n *night) messages(t *testing.T, queue string) map[string]string {
	t.Helper()
	ids := map[string]string{}
	for _, m := range n.MemSQS().Messages(queue) {
		ids[m.Body] = m.ID
	}
	return ids
}

// A redrive without a destination fails at a message that a host sent.
func TestRunbookRedriveNeedsADestination(t *testing.T) {
	t.Parallel()
	if want := `start-message-move-task --source-arn "$DLQ_ARN" --destination-arn "$QUEUE_ARN"`; !strings.Contains(readText(t, "docs/runbook.md"), want) {
		t.Errorf("docs/runbook.md has no %s", want)
	}
	n, source := startNight(t), aws.String("arn:aws:sqs:us-east-1:000000000000:orders-dlq")
	if _, err := n.SQS.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: source}); err != nil {
		t.Fatal(err)
	}
	tasks, err := n.SQS.ListMessageMoveTasks(t.Context(), &sqs.ListMessageMoveTasksInput{SourceArn: source})
	if err != nil || len(tasks.Results) != 1 || aws.ToString(tasks.Results[0].FailureReason) != "CouldNotDetermineMessageSource" {
		t.Errorf("got %+v, %v, want a task that has failed", tasks, err)
	}
}
