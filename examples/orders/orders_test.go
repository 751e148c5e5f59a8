package orders

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/localstack"
)

// TestHandler runs the handler as a host does, without one: the same message five times at once and once more later.
func TestHandler(t *testing.T) {
	inMemory(t)
	calls := filepath.Join(t.TempDir(), "calls")
	synctest.Test(t, func(t *testing.T) {
		handler, stack := newHandler(t, calls)
		m := message(`{"id":"ord-1/placed","account":"acct-1","amount":250,"review":"10s"}`)

		results := make(chan error, 5)
		for range 5 {
			go func() { results <- handler(t.Context(), m) }()
		}
		done, inProgress := 0, 0
		for range 5 {
			switch err := <-results; {
			case err == nil:
				done++
			case errors.Is(err, sqsonce.ErrInProgress):
				inProgress++
			default:
				t.Errorf("got %v, want nil or in progress", err)
			}
		}
		if done != 1 || inProgress != 4 {
			t.Errorf("%d done and %d in progress, want 1 and 4", done, inProgress)
		}
		if err := handler(t.Context(), m); err != nil {
			t.Errorf("once more: %v, want nil", err)
		}

		ledger, err := ReadLedger(t.Context(), stack.DynamoDB, "ledger")
		if err != nil {
			t.Fatal(err)
		}
		if got := ledger["acct-1"]; got.Balance != 250 || !slices.Equal(got.Entries, []string{"ord-1/placed"}) {
			t.Errorf("the account holds %+v, want one booking of 250", got)
		}
		made, err := ReadCalls(calls)
		if err != nil {
			t.Fatal(err)
		}
		if want := []Call{{Event: "ord-1/placed", Process: os.Getpid()}}; !slices.Equal(made, want) {
			t.Errorf("calls %v, want %v", made, want)
		}
	})
}

// A crash between the two effects: the outside call has its own record and is not made again, the booking is.
func TestBookingThatFailedDoesNotRepeatTheCall(t *testing.T) {
	inMemory(t)
	calls := filepath.Join(t.TempDir(), "calls")
	synctest.Test(t, func(t *testing.T) {
		handler, stack := newHandler(t, calls)
		m := message(`{"id":"ord-1/placed","account":"","amount":250}`) // no item has an empty key
		for range 3 {
			if err := handler(t.Context(), m); err == nil {
				t.Error("booked under an empty key, want an error")
			}
		}
		made, err := ReadCalls(calls)
		if err != nil || len(made) != 1 {
			t.Errorf("calls %v (%v), want one", made, err)
		}
		ledger, err := ReadLedger(t.Context(), stack.DynamoDB, "ledger")
		if err != nil || len(ledger) != 0 {
			t.Errorf("ledger %v (%v), want it empty", ledger, err)
		}
	})
}

func TestPoisonIsRejected(t *testing.T) {
	inMemory(t)
	synctest.Test(t, func(t *testing.T) {
		handler, _ := newHandler(t, "")
		for _, body := range []string{"not json", `{"id":"ord-1/placed","account":"a","review":"soon"}`} {
			err := handler(t.Context(), message(body))
			if _, reject := host.Asked(err); reject == nil {
				t.Errorf("%s: got %v, want a reject", body, err)
			}
		}
	})
}

// inMemory keeps the endpoints of the environment away: sockets do not work in a bubble.
func inMemory(t *testing.T) {
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_DYNAMODB"} {
		t.Setenv(name, "")
	}
}

func newHandler(t *testing.T, calls string, optFns ...func(*localstack.Options)) (sqsonce.Handler, *localstack.Stack) {
	t.Helper()
	optFns = append(optFns, func(o *localstack.Options) { o.Tables = []string{"dedup"} })
	stack, err := localstack.Start(t.Context(), optFns...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stack.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := CreateLedger(t.Context(), stack.DynamoDB, "ledger"); err != nil {
		t.Fatal(err)
	}
	handler, err := NewHandler(stack.DynamoDB, Config{
		DedupTable: "dedup", LedgerTable: "ledger", Consumer: "billing", Calls: calls, Lease: 6 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return handler, stack
}

func message(body string) *sqsonce.Message {
	return &sqsonce.Message{ID: "m-1", QueueARN: "arn:aws:sqs:us-east-1:000000000000:orders", Body: body, ReceiveCount: 1}
}

func TestReadFile(t *testing.T) {
	events, err := ReadFile("orders.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, e := range events {
		ids[e.ID] = true
		var sum int64
		for _, l := range e.Lines {
			sum += int64(l.Quantity) * l.Price
		}
		if e.Type == "order.placed" && e.Amount != sum {
			t.Errorf("%s: amount %d, its lines add up to %d", e.ID, e.Amount, sum)
		}
	}
	if len(events) != 5000 || len(ids) != 5000 {
		t.Errorf("%d events with %d IDs, want 5000 each", len(events), len(ids))
	}

	broken := filepath.Join(t.TempDir(), "broken.jsonl")
	if err := os.WriteFile(broken, []byte("{}\n{\"id\":1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(broken); err == nil || !strings.Contains(err.Error(), "broken.jsonl:2") {
		t.Errorf("got %v, want an error that names line 2", err)
	}
}
