//go:build unix

package orders

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// How to see what your own handler does when its process is killed in the middle of its work: the test runs itself again as the
// worker's process, and kills that. Each order is charged once, and those that were under way at the kill at most twice.

const (
	killed  = 20 // orders
	atOnce  = 3  // handlers: so many may be under way at the kill
	patient = 2 * time.Minute
)

func TestOwnHandlerAfterAKill(t *testing.T) {
	inMemory(t)
	stack, err := localstack.Start(t.Context(), func(o *localstack.Options) {
		o.Queues, o.Tables, o.HTTP = []localstack.Queue{{Name: "orders"}}, []string{"dedup"}, true
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stack.Close(context.Background())
	for i := range killed {
		send(t, stack, fmt.Sprintf("order %d", i))
	}
	charges := filepath.Join(t.TempDir(), "charges")
	first := startOwnWorker(t, stack, charges)
	eventually(t, "some orders are charged", func() bool { return len(readCharges(t, charges)) >= killed/4 })
	if err := first.Process.Kill(); err != nil { // SIGKILL
		t.Fatal(err)
	}
	startOwnWorker(t, stack, charges)
	eventually(t, "the queue is empty", func() bool { return len(stack.MemSQS().Messages("orders")) == 0 })

	all := readCharges(t, charges)
	distinct := map[string]bool{}
	for _, c := range all {
		distinct[c] = true
	}
	if len(distinct) != killed || len(all) > killed+atOnce {
		t.Errorf("%d orders charged, %d charges, want %d orders and at most %d charges more", len(distinct), len(all), killed, atOnce)
	}
}

// TestOwnWorker is the worker's process.
func TestOwnWorker(t *testing.T) {
	charges := os.Getenv("OWN_CHARGES")
	if charges == "" {
		t.Skip("TestOwnHandlerAfterAKill runs it as a process of its own")
	}
	stack, err := localstack.Start(t.Context()) // of AWS_ENDPOINT_URL
	if err != nil {
		t.Fatal(err)
	}
	store := must.Get(dynamostore.New(stack.DynamoDB, "dedup"))(t)
	once := must.Get(dedup.New(store, "billing", func(o *dedup.Options) { o.LeaseDuration = time.Second }))(t)
	charge := func(_ context.Context, m *sqsonce.Message) error { // put your own here
		f, err := os.OpenFile(charges, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteString(m.Body + "\n")
		time.Sleep(50 * time.Millisecond) // long enough for a kill between the effect and the record
		return err
	}
	w, err := sqsworker.New(stack.SQS, os.Getenv("OWN_QUEUE"), once.Handler(charge), func(o *sqsworker.Options) {
		o.Concurrency, o.VisibilityTimeout = atOnce, 2*time.Second
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(t.Context()); err != nil {
		t.Error(err)
	}
}

func startOwnWorker(t *testing.T, stack *localstack.Stack, charges string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestOwnWorker$")
	cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+stack.URL, "OWN_QUEUE="+stack.QueueURL["orders"], "OWN_CHARGES="+charges)
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be dead already
		_ = cmd.Wait()
	})
	return cmd
}

func readCharges(t *testing.T, name string) (all []string) {
	text, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		all = append(all, string(line))
	}
	return all
}

func eventually(t *testing.T, what string, is func() bool) {
	for deadline := time.Now().Add(patient); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patient, what)
		}
	}
}
