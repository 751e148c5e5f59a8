package redisstore

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/internal/operate"
)

// Keep implements [dedup.Keeper].
func (s *Store) Keep(ctx context.Context, seen dedup.Record, operator string, data []byte, d time.Duration) (dedup.Record, error) {
	owner, err := operate.NewKept("redisstore", seen, operator, data, d)
	if err != nil {
		return dedup.Record{}, err
	}
	fence := ""
	if seen.Owner != "" {
		fence = strconv.FormatInt(seen.Fence, 10)
	}
	r, err := s.call(ctx, keepScript, seen.Key, owner, data, d.Milliseconds(), seen.Owner, fence)
	if err != nil {
		return dedup.Record{}, explain("keep", err)
	}
	switch r.status() {
	case "changed":
		return dedup.Record{}, dedup.ErrChanged
	case "record":
	default:
		return dedup.Record{}, explain("keep", r.unexpected())
	}
	rec, err := readRecord(seen.Key, r)
	return rec, explain("keep", cmp.Or(r.err, err))
}
