package sqlstore

import (
	"context"
	"errors"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

// ErrNotParked says that [Deferred.Unpark] found the event pending or done, and didn't change it.
var ErrNotParked = errors.New("sqlstore: inbox: event is not parked")

// Entry is a stored event as operators see it. Its times are of the database's clock.
type Entry struct {
	Key     string
	Message *sqsonce.Message // its ReceiveCount is Attempts
	Done    bool
	Parked  bool
	// Attempts is how often an attempt began, including those that crashed.
	Attempts int
	// Error is the text of the last failure, at most 256 bytes.
	Error      string
	ReceivedAt time.Time
	// DueAt is the earliest time at which the event can be claimed. It is zero while a processor has the event, and after
	// that processor died.
	DueAt time.Time
}

// Counts counts a deferred inbox's events that aren't done.
type Counts struct {
	Pending int64 // waiting, or their handlers run
	Parked  int64
	// Oldest is the age of the oldest pending event, or 0 without pending events.
	Oldest time.Duration
}

// Inspect returns the event of key, or [dedup.ErrNotFound]. The key is the consumer's name, '#' and the event's key.
func (d *Deferred) Inspect(ctx context.Context, key string) (Entry, error) {
	all, err := d.entries(ctx, "inspect", func(s deferredStatements) string { return s.inspect }, d.consumer, key)
	if err == nil && len(all) == 0 {
		err = dedup.ErrNotFound
	}
	if err != nil {
		return Entry{}, err
	}
	return all[0], nil
}

// Parked returns up to limit parked events, the oldest first. The limit must be positive.
func (d *Deferred) Parked(ctx context.Context, limit int) ([]Entry, error) {
	if limit <= 0 {
		return nil, fieldError("limit", "is not positive")
	}
	return d.entries(ctx, "parked", func(s deferredStatements) string { return s.parked }, d.consumer, limit)
}

// Unpark makes a parked event due at once, beginning with its first attempt. Later events of its group may have been
// handled already, or may be running. The error is [dedup.ErrNotFound] or [ErrNotParked].
func (d *Deferred) Unpark(ctx context.Context, key string) error {
	written := false
	err := d.store.retry(ctx, "unpark", func(ctx context.Context) (err error) {
		written, err = d.store.dialect.Write(ctx, d.store.db, d.stmts().unpark, d.consumer, key)
		return err
	})
	if err != nil || written {
		return err
	}
	if _, err := d.Inspect(ctx, key); err != nil {
		return err
	}
	return ErrNotParked
}

// Count counts the events that aren't done. Alarms should watch these numbers.
func (d *Deferred) Count(ctx context.Context) (Counts, error) {
	var (
		c              Counts
		oldest, newest int64
	)
	err := d.store.retry(ctx, "count", func(ctx context.Context) error {
		return d.store.q.QueryRowContext(ctx, d.stmts().count, d.consumer).Scan(&c.Pending, &c.Parked, &oldest, &newest)
	})
	if c.Pending > 0 {
		c.Oldest = time.Duration(max(0, newest-oldest)) * time.Millisecond // the server's clock may have stepped back
	}
	return c, err
}

const entryColumns = "id, message_id, payload, attributes, status, attempts, error, received_at, due_at"

func (d *Deferred) entries(ctx context.Context, op string, text func(deferredStatements) string, args ...any) (all []Entry, err error) {
	err = d.store.retry(ctx, op, func(ctx context.Context) (err error) {
		all, err = sqldb.All(ctx, d.store.q, readEntry, text(d.stmts()), args...)
		return err
	})
	return all, err
}

func readEntry(row sqldb.Row) (e Entry, err error) {
	var (
		messageID, attributes, status string
		payload                       []byte
		received, due                 int64
	)
	if err := row.Scan(&e.Key, &messageID, &payload, &attributes, &status, &e.Attempts, &e.Error, &received, &due); err != nil {
		return Entry{}, err
	}
	if e.Message, err = decode(messageID, payload, attributes, e.Attempts); err != nil {
		return Entry{}, err
	}
	e.Done, e.Parked = status != pending && status != parked, status == parked
	e.ReceivedAt = time.UnixMilli(received)
	if due > 0 {
		e.DueAt = time.UnixMilli(due)
	}
	return e, nil
}
