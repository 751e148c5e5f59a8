package dedup_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
)

type order struct {
	ID     string
	Amount int
}

// The producer sends an event twice, and it is handled once. In production the store is one that outlives the process.
func ExampleOnce_Handler() {
	once, err := dedup.New(memstore.New(), "billing")
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := once.Handler(sqsonce.JSON(func(_ context.Context, o order) error {
		fmt.Printf("charging %d for %s\n", o.Amount, o.ID)
		return nil
	}))

	m := &sqsonce.Message{
		ID:   "1a2b",
		Body: `{"ID": "ord-42", "Amount": 1200}`,
		Attributes: map[string]sqsonce.Attribute{
			sqsonce.AttrEventSource: {Type: "String", String: "orders"},
			sqsonce.AttrEventID:     {Type: "String", String: "ord-42/v3"},
		},
	}
	again := *m
	again.ID = "3c4d" // the producer sent the event a second time
	for _, m := range []*sqsonce.Message{m, &again} {
		fmt.Println("delivered:", handler(context.Background(), m))
	}
	fmt.Printf("duplicates: %d\n", once.Stats().Completed)
	// Output:
	// charging 1200 for ord-42
	// delivered: <nil>
	// delivered: <nil>
	// duplicates: 1
}

// The same key with another payload is a producer's mistake, not a duplicate.
func ExampleOptions_validate() {
	once, err := dedup.New(memstore.New(), "billing", func(o *dedup.Options) {
		o.Key = func(m *sqsonce.Message) (string, error) { return m.Attributes["order"].String, nil }
		o.PayloadHash = func(m *sqsonce.Message) string {
			hash := sha256.Sum256([]byte(m.Body))
			return hex.EncodeToString(hash[:])
		}
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := once.Handler(func(_ context.Context, m *sqsonce.Message) error {
		fmt.Println("handling", m.Body)
		return nil
	})
	for _, body := range []string{"pay 10", "pay 10", "pay 99"} {
		err := handler(context.Background(), &sqsonce.Message{
			Body:       body,
			Attributes: map[string]sqsonce.Attribute{"order": {Type: "String", String: "ord-42"}},
		})
		fmt.Println(body, "->", err)
	}
	// Output:
	// handling pay 10
	// pay 10 -> <nil>
	// pay 10 -> <nil>
	// pay 99 -> sqsonce: rejected: dedup: another payload under the key of a completed event (consumer billing, key billing#ord-42): give each event a key of its own
}

func ExampleDo() {
	once, err := dedup.New(memstore.New(), "payments")
	if err != nil {
		fmt.Println(err)
		return
	}
	charge := func(context.Context) (string, error) {
		fmt.Println("calling the bank")
		return "receipt-7", nil
	}
	for range 2 {
		receipt, err := dedup.Do(context.Background(), once, "ord-42", charge)
		fmt.Println(receipt, err)
	}
	// Output:
	// calling the bank
	// receipt-7 <nil>
	// receipt-7 <nil>
}

// A target that remembers the highest fence it has seen refuses an owner that was paused and lost its record meanwhile.
func ExampleFenceFrom() {
	once, err := dedup.New(memstore.New(), "billing")
	if err != nil {
		fmt.Println(err)
		return
	}
	var seen int64
	handler := once.Handler(func(ctx context.Context, _ *sqsonce.Message) error {
		fence, ok := dedup.FenceFrom(ctx)
		if !ok || fence < seen {
			return errors.New("another owner has written")
		}
		seen = fence
		fmt.Println("written under a fence")
		return nil
	})
	fmt.Println(handler(context.Background(), &sqsonce.Message{ID: "1a2b", QueueARN: "arn:aws:sqs:eu-west-1:123456789012:orders"}))
	// Output:
	// written under a fence
	// <nil>
}

// In progress is not a failure: the host delivers the message again when the owner's lease is over.
func ExampleInProgressError() {
	once, err := dedup.New(memstore.New(), "billing")
	if err != nil {
		fmt.Println(err)
		return
	}
	m := &sqsonce.Message{ID: "1a2b", QueueARN: "arn:aws:sqs:eu-west-1:123456789012:orders"}
	var handler sqsonce.Handler
	handler = once.Handler(func(ctx context.Context, m *sqsonce.Message) error {
		err := handler(ctx, m) // a second delivery of the event
		fmt.Println("in progress:", errors.Is(err, sqsonce.ErrInProgress))
		return nil
	})
	fmt.Println(handler(context.Background(), m))
	// Output:
	// in progress: true
	// <nil>
}
