package sqlstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"slices"
	"strings"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

// Attempts that ended without an outcome. Their processes died, and with a process die all of its attempts, whichever
// event's handler was the cause. So such an event is a suspect: it is claimed alone, and its handler runs while no other
// handler of its processor does. Only a second such end, of an attempt that ran alone, is proof.
//
// A row that is claimed has due_at = 0. So the suspects, whose leases have ended, are in a small range of the index that
// other events are found with, apart from the events that wait.

// The prefixes of the owners of attempts that run alone, and of those that do after another one that did. Text by
// crypto/rand has no '-'.
const (
	aloneOwner = "alone-"
	againOwner = aloneOwner + "again-"
)

// job is a claimed event, and one attempt to handle it.
type job struct {
	seq       int64
	owner     string // of the claim: new for each one, and never used again
	key       string
	message   *sqsonce.Message
	lastError string
	decodeErr error // the row cannot be decoded
}

// diedAlone reports whether the attempt before this one ran alone and ended without an outcome.
func (j job) diedAlone() bool { return strings.HasPrefix(j.owner, againOwner) }

// claimStatements are a processor's claims of one kind of events.
type claimStatements struct {
	// find locks rows that can be claimed, and skips those that others have locked.
	find string
	// claim finds and claims in one statement. It is empty for databases whose UPDATE can't return rows. There, heads reads which of
	// the rows that find has locked are to be claimed, and lease claims them. See their functions.
	claim, heads, lease string
	dialect             sqldb.Dialect
}

// newClaimStatements returns the claims of the rows that meet the condition. An event of a group is claimed only if it is
// the oldest one of the group that is pending.
func newClaimStatements(place *sqldb.Place, condition string) func() claimStatements {
	return sqldb.Statements(place, func(d sqldb.Dialect) claimStatements { return claimsOf(d, condition) })
}

func claimsOf(d sqldb.Dialect, condition string) claimStatements {
	const (
		// The last attempt's owner decides which of the two arguments is the new one's.
		owner = "CASE WHEN owner LIKE '" + aloneOwner + "%' THEN ? ELSE ? END"
		lease = "UPDATE {inbox} SET attempts = attempts + 1, owner = " + owner + ", lease_until = {now} + ?, due_at = 0 WHERE seq "
		row   = "seq, id, message_id, payload, attributes, error, "
		// The inner query takes and skips no locks. So it also sees a row that is locked because its handler runs, or that is
		// not due because its handler failed.
		head = "(i.group_id = '' OR NOT EXISTS (SELECT 1 FROM {inbox} o WHERE o.consumer = i.consumer" +
			" AND o.group_id = i.group_id AND o.status = 'PENDING' AND o.seq < i.seq))"
	)
	// A row whose lease has ended and whose handler still runs is locked, and skipped.
	find := "SELECT seq FROM {inbox} i WHERE i.consumer = ? AND i.status = 'PENDING' AND " + condition + " AND " + head +
		" ORDER BY i.due_at, i.seq LIMIT ? {skip locked}"
	s := claimStatements{dialect: d, find: d.SQL(find)}
	if found, ok := d.AnyOf(find); ok {
		s.claim = d.SQL(lease + found + " RETURNING " + row + "attempts, owner")
	} else {
		s.heads = "SELECT " + row + "attempts + 1, " + owner + " FROM {inbox} i WHERE " + head + " AND seq IN "
		s.lease = lease + "IN "
	}
	return s
}

// in completes a statement that ends in IN.
func (s claimStatements) in(text string, rows int) string {
	return s.dialect.SQL(text + "(?" + strings.Repeat(", ?", rows-1) + ")")
}

// claim claims up to limit events that are due and no suspects.
func (p *Processor) claim(ctx context.Context, limit int) ([]job, error) {
	owner := rand.Text()
	if p.o.Concurrency == 1 {
		owner = aloneOwner + owner
	}
	return p.claimAs(ctx, p.due(), owner, owner, limit)
}

