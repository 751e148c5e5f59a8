package sqlstore

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// SweepOptions configure [Store.Sweep] and [Store.SweepEvery].
type SweepOptions struct {
	// Batch is the most rows that one statement deletes.
	//
	// Default: 1,000. Limits: not negative.
	Batch int
	// Pause is the wait between two statements, so that deliveries run between them.
	//
	// Default: 10 ms. Limits: a negative value removes the pause.
	Pause time.Duration
}

const (
	defaultBatch = 1000
	defaultPause = 10 * time.Millisecond
)

// Sweep deletes the records whose retention has ended, and the done rows of deferred inboxes whose retention has ended, the
// oldest first. It returns the number of rows that it deleted, also with an error. Only Sweep deletes these rows. A row
// that waits for Sweep doesn't change a result, because a completed record whose retention has ended counts as free. Sweep
// never deletes a live lease, because a record is retained for at least an hour after its lease.
//
// Each statement deletes at most Batch rows through an index, in a transaction of its own. Any number of processes may
// sweep at once.
func (s *Store) Sweep(ctx context.Context, optFns ...func(*SweepOptions)) (deleted int64, err error) {
	o, err := sweepOptions(optFns)
	if err != nil {
		return 0, err
	}
	for _, text := range []func(statements) string{
		func(st statements) string { return st.sweepRecords },
		func(st statements) string { return st.sweepInbox },
	} {
		n, err := s.sweep(ctx, text, o)
		deleted += n
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

func sweepOptions(optFns []func(*SweepOptions)) (SweepOptions, error) {
	o := SweepOptions{}
	for _, fn := range optFns {
		fn(&o)
	}
	if o.Batch < 0 {
		return o, fieldError("SweepOptions.Batch", "is negative")
	}
	if o.Batch == 0 {
		o.Batch = defaultBatch
	}
	if o.Pause == 0 {
		o.Pause = defaultPause
	}
	return o, nil
}

func (s *Store) sweep(ctx context.Context, text func(statements) string, o SweepOptions) (deleted int64, err error) {
	for {
		var n int64
		err := s.retry(ctx, "sweep", func(ctx context.Context) error {
			res, err := s.q.ExecContext(ctx, text(s.stmts()), o.Batch)
			if err == nil {
				n, err = res.RowsAffected()
			}
			return err
		})
		deleted += n
		if err != nil || n < int64(o.Batch) {
			return deleted, err
		}
		if !host.Wait(ctx, o.Pause) {
			return deleted, s.explain("sweep", context.Cause(ctx))
		}
	}
}

// SweepEvery sweeps at once and then every interval, up to a tenth earlier or later, so that the processes of a fleet don't
// sweep together. It blocks until ctx ends, and then returns nil. It logs a round that fails, and the next round sweeps
// again. A database that can't be used ends SweepEvery with its error, except one that is read-only or refuses the login, which a failover and a
// change of the password cause for a while.
func (s *Store) SweepEvery(ctx context.Context, interval time.Duration, optFns ...func(*SweepOptions)) error {
	if interval <= 0 {
		return fieldError("interval", "is not positive")
	}
	if _, err := sweepOptions(optFns); err != nil {
		return err
	}
	for {
		deleted, err := s.Sweep(ctx, optFns...)
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
