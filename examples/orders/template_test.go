package orders

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func TestTemplate(t *testing.T) {
	text := readTemplate(t)
	problems, checked := checkTemplate([]byte(text), dynamostore.TTLAttribute)
	for _, p := range problems {
		t.Error(p)
	}
	// A parser that understands nothing finds no problem.
	if want := 2; checked != want {
		t.Errorf("checked %d event source mappings, want %d", checked, want)
	}
}

func TestTemplateCheckFindsBrokenCopies(t *testing.T) {
	good := readTemplate(t)
	for _, tt := range []struct{ name, old, broken, want string }{
		{"visibility timeout below 6 x timeout", "VisibilityTimeout: 180", "VisibilityTimeout: 179", "6 x"},
		{"timeout raised alone", "Timeout: 30 ", "Timeout: 31 ", "6 x"},
		{"visibility timeout without the window", "BatchSize: 10\n", "BatchSize: 10\n            MaximumBatchingWindowInSeconds: 5\n", "6 x"},
		{"large batch without a window", "BatchSize: 10\n", "BatchSize: 100\n", "window"},
		{"no partial batch response", "FunctionResponseTypes: [ReportBatchItemFailures]", "Tags: {}", "ReportBatchItemFailures"},
		{"destination, which SQS does not use", "BatchSize: 10\n", "BatchSize: 10\n            DestinationConfig: {OnFailure: {}}\n", "DestinationConfig"},
		{"provisioned pollers beside ScalingConfig", "BatchSize: 10\n", "BatchSize: 10\n            ProvisionedPollerConfig: {}\n", "ProvisionedPollerConfig"},
		{"no maximum concurrency", "ScalingConfig:", "Unrelated:", "MaximumConcurrency"},
		{"low maxReceiveCount", "maxReceiveCount: 5", "maxReceiveCount: 3", "maxReceiveCount"},
		{"maxReceiveCount as a string", "maxReceiveCount: 5", `maxReceiveCount: "5"`, "maxReceiveCount"},
		{"handlers longer than all receives together", "Default: 600", "Default: 900", "longest handler"},
		{"other TTL attribute", "AttributeName: expiration", "AttributeName: ttl", "TTL"},
		{"TTL off", "AttributeName: expiration, Enabled: true", "AttributeName: expiration, Enabled: false", "TTL"},
		{"other key", "KeySchema: [{AttributeName: id,", "KeySchema: [{AttributeName: pk,", "key"},
		{"table deleted with the stack", "  DedupTable:\n    Type: AWS::DynamoDB::Table\n    DeletionPolicy: !If [Keeps, Retain, Delete]", "  DedupTable:\n    Type: AWS::DynamoDB::Table\n    DeletionPolicy: Delete", "Retain"},
		{"ledger deleted with the stack", "  LedgerTable:\n    Type: AWS::DynamoDB::Table\n    DeletionPolicy: !If [Keeps, Retain, Delete]", "  LedgerTable:\n    Type: AWS::DynamoDB::Table\n    DeletionPolicy: Delete", "Retain"},
		{"dead-letter queue deleted with the stack", "  OrdersDLQ:\n    Type: AWS::SQS::Queue\n    DeletionPolicy: !If [Keeps, Retain, Delete]", "  OrdersDLQ:\n    Type: AWS::SQS::Queue\n    DeletionPolicy: Delete", "Retain"},
		{"kept also without Keep", "  OrdersFifoDLQ:\n    Type: AWS::SQS::Queue\n    DeletionPolicy: !If [Keeps, Retain, Delete]", "  OrdersFifoDLQ:\n    Type: AWS::SQS::Queue\n    DeletionPolicy: Retain", "Delete"},
		{"not kept by default", "  Keep:\n    Type: String\n    Default: \"true\"", "  Keep:\n    Type: String\n    Default: \"false\"", "by default"},
		{"kept the wrong way round", "!If [Keeps, Retain, Delete]", "!If [Keeps, Delete, Retain]", "Retain"},
		{"condition the wrong way round", "Keeps: !Equals [!Ref Keep, \"true\"]", "Keeps: !Equals [!Ref Keep, \"false\"]", "Keeps"},
		{"deletion protection always", "DeletionProtectionEnabled: !If [Keeps, true, false]", "DeletionProtectionEnabled: true", "protection"},
		{"no deletion protection", "DeletionProtectionEnabled: !If [Keeps, true, false]", "DeletionProtectionEnabled: false", "protection"},
		{"table replaced by an update", "UpdateReplacePolicy: Retain", "UpdateReplacePolicy: Delete", "UpdateReplacePolicy"},
		{"shorter retention of the dead-letter queue", "MessageRetentionPeriod: 1209600", "MessageRetentionPeriod: 345600", "retention"},
		{"FIFO queue with a standard dead-letter queue", "deadLetterTargetArn: !GetAtt OrdersFifoDLQ.Arn", "deadLetterTargetArn: !GetAtt OrdersDLQ.Arn", "same kind"},
		{"no kill switch", "            Enabled: !Ref Enabled\n", "", "Enabled"},
		{"no alarm on the dead-letter queue", "MetricName: ApproximateNumberOfMessagesVisible", "MetricName: NumberOfMessagesSent", "OrdersDLQAlarm is"},
		{"no alarm on crashes", "  OrdersErrorsAlarm:\n    Type: AWS::CloudWatch::Alarm", "  OrdersErrorsAlarm:\n    Type: AWS::SNS::Topic", "no alarm OrdersErrorsAlarm"},
		{"an alarm that nobody wants", "  OrdersErrorsAlarm:", "  OrdersFailuresAlarm:", "OrdersFailuresAlarm is"},
		{"dead letters that are in flight not counted", "visible + hidden", "visible", "OrdersDLQAlarm is"},
		{"earlier", "DatapointsToAlarm: 3", "DatapointsToAlarm: 2", "OrdersAgeAlarm is"},
		{"messages behind a hidden one of their group", "AND hidden == 0 ", "", "OrdersFifoUnreadAlarm is"},
		{"alarm that never ends", "updateItem", "batch", "DedupTableAlarm is"},
		{"description without a section", "runbook.md#dlq", "runbook.md", "section of the runbook"},
		{"description of two sentences", "There are messages", "Look. There are messages", "one sentence"},
		{"long description", "There are messages", strings.Repeat("There are messages ", 60), "one sentence"},
		{"alarm where all is well", "GreaterThanThreshold", "LessThanThreshold", "comparison"},
		{"alarm without data", "TreatMissingData: notBreaching", "TreatMissingData: breaching", "or no data"},
		{"nobody is told", "AlarmActions", "OKActions", "actions"},
		{"percentile as a statistic", "ExtendedStatistic: p99", "Statistic: p99", "extended statistic"},
		{"two statistics", "ExtendedStatistic: p99", "ExtendedStatistic: p99\n      Statistic: Sum", "extended statistic"},
		{"other period", "      Period: 60", "      Period: 300", "period 300"},
		{"other period in an expression", "Stat: Maximum, Period: 60", "Stat: Maximum, Period: 300", "periods of 60 s"},
		{"two results", "ReturnData: false", "ReturnData: true", "nothing else"},
		{"too many metrics", "        - {Id: reads,", strings.Repeat("        - {Id: more, ReturnData: false, MetricStat: {Period: 60}}\n", 5) + "        - {Id: reads,", "more than 10"},
		{"a metric that AWS does not have", "MetricName: Throttles", "MetricName: ThrottledInvocations", "neither AWS"},
		{"a metric that DynamoDB has by operation", "MetricName: ReadThrottleEvents", "MetricName: ThrottledRequests", "neither AWS"},
		{"a metric that package emf does not have", "MetricName: Abandoned", "MetricName: Stuck", "neither AWS"},
		{"a metric of another kind of resource", "{Name: LogGroupName, Value: !Ref OrdersLogGroup}", "{Name: LogGroupName, Value: !Ref OrdersQueue}", "kinds"},
		{"a metric of the function in the place of its mapping", "Value: !Ref OrdersFunctionOrders", "Value: !Ref OrdersFunction", "kinds"},
		{"a metric of the other queue", "{Name: service, Value: !Ref OrdersFunction}", "{Name: service, Value: !Ref OrdersFifoFunction}", "kinds"},
		{"slow by another timeout", "Threshold: 24000", "Threshold: 27000", "want 24000"},
		{"expiring by another retention", "MessageRetentionPeriod: 345600", "MessageRetentionPeriod: 259200", "want 129600"},
		{"age by another visibility timeout", "Default: 900", "Default: 600", "AgeSeconds is 600"},
		{"invocations longer than the alarm waits", "Timeout: 30 ", "Timeout: 300 ", "not longer than the timeout"},
		{"metrics dropped by the log level", "ApplicationLogLevel: INFO", "ApplicationLogLevel: WARN", "would be dropped"},
		{"metrics of one function dropped", "LogGroup: !Ref OrdersLogGroup", "LogGroup: !Ref OrdersLogGroup\n        ApplicationLogLevel: ERROR", "OrdersFunction: application log level"},
		{"no dashboard", "{\"widgets\": [", "{", "Dashboard: "},
		{"a misspelt field of the dashboard", "\"title\"", "\"name\"", "unknown field"},
		{"widgets on top of each other", "\"x\": 6, \"y\": 6,", "\"x\": 5, \"y\": 6,", "overlaps"},
		{"widget beyond the grid", "\"x\": 18, \"y\": 30,", "\"x\": 19, \"y\": 30,", "grid"},
		{"widget of another region", "\"region\": \"${AWS::Region}\"", "\"region\": \"us-east-1\"", "region"},
		{"alarm that is not on the dashboard", "\"${OrdersAgeAlarm.Arn}\", ", "", "OrdersAgeAlarm is not on it"},
		{"metric of an alarm that is not on the dashboard", "\"EMFParsingErrors\"", "\"IncomingBytes\"", "AWS/Logs EMFParsingErrors LogGroupName OrdersLogGroup of OrdersEMFAlarm is not on it"},
		{"metric of the function that is not on the dashboard", "[\"sqsonce\", \"NotStarted\"", "[\"sqsonce\", \"Done\"", "sqsonce NotStarted service OrdersFunction queue OrdersQueue.QueueName is not on it"},
		{"a row of the dashboard without a value", "\"FunctionName\", \"${OrdersFunction}\"", "\"${OrdersFunction}\"", "neither AWS"},
		{"more actions than needed", "Action: [dynamodb:UpdateItem]", "Action: [dynamodb:*]", "dynamodb:*"},
		{"an action is missing", "dynamodb:PartiQLInsert, ", "", "PartiQLInsert"},
		{"an outbox whose events expire", "StreamSpecification: {StreamViewType: KEYS_ONLY}", "StreamSpecification: {StreamViewType: KEYS_ONLY}\n      TimeToLiveSpecification: {AttributeName: created_at, Enabled: true}", "delete events"},
		{"an outbox with another key", "KeyType: RANGE", "KeyType: HASH", "want pk and seq"},
		{"payloads in the stream", "StreamViewType: KEYS_ONLY", "StreamViewType: NEW_IMAGE", "want KEYS_ONLY"},
		{"an outbox deleted with the stack", "  OutboxTable:\n    Type: AWS::DynamoDB::Table\n    DeletionPolicy: !If [Keeps, Retain, Delete]", "  OutboxTable:\n    Type: AWS::DynamoDB::Table\n    DeletionPolicy: Delete", "Retain"},
		{"a relay without time", "      Timeout: 60\n", "", "want 60"},
		{"a relay to the standard queue", "QUEUE_URL: !Ref OrdersFifoQueue", "QUEUE_URL: !Ref OrdersQueue", "a FIFO queue"},
		{"a relay of another outbox", "OUTBOX: orders", "OUTBOX: invoices", "filter is"},
		{"deletes as doorbells", `"eventName": ["INSERT"]`, `"eventName": ["INSERT", "REMOVE"]`, "filter is"},
		{"a filter on what records do not have", `{"eventName": ["INSERT"]`, `{"event": ["INSERT"]`, "unknown field"},
		{"an event in two invocations", "ParallelizationFactor: 1", "ParallelizationFactor: 2", "factor 2"},
		{"a record that blocks its shard for a day", "            MaximumRetryAttempts: 5", "            MaximumRetryAttempts: -1", "retries -1"},
		{"only what is committed from now on", "StartingPosition: TRIM_HORIZON", "StartingPosition: LATEST", "LATEST"},
		{"no sweep", "Schedule: rate(1 minute)", "Schedule: rate(1 hour)", "want rate(1 minute)"},
		{"a sweep that nothing stops", "State: !If [RelayRuns, ENABLED, DISABLED]", "State: ENABLED", "which Relays can stop"},
		{"a line that the relay does not write", `FilterPattern: '{ $.message = "outbox: swept" }'`, `FilterPattern: '{ $.message = "outbox swept" }'`, "want the line"},
		{"a metric that no filter makes", "MetricName: OutboxHalted, MetricValue", "MetricName: OutboxStopped, MetricValue", "neither AWS"},
		{"nobody knows of a relay that does not run", "TreatMissingData: breaching", "TreatMissingData: notBreaching", "OutboxAgeAlarm is"},
		{"a relay that may not delete", ", dynamodb:BatchWriteItem", "", "OutboxRelayRole: allows"},
		{"deprecated runtime", "Runtime: provided.al2023", "Runtime: go1.x", "provided.al2023"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(good, tt.old, tt.broken, 1)
			if text == good {
				t.Fatalf("the template does not hold %q", tt.old)
			}
			problems, _ := checkTemplate([]byte(text), dynamostore.TTLAttribute)
			if !strings.Contains(strings.Join(problems, "\n"), tt.want) {
				t.Errorf("got problems %q, want one about %q", problems, tt.want)
			}
		})
	}
}

