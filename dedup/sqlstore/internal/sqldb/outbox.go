package sqldb

import (
	"context"
	"database/sql"
	"strings"
)

// Outbox is the part of a dialect that differs in package sqloutbox.
type Outbox struct {
	// Groups finds the groups after one, in the order of their names: name, last number, age and mark of each. GroupArgs are
	// its arguments.
	Groups    string
	GroupArgs func(box, after string, limit int) []any
	// Span is the table and the condition for a group's rows up to a bound. First is their order, and Last its reverse. The
	// planners must read the index of groups, and stop when they have enough. Where their statistics say that the group is
	// half of the table, they like to read the rows of all groups in the order of the primary key.
	Span, First, Last string
	SpanArgs          func(box, group string, bound int64) []any
	// Heads finds the first and the last number of each group. It isn't called for databases in which one transaction
	// writes at a time.
	Heads func(box string, groups []string) (text string, args []any, err error)
	// Lock is how a transaction locks groups.
	Lock GroupLock
	// ReadsUncommitted reports whether the session reads uncommitted writes, which may be rolled back.
	ReadsUncommitted func(ctx context.Context, q Queryer) (bool, error)
	// IdentityProblem says why a transaction that comes later may get a lower number, or one that was used before. "": it does
	// not. The error is sql.ErrNoRows if the numbers are no identity.
	IdentityProblem func(ctx context.Context, q Queryer, d Dialect) (problem string, err error)
}

// GroupLock is how a transaction takes the locks of groups. It holds them to its end.
type GroupLock struct {
	// Take takes the locks of groups with these hashes, in one order for all transactions. The problem says that locks are
	// missing in the database. "": they are taken.
	Take func(ctx context.Context, tx *sql.Tx, d Dialect, hashes []uint64) (problem string, err error)
	// Try takes the locks that no other transaction has, and returns the hashes of those that it took.
	Try func(ctx context.Context, tx *sql.Tx, d Dialect, hashes []uint64) (taken []uint64, err error)
	// Check returns the problem that Take may have.
	Check func(ctx context.Context, q Queryer, d Dialect) (problem string, err error)
	// Tables are the statements of a migration that make the locks.
	Tables string
}

// noProblem is a check of what cannot be wrong.
func noProblem(context.Context, Queryer, Dialect) (string, error) { return "", nil }

// spanArgs are the arguments of a span that compares column by column.
func spanArgs(box, group string, bound int64) []any { return []any{box, group, bound} }

// headsOfEach is Heads as a query for each group, in SQL that every database has.
func headsOfEach(box string, groups []string) (text string, args []any, err error) {
	const one = "SELECT ? AS name," +
		" (SELECT MIN(seq) FROM {outbox} WHERE aggregatetype = ? AND aggregateid = ?) AS lowest," +
		" (SELECT MAX(seq) FROM {outbox} WHERE aggregatetype = ? AND aggregateid = ?) AS highest"
	for _, g := range groups {
		args = append(args, g, box, g, box, g)
	}
	return one + strings.Repeat(" UNION ALL "+one, len(groups)-1), args, nil
}
