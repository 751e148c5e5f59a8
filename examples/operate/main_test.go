package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
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
	failOnce(t, file, "order-42")
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
	list := run("dlq", "ls", "--messages", "--queue", "orders", "--consumer", "billing")
	if !strings.Contains(list, "billing#shop|order-42") || !strings.Contains(list, "released") {
		t.Errorf("dlq ls: %s", list)
	}
	if got := run("record", "complete", "--yes", "billing#shop|order-42"); got != "billing#shop|order-42\treleased\tcompleted\n" {
		t.Errorf("record complete: %q", got)
	}
	if got := run("record", "ls", "--state", "completed"); !strings.HasPrefix(got, "billing#shop|order-42\tcompleted\t") {
		t.Errorf("record ls: %q", got)
	}
	// Its --table is DynamoDB's.
	if help := run("dlq", "ls", "--help"); strings.Contains(help, "--table string") || strings.Contains(help, "the DynamoDB table") {
		t.Errorf("dlq ls has --table:\n%s", help)
	}
}

// failOnce runs the consumer's handler once, which fails.
func failOnce(t *testing.T, file, body string) {
	t.Helper()
	db := must.Get(sql.Open("sqlite", file))(t)
	defer db.Close()
	store := must.Get(sqlstore.New(db, sqlstore.SQLite))(t)
	must.Do(t, sqlstore.Migrate(t.Context(), db, sqlstore.SQLite))
	once := must.Get(dedup.New(store, "billing", func(o *dedup.Options) {
		o.Key = func(m *sqsonce.Message) (string, error) { return sqsonce.EventKey("shop", m.Body) }
	}))(t)
	failure := errors.New("card declined")
	handler := once.Handler(func(ctx context.Context, m *sqsonce.Message) error { return failure })
	if err := handler(t.Context(), &sqsonce.Message{ID: "1", Body: body, ReceiveCount: 1}); !errors.Is(err, failure) {
		t.Fatal(err)
	}
}
