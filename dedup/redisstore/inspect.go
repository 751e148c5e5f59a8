package redisstore

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
)

// Inspect returns the record of key, or [dedup.ErrNotFound]. A released record has a zero Until, and its LastError is why.
// Retention and Takeover are not stored and stay zero. The record's key is the consumer's name, '#' and the event's key.
func (s *Store) Inspect(ctx context.Context, key string) (dedup.Record, error) {
	if err := named("key", key); err != nil {
		return dedup.Record{}, err
	}
	r, err := s.call(ctx, inspectScript, key)
	if err != nil {
		return dedup.Record{}, explain("inspect", err)
	}
	switch r.word() {
	case "none":
		return dedup.Record{}, dedup.ErrNotFound
	case "record":
	default:
		return dedup.Record{}, explain("inspect", r.unexpected())
	}
	rec := dedup.Record{
		Completed: r.text(1) == "COMPLETED",
		Lease: dedup.Lease{
			Key: key, Owner: r.text(2), Fence: r.number(3), LastError: r.text(6), Validation: r.text(8), Attempts: int(r.number(9)),
		},
		Result: dedup.Result{Data: r.bytes(7), Validation: r.text(8)},
	}
	if r.text(4) != "0" {
		rec.Until = r.notAfter(5)
	}
	if left := r.number(10); left >= 0 { // negative: somebody has taken the expiry away
		rec.ExpiresAt = r.received.Add(time.Duration(left) * time.Millisecond)
	}
	return rec, explain("inspect", r.err)
}

// DeleteOptions configure [Store.Delete].
type DeleteOptions struct {
	// Force also deletes a record whose lease is live: its holder is told that it lost the lease and another delivery may
	// run beside it. Default: false.
	Force bool
}

// Delete forgets the record of key, so that the event's next delivery runs the handler, also where it was completed
// before. A record whose lease is live is a [*dedup.InProgressError] and stays, unless forced; a key without a record is
// nil. An acquire that is still under way to the server may take the key for one lease although nobody runs.
func (s *Store) Delete(ctx context.Context, key string, optFns ...func(*DeleteOptions)) error {
	if err := named("key", key); err != nil {
		return err
	}
	o := DeleteOptions{}
	for _, fn := range optFns {
		fn(&o)
	}
	r, err := s.call(ctx, deleteScript, key, flag(o.Force))
	if err != nil {
		return explain("delete", err)
	}
	switch r.word() {
	case "done":
		return nil
	case "held":
		until := r.notBefore(1)
		if r.err == nil {
			return &dedup.InProgressError{Until: until}
		}
	}
	return explain("delete", r.unexpected())
}
