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
	"github.com/sqsonce/sqsonce/internal/cut"
	"github.com/sqsonce/sqsonce/internal/host"
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
	// errorText is Options.ErrorText.
	errorText func(error) string
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
	i := &Inbox{store: s, stmts: sqldb.Statements(s.place, newInboxStatements), wait: cmp.Or(o.CallTimeout, sqldb.CleanupTimeout), errorText: o.ErrorText}
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
//   - a [sqsonce.Skip] of h. The transaction was rolled back, and another transaction completed the record.
//   - h's own error, unchanged. The transaction was rolled back. The record stores the error's text and the receive count.
//     A panic is a [*sqsonce.PanicError]. After a [sqsonce.Reject] the transaction stays open and the event locked until
//     the host has settled the message.
//   - matching [sqsonce.ErrInProgress] if another delivery is handling the event, or if its row was locked for longer than
//     CallTimeout. h was not called.
//   - matching [ErrOutcomeUnknown] if the commit's reply was lost and the database could not be asked afterwards. The next
//     delivery finds out.
//   - [ErrTxEnded] if the transaction had ended before h returned nil.
//   - matching [ErrImplicitCommit], and h's own error, if h failed after a statement of it had committed its transaction.
//     After a panic, runtime.Goexit or a Reject the store's log says so instead.
//   - matching [sqsonce.ErrUnavailable], such as a [*DatabaseError], if the record could not be checked and h was not
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
	i.once.CountHandler()
	return func(ctx context.Context, m *sqsonce.Message) error {
		d := &delivery{inbox: i}
		d.tx = eventTx{store: i.store, wait: i.wait, row: d}
		ctx = context.WithValue(ctx, deliveryKey{}, d)
		return i.once.Guard(ctx, m, func(ctx context.Context, _ dedup.Lease) (bool, error) {
			err := d.tx.run(ctx, func(ctx context.Context, tx *sql.Tx) error { return h(ctx, m, tx) })
			switch o := sqsonce.OutcomeOf(err); {
			case o.Kind == sqsonce.OutcomeSkipped:
				return d.skip(ctx, err)
			case o.Reject == nil:
				err = d.tx.abort(ctx, err)
			}
			return err == nil, err
		})
	}
}

// skip completes the record of an event that its handler skipped.
func (d *delivery) skip(ctx context.Context, skipped error) (completed bool, err error) {
	d.skipped = host.Described(d.inbox.errorText, skipped)
	err = d.tx.skip(ctx, skipped)
	if _, completed := errors.AsType[*doneError](err); err == nil || completed { // else by another delivery since
		return true, skipped
	}
	return false, d.tx.abort(ctx, err)
}

// Stats returns the inbox's counters: see [dedup.Once.Stats].
func (i *Inbox) Stats() dedup.Stats { return i.once.Stats() }

// inboxStore presents the transactions to a Once as a store. Acquire writes the record in a transaction that isn't
// committed. Release rolls it back. The transaction completes the record, so the Once never calls Complete. The contexts of
// all calls carry the delivery.
type inboxStore struct{ inbox *Inbox }

type deliveryKey struct{}

func deliveryFrom(ctx context.Context) *delivery { return ctx.Value(deliveryKey{}).(*delivery) }

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
		return d.refused(ctx, err)
	}
	l, err := s.Renew(ctx, d.lease, c.Lease)
	return dedup.Grant{Verdict: dedup.VerdictGranted, Lease: l}, err
}

// refused is the answer to an acquire whose transaction did not begin. The transaction has its answers as errors. It was
// rolled back, so it could not shorten an overlong lease.
func (d *delivery) refused(ctx context.Context, err error) (dedup.Grant, error) {
	if done, ok := errors.AsType[*doneError](err); ok {
		return dedup.Grant{Verdict: dedup.VerdictCompleted, Result: done.result}, nil
	}
	if other, ok := errors.AsType[*dedup.InProgressError](err); ok {
		s := d.inbox.store
		err := s.retry(ctx, "shorten lease", func(ctx context.Context) error { return s.shorten(ctx, s.db, d.other) })
		return dedup.Grant{Verdict: dedup.VerdictInProgress, Until: other.Until}, err
	}
	return dedup.Grant{}, err
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
		s.inbox.store.logger.WarnContext(ctx, "sqlstore: inbox: event failed after an implicit commit", "key", d.claim.Key, "error", err)
	}
	if err := d.recordFailure(ctx, cause); err != nil {
		// The rollback has released the event. After an implicit commit its lease ends after CallTimeout.
		s.inbox.store.logger.WarnContext(ctx, "sqlstore: inbox: failure not recorded", "key", d.claim.Key, "error", err)
	}
	return nil
}

// inboxStatements are an inbox's statements that a store does not have.
type inboxStatements struct{ complete, insertFailure, updateFailure string }

func newInboxStatements(d sqldb.Dialect) inboxStatements {
	return inboxStatements{
		complete: d.SQL(complete + "{commits}"),

		insertFailure: d.SQL("INSERT INTO {records} (id, status, owner, fence, lease_until, expires_at, receive_count, error)" +
			" VALUES (?, 'INPROGRESS', ?, ?, 0, {now} + ?, ?, ?) {ignore}"),

		// In MySQL an assignment sees the assignments before it, so the columns of isFree come last.
		updateFailure: d.SQL("UPDATE {records} SET owner = ?, fence = {greatest}(fence, ?), receive_count = ?, error = ?, " + emptyResult + "," +
			" expires_at = {now} + ?, lease_until = 0, status = 'INPROGRESS' WHERE id = ? AND " + isFree),
	}
}

