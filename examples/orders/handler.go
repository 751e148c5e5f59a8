package orders

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
)

// Config names what the handler uses.
type Config struct {
	DedupTable  string        // DynamoDB table of the records
	LedgerTable string        // DynamoDB table of the ledger
	Consumer    string        // part of every record's key
	Calls       string        // file that stands for an external system; "": none
	Unknown     string        // file of the articles that the external system does not know, one on each line; "": it knows all
	Lease       time.Duration // record lease. Default: that of package dedup
	// Once is a further option of all deduplication, such as the one of package emf. Default: none.
	Once func(*dedup.Options)
	// Watch gets what deduplicates, by consumer, for those who look at its Stats. Default: none.
	Watch func(consumer string, deduplicates interface{ Stats() dedup.Stats })
	// Pause returns the handler that stops in a pause, which is in the store of the records. Default: the handler as it is.
	Pause func(records dedup.Inspector, h sqsonce.Handler) (sqsonce.Handler, error)
}

// paused returns what c.Pause returns, or h.
func (c Config) paused(records dedup.Inspector, h sqsonce.Handler) (sqsonce.Handler, error) {
	if c.Pause == nil {
		return h, nil
	}
	return c.Pause(records, h)
}

// Watched calls c.Watch, if it is set.
func (c Config) Watched(consumer string, deduplicates interface{ Stats() dedup.Stats }) {
	if c.Watch != nil {
		c.Watch(consumer, deduplicates)
	}
}

// Dedup is the option of [dedup.New] with what c has of it.
func (c Config) Dedup(o *dedup.Options) {
	o.LeaseDuration = c.Lease
	if c.Once != nil {
		c.Once(o)
	}
}

// NewHandler returns the handler with records in DynamoDB. It calls the external system about an order, then books it.
//
// The booking and the event's record commit in one transaction, so the booking is made exactly once. The external system
// takes no part in the transaction. Its call has a record of its own, under another consumer name, which is completed as
// soon as the call has returned: only a crash between the two repeats the call, or an outage of DynamoDB that begins between
// the two and outlasts the lease.
func NewHandler(ddb *dynamodb.Client, c Config) (sqsonce.Handler, error) {
	store, err := dynamostore.New(ddb, c.DedupTable)
	if err != nil {
		return nil, err
	}
	calls, err := dedup.New(store, c.Consumer+"-calls", c.Dedup)
	if err != nil {
		return nil, err
	}
	inbox, err := dynamostore.NewInbox(store, c.Consumer, c.Dedup)
	if err != nil {
		return nil, err
	}
	c.Watched(c.Consumer+"-calls", calls)
	c.Watched(c.Consumer, inbox)
	call := calls.Handler(sqsonce.JSON(externalSystem{c.Calls, c.Unknown}.notify))

	return c.paused(store, inbox.Handler(func(ctx context.Context, m *sqsonce.Message, tx *dynamostore.Tx) error {
		o, err := sqsonce.Decode[Order](m)
		if err != nil {
			return err
		}
		if err := review(ctx, o); err != nil {
			return err
		}
		if err := call(ctx, m); err != nil {
			return fmt.Errorf("calling the external system about %s: %w", o.ID, err)
		}
		tx.Update(booking(c.LedgerTable, o))
		return nil
	}))
}

// Store is a store of records.
type Store interface {
	dedup.Store
	dedup.Inspector
}

// NewHandlerWithStore returns the handler with records in any store: first the call, under a record of its own, then book.
//
// book is not called inside the call's record, as in [NewHandler], because it may be the inbox of a database: its
// transaction should not stay open during the review of an order.
func NewHandlerWithStore(store Store, c Config, book sqsonce.Handler) (sqsonce.Handler, error) {
	calls, err := dedup.New(store, c.Consumer+"-calls", c.Dedup)
	if err != nil {
		return nil, err
	}
	c.Watched(c.Consumer+"-calls", calls)
	call := calls.Handler(sqsonce.JSON(func(ctx context.Context, o Order) error {
		if err := review(ctx, o); err != nil {
			return err
		}
		return externalSystem{c.Calls, c.Unknown}.notify(ctx, o)
	}))
	return c.paused(store, func(ctx context.Context, m *sqsonce.Message) error {
		if err := call(ctx, m); err != nil {
			return fmt.Errorf("calling the external system about %s: %w", m.ID, err)
		}
		return book(ctx, m) // also where an earlier delivery made the call
	})
}

// review waits for the person who reviews a large order. It returns when ctx ends: a handler that has lost its lease must
// stop.
func review(ctx context.Context, o Order) error {
	if o.Review == "" {
		return nil
	}
	d, err := time.ParseDuration(o.Review)
	if err != nil {
		return sqsonce.Reject(fmt.Errorf("review of %s: %w", o.ID, err))
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