// claimSuspect claims one suspect, for an attempt that runs alone.
func (p *Processor) claimSuspect(ctx context.Context) ([]job, error) {
	owner := rand.Text()
	return p.claimAs(ctx, p.suspects(), againOwner+owner, aloneOwner+owner, 1)
}

// claimAs counts an attempt for each event and leases it, and commits that before any handler runs. The owner is again
// if the last attempt ran alone.
//
// The end of the caller's context cancels no statement, because a cancelled one might have leased events of which no
// processor knows. If the reply is lost all the same, those events wait for the lease's end, and an attempt is counted.
func (p *Processor) claimAs(ctx context.Context, stmts claimStatements, again, owner string, limit int) (jobs []job, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.inbox.wait)
	defer cancel()
	lease := p.o.LeaseDuration.Milliseconds()
	if stmts.claim == "" {
		jobs, err = p.claimInTx(ctx, stmts, again, owner, limit)
	} else {
		jobs, err = readJobs(ctx, p.inbox.store.q, stmts.claim, again, owner, lease, p.inbox.consumer, limit)
	}
	slices.SortFunc(jobs, func(a, b job) int { return cmp.Compare(a.seq, b.seq) }) // RETURNING has no order
	return jobs, p.inbox.store.explain("claim", err)
}

// claimInTx is for databases whose UPDATE doesn't return rows, like MySQL's. At READ COMMITTED a lock on a row that turns
// out not to be due is released at once. At the default level it would block other processors from rows that this one
// doesn't claim.
//
// A locking query reads rows as they are now, and its inner query as they were when the statement began. So find may see an
// event that came since then, and not the older one of its group that also did. Another statement therefore reads the
// heads, when the rows are locked. Its snapshot has all rows that were committed before them.
func (p *Processor) claimInTx(ctx context.Context, stmts claimStatements, again, owner string, limit int) ([]job, error) {
	tx, err := p.inbox.store.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	q := p.inbox.store.dialect.In(tx)
	found, err := readSeqs(ctx, q, stmts.find, p.inbox.consumer, limit)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	jobs, err := readJobs(ctx, q, stmts.in(stmts.heads, len(found)), slices.Concat([]any{again, owner}, found)...)
	if err != nil || len(jobs) == 0 {
		return nil, err
	}
	args := []any{again, owner, p.o.LeaseDuration.Milliseconds()}
	for _, j := range jobs {
		args = append(args, j.seq)
	}
	if _, err := q.ExecContext(ctx, stmts.in(stmts.lease, len(jobs)), args...); err != nil {
		return nil, err
	}
	return jobs, tx.Commit()
}

// suspectDue reports whether claimSuspect would find an event, and claims none. A handler that has outlived its lease is
// no suspect: its row is locked.
func (p *Processor) suspectDue(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.inbox.wait)
	defer cancel()
	found, err := readSeqs(ctx, p.inbox.store.q, p.suspects().find, p.inbox.consumer, 1)
	return len(found) > 0, p.inbox.store.explain("find suspects", err)
}

func readSeqs(ctx context.Context, q sqldb.Queryer, text string, args ...any) ([]any, error) {
	return sqldb.All(ctx, q, func(row sqldb.Row) (any, error) {
		var seq int64
		err := row.Scan(&seq)
		return seq, err
	}, text, args...)
}

func readJobs(ctx context.Context, q sqldb.Queryer, text string, args ...any) ([]job, error) {
	return sqldb.All(ctx, q, func(row sqldb.Row) (j job, err error) {
		var (
			messageID, attributes string
			payload               []byte
			attempts              int
		)
		if err := row.Scan(&j.seq, &j.key, &messageID, &payload, &attributes, &j.lastError, &attempts, &j.owner); err != nil {
			return job{}, err
		}
		if j.message, j.decodeErr = decode(messageID, payload, attributes, attempts); j.decodeErr != nil {
			j.message = &sqsonce.Message{ID: messageID, ReceiveCount: attempts}
		}
		return j, nil
	}, text, args...)
}