// delivery is one delivery's claim to an event, and its transaction.
type delivery struct {
	inbox *Inbox
	claim dedup.Claim
	lease dedup.Lease
	tx    eventTx
	// other is the record by which another owner's lease refused the transaction.
	other record
	// start is the note of the start, or nil.
	start *dedup.Lease
	// skipped is the reason to complete the record without writes of the handler, or nil.
	skipped error
}

// mark writes the record with a lease of CallTimeout, unless an existing record refuses it: see [eventRow].
//
// If two deliveries come at once, both insert, and the second one's statement waits for the first one's transaction. When
// that is committed, the second finds the record completed. When it is rolled back, the second has inserted. The read and
// the UPDATE after it cannot race: the UPDATE names what was read, waits for the row's lock as the INSERT does, and writes
// nothing if the row has changed.
func (d *delivery) mark(ctx context.Context, tx *sql.Tx) error {
	s, c := d.inbox.store, d.claim
	fence, written, err := d.inbox.insert.writeReturning(ctx, tx, insertArgs(c)...)
	if err != nil || written {
		d.lease = newLease(c, fence, "")
		return err
	}
	r, err := s.find(ctx, tx, c.Key)
	if err != nil {
		if isMissing(err) { // swept or deleted since
			err = errContended
		}
		return err
	}
	switch r.stateFor(c) {
	case done: // also by this owner, after a commit whose reply was lost
		return &doneError{r.result}
	case owned:
		return errMarked
	case free:
	default: // another owner has a lease on it
		d.other = r
		return &dedup.InProgressError{Until: othersEnd(r.remaining())}
	}
	fence, written, err = s.dialect.WriteReturning(ctx, tx, s.stmts().take, takeArgs(c, r)...)
	if err == nil && !written {
		err = errContended
	}
	d.lease = newLease(c, fence, r.lastError)
	if d.start != nil && r.owner == d.start.Owner {
		d.lease.Takeover, d.lease.TakenFrom = d.start.Takeover, d.start.TakenFrom
	} else {
		d.lease.Takeover, d.lease.TakenFrom = r.takeover()
	}
	return err
}

// noteStart commits a record that looks like that of a process that crashed, so that the next delivery knows of a crash of
// this one, which rolls its transaction back. The lease of that record has ended. The row's lock keeps other deliveries
// out, as at a first receive, which needs no note. The owner is another one than that of the transaction, whose finish
// needs its own mark.
func (d *delivery) noteStart(ctx context.Context) error {
	if d.claim.ReceiveCount < 2 {
		return nil
	}
	note := &delivery{inbox: d.inbox, claim: d.claim}
	note.claim.Owner, note.claim.Lease = "started/"+d.claim.Owner, -time.Millisecond
	note.tx = eventTx{store: d.inbox.store, wait: d.inbox.wait, row: note}
	if err := note.tx.begin(ctx); err != nil {
		d.other = note.other
		return err
	}
	if err := note.tx.close((*sql.Tx).Commit); err != nil {
		return explain(d.inbox.store.dialect, "note of the start", err)
	}
	d.start = &note.lease
	return nil
}

// finish completes the record, if it is this owner's: see [eventRow].
func (d *delivery) finish(ctx context.Context, tx *sql.Tx) (bool, error) {
	return d.inbox.complete.write(ctx, tx, completeArgs(d.lease, dedup.Result{Skipped: d.skipped})...)
}

func (d *delivery) marked(ctx context.Context, q sqldb.Queryer) (bool, error) {
	r, err := d.inbox.store.find(ctx, q, d.claim.Key)
	if isMissing(err) {
		return false, nil
	}
	return r.stateFor(d.claim) == owned, err
}

// recordFailure stores the error and the receive count of a delivery whose transaction was rolled back, if the record is
// free. A record that another delivery has completed or leased does not change.
func (d *delivery) recordFailure(ctx context.Context, cause error) error {
	if errors.Is(cause, sqsonce.ErrInProgress) && d.start == nil {
		return nil // another delivery is handling the event: this one has not failed
	}
	s, c, text := d.inbox.store, d.claim, cut.Cause(cause)
	return s.retry(ctx, "record failure", func(ctx context.Context) error {
		written, err := s.dialect.Write(ctx, s.db, d.inbox.stmts().insertFailure,
			c.Key, c.Owner, d.lease.Fence, c.Retention.Milliseconds(), c.ReceiveCount, text)
		if err != nil || written {
			return err
		}
		// The record that an implicit commit has left.
		if written, err = s.dialect.Write(ctx, s.db, s.stmts().release, text, c.Key, c.Owner); err != nil || written {
			return err
		}
		_, err = s.dialect.Write(ctx, s.db, d.inbox.stmts().updateFailure,
			c.Owner, d.lease.Fence, c.ReceiveCount, text, c.Retention.Milliseconds(), c.Key)
		return err
	})
}
