package redisstore

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/internal/field"
)

// Inspect implements [dedup.Inspector]. Retention and Takeover aren't stored and stay zero.
func (s *Store) Inspect(ctx context.Context, key string) (dedup.Record, error) {
	if err := checkNames("key", key); err != nil {
		return dedup.Record{}, err
	}
	r, err := s.call(ctx, inspectScript, key)
	if err != nil {
		return dedup.Record{}, explain("inspect", err)
	}
	switch r.status() {
	case "none":
		return dedup.Record{}, dedup.ErrNotFound
	case "record":
	default:
		return dedup.Record{}, explain("inspect", r.unexpected())
	}
	rec, err := readRecord(key, r)
	return rec, explain("inspect", cmp.Or(r.err, err))
}

// readRecord reads a reply's fields.
func readRecord(key string, r *reply) (dedup.Record, error) {
	fields := map[string]string{}
	for i := 3; i < len(r.values); i += 2 {
		fields[r.text(i)] = r.text(i + 1)
	}
	fence, noFence := strconv.ParseInt(fields["fence"], 10, 64)
	until, noUntil := strconv.ParseInt(fields["until"], 10, 64)
	if noFence != nil || noUntil != nil || fields["status"] == "" || fields["owner"] == "" {
		return dedup.Record{}, dedup.ErrRecord
	}
	count, _ := strconv.Atoi(fields["receive_count"]) // 0 where there is none
	rec := dedup.Record{
		Completed: fields["status"] == "COMPLETED", Lease: dedup.Lease{Key: key, Owner: fields["owner"], Fence: fence, ReceiveCount: count},
	}
	if data := fields["data"]; data != "" {
		rec.Result.Data = []byte(data)
	}
	for _, f := range field.Texts {
		f.Set(&rec, fields[f.Name])
	}
	if until != 0 {
		rec.Until = r.sent.Add(time.Duration(until-r.number(1)-1) * time.Millisecond) // as ownerEnd
	}
	if rest := r.number(2); rest >= 0 { // negative: another program has removed the expiry
		rec.ExpiresAt = r.received.Add(time.Duration(rest) * time.Millisecond)
	}
	return rec, nil
}

// Delete deletes the record of key. If the lease is live, the error is a [*dedup.InProgressError], and the record stays
// unless forced. The error is nil if the record doesn't exist.
//
// To run an event again, use [Store.Reopen] instead. After a Delete the event's next delivery runs the handler too, even if
// the event was completed, but the server doesn't refuse a copy of an earlier delivery's acquire that is less than 2.1 s
// old. Such a copy can lease the key once, although it doesn't start a handler. After a Delete and after a Reopen, a
// process that saw the event completed acknowledges it for a minute without reading its record.
func (s *Store) Delete(ctx context.Context, key string, optFns ...func(*dedup.DeleteOptions)) error {
	if err := checkNames("key", key); err != nil {
		return err
	}
	o := dedup.DeleteOptions{}
	for _, fn := range optFns {
		fn(&o)
	}
	r, err := s.call(ctx, deleteScript, key, flag(o.Force))
	if err != nil {
		return explain("delete", err)
	}
	switch r.status() {
	case "done":
		return nil
	case "leased":
		until := r.othersEnd(1)
		if r.err == nil {
			return &dedup.InProgressError{Until: until}
		}
	}
	return explain("delete", r.unexpected())
}
