// Package publishers_test runs publishers in other languages, which docs/messages.md shows.
package publishers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/sqsworker"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// program is what runs files of this folder: a command without the arguments of a script, and where it is run.
type program struct {
	dir     string
	command []string
}

// compile compiles files of TypeScript, with checks of their types.
func compile(t *testing.T, files ...string) program {
	t.Helper()
	installed := testserver.TypeScript.Dir(t)
	dir := t.TempDir()
	must.Do(t, errors.Join(
		os.CopyFS(dir, os.DirFS(".")),
		os.Symlink(filepath.Join(installed, "node_modules"), filepath.Join(dir, "node_modules")),
		os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`), 0o600),
	))
	node := program{dir, []string{"node"}}
	tsc := filepath.Join("node_modules", "typescript", "bin", "tsc")
	node.run(t, "", nil, append([]string{tsc, "--strict", "--skipLibCheck", "--target", "es2024", "--module", "nodenext",
		"--types", "node", "--rewriteRelativeImportExtensions"}, files...)...)
	return node
}

// run returns the output of a script.
func (p program) run(t *testing.T, stdin string, env []string, args ...string) []byte {
	t.Helper()
	return must.Get(p.try(t, stdin, env, args...))(t)
}

// try does the same for a script that may fail.
func (p program) try(t *testing.T, stdin string, env []string, args ...string) ([]byte, error) {
	t.Helper()
	args = append(slices.Clone(p.command), args...)
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = p.dir
	cmd.Env = append(append(os.Environ(), "PYTHONUTF8=1"), env...)
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%q: %w\n%s%s", args, err, out, stderr.Bytes())
	}
	return out, err
}

// Scripts that read a list of [source, id] and print the list of their keys, "" for an error.
const (
	pythonKeys = `
import json, sys
from eventkey import event_key
def key(source, id):
    try:
        return event_key(source, id)
    except ValueError:
        return ""
print(json.dumps([key(*e) for e in json.load(sys.stdin)]))`
	typescriptKeys = `
import { readFileSync } from "node:fs";
import { eventKey } from "./eventkey.js";
const key = (e) => { try { return eventKey(...e) } catch { return "" } };
console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(key)));`
)

// The implementations of EventKey make the keys of testdata/keys.json, and a publisher that is run again sends the same event.

func TestPython(t *testing.T) {
	t.Parallel()
	p := program{".", []string{testserver.LocalStack.Program(t, "python"), "-B"}}
	checkKeys(t, func(events string) []byte { return p.run(t, events, nil, "-c", pythonKeys) })
	publishTwice(t, p, "publish.py", "ord-42/v3", "Bestellung 42 für Zoë")
	publishTwice(t, p, "publish_batch.py", "ord-42/v3")
	publishThrough(t, p, "sns.py", "eventbridge.py", "Bestellung 42 für Zoë")
}

func TestTypeScript(t *testing.T) {
	t.Parallel()
	p := compile(t, "eventkey.ts", "publish.ts", "publish_batch.ts", "sns.ts", "eventbridge.ts")
	checkKeys(t, func(events string) []byte { return p.run(t, events, nil, "--input-type=module", "-e", typescriptKeys) })
	publishTwice(t, p, "publish.js", "ord-42/v3", "Bestellung 42 für Zoë")
	publishTwice(t, p, "publish_batch.js", "ord-42/v3")
	publishThrough(t, p, "sns.js", "eventbridge.js", "Bestellung 42 für Zoë")
}

func TestCLI(t *testing.T) {
	t.Parallel()
	path := "PATH=" + filepath.Dir(testserver.LocalStack.Program(t, "aws")) + string(os.PathListSeparator) + os.Getenv("PATH")
	p := program{".", []string{"env", path, "sh"}}
	publishTwice(t, p, "publish.sh", "ord-42/v3")
	publishThrough(t, p, "sns.sh", "eventbridge.sh", "ord-42/v3")
}

func checkKeys(t *testing.T, keysOf func(events string) []byte) {
	t.Helper()
	text := must.Get(os.ReadFile("../../testdata/keys.json"))(t)
	var vectors struct {
		Events []struct{ Source, ID, Key string }
	}
	must.Do(t, json.Unmarshal(text, &vectors))
	// Go's strings cannot hold half of a surrogate pair, those of the others can. It has no UTF-8, so it has no key.
	events, want := []string{`["orders","\ud800"]`}, []string{""}
	for _, v := range vectors.Events {
		pair := must.Get(json.Marshal([]string{v.Source, v.ID}))(t)
		events, want = append(events, string(pair)), append(want, v.Key)
	}
	var got []string
	must.Do(t, json.Unmarshal(keysOf("["+strings.Join(events, ",")+"]"), &got))
	if len(want) < 20 || len(got) != len(want) {
		t.Fatalf("%d keys of %d events, want at least 20", len(got), len(want))
	}
	for i, key := range got {
		if key != want[i] {
			t.Errorf("key of %s: %q, want %q", events[i], key, want[i])
		}
	}
}

const body = `{"order":"ord-42","text":"für \"Zoë\" \\\\"}`

func publishTwice(t *testing.T, p program, script string, ids ...string) {
	t.Helper()
	stack := must.Get(localstack.Start(t.Context(), func(o *localstack.Options) {
		o.Queues = []localstack.Queue{{Name: "orders.fifo"}, {Name: "orders"}}
		o.HTTP = true
	}))(t)
	defer func() {
		if err := stack.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	env := environment(stack.URL)
	if strings.Contains(script, "batch") { // which fails if an entry does
		stack.MemSQS().Set(fault.Plan{Rules: []fault.Rule{{Op: "SendMessageBatch", Nth: 1, Do: fault.FailEntries}}})
		if _, err := p.try(t, "", env, script, stack.QueueURL["orders"], ids[0], "ord-42", body); err == nil || !strings.Contains(err.Error(), "InternalError") {
			t.Errorf("%s with a failed entry: %v", script, err)
		}
	}
	for queue, messages := range map[string]int{"orders.fifo": 1, "orders": 2} {
		for _, id := range ids {
			for range 2 {
				p.run(t, "", env, script, stack.QueueURL[queue], id, "ord-42", body)
			}
		}
		received, runs := consume(t, stack.SQS, stack.QueueURL[queue], messages*len(ids))
		if runs != len(ids) {
			t.Errorf("%s: %d runs, want %d", queue, runs, len(ids))
		}
		for _, m := range received {
			id := m.Attributes[sqsonce.AttrEventID].String
			want, err := sqsonce.EventKey("orders", id)
			if err != nil || !slices.Contains(ids, id) {
				t.Errorf("%s: event-id %q, %v", queue, id, err)
			}
			if key, source, err := m.Key(); key != want || source != sqsonce.KeyFromAttribute || err != nil {
				t.Errorf("%s: key %q from %v, %v, want %q from the attributes", queue, key, source, err, want)
			}
			if messages == 1 && m.DedupID != want || m.Group != "ord-42" {
				t.Errorf("%s: MessageDeduplicationId %q of group %q, want %q of ord-42", queue, m.DedupID, m.Group, want)
			}
			if m.Body != body {
				t.Errorf("%s: body %q with attributes %v", queue, m.Body, m.Attributes)
			}
		}
	}
}

func environment(endpoint string) []string {
	return []string{
		"AWS_ENDPOINT_URL=" + endpoint, "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test",
		"AWS_SECRET_ACCESS_KEY=test", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
	}
}

// publishThrough publishes an event twice to a topic and twice to an event bus of LocalStack. Three queues get it, and it has
// one key on all ways.
func publishThrough(t *testing.T, p program, toTopic, toBus, id string) {
	t.Helper()
	url := testserver.LocalStack.Shared(t).URL
	client := sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: &url, Credentials: aws.AnonymousCredentials{}})
	env, name := environment(url), t.Name()
	cli := program{".", []string{testserver.LocalStack.Program(t, "aws"), "--endpoint-url", url, "--output", "text"}}
	topic := strings.TrimSpace(string(cli.run(t, "", env, "sns", "create-topic", "--name", name)))
	cli.run(t, "", env, "events", "create-event-bus", "--name", name)
	cli.run(t, "", env, "events", "put-rule", "--name", name, "--event-bus-name", name, "--event-pattern", `{"source":["orders"]}`)

	queue := func(way string) (url, arn string) {
		out := must.Get(client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(name + way)}))(t)
		return *out.QueueUrl, "arn:aws:sqs:us-east-1:000000000000:" + name + way
	}
	envelope, arn := queue("-sns")
	cli.run(t, "", env, "sns", "subscribe", "--topic-arn", topic, "--protocol", "sqs", "--notification-endpoint", arn)
	raw, arn := queue("-raw")
	cli.run(t, "", env, "sns", "subscribe", "--topic-arn", topic, "--protocol", "sqs", "--notification-endpoint", arn, "--attributes", "RawMessageDelivery=true")
	event, arn := queue("-eventbridge")
	cli.run(t, "", env, "events", "put-targets", "--rule", name, "--event-bus-name", name, "--targets", "Id=1,Arn="+arn)

	for range 2 {
		p.run(t, "", env, toTopic, topic, id, body)
		p.run(t, "", env, toBus, name, id, body)
	}
	want := must.Get(sqsonce.EventKey("orders", id))(t)
	for url, source := range map[string]sqsonce.KeySource{envelope: sqsonce.KeyFromAttribute, raw: sqsonce.KeyFromAttribute, event: sqsonce.KeyFromCloudEvents} {
		received, runs := consume(t, client, url, 2)
		if runs != 1 {
			t.Errorf("%s: %d runs, want 1", url, runs)
		}
		for _, m := range received {
			if key, from, err := m.Key(); key != want || from != source || err != nil {
				t.Errorf("%s: key %q from %v, %v, want %q from %v", url, key, from, err, want, source)
			}
			var got, sent map[string]string
			if err := errors.Join(json.Unmarshal([]byte(m.Body), &got), json.Unmarshal([]byte(body), &sent)); err != nil || !maps.Equal(got, sent) {
				t.Errorf("%s: body %s, %v, want %s", url, m.Body, err, body)
			}
		}
	}
}

// consume handles the messages of a queue. It returns them, and how many events ran.
func consume(t *testing.T, client *sqs.Client, url string, messages int) (received []*sqsonce.Message, runs int) {
	t.Helper()
	once := must.Get(dedup.New(memstore.New(), "billing"))(t)
	runOnce := once.Handler(func(context.Context, *sqsonce.Message) error { runs++; return nil })
	handle := sqsonce.OpenEnvelope(sqsonce.ByType(map[string]sqsonce.Handler{"order.placed": func(ctx context.Context, m *sqsonce.Message) error {
		received = append(received, m)
		return runOnce(ctx, m)
	}}))
	for deadline := time.Now().Add(time.Minute); ; {
		out := must.Get(client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1, MessageAttributeNames: []string{"All"},
			MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameAll},
		}))(t)
		if len(out.Messages) == 0 && (len(received) >= messages || time.Now().After(deadline)) {
			break
		}
		for _, message := range out.Messages {
			if err := handle(t.Context(), sqsworker.MessageOf(message, "arn:aws:sqs:us-east-1:000000000000:orders")); err != nil {
				t.Error(err)
			}
			must.Get(client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: message.ReceiptHandle}))(t)
		}
	}
	if len(received) != messages {
		t.Errorf("%s: %d messages, want %d", url, len(received), messages)
	}
	return received, runs
}

// What cannot be quoted in the shell, or needs a hash, is refused.
func TestShellRefusesIDs(t *testing.T) {
	t.Parallel()
	for script, args := range map[string][]string{"publish.sh": {"g", "b"}, "sns.sh": {"b"}, "eventbridge.sh": {"{}"}} {
		for _, id := range []string{"", "a b", `a"b`, `a\b`, "a|b", "é", "a\n"} {
			if status := exitStatus(t, append([]string{script, "orders.fifo", id}, args...)...); status != 2 {
				t.Errorf("%s with ID %q: exit status %d, want 2", script, id, status)
			}
		}
	}
}

