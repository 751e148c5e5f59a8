package sqlstore

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// pace is how a sweep divides its work: the most rows that one statement deletes, and the wait between two statements, so that
// deliveries run between them.
type pace struct {
	batch int
	pause time.Duration
}

var usualPace = pace{batch: 1000, pause: 10 * time.Millisecond}

// Sweep deletes the records whose retention has ended, and the done rows of deferred inboxes whose retention has ended, the
// oldest first. It returns the number of rows that it deleted, also with an error. Only Sweep deletes these rows. A row
// that waits for Sweep doesn't change a result, because a completed record whose retention has ended counts as free. Sweep
// never deletes a live lease, because a record is retained for at least an hour after its lease.
//
// Each statement deletes at most 1,000 rows through an index, in a transaction of its own. Between two
// statements Sweep waits for 10 ms. Any number of processes may sweep at once.
func (s *Store) Sweep(ctx context.Context) (deleted int64, err error) {
	return s.sweepAt(ctx, usualPace)
}

func (s *Store) sweepAt(ctx context.Context, at pace) (deleted int64, err error) {
	for _, text := range []func(statements) string{
		func(st statements) string { return st.sweepRecords },
		func(st statements) string { return st.sweepInbox },
	} {
		n, err := s.sweep(ctx, text, at)
		deleted += n
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

func (s *Store) sweep(ctx context.Context, text func(statements) string, at pace) (deleted int64, err error) {
	for {
		var n int64
		err := s.retry(ctx, "sweep", func(ctx context.Context) error {
			res, err := s.q.ExecContext(ctx, text(s.stmts()), at.batch)
			if err == nil {
				n, err = res.RowsAffected()
			}
			return err
		})
		deleted += n
		if err != nil || n < int64(at.batch) {
			return deleted, err
		}
		if !host.Wait(ctx, at.pause) {
			return deleted, s.explain("sweep", context.Cause(ctx))
		}
	}
}

// SweepEvery sweeps at once and then every interval, up to a tenth earlier or later, so that the processes of a fleet don't
// sweep together. It blocks until ctx ends, and then returns nil. It logs a round that fails, and the next round sweeps
// again. A database that can't be used ends SweepEvery with its error, except one that is read-only or refuses the login, which a failover and a
// change of the password cause for a while.
func (s *Store) SweepEvery(ctx context.Context, interval time.Duration) error {
	if interval <= 0 {
		return fieldError("interval", "is not positive")
	}
	for {
		deleted, err := s.Sweep(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case isPermanent(err):
			return err
		case err != nil:
			s.logger.ErrorContext(ctx, "sqlstore: sweep failed: the next round sweeps again", "error", err, "deleted", deleted)
		}
		if !host.Wait(ctx, interval*9/10+rand.N(interval/5+1)) {
			return nil
		}
	}
}
