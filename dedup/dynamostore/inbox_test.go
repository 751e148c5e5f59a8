package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

const ledgerTable = "ledger"

// onLedger is onBed with a ledger, which shows an effect that happened twice.
func onLedger(t *testing.T, f func(t *testing.T, b *bed)) {
	t.Helper()
	onBed(t, func(t *testing.T, b *bed) {
		b.createLedger()
		f(t, b)
	})
}

// runLedger is runBed with a ledger.
func runLedger(t *testing.T, name string, f func(t *testing.T, b *bed)) {
	t.Helper()
	runBed(t, name, func(t *testing.T, b *bed) {
		b.createLedger()
		f(t, b)
	})
}

func (b *bed) createLedger() {
	b.Helper()
	_, err := b.client(b.srv).CreateTable(b.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String(ledgerTable),
		BillingMode:          ddbtypes.BillingModePayPerRequest,
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("account"), AttributeType: "S"}},
		KeySchema:            keys("account"),
	})
	if err != nil {
		b.Fatal(err)
	}
}

// book adds 10 to an account, once more each time it takes effect.
func book(account string) *ddbtypes.Update {
	return &ddbtypes.Update{
		TableName:                 aws.String(ledgerTable),
		Key:                       values{"account": text(account)},
		UpdateExpression:          aws.String("ADD balance :ten"),
		ExpressionAttributeValues: values{":ten": number(10)},
	}
}

func bookAlice(_ context.Context, _ *sqsonce.Message, tx *Tx) error {
	tx.Update(book("alice"))
	return nil
}

func (b *bed) inbox(s *Store, optFns ...func(*dedup.Options)) *Inbox {
	b.Helper()
	i := must.Get(NewInbox(s, "billing", optFns...))(b)
	return i
}

func order(n int) *sqsonce.Message {
	return &sqsonce.Message{
		ID: fmt.Sprintf("message-%d", n), ReceiveCount: 1, QueueARN: "arn:aws:sqs:us-east-1:1:orders",
		Attributes: map[string]sqsonce.Attribute{
			sqsonce.AttrEventID:     {Type: "String", String: "42"},
			sqsonce.AttrEventSource: {Type: "String", String: "orders"},
		},
	}
}

func (b *bed) balance(want string) {
	b.Helper()
	if got := b.item(ledgerTable)["balance"]; got != want {
		b.Errorf("balance: got %q, want %q", got, want)
	}
}

// With every fault of the transaction the delivery succeeds, and the effect is there once.
func TestInboxWithFaults(t *testing.T) {
	t.Parallel()
	rules := append([]fault.Rule{
		{Do: fault.FailEntries, Entries: []int{0}},
		{Do: fault.FailEntries, Entries: []int{1}},
		{Do: fault.FailEntries, Entries: []int{1}, Code: "ThrottlingError"},
		{Do: fault.FailEntries, Entries: []int{0, 1}, Code: "ProvisionedThroughputExceeded"},
		{Do: fault.Error, Code: "TransactionInProgressException"},
	}, troubles...)
	for _, rule := range rules {
		for times := 1; times <= 3; times++ {
			rule.Op, rule.Nth, rule.Times = "TransactWriteItems", 1, times
			runLedger(t, describe(rule)+fmt.Sprint(rule.Entries), func(t *testing.T, b *bed) {
				h := b.inbox(b.store()).Handler(bookAlice)
				b.faults(rule)
				if err := h(t.Context(), order(1)); err != nil {
					t.Errorf("first delivery: got error %v, want nil", err)
				}
				time.Sleep(20 * time.Second)
				b.balance("10")
				if err := h(t.Context(), order(2)); err != nil {
					t.Errorf("second delivery: got error %v, want nil", err)
				}
				b.balance("10")
			})
		}
	}
}

// A crash between any two steps of a delivery: the next delivery does what is missing, and repeats no effect.
func TestInboxCrash(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		op       string
		after    bool // the request has its effect, and the process dies before the answer
		balance  string
		handlers int // runs in all
	}{
		{"before the acquire", "UpdateItem", false, "", 1},
		{"after the acquire", "UpdateItem", true, "", 1},
		{"before the commit", "TransactWriteItems", false, "", 2},
		{"after the commit", "TransactWriteItems", true, "10", 1},
	} {
		runLedger(t, c.name, func(t *testing.T, b *bed) {
			runs := 0
			handler := func(ctx context.Context, m *sqsonce.Message, tx *Tx) error {
				runs++
				return bookAlice(ctx, m, tx)
			}
			crash := &line{to: b.srv}
			s := must.Get(New(b.client(crash), testTable))(t)
			dead := errors.New("crashed")
			fell := false
			crash.set(func(target string) error {
				if fell {
					return dead
				}
				if strings.HasSuffix(target, "."+c.op) {
					fell = true
					if !c.after {
						return dead
					}
				}
				return nil
			})
			if c.after {
				b.faults(fault.Rule{Op: c.op, Nth: 1, Do: fault.LoseReply})
			}
			if err := b.inbox(s).Handler(handler)(t.Context(), order(1)); err == nil {
				t.Fatal("the delivery that crashed was acknowledged")
			}
			b.balance(c.balance)
			time.Sleep(time.Minute)
			if err := b.inbox(b.store()).Handler(handler)(t.Context(), order(2)); err != nil {
				t.Errorf("delivery after the crash: got error %v, want nil", err)
			}
			b.balance("10")
			if runs != c.handlers {
				t.Errorf("the handler ran %d times, want %d", runs, c.handlers)
			}
		})
	}
}

