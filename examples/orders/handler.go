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
	DedupTable  string
	LedgerTable string
	Consumer    string        // part of every record's key
	Calls       string        // file that stands for an outside system; "" for none
	Lease       time.Duration // of a record. Default: dedup's
}

// NewHandler returns the handler: it tells the outside system about an order and books it.
//
// The two effects are guarded in the two ways there are. The booking commits in one transaction with the event's record,
// so it happens exactly once. The outside system takes no part in our transactions: the call is guarded by a record under
// a consumer name of its own, completed as soon as the call returned, so that only a crash between the two can repeat it.
func NewHandler(ddb *dynamodb.Client, c Config) (sqsonce.Handler, error) {
	store, err := dynamostore.New(ddb, c.DedupTable)
	if err != nil {
		return nil, err
	}
	lease := func(o *dedup.Options) { o.Lease = c.Lease }
	calls, err := dedup.New(store, c.Consumer+"-calls", lease)
	if err != nil {
		return nil, err
	}
	inbox, err := dynamostore.NewInbox(store, c.Consumer, lease)
	if err != nil {
		return nil, err
	}
	call := calls.Handler(sqsonce.JSON(outside{file: c.Calls}.notify))

	return inbox.Handler(func(ctx context.Context, m *sqsonce.Message, tx *dynamostore.Tx) error {
		o, err := sqsonce.Decode[Order](m)
		if err != nil {
			return err
		}
		if err := review(ctx, o); err != nil {
			return err
		}
		if err := call(ctx, m); err != nil {
			return fmt.Errorf("telling the outside system about %s: %w", o.ID, err)
		}
		tx.Update(booking(c.LedgerTable, o))
		return nil
	}), nil
}

// review waits for the person who looks at a large order. It ends with the context: a handler that outlives its lease
// must stop.
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
