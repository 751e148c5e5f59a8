package dynamostore

import (
	"context"
	"errors"
	"log/slog"
	"time"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// leastLeft is how much of the lease there should be before a commit; with less it is renewed first.
const leastLeft = 10 * time.Second

// Inbox guards a handler as [dedup.Once] does, and commits what the handler writes to DynamoDB in one transaction with
// the completion of the event's record. A crash at any point leaves both or neither: the handler may run again, its
// writes have their effect exactly once for as long as the record is retained.
//
// Only the writes of the [Tx] are so protected. Everything else a handler does may be repeated after a crash.
type Inbox struct {
	store  *Store
	once   *dedup.Once
	logger *slog.Logger
}

// NewInbox returns an inbox for the consumer: see [dedup.New]. The policy RunAnyway is refused: without the record there
// is nothing that the handler's writes could be committed with.
func NewInbox(s *Store, consumer string, optFns ...func(*dedup.Options)) (*Inbox, error) {
	if s == nil {
		return nil, fieldError("store", "is nil")
	}
	o := dedup.Options{}
	for _, fn := range optFns {
		fn(&o)
	}
	var errs []error
	if o.OnStoreDown == dedup.RunAnyway {
		errs = append(errs, fieldError("Options.OnStoreDown", "RunAnyway has no transaction"))
	}
	once, err := dedup.New(s, consumer, optFns...)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Inbox{store: s, once: once, logger: o.Logger}, nil
}

// Handler returns a handler that runs h under the event's record and commits what h has put into the Tx when it returns
// nil. Where h returns an error nothing is written and the record is released with the error.
//
// The commit's own errors are the handler's: a [*ConditionError] where one of h's conditions was not met, a
// [*WriteError] for writes that make no transaction, [sqsonce.ErrLeaseLost] where another delivery took over,
// [ErrOutcomeUnknown], or a [*TableError]. Nothing was written, but for ErrOutcomeUnknown, where it may have been:
// the next delivery finds out. A condition that will never be met is worth a [sqsonce.Reject], made by a handler around
// this one.
//
// Conflicts with other transactions and throttling are retried. h may be called again for the same event after an error
// or a crash, with a new Tx.
func (i *Inbox) Handler(h func(context.Context, *sqsonce.Message, *Tx) error) sqsonce.Handler {
	if h == nil {
		err := fieldError("handler", "is nil")
		return func(context.Context, *sqsonce.Message) error { return err }
	}
	return func(ctx context.Context, m *sqsonce.Message) error {
		return i.once.Guard(ctx, m, func(ctx context.Context, l dedup.Lease) (bool, error) {
			writes, err := i.collect(ctx, m, h)
			if err != nil {
				return false, err
			}
			if err := i.store.prepare(l.Key, writes); err != nil {
				return false, err
			}
			if len(writes) == 0 {
				return false, nil // the plain completion costs half of the transactional one
			}
			// A renewal that met the transaction would make one of them fail with a conflict.
			l, err = dedup.StopRenewal(ctx, leastLeft)
			if err != nil {
				return false, err
			}
			// Not cut off by a host that stops, nor by a lost receipt handle: the record's owner decides. Not later than
			// the lease's end either, when the next delivery may start.
			ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), l.Until)
			defer cancel()
			if err := i.store.commit(ctx, l, writes); err != nil {
				return false, err
			}
			return true, nil
		})
	}
}

// Stats returns what the inbox has counted: see [dedup.Once.Stats].
func (i *Inbox) Stats() dedup.Stats { return i.once.Stats() }

func (i *Inbox) collect(ctx context.Context, m *sqsonce.Message, h func(context.Context, *sqsonce.Message, *Tx) error) ([]ddbtypes.TransactWriteItem, error) {
	t := &Tx{late: func() {
		i.logger.ErrorContext(ctx, "dynamostore: a write came after its handler had returned, and is in no transaction", "message_id", m.ID)
	}}
	defer t.close() // also where h panics
	if err := h(ctx, m, t); err != nil {
		return nil, err
	}
	return t.close(), nil
}
