package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/localstack"
)

// The demo uses the queues and tables of a stack, here without its functions, and leaves them there.
func TestDeployed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", dir+"/", ".", "../publish", "../worker")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	s, err := localstack.Start(t.Context(), func(o *localstack.Options) {
		o.HTTP, o.Tables = true, []string{"records"}
		o.Queues = []localstack.Queue{{Name: "s-orders", MaxReceiveCount: 20}, {Name: "s-orders.fifo", MaxReceiveCount: 20}}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(t.Context()) }) // in memory
	if err := orders.CreateLedger(t.Context(), s.DynamoDB, "ledger"); err != nil {
		t.Fatal(err)
	}
	outputs := map[string]string{
		"OrdersQueueUrl": s.QueueURL["s-orders"], "OrdersDLQUrl": s.QueueURL["s-orders-dlq"],
		"OrdersFifoQueueUrl": s.QueueURL["s-orders.fifo"], "OrdersFifoDLQUrl": s.QueueURL["s-orders-dlq.fifo"],
		"DedupTableName": "records", "LedgerTableName": "ledger", "OrdersFunctionName": "not used",
	}
	few := filepath.Join(dir, "few.jsonl")
	all, err := os.ReadFile("../orders.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(all), "\n")[:200]
	if err := os.WriteFile(few, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	demo := func(outputs map[string]string) (string, error) {
		text, err := json.Marshal(outputs)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "outputs.json")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "demo"))
		cmd.Env = append(os.Environ(), "STACK_OUTPUTS="+file, "ORDERS="+few, "AWS_ENDPOINT_URL="+s.URL, "STORE=",
			"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_EC2_METADATA_DISABLED=true")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := demo(outputs)
	if err != nil || !strings.Contains(out, "200 effects, 0 lost, 0 doubled, 0 out of order") || !strings.Contains(out, "killed worker") ||
		!strings.Contains(out, "kill of a function left out") || !strings.Contains(out, "not counted") {
		t.Errorf("error %v\n%s", err, out)
	}
	if ledger, err := orders.ReadLedger(t.Context(), s.DynamoDB, "ledger"); err != nil || len(ledger) == 0 {
		t.Errorf("the ledger afterwards: %d accounts, error %v; want it to be there still", len(ledger), err)
	}
	delete(outputs, "LedgerTableName")
	if out, err := demo(outputs); err == nil || !strings.Contains(out, "LedgerTableName") {
		t.Errorf("without an output: error %v\n%s", err, out)
	}
}
