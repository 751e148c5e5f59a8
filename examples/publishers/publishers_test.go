// Package publishers_test runs publishers in other languages, which docs/messages.md shows.
package publishers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/localstack"
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
	err := errors.Join(
		os.CopyFS(dir, os.DirFS(".")),
		os.Symlink(filepath.Join(installed, "node_modules"), filepath.Join(dir, "node_modules")),
		os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	node := program{dir, []string{"node"}}
	tsc := filepath.Join("node_modules", "typescript", "bin", "tsc")
	node.run(t, "", nil, append([]string{tsc, "--strict", "--skipLibCheck", "--target", "es2024", "--module", "nodenext",
		"--types", "node", "--rewriteRelativeImportExtensions"}, files...)...)
	return node
}

// run returns the output of a script.
func (p program) run(t *testing.T, stdin string, env []string, args ...string) []byte {
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
		t.Fatalf("%q: %v\n%s%s", args, err, out, stderr.Bytes())
	}
	return out
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
}

func TestTypeScript(t *testing.T) {
	t.Parallel()
	p := compile(t, "eventkey.ts", "publish.ts")
	checkKeys(t, func(events string) []byte { return p.run(t, events, nil, "--input-type=module", "-e", typescriptKeys) })
	publishTwice(t, p, "publish.js", "ord-42/v3", "Bestellung 42 für Zoë")
}

func TestCLI(t *testing.T) {
	t.Parallel()
	path := "PATH=" + filepath.Dir(testserver.LocalStack.Program(t, "aws")) + string(os.PathListSeparator) + os.Getenv("PATH")
	publishTwice(t, program{".", []string{"env", path, "sh"}}, "publish.sh", "ord-42/v3")
}

func checkKeys(t *testing.T, keysOf func(events string) []byte) {
	t.Helper()
	text, err := os.ReadFile("../../testdata/keys.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Events []struct{ Source, ID, Key string }
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	// Go's strings cannot hold half of a surrogate pair, those of the others can. It has no UTF-8, so it has no key.
	events, want := []string{`["orders","\ud800"]`}, []string{""}
	for _, v := range vectors.Events {
		pair, err := json.Marshal([]string{v.Source, v.ID})
		if err != nil {
			t.Fatal(err)
		}
		events, want = append(events, string(pair)), append(want, v.Key)
	}
	var got []string
	if err := json.Unmarshal(keysOf("["+strings.Join(events, ",")+"]"), &got); err != nil {
		t.Fatal(err)
	}
	if len(want) < 20 || len(got) != len(want) {
		t.Fatalf("%d keys of %d events, want at least 20", len(got), len(want))
	}
	for i, key := range got {
		if key != want[i] {
			t.Errorf("key of %s: %q, want %q", events[i], key, want[i])
		}
	}
}

func publishTwice(t *testing.T, p program, script string, ids ...string) {
	t.Helper()
	const body = `{"order":"ord-42","text":"für Zoë"}`
	stack, err := localstack.Start(t.Context(), func(o *localstack.Options) {
		o.Queues = []localstack.Queue{{Name: "orders.fifo"}, {Name: "orders"}}
		o.HTTP = true
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stack.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	env := []string{
		"AWS_ENDPOINT_URL=" + stack.URL, "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test",
		"AWS_SECRET_ACCESS_KEY=test", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
	}
	for queue, messages := range map[string]int{"orders.fifo": 1, "orders": 2} {
		for _, id := range ids {
			for range 2 {
				p.run(t, "", env, script, stack.QueueURL[queue], id, "ord-42", body)
			}
		}
		received, runs := consume(t, stack, queue)
		if len(received) != messages*len(ids) || runs != len(ids) {
			t.Errorf("%s: %d messages and %d runs, want %d and %d", queue, len(received), runs, messages*len(ids), len(ids))
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
			if m.Body != body || m.Attributes[sqsonce.AttrEventType].String != "order.placed" {
				t.Errorf("%s: body %q with attributes %v", queue, m.Body, m.Attributes)
			}
		}
	}
}

// consume handles what is in the queue, and returns the messages and how many events ran.
func consume(t *testing.T, stack *localstack.Stack, queue string) (received []*sqsonce.Message, runs int) {
	t.Helper()
	once, err := dedup.New(memstore.New(), "billing")
	if err != nil {
		t.Fatal(err)
	}
	handle := once.Handler(func(context.Context, *sqsonce.Message) error { runs++; return nil })
	url := stack.QueueURL[queue]
	for {
		out, err := stack.SQS.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1, MessageAttributeNames: []string{"All"},
			MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameAll},
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			return received, runs
		}
		for _, message := range out.Messages {
			m := sqsworker.MessageOf(message, "arn:aws:sqs:us-east-1:000000000000:"+queue)
			if err := handle(t.Context(), m); err != nil {
				t.Error(err)
			}
			received = append(received, m)
			if _, err := stack.SQS.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: message.ReceiptHandle}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What cannot be quoted in the shell, or needs a hash, is refused.
func TestShellRefusesIDs(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", "a b", `a"b`, `a\b`, "a|b", "é", "a\n"} {
		cmd := exec.CommandContext(t.Context(), "sh", "publish.sh", "orders.fifo", id, "g", "b")
		cmd.Env = []string{"PATH="} // there is no aws
		var exit *exec.ExitError
		if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 2 {
			t.Errorf("ID %q: %v, want exit status 2", id, err)
		}
	}
}

// The page shows the files as they are.
func TestPageHasTheFiles(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/messages.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"eventkey.py", "publish.py", "eventkey.ts", "publish.ts", "publish.sh"} {
		code, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		language := strings.TrimPrefix(filepath.Ext(name), ".")
		if !strings.Contains(string(page), "\n```"+language+"\n"+string(code)+"```\n") {
			t.Errorf("docs/messages.md does not have the code of %s", name)
		}
	}
}