func TestInboxHandlerErrorWritesNothing(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for name, fail := range map[string]func() error{
		"error":  func() error { return boom },
		"reject": func() error { return sqsonce.Reject(boom) },
		"panic":  func() error { panic(boom) },
	} {
		runLedger(t, name, func(t *testing.T, b *bed) {
			i := b.inbox(b.store())
			err := i.Handler(func(ctx context.Context, m *sqsonce.Message, tx *Tx) error {
				_ = bookAlice(ctx, m, tx)
				return fail()
			})(t.Context(), order(1))
			if !errors.Is(err, boom) {
				t.Errorf("delivery: got error %v, want the handler's", err)
			}
			b.balance("")
			item := b.item(testTable)
			if item[attrUntil] != "0" || !strings.Contains(item["error"], "boom") {
				t.Errorf("record: got %v, want it released with the error", item)
			}
			if err := i.Handler(bookAlice)(t.Context(), order(2)); err != nil {
				t.Errorf("next delivery: got error %v, want nil", err)
			}
			b.balance("10")
		})
	}
}

// While the handler runs another owner takes over, or a program that does not check ownership completes the record.
func TestInboxLostLeaseWritesNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"foreign writer completed it": "SET #s=:d",
		"foreign writer deleted it":   "",
		"taken over":                  "SET #o=:x",
		"released":                    "SET in_progress_expiration=:zero",
	} {
		runLedger(t, name, func(t *testing.T, b *bed) {
			err := b.inbox(b.store()).Handler(func(ctx context.Context, m *sqsonce.Message, tx *Tx) error {
				b.meddle("billing#orders|42", change)
				return bookAlice(ctx, m, tx)
			})(t.Context(), order(1))
			if !errors.Is(err, sqsonce.ErrLeaseLost) {
				t.Errorf("delivery: got error %v, want ErrLeaseLost", err)
			}
			b.balance("")
		})
	}
}

func (b *bed) meddle(key, change string) {
	b.Helper()
	c, k := b.client(b.srv), values{attrID: text(key)}
	if change == "" {
		must.Get(c.DeleteItem(b.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(testTable), Key: k}))(b)
		return
	}
	in := &dynamodb.UpdateItemInput{TableName: aws.String(testTable), Key: k, UpdateExpression: aws.String(change)}
	for name, v := range (values{":d": text(completed), ":x": text("other"), ":zero": number(0)}) {
		if strings.Contains(change, name) {
			in.ExpressionAttributeValues = values{name: v}
		}
	}
	for ph, name := range map[string]string{"#s": attrStatus, "#o": attrOwner} {
		if strings.Contains(change, ph) {
			in.ExpressionAttributeNames = map[string]string{ph: name}
		}
	}
	must.Get(c.UpdateItem(b.Context(), in))(b)
}

func TestInboxUsersConditionFails(t *testing.T) {
	onLedger(t, func(t *testing.T, b *bed) {
		i := b.inbox(b.store())
		must.Do(t, i.Handler(bookAlice)(t.Context(), order(1)))
		m := order(2)
		m.Attributes[sqsonce.AttrEventID] = sqsonce.Attribute{Type: "String", String: "43"}
		check := &ddbtypes.ConditionCheck{
			TableName:                 aws.String(ledgerTable),
			Key:                       values{"account": text("alice")},
			ConditionExpression:       aws.String("balance >= :least"),
			ExpressionAttributeValues: values{":least": number(50)},
		}
		want := *check
		err := i.Handler(func(_ context.Context, _ *sqsonce.Message, tx *Tx) error {
			tx.Update(book("bob"))
			tx.ConditionCheck(check)
			return nil
		})(t.Context(), m)
		e, ok := errors.AsType[*ConditionError](err)
		if !ok || e.Index != 1 {
			t.Fatalf("delivery: got error %v, want a *ConditionError of write 1", err)
		}
		if balance, _ := e.Item["balance"].(*ddbtypes.AttributeValueMemberN); balance == nil || balance.Value != "10" {
			t.Errorf("ConditionError.Item: got %v, want alice's balance of 10", e.Item)
		}
		if !reflect.DeepEqual(*check, want) {
			t.Errorf("the handler's own struct was changed: got %+v", *check)
		}
		b.balance("10") // and bob has no account
	})
}

func TestNewInboxChecksItsOptions(t *testing.T) {
	t.Parallel()
	_, err := NewInbox(nil, "", func(o *dedup.Options) { o.OnStoreDown = dedup.OnStoreDownRunAnyway })
	for _, field := range []string{"store", "consumer", "Options.OnStoreDown"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("NewInbox without anything: got %v, want it to name %s", err, field)
		}
	}
	s, err := New(&refusalCounter{}, testTable)
	if err != nil {
		t.Fatal(err)
	}
	_, err = NewInbox(s, "no spaces", func(o *dedup.Options) { o.OnStoreDown = dedup.OnStoreDownRunAnyway })
	if err == nil || !strings.Contains(err.Error(), "OnStoreDownRunAnyway") || !strings.Contains(err.Error(), "consumer") {
		t.Errorf("NewInbox: got error %v, want it to name the policy and the consumer", err)
	}
}
