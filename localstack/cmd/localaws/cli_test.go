package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// The AWS CLI and boto3 work with the output of localaws env. Without them the test says how to install them.
func TestEnvOfOtherTools(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"aws": `set -e
			aws() { command aws --endpoint-url "$AWS_ENDPOINT_URL" "$@"; } # this is CLI 1, which else calls the SQS of AWS
			url=$(aws sqs get-queue-url --queue-name jobs --query QueueUrl --output text)
			aws sqs send-message --queue-url "$url" --message-body hello >/dev/null
			aws sqs receive-message --queue-url "$url" --query 'Messages[0].Body' --output text
			aws dynamodb put-item --table-name records --item '{"id":{"S":"a"}}'
			aws dynamodb get-item --table-name records --key '{"id":{"S":"a"}}' --query Item.id.S --output text
			aws dynamodbstreams list-streams --query 'length(Streams)'
			aws lambda list-functions --query 'length(Functions)'`,
		"python": `exec python -c '
import boto3
jobs = boto3.resource("sqs").get_queue_by_name(QueueName="jobs")
jobs.send_message(MessageBody="hello")
print(jobs.receive_messages()[0].body)
records = boto3.resource("dynamodb").Table("records")
records.put_item(Item={"id": "a"})
print(records.get_item(Key={"id": "a"})["Item"]["id"])
print(len(boto3.client("dynamodbstreams").list_streams()["Streams"]))
print(len(boto3.client("lambda").list_functions()["Functions"]))'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := testserver.LocalStack.Program(t, name)
			url, _ := started(t, "-queues", "jobs", "-tables", "records", "-region", "eu-central-1")
			var env bytes.Buffer
			must.Do(t, printEnv([]string{"-addr", strings.TrimPrefix(url, "http://"), "-region", "eu-central-1"}, &env, t.Output()))
			cmd := exec.CommandContext(t.Context(), "sh", "-c", env.String()+script)
			cmd.Env = []string{"PATH=" + filepath.Dir(program) + ":/usr/bin:/bin", "HOME=" + t.TempDir()}
			out, err := cmd.CombinedOutput()
			if want := "hello\na\n0\n0\n"; err != nil || string(out) != want {
				t.Errorf("%v\n%s, want\n%s", err, out, want)
			}
		})
	}
}
