package sqlstore

import (
	"context"

	"github.com/sqsonce/sqsonce/dedup"
)

// Ask tells dedup whether inboxes can work. It writes and completes a record in a transaction of its own, with the
// statements and the pool of the handlers' transactions. It doesn't delete rows, since the inbox doesn't need that right.
// The claim has the same key and owner each time, so the INSERT finds the row, and the UPDATE writes it again.
func (s inboxStore) Ask(ctx context.Context, c dedup.Claim) error {
	store := s.inbox.store
	if err := store.ensureChecked(ctx); err != nil {
		return err
	}
	return store.explain("question", s.inbox.ask(ctx, c))
}

// Records is the inbox's store, for records that no handler's transaction writes.
func (s inboxStore) Records() dedup.Store { return s.inbox.store }

// MaxOpenConnections is that of the inbox's store.
func (s inboxStore) MaxOpenConnections() int { return s.inbox.store.MaxOpenConnections() }

// ServerConnections is that of the inbox's store.
func (s inboxStore) ServerConnections() int { return s.inbox.store.ServerConnections() }

func (i *Inbox) ask(ctx context.Context, c dedup.Claim) error {
	tx, err := i.store.pool.begin(ctx)
	if err != nil {
		return err
	}
	defer i.store.pool.leave()
	defer func() { _ = tx.Rollback() }() // nothing after the commit
	if _, _, err = i.insert.writeReturning(ctx, tx, insertArgs(c)...); err != nil {
		return err
	}
	// MySQL counts no row that the UPDATE leaves as it was.
	if _, err = i.complete.write(ctx, tx, completeArgs(dedup.Lease{Key: c.Key, Owner: c.Owner}, dedup.Result{})...); err != nil {
		return err
	}
	return tx.Commit()
}
