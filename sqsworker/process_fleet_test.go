//go:build unix

package sqsworker_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/proof/process"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// onEach runs a test on a standard and a FIFO queue, of SQS in memory over HTTP and of the emulators.
func onEach(t *testing.T, run func(*fleet)) {
	t.Parallel()
	for name, endpoints := range map[string]func(*testing.T) (string, string){
		"in memory": func(t *testing.T) (string, string) {
			queues, tables := memsqs.New(), memdynamodb.New()
			t.Cleanup(queues.Close)
			t.Cleanup(tables.Close)
			q, d := httptest.NewServer(queues), httptest.NewServer(tables)
			t.Cleanup(q.Close)
			t.Cleanup(d.Close)
			return q.URL, d.URL
		},
		"LocalStack, dynoxide": func(t *testing.T) (string, string) {
			return testserver.LocalStack.Shared(t).URL, testserver.Dynoxide.Shared(t).URL
		},
	} {
		for _, suffix := range []string{"", ".fifo"} {
			t.Run(name+suffix, func(t *testing.T) {
				t.Parallel()
				q, d := endpoints(t)
				run(newFleet(t, q, d, suffix))
			})
		}
	}
}

// fleet is worker processes on one queue.
type fleet struct {
	*testing.T
	queues *sqs.Client
	tables *dynamodb.Client
	config config
	sent   map[string]bool
	all    []*worker
}

type worker struct {
	*fleet
	*process.Process
	stderr strings.Builder
	over   bool
}

func newFleet(t *testing.T, queues, tables, suffix string) *fleet {
	t.Helper()
	f := &fleet{T: t, queues: sqsClient(queues), tables: dynamoClient(tables), sent: map[string]bool{}}
	id := rand.Text()
	f.config = config{
		SQS: queues, DynamoDB: tables, Records: "records-" + id, Ledger: "ledger-" + id,
		Notes: filepath.Join(t.TempDir(), "notes"), Take: 20 * time.Millisecond, Visibility: 2 * time.Second, Concurrency: 8,
	}
	if err := os.WriteFile(f.config.Notes, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	attrs := map[string]string{}
	if suffix != "" {
		attrs["FifoQueue"] = "true"
	}
	out, err := f.queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("jobs-" + id + suffix), Attributes: attrs})
	if err != nil {
		t.Fatal(err)
	}
	f.config.Queue = *out.QueueUrl
	if err := dynamostore.CreateTable(t.Context(), f.tables, f.config.Records); err != nil {
		t.Fatal(err)
	}
	if _, err := f.tables.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &f.config.Ledger, BillingMode: ddbtypes.BillingModePayPerRequest,
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("event"), AttributeType: "S"}},
		KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String("event"), KeyType: "HASH"}},
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, w := range f.all {
			w.kill()
		}
	})
	return f
}

// send sends n messages, on FIFO in ten groups.
func (f *fleet) send(n int) {
	f.Helper()
	for from := 0; from < n; from += 10 {
		in := &sqs.SendMessageBatchInput{QueueUrl: &f.config.Queue}
		for i := range 10 {
			body := fmt.Sprintf("g%d:%04d", i, from/10)
			e := sqstypes.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: &body}
			if strings.HasSuffix(f.config.Queue, ".fifo") {
				e.MessageGroupId, e.MessageDeduplicationId = aws.String(fmt.Sprint("g", i)), &body
			}
			in.Entries = append(in.Entries, e)
			f.sent[body] = true
		}
		out, err := f.queues.SendMessageBatch(f.Context(), in)
		if err != nil || len(out.Failed) > 0 {
			f.Fatalf("SendMessageBatch: %v, %v", err, out)
		}
	}
}

func (f *fleet) start() *worker {
	f.Helper()
	text, err := json.Marshal(f.config)
	if err != nil {
		f.Fatal(err)
	}
	w := &worker{fleet: f}
	w.Process, err = process.Start(f.Context(), process.Options{Env: []string{asChild + "=" + string(text)}, Stderr: &w.stderr})
	if err != nil {
		f.Fatal(err)
	}
	f.all = append(f.all, w)
	return w
}

