package orders

import (
	"os"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/dedup/dynamostore"
)

func TestTemplate(t *testing.T) {
	text := readTemplate(t)
	problems, checked := checkTemplate([]byte(text), dynamostore.TTLAttribute)
	for _, p := range problems {
		t.Error(p)
	}
	// A parse that matches nothing finds nothing wrong.
	if want := 2; checked != want {
		t.Errorf("checked %d event source mappings, want %d", checked, want)
	}
}

func TestTemplateCheckFindsBrokenCopies(t *testing.T) {
	good := readTemplate(t)
	for _, tt := range []struct{ name, old, broken, want string }{
		{"visibility under 6 x timeout", "VisibilityTimeout: 180", "VisibilityTimeout: 179", "6 x"},
		{"timeout raised alone", "Timeout: 30 ", "Timeout: 31 ", "6 x"},
		{"window not in the visibility", "BatchSize: 10\n", "BatchSize: 10\n            MaximumBatchingWindowInSeconds: 5\n", "6 x"},
		{"large batch without a window", "BatchSize: 10\n", "BatchSize: 100\n", "window"},
		{"no partial batch response", "FunctionResponseTypes: [ReportBatchItemFailures]", "Tags: {}", "ReportBatchItemFailures"},
		{"destination that SQS never uses", "BatchSize: 10\n", "BatchSize: 10\n            DestinationConfig: {OnFailure: {}}\n", "DestinationConfig"},
		{"two ways of scaling", "BatchSize: 10\n", "BatchSize: 10\n            ProvisionedPollerConfig: {}\n", "ProvisionedPollerConfig"},
		{"no limit of concurrency", "ScalingConfig:", "Unrelated:", "MaximumConcurrency"},
		{"few receives", "maxReceiveCount: 5", "maxReceiveCount: 3", "maxReceiveCount"},
		{"receives as a string", "maxReceiveCount: 5", `maxReceiveCount: "5"`, "maxReceiveCount"},
		{"handlers longer than all receives", "Default: 600", "Default: 900", "longest handler"},
		{"other TTL attribute", "AttributeName: expiration", "AttributeName: ttl", "TTL"},
		{"TTL off", "AttributeName: expiration, Enabled: true", "AttributeName: expiration, Enabled: false", "TTL"},
		{"other key", "KeySchema: [{AttributeName: id,", "KeySchema: [{AttributeName: pk,", "key"},
		{"table deleted with the stack", "  DedupTable:\n    Type: AWS::DynamoDB::Table\n    DeletionPolicy: Retain", "  DedupTable:\n    Type: AWS::DynamoDB::Table\n    DeletionPolicy: Delete", "Retain"},
		{"dead letters forgotten first", "MessageRetentionPeriod: 1209600", "MessageRetentionPeriod: 345600", "retention"},
		{"FIFO queue with a standard dead-letter queue", "deadLetterTargetArn: !GetAtt OrdersFifoDLQ.Arn", "deadLetterTargetArn: !GetAtt OrdersDLQ.Arn", "same kind"},
		{"no kill switch", "            Enabled: !Ref Enabled\n", "", "Enabled"},
		{"no alarm on the dead letters", "MetricName: ApproximateNumberOfMessagesVisible", "MetricName: NumberOfMessagesSent", "alarm"},
		{"wider than needed", "Action: [dynamodb:UpdateItem]", "Action: [dynamodb:*]", "dynamodb:*"},
		{"action missing", "dynamodb:PartiQLInsert, ", "", "PartiQLInsert"},
		{"dead runtime", "Runtime: provided.al2023", "Runtime: go1.x", "provided.al2023"},
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

func TestTemplateCheckFindsNothingInNothing(t *testing.T) {
	for _, text := range []string{"", "{}", "resources: {}", "- a list"} {
		if problems, checked := checkTemplate([]byte(text), dynamostore.TTLAttribute); checked != 0 || len(problems) == 0 {
			t.Errorf("%q: checked %d, problems %q; want 0 and at least one", text, checked, problems)
		}
	}
}

func readTemplate(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
