package dynamostore

import (
	"context"
	"errors"
	"slices"
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

// A commit whose attempt was given up arrives while a later attempt is under way, which has a new token after a conflict.
// The later attempt finds the record completed by an earlier token of its own.
func TestInboxRecognisesAnEarlierCommitOfItsOwn(t *testing.T) {
	onLedger(t, func(t *testing.T, b *bed) {
		h := b.inbox(b.store()).Handler(bookAlice)
		b.faults(
			fault.Rule{Op: "TransactWriteItems", Nth: 1, Do: fault.Delay, Delay: 3 * time.Second},
			fault.Rule{Op: "TransactWriteItems", Nth: 2, Do: fault.FailEntries, Entries: []int{0, 1}},
			fault.Rule{Op: "TransactWriteItems", Nth: 3, Do: fault.Delay, Delay: 3 * time.Second},
		)
		if err := h(t.Context(), order(1)); err != nil {
			t.Errorf("delivery: got error %v, want nil", err)
		}
		b.balance("10")
	})
}

// The network delays every attempt of the commit beyond the lease: all of them arrive after the release.
func TestInboxCommitAfterReleaseIsRefused(t *testing.T) {
	onLedger(t, func(t *testing.T, b *bed) {
		h := b.inbox(b.store()).Handler(bookAlice)
		b.faults(fault.Rule{Op: "TransactWriteItems", Nth: 1, Times: 100, Do: fault.Delay, Delay: 90 * time.Second})
		start, sent := time.Now(), len(b.srv.Calls())
		if err := h(t.Context(), order(1)); !errors.Is(err, dedup.ErrCommitUnknown) || !errors.Is(err, sqsonce.ErrUnavailable) {
			t.Errorf("delivery: got error %v, want ErrCommitUnknown, and unavailable", err)
		}
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("the commit was tried for %s, want no longer than the lease", took)
		}
		// No renewal during the commit, which would make one of the two fail with a conflict.
		if got, want := b.ops(sent), []string{"UpdateItem", "UpdateItem"}; !slices.Equal(got, want) {
			t.Errorf("calls answered: got %v, want the acquire and the release", got)
		}
		if item := b.item(testTable); item[attrUntil] != "0" {
			t.Errorf("record: got %v, want it released", item)
		}
		time.Sleep(5 * time.Minute)
		b.balance("")
		b.faults()
		if err := h(t.Context(), order(2)); err != nil {
			t.Errorf("next delivery: got error %v, want nil", err)
		}
		b.balance("10")
	})
}

// The token stays while its outcome is unknown, so that DynamoDB recognises it. After a cancellation it is new.
func TestInboxTokens(t *testing.T) {
	onLedger(t, func(t *testing.T, b *bed) {
		s := b.store()
		tap := &tokenTap{Client: s.client}
		s.client = tap
		b.faults(
			fault.Rule{Op: "TransactWriteItems", Nth: 1, Do: fault.Reset},
			fault.Rule{Op: "TransactWriteItems", Nth: 2, Do: fault.Error, Code: "ThrottlingException"},
			fault.Rule{Op: "TransactWriteItems", Nth: 3, Do: fault.FailEntries, Entries: []int{1}},
			fault.Rule{Op: "TransactWriteItems", Nth: 4, Do: fault.LoseReply},
		)
		must.Do(t, b.inbox(s).Handler(bookAlice)(t.Context(), order(1)))
		k := tap.tokens
		if len(k) != 5 || k[0] != k[1] || k[1] != k[2] || k[2] == k[3] || k[3] != k[4] {
			t.Errorf("tokens: got %v, want one for the first three attempts and another for the last two", k)
		}
		if len(k[0]) > 36 {
			t.Errorf("token %q is longer than 36 characters", k[0])
		}
		if got := b.item(testTable)["tx"]; got != k[len(k)-1] {
			t.Errorf("token of the record: got %q, want the last one", got)
		}
	})
}

