package powertools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/bench/internal/migratetest"
	"github.com/sqsonce/sqsonce/bench/node"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/esm"
)

const table = "idempotency"

type stack = migratetest.Stack

func createTable(ctx context.Context, s stack) error {
	return dynamostore.CreateTable(ctx, s.DynamoDB, table)
}

// sendDone sends an event that Powertools has completed.
func sendDone(ctx context.Context, s stack, id string) error {
	key, err := Key(&sqsonce.Message{Body: `{"id":"` + id + `"}`})
	if err != nil {
		return err
	}
	_, err = s.DynamoDB.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(table), Item: map[string]ddbtypes.AttributeValue{
		"id":         &ddbtypes.AttributeValueMemberS{Value: "billing#" + key},
		"status":     &ddbtypes.AttributeValueMemberS{Value: "COMPLETED"},
		"expiration": &ddbtypes.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)},
	}})
	return errors.Join(err, migratetest.Send(ctx, s, id))
}

type charger = func(context.Context, Order) error

func function(ctx context.Context, s stack, charge charger) error {
	h, err := NewHandler(s.DynamoDB, charge)
	if err != nil {
		return err
	}
	f, err := lambda.Wrap(h, func(o *lambda.Options) { o.Client, o.Logger = s.SQS, slog.New(slog.DiscardHandler) })
	if err != nil {
		return err
	}
	return esm.Run(ctx, s.SQS, esm.Config{
		QueueURL: s.URL, ReportBatchItemFailures: true, FunctionTimeout: 25 * time.Second, Logger: slog.New(slog.DiscardHandler),
	}, awslambda.NewHandler(f).Invoke)
}

func worker(ctx context.Context, s stack, charge charger) error {
	h, err := NewHandler(s.DynamoDB, charge)
	if err != nil {
		return err
	}
	return migratetest.Work(ctx, s, h)
}

func TestSteps(t *testing.T) {
	type (
		producers = []migratetest.Producer
		consumers = []migratetest.Consumer
	)
	for name, step := range map[string]migratetest.Step{
		"takeover: what Powertools has done":         {Send: producers{sendDone, migratetest.Send}, Consume: consumers{function}, Want: 0},
		"takeover: an event that is sent twice":      {Send: producers{migratetest.Send, migratetest.Send}, Twice: true, Consume: consumers{function}, Want: 1},
		"a worker beside the function, on one table": {Send: producers{migratetest.Send, migratetest.Send}, Twice: true, Consume: consumers{function, worker}, Want: 1},
	} {
		step.Before = createTable
		t.Run(name, func(t *testing.T) { migratetest.Run(t, step) })
	}
}

// Powertools itself runs first, then our handler, then Powertools again, on one table.
func TestTakeover(t *testing.T) {
	t.Parallel()
	dir := install(t)
	local := must.Get(localstack.Start(t.Context(), func(o *localstack.Options) { o.Tables, o.HTTP = []string{table}, true }))(t)
	defer func() {
		must.Do(t, local.Close(context.WithoutCancel(t.Context())))
	}()
	theirs := func(ids ...string) []string { return invokeTheirs(t, dir, local.URL, ids) }
	ours := func(ids ...string) (charged []string) {
		h := must.Get(NewHandler(local.DynamoDB, func(_ context.Context, o Order) error { charged = append(charged, o.ID); return nil }))(t)
		for _, id := range ids {
			if err := h(t.Context(), &sqsonce.Message{ID: "m", Body: body(id), ReceiveCount: 1}); err != nil {
				t.Errorf("our handler on %s: %v", id, err)
			}
		}
		return charged
	}
	for _, step := range []struct {
		run  func(...string) []string
		ids  []string
		want []string
	}{
		{theirs, []string{"ord-1/v1"}, []string{"ord-1/v1"}},
		{ours, []string{"ord-1/v1", "ord-2/v1"}, []string{"ord-2/v1"}},
		{theirs, []string{"ord-2/v1", "ord-3/<ö>"}, []string{"ord-3/<ö>"}},
		{ours, []string{"ord-3/<ö>"}, nil},
	} {
		if got := step.run(step.ids...); !slices.Equal(got, step.want) {
			t.Errorf("of %q charged %q, want %q", step.ids, got, step.want)
		}
	}
}

