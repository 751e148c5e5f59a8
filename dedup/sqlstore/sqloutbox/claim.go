package sqloutbox

import (
	"context"
	"crypto/rand"
	"database/sql"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

// claimGroups limits the groups of one statement.
const claimGroups = 100

// Claim implements [outbox.Store]. A claim is on the group's first row and ends by the database's clock. While it lasts, it
// doesn't hold a transaction or a lock. It ends with the row too, so when the page is deleted, others may claim the group. If
// one transaction writes at a time, as on SQLite, Claim returns all groups, because writers go one after the other anyway.
//
// One statement finds the first rows, and one conditional UPDATE claims them. If others have claimed some, a third one finds
// the rows that it claimed.
func (o *Outbox) Claim(ctx context.Context, groups []string, lease time.Duration) (claimed []string, err error) {
	if lease < time.Millisecond {
		return nil, fieldError("lease", "is less than 1 ms")
	}
	if ctx.Err() != nil {
		return nil, reporter.Explain(o.dialect, "claim", context.Cause(ctx))
	}
	if o.dialect.OneWriter() {
		return slices.Clone(groups), nil
	}
	// One order in all processes, so that two claims do not wait for one another.
	sorted := slices.Compact(slices.Sorted(slices.Values(groups)))
	for some := range slices.Chunk(sorted, claimGroups) {
		got, err := o.claim(ctx, some, lease)
		if err != nil {
			return claimed, err // the rest may be claimed, until the lease's end
		}
		claimed = append(claimed, got...)
	}
	return claimed, nil
}

func (o *Outbox) claim(ctx context.Context, groups []string, lease time.Duration) (claimed []string, err error) {
	token := o.owner + "-" + rand.Text()
	err = o.run(ctx, "claim", func(ctx context.Context) error {
		heads, err := o.heads(ctx, groups)
		if err != nil || len(heads) == 0 {
			claimed = nil
			return err
		}
		if claimed, err = o.claimHeads(ctx, heads, token, lease); err == nil {
			o.claims.add(heads, claimed, token, time.Now().Add(lease))
		}
		return err
	})
	return claimed, err
}

// head is a group with its first and last row, and a claim on it.
type head struct {
	group       string
	first, seen int64
	token       string
	until       time.Time // the claim is over by then, whatever became of it
}

func (o *Outbox) heads(ctx context.Context, groups []string) (found []head, err error) {
	text, args, err := o.headsQuery(groups)
	if err != nil {
		return nil, err
	}
	found, err = sqldb.All(ctx, o.q, func(r sqldb.Row) (h head, err error) {
		var first, last sql.NullInt64
		err = r.Scan(&h.group, &first, &last)
		h.first, h.seen = first.Int64, last.Int64
		return h, err
	}, text, args...)
	return slices.DeleteFunc(found, func(h head) bool { return h.first <= 0 }), err
}

func (o *Outbox) headsQuery(groups []string) (text string, args []any, err error) {
	text, args, err = o.dialect.Outbox().Heads(o.name, groups)
	return o.place.Dialect().SQL(text), args, err
}

// claimHeads claims first rows that nobody has claimed. It may be repeated: the token is of this call alone. A claim that is
// much longer than this one was made when the server's clock was ahead, and counts as over.
func (o *Outbox) claimHeads(ctx context.Context, heads []head, token string, lease time.Duration) (claimed []string, err error) {
	seqs := make([]any, len(heads))
	for i, h := range heads {
		seqs[i] = h.first
	}
	rows := " seq IN (" + list(len(heads)) + ")"
	res, err := o.q.ExecContext(ctx, o.place.Dialect().SQL("UPDATE {outbox} SET owner = ?, lease_until = {now} + ? WHERE"+rows+
		" AND aggregatetype = ? AND (lease_until < {now} OR lease_until > {now} + ? OR owner = ?)"),
		slices.Concat([]any{token, lease.Milliseconds()}, seqs, []any{o.name, 3 * lease.Milliseconds(), token})...)
	if err != nil {
		return nil, err
	}
	n, err := res.RowsAffected()
	switch {
	case err != nil || n == 0:
		return nil, err
	case n == int64(len(heads)):
		for _, h := range heads {
			claimed = append(claimed, h.group)
		}
		return claimed, nil
	}
	return sqldb.All(ctx, o.q, func(r sqldb.Row) (group string, err error) {
		err = r.Scan(&group)
		return group, err
	}, o.place.Dialect().SQL("SELECT aggregateid FROM {outbox} WHERE"+rows+" AND owner = ?"), append(seqs, token)...)
}

// Unclaim implements [outbox.Store]. It leaves out groups whose claimed row was deleted.
func (o *Outbox) Unclaim(ctx context.Context, groups []string) error {
	if ctx.Err() != nil {
		return reporter.Explain(o.dialect, "unclaim", context.Cause(ctx))
	}
	for some := range slices.Chunk(o.claims.of(groups), claimGroups) {
		args := make([]any, 0, 2*len(some))
		for _, h := range some {
			args = append(args, h.first, h.token)
		}
		// The owner is compared: the claim may have ended, and another relay may have one.
		text := o.place.Dialect().SQL("UPDATE {outbox} SET owner = '', lease_until = 0 WHERE" + strings.TrimPrefix(strings.Repeat(" OR (seq = ? AND owner = ?)", len(some)), " OR"))
		err := o.run(ctx, "unclaim", func(ctx context.Context) error {
			_, err := o.q.ExecContext(ctx, text, args...)
			return err
		})
		if err != nil {
			return err
		}
		o.claims.forget(some)
	}
	return nil
}

// claims are the claims that this store has made and whose rows it hasn't deleted since, by group.
type claims struct {
	mu  sync.Mutex
	all map[string]head
}

// maxClaims is above the number of groups that a relay visits at once. Claims that are left over are of visits that did not end
// well.
const maxClaims = 1000

func (c *claims) add(heads []head, claimed []string, token string, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[string]head{}
	}
	if len(c.all) > maxClaims {
		now := time.Now()
		maps.DeleteFunc(c.all, func(_ string, h head) bool { return now.After(h.until) })
	}
	for _, h := range heads {
		if slices.Contains(claimed, h.group) {
			h.token, h.until = token, until
			c.all[h.group] = h
		}
	}
}

// seen returns the highest number of the group that a claim has seen, or 0.
func (c *claims) seen(group string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[group].seen
}

func (c *claims) of(groups []string) (found []head) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range groups {
		if h, ok := c.all[g]; ok && !slices.Contains(found, h) {
			found = append(found, h)
		}
	}
	return found
}

func (c *claims) forget(heads []head) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range heads {
		if c.all[h.group] == h {
			delete(c.all, h.group)
		}
	}
}

// deleted forgets a claim whose row is gone.
func (c *claims) deleted(group string, seq int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[group].first == seq {
		delete(c.all, group)
	}
}