// kill is kill -9. The process is gone when it returns.
func (w *worker) kill() {
	if w.over {
		return
	}
	w.over = true
	_ = w.Kill() // it may have ended by itself
	_ = w.Wait() // so may the test's context
	if w.Failed() {
		w.Logf("process %d:\n%s", w.Pid, w.stderr.String())
	}
}

// stop sends SIGTERM and waits for the end.
func (w *worker) stop() {
	w.Helper()
	if err := w.Signal(syscall.SIGTERM); err != nil {
		w.Fatal(err)
	}
	w.over = true
	if err := w.Wait(); err != nil {
		w.Errorf("the worker ended with %v:\n%s", err, w.stderr.String())
	}
}

// note is a line that a child's handler wrote.
type note struct {
	what, body string
	pid        int
}

func (f *fleet) notes() (ns []note) {
	f.Helper()
	text, err := os.ReadFile(f.config.Notes)
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break // read beside the write that it is a part of: the next read has all of it
		}
		var n note
		if _, err := fmt.Sscan(line, &n.what, &n.body, &n.pid); err != nil {
			f.Fatalf("note %q: %v", line, err)
		}
		ns = append(ns, n)
	}
	return ns
}

func (f *fleet) done() map[string]bool {
	f.Helper()
	done := map[string]bool{}
	for _, n := range f.notes() {
		if n.what == "done" {
			done[n.body] = true
		}
	}
	return done
}

// waitFor waits until n events are done.
func (f *fleet) waitFor(n int) {
	f.Helper()
	f.eventually(fmt.Sprintf("%d events done", n), func() bool { return len(f.done()) >= n })
}

func (f *fleet) eventually(what string, is func() bool) {
	f.Helper()
	for end := time.Now().Add(90 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			visible, hidden := f.depth()
			f.Fatalf("not after 90 s: %s; %d events done, %d messages visible, %d hidden", what, len(f.done()), visible, hidden)
		}
	}
}

// depth counts the messages of the queue.
func (f *fleet) depth() (visible, hidden int) {
	f.Helper()
	out, err := f.queues.GetQueueAttributes(f.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &f.config.Queue, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll},
	})
	if err != nil {
		f.Fatal(err)
	}
	number := func(name string) int {
		n, err := strconv.Atoi(out.Attributes[name])
		if err != nil {
			f.Fatalf("%s: %v", name, err)
		}
		return n
	}
	return number("ApproximateNumberOfMessages"), number("ApproximateNumberOfMessagesNotVisible")
}

// wantAllDone checks that the queue is empty and every event had its effect once.
func (f *fleet) wantAllDone() {
	f.Helper()
	f.eventually("the queue empty", func() bool { visible, hidden := f.depth(); return visible+hidden == 0 })
	effects := map[string]string{}
	in := &dynamodb.ScanInput{TableName: &f.config.Ledger, ConsistentRead: aws.Bool(true)}
	for {
		out, err := f.tables.Scan(f.Context(), in)
		if err != nil {
			f.Fatal(err)
		}
		for _, item := range out.Items {
			effects[item["event"].(*ddbtypes.AttributeValueMemberS).Value] = item["effects"].(*ddbtypes.AttributeValueMemberN).Value
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			break
		}
	}
	for body := range f.sent {
		if effects[body] != "1" {
			f.Errorf("%s: %q effects, want 1", body, effects[body])
		}
	}
	if len(effects) != len(f.sent) {
		f.Errorf("%d events with effects, %d sent", len(effects), len(f.sent))
	}
	f.wantNoRepeat()
}

// wantNoRepeat checks that no handler started for an event that was done, and the order of groups on FIFO.
func (f *fleet) wantNoRepeat() {
	f.Helper()
	done, next := map[string]bool{}, map[string]int{}
	for _, n := range f.notes() {
		if n.what == "start" {
			if done[n.body] {
				f.Errorf("%s: started in process %d when it was done", n.body, n.pid)
			}
			continue
		}
		if done[n.body] {
			continue // a copy that the record answered
		}
		done[n.body] = true
		group, at, _ := strings.Cut(n.body, ":")
		if strings.HasSuffix(f.config.Queue, ".fifo") && at != fmt.Sprintf("%04d", next[group]) {
			f.Errorf("%s: done when %d is next of its group", n.body, next[group])
		}
		next[group]++
	}
}
