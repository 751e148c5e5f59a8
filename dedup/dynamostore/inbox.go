package dynamostore

import (
	"context"
	"errors"
	"log/slog"
	"time"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/question"
)

// leastLease is the least time of the lease with which a commit starts. With less the lease is renewed first.
const leastLease = 10 * time.Second

// Inbox makes a handler run once per event, as [dedup.Once] does, and commits the handler's writes to DynamoDB in one
// transaction with the completion of the event's record. A crash at any point leaves both or neither: the handler may run
// again, but its writes have their effect exactly once while the record is retained.
//
// This holds for the writes of the [Tx] only. Everything else that a handler does may be repeated after a crash.
type Inbox struct {
	store  *Store
	once   *dedup.Once
	logger *slog.Logger
}

// NewInbox returns an inbox for the consumer: see [dedup.New]. It refuses the policy OnStoreDownRunAnyway: without the record there is
// no transaction for the handler's writes. The error joins one [*sqsonce.OptionError] for each invalid argument.
func NewInbox(s *Store, consumer string, optFns ...func(*dedup.Options)) (*Inbox, error) {
	var store dedup.Store // nil where s is
	if s != nil {
		store = s
	}
	o := dedup.Options{}
	for _, fn := range optFns {
		fn(&o)
	}
	var errs []error
	if o.OnStoreDown == dedup.OnStoreDownRunAnyway {
		errs = append(errs, fieldError("Options.OnStoreDown", "is OnStoreDownRunAnyway, but without the record there is no transaction"))
	}
	once, err := dedup.New(store, consumer, optFns...)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	o.Logger = host.QueuedLogger(o.Logger)
	return &Inbox{store: s, once: once, logger: o.Logger}, nil
}

// Handler returns a handler that runs h under the event's record, and commits the writes of the Tx when h returns nil.
// Where h returns an error, nothing is written and the record is released with the error.
//
// An error of the commit is returned by the handler: a [*ConditionError] where one of h's conditions failed, a
// [*WriteError] for writes that cannot be in one transaction, [sqsonce.ErrLeaseLost] where another delivery took over,
// [ErrOutcomeUnknown], or DynamoDB's own error. With ErrOutcomeUnknown, which comes with
// [sqsonce.ErrUnavailable], the writes may have been committed, and the next delivery reads whether they were. With every other error nothing was written. For a condition that will fail again, wrap the
// handler in one that returns [sqsonce.Reject].
//
// If DynamoDB refuses the whole transaction, for example because one of h's tables does not exist, the inbox renews the
// record. If that works, h's writes are the reason, and the delivery counts as an attempt. Otherwise the error matches
// [sqsonce.ErrUnavailable], as it does after throttling or without an answer.
//
// Throttling and conflicts with other transactions are retried. After an error or a crash h may be called again for the
// same event, with a new Tx.
func (i *Inbox) Handler(h func(context.Context, *sqsonce.Message, *Tx) error) sqsonce.Handler {
	if h == nil {
		err := fieldError("handler", "is nil")
		return func(context.Context, *sqsonce.Message) error { return err }
	}
	i.once.CountHandler()
	return func(ctx context.Context, m *sqsonce.Message) error {
		return i.once.Guard(ctx, m, func(ctx context.Context, l dedup.Lease) (bool, error) {
			writes, err := i.collect(ctx, m, h)
			if err != nil {
				return false, err
			}
			if err := i.store.checkWrites(l.Key, writes); err != nil {
				return false, err
			}
			if len(writes) == 0 {
				return false, nil // dedup completes the record by an update, which costs half of a transaction
			}
			// A renewal during the transaction would make one of them fail with a conflict.
			l, err = dedup.StopRenewal(ctx, leastLease)
			if err != nil {
				return false, err
			}
			// The commit does not end when the host stops or the receipt handle is lost: the record's owner decides. It ends
			// with the lease, when the next delivery may start.
			ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), l.Until)
			defer cancel()
			if err := i.store.commit(ctx, l, writes); err != nil {
				return false, question.FromStore(err)
			}
			return true, nil
		})
	}
}

// Stats returns what the inbox has counted: see [dedup.Once.Stats].
func (i *Inbox) Stats() dedup.Stats { return i.once.Stats() }

func (i *Inbox) collect(ctx context.Context, m *sqsonce.Message, h func(context.Context, *sqsonce.Message, *Tx) error) ([]ddbtypes.TransactWriteItem, error) {
	t := &Tx{onLate: func() {
		i.logger.ErrorContext(ctx, "dynamostore: write ignored: it was added to the Tx after the handler had returned", "message_id", m.ID)
	}}
	defer t.close() // where h panics
	if err := h(ctx, m, t); err != nil {
		return nil, err
	}
	return t.close(), nil
}
