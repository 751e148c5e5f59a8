package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/inboxkit"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// Inbox runs a handler in the transaction that writes its event's record, so that both are committed or neither is. A crash
// at any point leaves the event either not handled or done. The handler's writes to this database have their effect exactly
// once, for as long as the record is retained.
//
// This holds only for writes that go through the handler's *sql.Tx. Everything else that a handler does may be repeated.
// And it holds only if the handler's statements don't commit: see [ErrImplicitCommit].
//
// An inbox adds two statements to the handler's transaction: an INSERT of the record before the handler, and an UPDATE that
// completes it after the handler. From the second receive on, a transaction of its own notes the start first, so that the
// host learns of a crash. [Store.Inspect] then shows the event as crashed until its handler has returned. The transaction
// keeps the row locked, so the inbox doesn't renew the record, and the handler's writes need only one commit. A second
// delivery of the event waits. In another process it waits for the row's lock, and in this process for the first delivery
// itself ([dedup.Options.PeerWait]).
//
// Each running delivery uses one connection of the pool. If handlers use others too, the pool must be larger than the
// host's concurrency, or handlers that have all connections wait for each other. After two to three times CallTimeout + 2
// s, the inbox then cancels one of their contexts, and its delivery fails with an error that names the pool and matches
// [sqsonce.ErrUnavailable]. The inbox doesn't see this if several stores, or other parts of the program, share the pool and
// wait for it.
type Inbox struct {
	store    *Store
	stmts    func() inboxStatements
	insert   prepared
	complete prepared
	once     *dedup.Once
	wait     time.Duration // for a lock, a connection, a commit
}

