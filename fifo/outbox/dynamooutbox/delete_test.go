package dynamooutbox

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/localstack/fault"
)

func many(n int) []int {
	seqs := make([]int, n)
	for i := range seqs {
		seqs[i] = i + 1
	}
	return seqs
}

// A page is deleted by its keys, 25 a request, and nothing beside it.
func TestDelete(t *testing.T) {
	bubble(t, func(b *bed) {
		b.put("g", many(60)...)
		b.put("h", 1, 2)
		b.wantOps("BatchWriteItem BatchWriteItem BatchWriteItem", func() {
			b.remove("g", append(many(52), 60)...)
		})
		b.wantStored("orders#g 53, orders#g 54, orders#g 55, orders#g 56, orders#g 57, orders#g 58, orders#g 59, orders#h 1, orders#h 2")
		b.remove("g", 1, 2, 53, 53) // two are gone, and one is named twice
		b.wantOps("", func() { b.remove("g") })
		b.wantStored("orders#g 54, orders#g 55, orders#g 56, orders#g 57, orders#g 58, orders#g 59, orders#h 1, orders#h 2")
	})
}

// A call with many events has a bounded number of requests in flight.
func TestDeleteIsBounded(t *testing.T) {
	bubble(t, func(b *bed) {
		const requests = 40
		var inFlight, most atomic.Int64
		o := b.outbox(&deleteLens{b.ddb, func(context.Context, *dynamodb.BatchWriteItemInput, func() (*dynamodb.BatchWriteItemOutput, error)) (*dynamodb.BatchWriteItemOutput, error) {
			n := inFlight.Add(1)
			defer inFlight.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(time.Second)
			return &dynamodb.BatchWriteItemOutput{}, nil
		}}, testBox)
		if left, err := o.Delete(b.Context(), entries("g", many(requests*maxDeletes)...)); err != nil || left != nil {
			b.Errorf("got %d left, %v", len(left), err)
		}
		if most.Load() != mostRequests {
			b.Errorf("%d requests at once, want %d", most.Load(), mostRequests)
		}
	})
}

// What DynamoDB leaves unprocessed is left, with an error, and nothing else is.
func TestUnprocessedDeletes(t *testing.T) {
	bubble(t, func(b *bed) {
		b.put("g", many(25)...)
		b.faults(fault.Rule{Op: "BatchWriteItem", Nth: 1, Do: fault.FailEntries, Entries: []int{0, 7}})
		left, err := b.box.Delete(b.Context(), entries("g", many(25)...))
		if got := describe(left, err); got != "1 8 error" || !errors.Is(err, errUnprocessed) {
			b.Errorf("got %q (%v), want 1 and 8 left unprocessed", got, err)
		}
		b.wantStored("orders#g 1, orders#g 8")
		b.remove("g", 1, 8)
		b.wantStored("")
	})
}

func TestDeleteFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule fault.Rule
		want string
	}{
		"denied":     {fault.Rule{Do: fault.Error, Code: "AccessDeniedException"}, "denied"},
		"no table":   {fault.Rule{Do: fault.Error, Code: "ResourceNotFoundException"}, "denied"},
		"throttled":  {fault.Rule{Do: fault.Error, Code: "ProvisionedThroughputExceededException"}, "error"},
		"expired":    {fault.Rule{Do: fault.Error, Code: "ExpiredTokenException"}, "error"},
		"internal":   {fault.Rule{Do: fault.Error}, "error"},
		"reset":      {fault.Rule{Do: fault.Reset}, "error"},
		"lost reply": {fault.Rule{Do: fault.LoseReply}, "error"},
		"no answer":  {fault.Rule{Do: fault.Delay, Delay: time.Hour}, "error"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bed) {
				b.put("g", many(30)...)
				c.rule.Op, c.rule.Prob = "BatchWriteItem", 1
				b.faults(c.rule)
				began := time.Now()
				left, err := b.box.Delete(b.Context(), entries("g", many(30)...))
				if got := describe(nil, err); got != c.want || len(left) != 30 {
					b.Errorf("got %d left and %v, want 30 and %s", len(left), err, c.want)
				}
				if d := time.Since(began); d > callTimeout {
					b.Errorf("took %v, want at most %v", d, callTimeout)
				}
				b.faults()
				b.remove("g", many(30)...)
				b.wantStored("")
			})
		})
	}
}

// deleteLens is a client whose BatchWriteItem a test answers.
type deleteLens struct {
	Client
	write func(context.Context, *dynamodb.BatchWriteItemInput, func() (*dynamodb.BatchWriteItemOutput, error)) (*dynamodb.BatchWriteItemOutput, error)
}

func (l *deleteLens) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	return l.write(ctx, in, func() (*dynamodb.BatchWriteItemOutput, error) { return l.Client.BatchWriteItem(ctx, in, optFns...) })
}

// An answer that says nothing that can be understood leaves everything.
func TestLyingDelete(t *testing.T) {
	t.Parallel()
	unprocessed := func(w ddbtypes.WriteRequest) (*dynamodb.BatchWriteItemOutput, error) {
		return &dynamodb.BatchWriteItemOutput{UnprocessedItems: map[string][]ddbtypes.WriteRequest{testTable: {w}}}, nil
	}
	for name, write := range map[string]func() (*dynamodb.BatchWriteItemOutput, error){
		"neither": func() (*dynamodb.BatchWriteItemOutput, error) { return nil, nil },
		"panic":   func() (*dynamodb.BatchWriteItemOutput, error) { panic("wrapper") },
		"a put": func() (*dynamodb.BatchWriteItemOutput, error) {
			return unprocessed(ddbtypes.WriteRequest{PutRequest: &ddbtypes.PutRequest{}})
		},
		"nothing": func() (*dynamodb.BatchWriteItemOutput, error) { return unprocessed(ddbtypes.WriteRequest{}) },
		"another event": func() (*dynamodb.BatchWriteItemOutput, error) {
			return unprocessed(ddbtypes.WriteRequest{DeleteRequest: &ddbtypes.DeleteRequest{Key: keyOf("orders#g", 9)}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bed) {
				o := b.outbox(&deleteLens{b.ddb, func(context.Context, *dynamodb.BatchWriteItemInput, func() (*dynamodb.BatchWriteItemOutput, error)) (*dynamodb.BatchWriteItemOutput, error) {
					return write()
				}}, testBox)
				left, err := o.Delete(b.Context(), entries("g", 1, 2))
				if got := describe(left, err); got != "1 2 error" {
					b.Errorf("got %q, want both left and an error", got)
				}
			})
		})
	}
}

// DynamoDB names the limit that throttled a request in a field beside the text. The error has both.
func TestThrottlingReasons(t *testing.T) {
	bubble(t, func(b *bed) {
		b.put("g", 1)
		box := b.outbox(&deleteLens{b.ddb, func(context.Context, *dynamodb.BatchWriteItemInput, func() (*dynamodb.BatchWriteItemOutput, error)) (*dynamodb.BatchWriteItemOutput, error) {
			return nil, &ddbtypes.ThrottlingException{Message: aws.String("slow down"), ThrottlingReasons: []ddbtypes.ThrottlingReason{
				{Reason: aws.String("TableWriteKeyRangeThroughputExceeded"), Resource: aws.String("arn:outbox")},
			}}
		}}, testBox)
		_, err := box.Delete(b.Context(), entries("g", 1))
		for _, want := range []string{"TableWriteKeyRangeThroughputExceeded of arn:outbox", "slow down"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				b.Errorf("got error %v, want %q in it", err, want)
			}
		}
	})
}
