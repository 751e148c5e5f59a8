package sqloutbox

import (
	"context"
	"database/sql"
	"errors"
	"math"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// Read implements [outbox.Store]. It is one statement if the relay has seen the group's last event before, else two, and one
// more if skipped events are among the first.
//
// A statement is not enough. MariaDB makes the view of a statement while transactions commit, and the view may have a later
// transaction of the group without an earlier one. But an earlier transaction was visible before the later one could get the
// group's lock. So Read returns an event only from a statement that began after another had returned it, or a later one of its
// group.
//
// All statements are plain reads from the group's first row, each in a transaction of its own. They don't lock rows. They don't
// skip rows that others have locked, or rows below a cursor.
func (o *Outbox) Read(ctx context.Context, g outbox.Group, known outbox.Known, limit int) (es []outbox.Entry, err error) {
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	seen := max(known.Seen, g.Last, o.claims.seen(g.Name))
	if seen == 0 {
		if seen, err = o.highest(ctx, g.Name); err != nil || seen == 0 {
			return nil, err
		}
	}
	want, bound, more := limit, int64(math.MaxInt64), false
	for {
		page, err := o.page(ctx, g.Name, bound, want)
		if err != nil {
			return nil, err
		}
		full := len(page) == want
		switch {
		case full && want == limit && hasSkipped(page):
			want = limit + outbox.MaxSkipped + 1
		case len(page) > 0 && page[len(page)-1].seq > seen:
			seen = page[len(page)-1].seq
			bound, more = seen, full
		default:
			return entries(page, limit, more || full)
		}
	}
}

func hasSkipped(page []row) bool {
	for _, r := range page {
		if r.parked == skipped {
			return true
		}
	}
	return false
}

// entries returns the events of a page. more says that there may be rows behind it.
func entries(page []row, limit int, more bool) (es []outbox.Entry, err error) {
	left, skips := limit, outbox.MaxSkipped
	for _, r := range page {
		if left == 0 {
			return es, nil
		}
		e, err := r.entry()
		switch {
		case err != nil:
			return es, err
		case e.Parked != outbox.OnRefusedSkip:
			left--
		case skips == 0:
			return es, outbox.ErrManySkipped
		default:
			skips--
		}
		es = append(es, e)
	}
	if left > 0 && more {
		return es, outbox.ErrUnsettled
	}
	return es, nil
}

// page reads the group's first rows up to bound.
func (o *Outbox) page(ctx context.Context, group string, bound int64, limit int) (page []row, err error) {
	args := append(o.span(group, bound), limit)
	err = o.run(ctx, "read", func(ctx context.Context) (err error) {
		page, err = sqldb.All(ctx, o.q, readRow, o.stmts().page, args...)
		return err
	})
	return page, err
}

// highest returns the highest number in the group, or 0.
func (o *Outbox) highest(ctx context.Context, group string) (seq int64, err error) {
	args := o.span(group, math.MaxInt64)
	err = o.run(ctx, "read", func(ctx context.Context) error {
		seq = 0
		err := o.q.QueryRowContext(ctx, o.stmts().highest, args...).Scan(&seq)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return seq, err
}

// span are the arguments of {span}: the group's rows up to bound.
func (o *Outbox) span(group string, bound int64) []any {
	return o.dialect.Outbox().SpanArgs(o.name, group, bound)
}
