package main

import (
	"bytes"
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack"
)

// asCommand makes the test's binary the command.
const asCommand = "OPERATE_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

func TestOperate(t *testing.T) {
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_DYNAMODB"} {
		t.Setenv(name, "")
	}
	stack := must.Get(localstack.Start(t.Context(), func(o *localstack.Options) {
		o.Queues, o.HTTP = []localstack.Queue{{Name: "orders"}}, true
	}))(t)
	defer func() {
		if err := stack.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	file := "file:" + filepath.Join(t.TempDir(), "orders.db")
	db := must.Get(sql.Open("sqlite", file))(t)
	must.Do(t, sqlstore.Migrate(t.Context(), db, sqlstore.SQLite))
	must.Do(t, db.Close())
	must.Get(stack.SQS.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(stack.QueueURL["orders-dlq"]), MessageBody: aws.String("order-42")}))(t)
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), asCommand+"=1", "DATABASE="+file, "AWS_ENDPOINT_URL="+stack.URL, "AWS_REGION=us-east-1", "XDG_STATE_HOME="+t.TempDir(),
			"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test")
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, errs.String())
		}
		return out.String()
	}
	if got := run("record", "complete", "--create", "--yes", "billing#shop|order-42"); got != "billing#shop|order-42\tunknown\tcompleted\n" {
		t.Errorf("record complete: %q", got)
	}
	list := run("dlq", "ls", "--messages", "--queue", "orders", "--consumer", "billing")
	if !strings.Contains(list, "billing#shop|order-42") || !strings.Contains(list, "completed") {
		t.Errorf("dlq ls: %s", list)
	}
	// Its --table is DynamoDB's.
	if help := run("dlq", "ls", "--help"); strings.Contains(help, "--table string") || strings.Contains(help, "the DynamoDB table") {
		t.Errorf("dlq ls has --table:\n%s", help)
	}
}
