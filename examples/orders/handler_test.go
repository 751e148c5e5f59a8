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
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// TestHandler calls the handler as a host does: the same message five times at once, and once more later.
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
			t.Errorf("after the first was done: %v, want nil", err)
		}

		ledger := must.Get(ReadLedger(t.Context(), stack.DynamoDB, "ledger"))(t)
		if got := ledger["acct-1"]; got.Balance != 250 || !slices.Equal(got.Entries, []string{"ord-1/placed"}) {
			t.Errorf("the account holds %+v, want one booking of 250", got)
		}
		made := must.Get(ReadCalls(calls))(t)
		if want := []Call{{Event: "ord-1/placed", Process: os.Getpid()}}; !slices.Equal(made, want) {
			t.Errorf("calls %v, want %v", made, want)
		}
	})
}

// A failure between the two effects: the call has its own record and is not made again, the booking is tried again.
func TestBookingThatFailedDoesNotRepeatTheCall(t *testing.T) {
	inMemory(t)
	calls := filepath.Join(t.TempDir(), "calls")
	synctest.Test(t, func(t *testing.T) {
		handler, stack := newHandler(t, calls)
		m := message(`{"id":"ord-1/placed","account":"","amount":250}`) // DynamoDB refuses an empty key
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

// While DynamoDB is away no order is at fault: its message must not count a try. When it is back the order is booked once.
func TestUnavailable(t *testing.T) {
	inMemory(t)
	const attempts = 20 // more than the store and the SDK make
	for name, tt := range map[string]struct {
		fault     fault.Rule
		available bool
	}{
		"connection broken before the booking":        {fault.Rule{Nth: 1, Times: attempts, Do: fault.Reset}, false},
		"connection broken after the booking":         {fault.Rule{Nth: 1, Times: attempts, Do: fault.LoseReply}, false},
		"DynamoDB fails":                              {fault.Rule{Nth: 1, Times: attempts, Do: fault.Error}, false},
		"throttled":                                   {fault.Rule{Nth: 1, Times: attempts, Do: fault.Error, Code: "ThrottlingException"}, false},
		"DynamoDB refuses the booking of the message": {fault.Rule{Nth: 1, Times: 1, Do: fault.Error, Code: "ValidationException"}, true},
	} {
		must.Run(t, name, func(t *testing.T) {
			handler, stack := newHandler(t, "")
			order := Order{ID: "ord-1/placed", Account: "acct-1", Amount: 250}
			for op, book := range map[string]func() error{
				"TransactWriteItems": func() error {
					return handler(t.Context(), message(`{"id":"ord-1/placed","account":"acct-1","amount":250}`))
				},
				"UpdateItem": func() error { return BookOnce(t.Context(), stack.DynamoDB, "ledger2", order) },
			} {
				must.Do(t, CreateLedger(t.Context(), stack.DynamoDB, "ledger2"))
				tt.fault.Op = op
				stack.MemDynamoDB().Set(fault.Plan{Rules: []fault.Rule{tt.fault}})
				if err := book(); err == nil || errors.Is(err, sqsonce.ErrUnavailable) == tt.available {
					t.Errorf("%s: got %v, want an error that matches ErrUnavailable: %t", op, err, !tt.available)
				}
				stack.MemDynamoDB().Set(fault.Plan{})
				if err := book(); err != nil {
					t.Errorf("%s: %v afterwards, want nil", op, err)
				}
			}
			for _, table := range []string{"ledger", "ledger2"} {
				ledger := must.Get(ReadLedger(t.Context(), stack.DynamoDB, table))(t)
				if got := ledger["acct-1"]; got.Balance != 250 || !slices.Equal(got.Entries, []string{order.ID}) {
					t.Errorf("%s: the account holds %+v, want one booking of 250", table, got)
				}
			}
		})
	}
}

func TestUnreadableOrderIsRejected(t *testing.T) {
	inMemory(t)
	synctest.Test(t, func(t *testing.T) {
		handler, _ := newHandler(t, "")
		for _, body := range []string{"not json", `{"id":"ord-1/placed","account":"a","review":"soon"}`} {
			err := handler(t.Context(), message(body))
			if !sqsonce.OutcomeOf(err).Reject {
				t.Errorf("%s: got %v, want a reject", body, err)
			}
		}
	})
}

// An order of an article that the external system does not know is rejected, and has no effect. When it is known, the order has both.
func TestUnknownArticle(t *testing.T) {
	inMemory(t)
	for name, newHandlerOf := range map[string]func(*localstack.Stack, Config) (sqsonce.Handler, error){
		"DynamoDB": func(s *localstack.Stack, c Config) (sqsonce.Handler, error) { return NewHandler(s.DynamoDB, c) },
		"another store": func(s *localstack.Stack, c Config) (sqsonce.Handler, error) {
			return NewHandlerWithStore(memstore.New(), c, sqsonce.JSON(func(ctx context.Context, o Order) error {
				return BookOnce(ctx, s.DynamoDB, "ledger", o)
			}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c := Config{DedupTable: "dedup", LedgerTable: "ledger", Consumer: "billing", Calls: filepath.Join(dir, "calls"), Unknown: filepath.Join(dir, "unknown")}
			must.Do(t, os.WriteFile(c.Unknown, []byte("TEA-1\nTEA-2\n"), 0o600))
			synctest.Test(t, func(t *testing.T) {
				_, stack := newHandler(t, "")
				handler := must.Get(newHandlerOf(stack, c))(t)
				m := message(`{"id":"ord-1/placed","account":"acct-1","amount":250,"lines":[{"sku":"MUG-1"},{"sku":"TEA-2"}]}`)
				err := handler(t.Context(), m)
				if !sqsonce.OutcomeOf(err).Reject || !strings.Contains(err.Error(), "TEA-2") {
					t.Errorf("got %v, want a reject that names the article", err)
				}
				if _, err := os.Stat(c.Calls); err == nil {
					t.Error("the external system was called about a rejected order")
				}
				if ledger, err := ReadLedger(t.Context(), stack.DynamoDB, "ledger"); err != nil || len(ledger) != 0 {
					t.Errorf("ledger %v (%v), want it empty", ledger, err)
				}
				must.Do(t, os.Remove(c.Unknown))
				if err := handler(t.Context(), m); err != nil {
					t.Error(err)
				}
				ledger, err := ReadLedger(t.Context(), stack.DynamoDB, "ledger")
				if err != nil || ledger["acct-1"].Balance != 250 {
					t.Errorf("ledger %v (%v), want the order booked", ledger, err)
				}
				if made, err := ReadCalls(c.Calls); err != nil || len(made) != 1 {
					t.Errorf("calls %v (%v), want one", made, err)
				}
			})
		})
	}
}

// A booking that fails does not repeat the call. A booking that was made before the handler failed is made once.
func TestHandlerWithStore(t *testing.T) {
	inMemory(t)
	calls := filepath.Join(t.TempDir(), "calls")
	synctest.Test(t, func(t *testing.T) {
		_, stack := newHandler(t, "")
		failures := 2
		handler := must.Get(NewHandlerWithStore(memstore.New(), Config{Consumer: "billing", Calls: calls, Lease: 6 * time.Second},
			sqsonce.JSON(func(ctx context.Context, o Order) error {
				if err := BookOnce(ctx, stack.DynamoDB, "ledger", o); err != nil {
					return err
				}
				if failures--; failures >= 0 {
					return errors.New("failed after the booking")
				}
				return nil
			})))(t)
		for i := range 4 {
			m := message(`{"id":"ord-1/placed","account":"acct-1","amount":250,"review":"10s"}`)
			if err := handler(t.Context(), m); (err == nil) != (i >= 2) {
				t.Errorf("delivery %d: %v", i+1, err)
			}
		}
		other := message("not json")
		other.ID = "m-2"
		err := handler(t.Context(), other)
		if !sqsonce.OutcomeOf(err).Reject {
			t.Errorf("a body that is not JSON: got %v, want a reject", err)
		}
		ledger := must.Get(ReadLedger(t.Context(), stack.DynamoDB, "ledger"))(t)
		if got := ledger["acct-1"]; got.Balance != 250 || !slices.Equal(got.Entries, []string{"ord-1/placed"}) {
			t.Errorf("the account holds %+v, want one booking of 250", got)
		}
	})
	made, err := ReadCalls(calls)
	if err != nil || len(made) != 1 {
		t.Errorf("calls %v (%v), want one", made, err)
	}
}

func newHandler(t *testing.T, calls string, optFns ...func(*localstack.Options)) (sqsonce.Handler, *localstack.Stack) {
	t.Helper()
	optFns = append(optFns, func(o *localstack.Options) { o.Tables = []string{"dedup"} })
	stack := must.Get(localstack.Start(t.Context(), optFns...))(t)
	t.Cleanup(func() {
		if err := stack.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	must.Do(t, CreateLedger(t.Context(), stack.DynamoDB, "ledger"))
	handler := must.Get(NewHandler(stack.DynamoDB, Config{
		DedupTable: "dedup", LedgerTable: "ledger", Consumer: "billing", Calls: calls, Lease: 6 * time.Second,
	}))(t)
	return handler, stack
}

func message(body string) *sqsonce.Message {
	return &sqsonce.Message{ID: "m-1", QueueARN: "arn:aws:sqs:us-east-1:000000000000:orders", Body: body, ReceiveCount: 1}
}

// inMemory makes localstack.Start, and the processes that a test starts, ignore the endpoints of the environment.
func inMemory(t *testing.T) {
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_DYNAMODB"} {
		t.Setenv(name, "")
	}
}

func TestReadFile(t *testing.T) {
	events := must.Get(ReadFile("orders.jsonl"))(t)
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
	must.Do(t, os.WriteFile(broken, []byte("{}\n{\"id\":1}\n"), 0o600))
	if _, err := ReadFile(broken); err == nil || !strings.Contains(err.Error(), "broken.jsonl:2") {
		t.Errorf("got %v, want an error that names line 2", err)
	}
}
