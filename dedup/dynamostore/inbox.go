package dynamostore

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/inboxkit"
	"github.com/sqsonce/sqsonce/internal/question"
)

// leastLease is the least time of the lease with which a commit starts. With less the lease is renewed first.
const leastLease = 10 * time.Second

// Inbox skips completed events, like [dedup.Once], and commits the handler's writes to DynamoDB in one
// transaction with the completion of the event's record. A crash at any point leaves both or neither. The handler may run
// again, but its writes have their effect exactly once while the record is retained.
//
// This holds for the writes of the [Tx] only. Everything else that a handler does may be repeated after a crash.
type Inbox struct {
	store  *Store
	once   *dedup.Once
	logger *slog.Logger
}

// NewInbox returns an inbox for the consumer: see [dedup.New]. It refuses the policy OnStoreDownRunAnyway, because the
// transaction of the handler's writes needs the record. The error joins one [*sqsonce.OptionError] for each invalid
// argument.
func NewInbox(s *Store, consumer string, optFns ...func(*dedup.Options)) (*Inbox, error) {
	var store dedup.Store // nil if s is
	if s != nil {
		store = inboxStore{s}
	}
	o := dedup.Options{}
	for _, fn := range optFns {
		fn(&o)
	}
	var errs []error
	if o.OnStoreDown == dedup.OnStoreDownRunAnyway {
		errs = append(errs, fieldError("Options.OnStoreDown", "is OnStoreDownRunAnyway, but an inbox commits the effect with the record: use OnStoreDownFailClosed"))
	}
	once, err := dedup.New(store, consumer, optFns...)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	o.Logger = host.QueuedLogger(o.Logger)
	return &Inbox{store: s, once: once, logger: o.Logger}, nil
}

// Handler returns a handler that runs h under the event's record, and commits the writes of the Tx when h returns nil. If h
// returns an error, the inbox doesn't write, and releases the record with the error.
//
// The handler returns the error of the commit. It is one of these:
//
//   - a [*ConditionError] if one of h's conditions failed
//   - an error that names the write, for writes that can't be in one transaction
//   - [sqsonce.ErrLeaseLost] if another delivery took over
//   - [dedup.ErrCommitUnknown], which comes with [sqsonce.ErrUnavailable]. The writes may have been committed, and the next
//     delivery reads whether they were.
//   - DynamoDB's own error
//
// With every error other than ErrCommitUnknown the transaction was not written. For a condition that will fail again, wrap
// the handler in one that returns [sqsonce.Reject].
//
// If DynamoDB refuses the whole transaction, for example because one of h's tables doesn't exist, the inbox writes another
// record in a transaction. If that works, h's writes are the reason, and the delivery counts as an attempt. Otherwise the error matches
// [sqsonce.ErrUnavailable], as it does after throttling or without an answer.
//
// The inbox retries throttling and conflicts with other transactions. After an error or a crash h may be called again for
// the same event, with a new Tx.
func (i *Inbox) Handler(h func(context.Context, *sqsonce.Message, *Tx) error) sqsonce.Handler {
	if h == nil {
		return nil
	}
	return inboxkit.Guard(i.once, func(ctx context.Context, m *sqsonce.Message, l dedup.Lease) (bool, error) {
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
		l, err = inboxkit.StopRenewal(ctx, leastLease)
		if err != nil {
			return false, err
		}
		// The commit does not end when the host stops or the receipt handle is lost: the record's owner decides. It ends
		// with the lease, when the next delivery may start.
		ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), l.Until)
		defer cancel()
		err = i.store.commit(ctx, l, inboxkit.ResultOf(ctx, nil), writes)
		_, condition := errors.AsType[*ConditionError](err)
		if _, write := errors.AsType[*writeError](err); !condition && !write { // these are the handler's
			err = question.FromStore(err)
		}
		return err == nil, err
	})
}

// inboxStore is a store whose transactions dedup asks about.
type inboxStore struct{ *Store }

// Ask tells dedup whether inboxes can work. It writes the claim's record in a transaction, as if it was released.
func (s inboxStore) Ask(ctx context.Context, c dedup.Claim) error {
	return s.explain("question", s.retry(ctx, func(ctx context.Context, options func(*dynamodb.Options)) error {
		a := s.newAcquisition(c, 0, s.clock.look())
		a.until = 0
		return s.transact(ctx, c.Key, rand.Text(), askExpr, a.values(), nil, options)
	}))
}

// Stats returns the inbox's counters: see [dedup.Once.Stats].
func (i *Inbox) Stats() dedup.Stats { return i.once.Stats() }

func (i *Inbox) collect(ctx context.Context, m *sqsonce.Message, h func(context.Context, *sqsonce.Message, *Tx) error) ([]ddbtypes.TransactWriteItem, error) {
	t := &Tx{onLate: func() {
		i.logger.ErrorContext(ctx, "dynamostore: write ignored: it was added to the Tx after the handler had returned", "message_id", m.ID)
	}}
	defer t.close() // if h panics
	if err := h(ctx, m, t); err != nil {
		return nil, err
	}
	return t.close(), nil
}
