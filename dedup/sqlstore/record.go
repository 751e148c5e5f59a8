package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/sqsonce/sqsonce/dedup"
)

const (
	inProgress = "INPROGRESS"
	completed  = "COMPLETED"
)

// ErrRecord says that a row of the table is no record that the store would write. Nothing is done with such a row.
var ErrRecord = errors.New("sqlstore: row is not a record")

// record is a row, with the database's clock as it was read. All times are milliseconds of the epoch.
type record struct {
	status, owner, lastError string
	fence, until, expires    int64
	attempts                 int
	result                   dedup.Result
	now                      int64
}

// find reads the record of key as it is now. The error is sql.ErrNoRows where there is none.
func (s *Store) find(ctx context.Context, q queryer, key string) (record, error) {
	var r record
	err := q.QueryRowContext(ctx, s.text.read, key).Scan(
		&r.status, &r.owner, &r.fence, &r.until, &r.expires, &r.attempts, &r.lastError, &r.result.Validation, &r.result.Data, &r.now)
	if err == nil && r.status != inProgress && r.status != completed {
		err = fmt.Errorf("%w: status is %q", ErrRecord, r.status)
	}
	return r, err
}

// standing is what a record is to a claim that was not granted.
type standing int

const (
	free    standing = iota // nobody holds it
	ours                    // held by this owner: an earlier copy of the acquire was granted
	lost                    // released by this owner: it gets the record no more
	held                    // another's lease lives
	crashed                 // another's lease ended without a release, and such a record is not taken over
	done                    // completed, and its retention is not over
)

// standing judges the record by the clock that was read with it. Every comparison is the statements' own.
func (r record) standing(c dedup.Claim) standing {
	switch {
	case r.status == completed && r.expires < r.now:
		return free
	case r.status == completed:
		return done
	case r.owner == c.Owner && r.until > 0:
		return ours
	case r.owner == c.Owner:
		return lost
	case r.until == 0:
		return free
	case r.until >= r.now:
		return held
	case c.NoTakeover:
		return crashed
	default:
		return free
	}
}

func isMissing(err error) bool { return errors.Is(err, sql.ErrNoRows) }
