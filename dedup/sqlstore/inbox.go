package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// Inbox runs a handler in the transaction that writes its event's record: both are committed, or neither is. A crash at
// any point leaves the event as if its handler had never run, or as done; the handler's writes to this database have
// their effect exactly once for as long as the record is retained.
//
// Only what goes through the handler's *sql.Tx is so protected. Everything else a handler does may be repeated.
//
// The record's row is locked while the handler runs, and that lock is all there is: no lease, nothing to renew, no second
// commit. A second delivery of the event waits for the lock in another process, and in this one for the first delivery
// itself ([dedup.Options.Wait]). It costs a bare transaction one INSERT more. While it runs, a delivery has one of the
// pool's connections: the pool must be larger than the host's concurrency where handlers use others beside.
type Inbox struct {
	store *Store
	text  inboxTexts
	first prepared // the INSERT
	once  *dedup.Once
	wait  time.Duration // for a lock, a connection, a commit
}

// NewInbox returns an inbox for the consumer: see [dedup.New]. It shares the table and the keys with a [dedup.Once] of
// the same store and consumer, and each respects the other's records.
//
// These options mean something else than for a Once:
//
//   - CallTimeout is also how long a delivery waits for another process's delivery of its event, and for a connection.
//   - Lease only tells a second delivery in this process when to come back.
//   - OnCrash must be Rerun, since a crash leaves nothing behind that could be blocked, and OnStoreDown FailClosed, since
//     without the record there is no transaction. OnCompleteFailed is never asked: success and record are one.
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
	if o.OnCrash == dedup.Block || o.OnCrash == dedup.DeadLetter {
		errs = append(errs, fieldError("Options.OnCrash", "must be Rerun: a crash is rolled back and leaves no record"))
	}
	i := &Inbox{store: s, text: newInboxTexts(s.dialect), wait: cmp.Or(o.CallTimeout, ownTimeout)}
	i.first.store, i.first.text = s, i.text.insert
	once, err := dedup.New(inboxStore{i}, consumer, optFns...)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	i.once = once
	return i, nil
}

// Handler returns a handler that runs h in a transaction with the event's record, and commits when h returns nil.
//
// Its error is:
//
//   - nil: h returned nil and its writes are committed with the record; or the event was completed before, h was not
//     called and nothing was written.
//   - h's own error, unchanged: the transaction was rolled back. The record keeps the error's text and the receive count.
//     A panic is a [*sqsonce.PanicError]. After a [sqsonce.Reject] the transaction stays open, and the event locked, until
//     the host has settled the message.
//   - matching [sqsonce.ErrInProgress]: another delivery holds the event, or its row was locked for longer than
//     CallTimeout. h was not called.
//   - matching [ErrOutcomeUnknown]: the commit's answer was lost and the database could not be asked afterwards. The next
//     delivery finds out.
//   - [ErrTxEnded]: h rolled its transaction back itself and returned nil.
//   - a [*DatabaseError], or any other: the record could not be checked, and h was not called, or the commit was refused.
//
// h may be called again within one delivery, in a new transaction after the old one was rolled back: where the database
// ended it as a deadlock's victim or as not serializable, in a statement or in the commit, and where a commit's answer
// was lost and the record shows that it did not happen. That is tried a few times, with jitter. So h must do nothing but
// read and write through its Tx that it would not do again, must return the errors of its statements, and must not keep
// results in variables of its own from one call to the next.
//
// On MySQL this is more than advice: a deadlock rolls the whole transaction back and later statements of the same Tx
// are committed one by one, so a handler that goes on after one would have an effect without a record.
//
// The commit is not cut off by the end of ctx: a host that stops does not undo what has succeeded. CallTimeout bounds it
// with pgx; with the MySQL driver only the parameter readTimeout of the data source name does.
//
// The isolation level is the database's default. Any will do.
func (i *Inbox) Handler(h func(context.Context, *sqsonce.Message, *sql.Tx) error) sqsonce.Handler {
	if h == nil {
		err := fieldError("handler", "is nil")
		return func(context.Context, *sqsonce.Message) error { return err }
	}
	return func(ctx context.Context, m *sqsonce.Message) error {
		d := &delivery{inbox: i}
		d.tx = guarded{store: i.store, wait: i.wait, mark: d.insert}
		ctx = context.WithValue(ctx, deliveryKey{}, d)
		return i.once.Guard(ctx, m, func(ctx context.Context, _ dedup.Lease) (bool, error) {
			err := d.tx.run(ctx, func(tx *sql.Tx) error { return h(ctx, m, tx) })
			return err == nil, err
		})
	}
}

// Stats returns what the inbox has counted: see [dedup.Once.Stats].
func (i *Inbox) Stats() dedup.Stats { return i.once.Stats() }

// inboxStore is how a Once sees the transactions: a record is acquired by writing it as completed in a transaction that
// is not committed, released by rolling that back, and completed by the commit, which is not the Once's to do. All of a
// delivery's calls have contexts that carry it.
type inboxStore struct{ inbox *Inbox }

type deliveryKey struct{}

func deliveryFrom(ctx context.Context) *delivery { return ctx.Value(deliveryKey{}).(*delivery) }

func (s inboxStore) Acquire(ctx context.Context, c dedup.Claim) (dedup.Lease, error) {
	d := deliveryFrom(ctx)
	d.claim = c
	if err := checkClaim(c); err != nil {
		return dedup.Lease{}, err
	}
	if err := s.inbox.store.use(ctx); err != nil {
		return dedup.Lease{}, err
	}
	s.inbox.first.prepare(ctx)
	if err := d.tx.begin(ctx); err != nil {
		return dedup.Lease{}, err
	}
	return s.Renew(ctx, d.lease, c.Lease)
}

// Renew asks nobody: the row's lock has no end, and the transaction's connection is the handler's.
func (s inboxStore) Renew(_ context.Context, l dedup.Lease, length time.Duration) (dedup.Lease, error) {
	l.Until = time.Now().Add(length)
	return l, nil
}

func (s inboxStore) Complete(context.Context, dedup.Lease, dedup.Result) error {
	return errors.New("sqlstore: an inbox's record is completed by its transaction")
}

func (s inboxStore) Release(ctx context.Context, _ dedup.Lease, cause error) error {
	d := deliveryFrom(ctx)
	d.tx.rollback()
	return d.note(ctx, cause)
}