type tokenTap struct {
	Client
	tokens []string
}

func (c *tokenTap) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, optFns ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	c.tokens = append(c.tokens, *in.ClientRequestToken)
	return c.Client.TransactWriteItems(ctx, in, optFns...)
}

// A host that stops cancels the handler's context. A commit that is under way is not cancelled: its outcome would be
// unknown.
func TestInboxCommitOutlivesTheContext(t *testing.T) {
	onLedger(t, func(t *testing.T, b *bed) {
		h := b.inbox(b.store()).Handler(bookAlice)
		b.faults(fault.Rule{Op: "TransactWriteItems", Nth: 1, Do: fault.Delay, Delay: time.Second})
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(sqsonce.ErrShutdown) })
		if err := h(ctx, order(1)); err != nil {
			t.Errorf("delivery: got error %v, want nil", err)
		}
		b.balance("10")
	})
}

// With less than 10 s of the lease left the commit and its retries might outlive it: the lease is renewed first.
func TestInboxRenewsAShortLeaseBeforeTheCommit(t *testing.T) {
	t.Parallel()
	for length, want := range map[time.Duration][]string{
		12 * time.Second: {"UpdateItem", "UpdateItem", "TransactWriteItems"}, // 9 s are left
		30 * time.Second: {"UpdateItem", "TransactWriteItems"},
	} {
		runLedger(t, length.String(), func(t *testing.T, b *bed) {
			h := b.inbox(b.store(), func(o *dedup.Options) { o.LeaseDuration = length }).Handler(
				func(ctx context.Context, m *sqsonce.Message, tx *Tx) error {
					time.Sleep(3 * time.Second)
					return bookAlice(ctx, m, tx)
				})
			sent, start := len(b.srv.Calls()), time.Now()
			must.Do(t, h(t.Context(), order(1)))
			if took := time.Since(start); took != 3*time.Second {
				t.Errorf("took %s, want the handler's 3 s: only a later attempt is delayed", took)
			}
			if got := b.ops(sent); !slices.Equal(got, want) {
				t.Errorf("calls: got %v, want %v", got, want)
			}
		})
	}
}

// The error of a call that was given up has the error of its last attempt.
func TestBecause(t *testing.T) {
	t.Parallel()
	reason, last := errors.New("context ended"), errors.New("throttled")
	if got := because(reason, nil); got != reason {
		t.Errorf("without an attempt: %v", got)
	}
	if got := because(reason, last); !errors.Is(got, reason) || !errors.Is(got, last) {
		t.Errorf("after an attempt: %v", got)
	}
}

// What a transaction's reasons say is in the error. One that is cancelled without a reason is an error, not a crash.
func TestCancellationReasons(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reasons []string // codes
		want    string   // in the error; "": it is not final
	}{
		"no reasons":                   {nil, "without a reason"},
		"no codes":                     {[]string{"", ""}, "without a reason"},
		"none":                         {[]string{reasonNone, reasonNone}, "without a reason"},
		"the record, transient":        {[]string{"TransactionConflict", "ValidationError"}, ""},
		"the record":                   {[]string{"ValidationError", "AccessDenied"}, "record: ValidationError: text"},
		"a write, transient":           {[]string{reasonNone, reasonNone, "TransactionConflict"}, ""},
		"a write":                      {[]string{reasonNone, "", "ValidationError"}, "write 1: ValidationError: text"},
		"a write, and a transient one": {[]string{reasonNone, "TransactionConflict", "ValidationError"}, "write 1: ValidationError: text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var reasons []ddbtypes.CancellationReason
			for _, code := range c.reasons {
				reasons = append(reasons, ddbtypes.CancellationReason{Code: aws.String(code), Message: aws.String("text")})
			}
			final, err := readCancellation(reasons, nil)
			if final != (c.want != "") || final && (err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, sqsonce.ErrLeaseLost)) {
				t.Errorf("got final %t, %v, want %q", final, err, c.want)
			}
		})
	}
}