// NewInbox returns an inbox for the consumer: see [dedup.New]. It shares the table and the keys with a [dedup.Once] of the
// same store and consumer, and each respects the other's records.
//
// These options have another meaning than for a Once:
//
//   - CallTimeout also limits how long a delivery waits for a connection, and for another process's delivery of its event.
//     And it is the lease of a record that an implicit commit has made visible, see [ErrImplicitCommit].
//   - LeaseDuration only tells a second delivery in this process when to come back.
//   - OnCrash must be OnCrashRerun, because a crash is rolled back.
//   - OnStoreDown must be OnStoreDownFailClosed, because the transaction needs the record.
//   - OnCompleteFailed is not used, because the handler's writes and the record are committed together.
//
// The error joins one [*sqsonce.OptionError] per argument that can't be used.
func NewInbox(s *Store, consumer string, optFns ...func(*dedup.Options)) (*Inbox, error) {
	if s == nil {
		return nil, fieldError("store", "is nil")
	}
	o := dedup.Options{}
	for _, fn := range optFns {
		fn(&o)
	}
	var errs []error
	if o.OnStoreDown == dedup.OnStoreDownRunAnyway {
		errs = append(errs, fieldError("Options.OnStoreDown", "must be OnStoreDownFailClosed: an inbox commits the effect with the record"))
	}
	if o.OnCrash == dedup.OnCrashBlock || o.OnCrash == dedup.OnCrashDeadLetter {
		errs = append(errs, fieldError("Options.OnCrash", "must be OnCrashRerun: a crash is rolled back"))
	}
	i := &Inbox{store: s, stmts: sqldb.Statements(s.place, newInboxStatements), wait: cmp.Or(o.CallTimeout, sqldb.CleanupTimeout)}
	i.insert.store, i.insert.text = s, func() string { return s.stmts().insert }
	i.complete.store, i.complete.text = s, func() string { return i.stmts().complete }
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
//   - nil if h returned nil and its writes are committed with the record. It is also nil if the event was completed before.
//     The inbox then doesn't call h and doesn't write.
//   - a success without an effect, such as a [sqsonce.Skip] of h. The transaction was rolled back, and another transaction
//     completed the record.
//   - h's own error, unchanged. The transaction was rolled back. The record stores the error's text and the receive count.
//     A panic is a [*sqsonce.PanicError]. After a [sqsonce.Reject] the transaction stays open and the event locked until
//     the host has settled the message.
//   - matching [sqsonce.ErrInProgress] if another delivery is handling the event, or if its row was locked for longer than
//     CallTimeout. h was not called.
//   - matching [dedup.ErrCommitUnknown] if the commit's reply was lost and the database could not be asked afterwards. The next
//     delivery finds out.
//   - [ErrTxEnded] if the transaction had ended before h returned nil.
//   - matching [ErrImplicitCommit], and h's own error, if h failed after a statement of it had committed its transaction.
//     After a panic, runtime.Goexit or a Reject the store's log says so instead.
//   - matching [sqsonce.ErrUnavailable], if the record could not be checked and h was not
//     called, or if the database doesn't answer after h's transaction failed. It doesn't count as an attempt.
//   - any other error if h returned nil and the database refused to complete the record or to commit, for example because h
//     changed the role. It counts as an attempt, like an error of h.
//
// One delivery may call h more than once, each time in a new transaction after the old one was rolled back. This happens if
// the database ends the transaction as a deadlock's victim or as not serializable, in a statement or in the commit. It also
// happens if a commit's reply was lost and the record shows that the commit did not happen. The number of calls is limited,
// with jitter between them. If the connection ends before the commit, or a statement exceeds its timeout, the inbox calls h
// once more. If that happens again, the delivery fails, because a statement of h may be the cause.
//
// So everything that h does must be safe to repeat, except reads and writes through its Tx. h must return the errors of its
// statements. It must not keep results in variables from one call to the next.
//
// On MySQL a deadlock rolls the whole transaction back, and later statements of the same Tx are committed one by one. If a
// handler continues after a deadlock, the record's UPDATE doesn't find its row, and the delivery fails with ErrTxEnded. The
// event runs again, and the writes that were committed one by one are there twice.
//
// h may use savepoints. It must leave the session as it was, because autocommit, isolation level and settings stay with the
// connection, which others use after it.
//
// The end of ctx doesn't cancel the commit, because a host that stops must not undo a success. CallTimeout limits the commit
// with pgx. With the MySQL driver only the parameter readTimeout of the data source name limits it. All isolation levels work.
func (i *Inbox) Handler(h func(context.Context, *sqsonce.Message, *sql.Tx) error) sqsonce.Handler {
	if h == nil {
		return nil
	}
	guarded := inboxkit.Guard(i.once, func(ctx context.Context, m *sqsonce.Message, _ dedup.Lease) (bool, error) {
		d := deliveryFrom(ctx)
		err := d.tx.run(ctx, func(ctx context.Context, tx *sql.Tx) error {
			inboxkit.Recording(ctx, false) // it may have been called before
			err := h(ctx, m, tx)
			inboxkit.Recording(ctx, true)
			return err
		})
		switch {
		case host.Void(err):
			return d.skip(ctx, err)
		case !sqsonce.OutcomeOf(err).Reject:
			err = d.tx.abort(ctx, err)
		}
		return err == nil, err
	})
	return func(ctx context.Context, m *sqsonce.Message) error {
		d := &delivery{inbox: i}
		d.tx = eventTx{store: i.store, wait: i.wait, row: d}
		return guarded(context.WithValue(ctx, deliveryKey{}, d), m)
	}
}

// Stats returns the inbox's counters: see [dedup.Once.Stats].
func (i *Inbox) Stats() dedup.Stats { return i.once.Stats() }

// inboxStore presents the transactions to a Once as a store. Acquire writes the record in a transaction that isn't
// committed. Release rolls it back. The transaction completes the record, so the Once never calls Complete. The contexts of
// all calls carry the delivery.
type inboxStore struct{ inbox *Inbox }

func (s inboxStore) Acquire(ctx context.Context, c dedup.Claim) (dedup.Grant, error) {
	d := deliveryFrom(ctx)
	d.claim = c
	d.claim.Lease = s.inbox.wait
	if err := checkClaim(c); err != nil {
		return dedup.Grant{}, err
	}
	if err := s.inbox.store.ensureChecked(ctx); err != nil {
		return dedup.Grant{}, err
	}
	s.inbox.insert.prepare(ctx)
	s.inbox.complete.prepare(ctx)
	if err := d.noteStart(ctx); err != nil {
		return d.refused(ctx, err)
	}
	if err := d.tx.begin(ctx); err != nil {
		d.withdrawStart(ctx, err)
		return d.refused(ctx, err)
	}
	l, err := s.Renew(ctx, d.lease, c.Lease)
	return dedup.Grant{Verdict: dedup.VerdictGranted, Lease: l}, err
}

// Renew doesn't call the database, because the row's lock lasts as long as the transaction.
func (s inboxStore) Renew(_ context.Context, l dedup.Lease, length time.Duration) (dedup.Lease, error) {
	l.Until = time.Now().Add(length)
	return l, nil
}

func (s inboxStore) Complete(context.Context, dedup.Lease, dedup.Result) error {
	return errors.New("sqlstore: an inbox's record is completed by its transaction")
}

func (s inboxStore) Release(ctx context.Context, _ dedup.Lease, cause error) error {
	d := deliveryFrom(ctx)
	// The transaction is open after a Reject, a panic and runtime.Goexit, whose errors have been returned.
	if err := d.tx.abort(ctx, cause); errors.Is(err, ErrImplicitCommit) && !errors.Is(cause, ErrImplicitCommit) {
		s.inbox.store.logger.WarnContext(ctx, "sqlstore: inbox: event failed after an implicit commit", "key", d.claim.Key, "message_id", settle.MessageID(ctx), "error", err)
	}
	if err := d.recordFailure(ctx, cause); err != nil {
		// The rollback has released the event. After an implicit commit its lease ends after CallTimeout.
		s.inbox.store.logger.WarnContext(ctx, "sqlstore: inbox: failure not recorded", "key", d.claim.Key, "message_id", settle.MessageID(ctx), "error", err)
	}
	return nil
}