// The CLI reads a parameter that is a URL of a file or the web, and sends the contents. One with a URL in it is sent as it is.
func TestShellSendsNoFiles(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"file://", "fileb://", "http://", "https://"} {
		for _, args := range [][]string{
			{"publish.sh", "orders.fifo", "1", "g", prefix + "x"}, {"publish.sh", "orders.fifo", "1", prefix + "x", "{}"}, {"sns.sh", "topic", "1", prefix + "x"},
		} {
			if status := exitStatus(t, args...); status != 2 {
				t.Errorf("%q: exit status %d, want 2", args, status)
			}
		}
	}
	for _, args := range [][]string{{"publish.sh", "orders", "1", "g", `"file://x"`}, {"sns.sh", "topic", "1", `"file://x"`}} {
		if status := exitStatus(t, args...); status != 127 {
			t.Errorf("%q: exit status %d, want 127: aws is not found", args, status)
		}
	}
}

// exitStatus runs a script where there is no aws.
func exitStatus(t *testing.T, args ...string) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", args...)
	cmd.Env = []string{"PATH="}
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

// The page shows the files as they are.
func TestPageHasTheFiles(t *testing.T) {
	t.Parallel()
	page := must.Get(os.ReadFile("../../docs/messages.md"))(t)
	for _, name := range []string{
		"eventkey.py", "publish.py", "publish_batch.py", "sns.py", "eventbridge.py", "eventkey.ts", "publish.ts", "publish_batch.ts", "sns.ts",
		"eventbridge.ts", "publish.sh", "sns.sh", "eventbridge.sh",
	} {
		code := must.Get(os.ReadFile(name))(t)
		language := strings.TrimPrefix(filepath.Ext(name), ".")
		if !strings.Contains(string(page), "\n```"+language+"\n"+string(code)+"```\n") {
			t.Errorf("docs/messages.md does not have the code of %s", name)
		}
	}
}
