package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

const cli = `set -e
	url=$(aws sqs get-queue-url --queue-name jobs --query QueueUrl --output text)
	aws sqs send-message --queue-url "$url" --message-body hello >/dev/null
	aws sqs receive-message --queue-url "$url" --query 'Messages[0].Body' --output text
	aws dynamodb put-item --table-name records --item '{"id":{"S":"a"}}'
	aws dynamodb get-item --table-name records --key '{"id":{"S":"a"}}' --query Item.id.S --output text
	aws dynamodbstreams list-streams --query 'length(Streams)'
	aws lambda list-functions --query 'length(Functions)'`

// clients are programs that others wrote, or that use their packages. The script has the result of installed as $0, and testdata as $1.
var clients = map[string]struct {
	installed func(t *testing.T) string // or it skips the test
	script    string
	want      string
}{
	"AWS CLI 1": {
		func(t *testing.T) string { return testserver.LocalStack.Program(t, "aws") },
		`aws() { "$0" --endpoint-url "$AWS_ENDPOINT_URL" "$@"; } # else it calls the SQS of AWS
` + cli, "hello\na\n0\n0\n",
	},
	"AWS CLI 2": {cli2, `aws() { "$0" "$@"; }
` + cli, "hello\na\n0\n0\n"},
	"boto3": {
		func(t *testing.T) string { return testserver.LocalStack.Program(t, "python") },
		`exec "$0" -c '
import boto3
jobs = boto3.resource("sqs").get_queue_by_name(QueueName="jobs")
jobs.send_message(MessageBody="hello")
print(jobs.receive_messages()[0].body)
records = boto3.resource("dynamodb").Table("records")
records.put_item(Item={"id": "a"})
print(records.get_item(Key={"id": "a"})["Item"]["id"])
print(len(boto3.client("dynamodbstreams").list_streams()["Streams"]))
print(len(boto3.client("lambda").list_functions()["Functions"]))'`, "hello\na\n0\n0\n",
	},
	"SDK for Java": {
		func(t *testing.T) string { return testserver.JavaSDK.Dir(t) },
		`exec java -Xmx256m -XX:TieredStopAtLevel=1 -cp "$0/lib/*" "$1/Clients.java"`, "hello\na\n",
	},
	"SDK for JavaScript": {nodeClients, `cd "$0" && exec node --input-type=module - sdk <"$1/clients.mjs"`, "hello\na\n"},
	"ElectroDB":          {nodeClients, `cd "$0" && exec node --input-type=module - electrodb <"$1/clients.mjs"`, "ok\n"},
	"sqs-consumer":       {nodeClients, `cd "$0" && exec node --input-type=module - sqs-consumer <"$1/clients.mjs"`, "ok\n"},
	"kombu":              {func(t *testing.T) string { return testserver.Kombu.Interpreter(t) }, `exec "$0" "$1/kombu_client.py"`, "ok\n"},
}

func nodeClients(t *testing.T) string { return testserver.NodeClients.Dir(t) }

// Neither PyPI nor npm has AWS CLI 2: it is tested where the PATH has it.
func cli2(t *testing.T) string {
	path, err := exec.LookPath("aws")
	if err == nil && os.Getenv("EMULATORS") == "off" {
		err = errors.New("EMULATORS is off")
	}
	if err != nil {
		t.Skipf("AWS CLI 2 is not tested: %v", err)
	}
	if version, err := exec.CommandContext(t.Context(), path, "--version").Output(); !strings.HasPrefix(string(version), "aws-cli/2.") {
		t.Skipf("AWS CLI 2 is not tested: %s is %q (%v)", path, version, err)
	}
	return path
}

// The clients find localaws by the output of localaws env alone. Where one is not installed, the test says how to install it.
func TestClients(t *testing.T) {
	t.Parallel()
	testdata := must.Get(filepath.Abs("testdata"))(t)
	for name, c := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			installed := c.installed(t)
			url, _ := started(t, "-queues", "jobs,beats", "-tables", "records", "-region", "eu-central-1", "-no-purge-delay")
			var env, said bytes.Buffer
			must.Do(t, printEnv([]string{"-addr", strings.TrimPrefix(url, "http://"), "-region", "eu-central-1"}, &env, t.Output()))
			cmd := exec.CommandContext(t.Context(), "sh", "-c", env.String()+c.script, installed, testdata)
			cmd.Env, cmd.Stderr = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, &said
			if out, err := cmd.Output(); err != nil || string(out) != c.want {
				t.Errorf("%v\n%s%s, want\n%s", err, &said, out, c.want)
			}
		})
	}
}

// The SDK for Go reads the same variables, here those of localaws env -json.
func TestClientInGo(t *testing.T) {
	url, _ := started(t, "-queues", "jobs", "-tables", "records", "-region", "eu-central-1")
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "AWS_") {
			name, _, _ := strings.Cut(v, "=")
			t.Setenv(name, "")
		}
	}
	t.Setenv("HOME", t.TempDir())
	var env bytes.Buffer
	must.Do(t, printEnv([]string{"-addr", strings.TrimPrefix(url, "http://"), "-region", "eu-central-1", "-json"}, &env, t.Output()))
	var all map[string]string
	must.Do(t, json.Unmarshal(env.Bytes(), &all))
	for name, value := range all {
		t.Setenv(name, value)
	}
	cfg := must.Get(config.LoadDefaultConfig(t.Context()))(t)
	jobs, records := sqs.NewFromConfig(cfg), dynamodb.NewFromConfig(cfg)
	queue := must.Get(jobs.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("jobs")}))(t).QueueUrl
	must.Get(jobs.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queue, MessageBody: aws.String("hello")}))(t)
	if out := must.Get(jobs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queue}))(t); len(out.Messages) != 1 || *out.Messages[0].Body != "hello" {
		t.Errorf("received %v, want the message that was sent", out.Messages)
	}
	item := map[string]ddbtypes.AttributeValue{"id": &ddbtypes.AttributeValueMemberS{Value: "a"}}
	must.Get(records.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("records"), Item: item}))(t)
	if out := must.Get(records.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("records"), Key: item}))(t); len(out.Item) != 1 {
		t.Errorf("got the item %v, want the one that was put", out.Item)
	}
}