func body(id string) string {
	raw, _ := json.Marshal(Order{ID: id, Cents: 1200}) // it has a JSON form
	return string(raw)
}

// invokeTheirs runs handler.mjs in a process of its own and returns what it charged.
func invokeTheirs(t *testing.T, dir, url string, ids []string) (charged []string) {
	t.Helper()
	var event events.SQSEvent
	for i, id := range ids {
		event.Records = append(event.Records, events.SQSMessage{MessageId: fmt.Sprint("m", i), Body: body(id), EventSource: "aws:sqs"})
	}
	input := must.Get(json.Marshal(event))(t)
	cmd := exec.CommandContext(t.Context(), "node", "invoke.mjs")
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(input)
	cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+url, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("node: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "charged "); ok {
			charged = append(charged, id)
		}
	}
	if !strings.Contains(string(out), `{"batchItemFailures":[]}`) {
		t.Errorf("Powertools failed: %s", out)
	}
	return charged
}

// install returns a folder with handler.mjs and what it imports. Without Node or its packages the test is skipped, or fails
// with EMULATORS=required.
func install(t *testing.T) string {
	t.Helper()
	if os.Getenv("EMULATORS") == "off" {
		t.Skip("EMULATORS=off: Powertools is not tested against")
	}
	packages, err := node.Install(t.Context())
	if err != nil {
		if os.Getenv("EMULATORS") == "required" {
			t.Fatalf("EMULATORS=required, and Powertools cannot be installed: %v", err)
		}
		t.Skipf("Powertools is not tested against: %v", err)
	}
	handler := must.Get(os.ReadFile("handler.mjs"))(t)
	dir := t.TempDir()
	must.Do(t, os.Symlink(filepath.Join(packages, "node_modules"), filepath.Join(dir, "node_modules")))
	for name, text := range map[string]string{
		"handler.mjs": string(handler),
		"charge.mjs":  "export const charge = async (order) => { console.log(`charged ${order.id}`); return order.id; };\n",
		"invoke.mjs": `import { readFileSync } from "node:fs";
import { handler } from "./handler.mjs";
console.log(JSON.stringify(await handler(JSON.parse(readFileSync(0)), { getRemainingTimeInMillis: () => 10000 })));
`,
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// An order without an ID has no key, and an order that does not decode is rejected.
func TestNoKey(t *testing.T) {
	t.Parallel()
	for _, key := range []func(*sqsonce.Message) (string, error){Key, PythonKey} {
		if k, err := key(&sqsonce.Message{Body: `{"cents":1}`}); !errors.Is(err, sqsonce.ErrNoEventID) {
			t.Errorf("without an ID: got %q, %v, want ErrNoEventID", k, err)
		}
		if _, err := key(&sqsonce.Message{Body: `not JSON`}); sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomeRejected {
			t.Errorf("not JSON: got %v, want a Reject", err)
		}
	}
}

// The hash is that of the PyPI package, version 3.37.0.
func TestPythonKey(t *testing.T) {
	t.Parallel()
	if got, err := PythonKey(&sqsonce.Message{Body: body("ord-42/v3")}); got != "afb8cf657c90ee69cd422530bac93123" || err != nil {
		t.Errorf("got %q, %v, want the hash of Python", got, err)
	}
}

func TestPythonParses(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("handler.py is not checked: %v", err)
	}
	if out, err := exec.CommandContext(t.Context(), python, "-c", "import ast; ast.parse(open('handler.py').read())").CombinedOutput(); err != nil {
		t.Errorf("handler.py: %v\n%s", err, out)
	}
}