func TestTemplateCheckOfOtherText(t *testing.T) {
	for _, text := range []string{"", "{}", "resources: {}", "- a list"} {
		if problems, checked := checkTemplate([]byte(text), dynamostore.TTLAttribute); checked != 0 || len(problems) == 0 {
			t.Errorf("%q: checked %d, problems %q; want 0 and at least one", text, checked, problems)
		}
	}
}

// TestTemplateActions runs the function behind its mapping through success, failure and reject, and compares the calls that
// were made with the role: it must allow these actions and no others.
func TestTemplateActions(t *testing.T) {
	inMemory(t)
	synctest.Test(t, func(t *testing.T) {
		handler, stack := newHandler(t, "", func(o *localstack.Options) {
			o.Queues = []localstack.Queue{{Name: "orders"}}
		})
		url := stack.QueueURL["orders"]
		for _, body := range []string{
			`{"id":"ord-1/placed","account":"acct-1","amount":250}`,
			`{"id":"ord-2/placed","account":"","amount":250}`, // fails: DynamoDB refuses an empty key
			`not json`, // rejected
		} {
			if _, err := stack.SQS.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}); err != nil {
				t.Fatal(err)
			}
		}
		f, err := lambda.Wrap(handler, func(o *lambda.Options) {
			o.Client, o.DeadLetterQueue = stack.SQS, stack.QueueURL["orders-dlq"]
			// The default is random: with it the failing message may have its last receive within the test.
			o.Backoff = func(int) time.Duration { return time.Minute }
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		err = esm.Run(ctx, stack.SQS, esm.Config{
			QueueURL: url, ReportBatchItemFailures: true, FunctionTimeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler),
		}, func(ctx context.Context, event []byte) ([]byte, error) {
			var e events.SQSEvent
			if err := json.Unmarshal(event, &e); err != nil {
				return nil, err
			}
			r, err := f(ctx, e)
			if err != nil {
				return nil, err
			}
			return json.Marshal(r)
		})
		if err != nil {
			t.Fatal(err)
		}
		if dead := stack.MemSQS().Messages("orders-dlq"); len(dead) != 1 {
			t.Fatalf("%d messages in the dead-letter queue, want the one that is not JSON", len(dead))
		}

		used := []string{
			"logs:CreateLogStream", "logs:PutLogEvents", "xray:PutTelemetryRecords", "xray:PutTraceSegments", // by Lambda itself
			"dynamodb:GetItem", "dynamodb:PartiQLInsert", "dynamodb:PartiQLUpdate", // by the store's group commit, which needs more deliveries at once
		}
		for _, service := range []struct {
			prefix string
			calls  []fault.Call
		}{{"sqs:", stack.MemSQS().Calls()}, {"dynamodb:", stack.MemDynamoDB().Calls()}} {
			for _, c := range service.calls {
				used = append(used, service.prefix+action(c.Op))
			}
		}
		slices.Sort(used)
		used = slices.DeleteFunc(slices.Compact(used), func(a string) bool {
			// The setup of the test.
			return strings.Contains(a, "Create") && !strings.HasPrefix(a, "logs:") || strings.Contains(a, "Describe") || strings.Contains(a, "UpdateTimeToLive")
		})
		if !slices.Equal(used, actions) {
			t.Errorf("used %v\nallowed %v", used, actions)
		}
	})
}

// action returns the action that an operation needs. SQS's batch operations need the action of the single operation; a
// transaction and a batch of statements need the action of each write.
func action(op string) string {
	switch op {
	case "TransactWriteItems":
		return "UpdateItem"
	case "BatchExecuteStatement":
		return "PartiQLInsert"
	}
	return strings.TrimSuffix(op, "Batch")
}

func readTemplate(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
