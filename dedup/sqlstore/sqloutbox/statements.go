package sqloutbox

import (
	"strings"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

// statements are those with a constant text.
type statements struct {
	advisory, groups, highest, page, heads string
	parked, mark, unmark, discard, find    string
	// groupArgs are the arguments of groups.
	groupArgs func(box, after string, limit int) []any
}

func newStatements(d sqldb.Dialect) statements {
	const (
		// One event of the outbox: see (*Outbox).ofEvent.
		one = " WHERE aggregatetype = ? AND aggregateid = ? AND seq = ? AND {raw}id{/raw} = {bytes}"
	)
	sql := func(text string) string { return d.SQL(span(d, text)) }
	s := statements{
		// The subquery is not merged into the outer query, so that the locks are taken in the order of their numbers.
		advisory: sql("SELECT pg_advisory_xact_lock(k) FROM (SELECT k FROM unnest(CAST(string_to_array(?, ',') AS bigint[])) AS k ORDER BY k OFFSET 0) AS sorted"),
		highest:  sql("SELECT seq FROM {span} ORDER BY {last} LIMIT 1"),
		page:     sql("SELECT " + columns + " FROM {span} ORDER BY {first} LIMIT ?"),
		parked:   sql("SELECT " + columns + " FROM {outbox} WHERE aggregatetype = ? AND parked <> '' ORDER BY seq LIMIT ?"),
		mark:     sql("UPDATE {outbox} SET parked = ?, error = {bytes}, parked_at = {now}" + one + " AND parked = ''"),
		unmark:   sql("UPDATE {outbox} SET parked = '', error = '', parked_at = 0" + one + " AND parked <> ''"),
		discard:  sql("DELETE FROM {outbox}" + one + " AND parked <> ''"),
		find:     sql("SELECT parked FROM {outbox}" + one),
	}
	switch {
	case d.Is(sqldb.PostgreSQL):
		// The recursion goes from the first row of a group to the first row of the next one.
		s.groups = sql("WITH RECURSIVE g AS (" +
			"(SELECT o.aggregateid, o.created_at, o.parked, 1 AS n FROM {outbox} o WHERE o.aggregatetype = ? AND o.aggregateid > ?" +
			" ORDER BY o.aggregateid, o.seq LIMIT 1)" +
			" UNION ALL SELECT f.aggregateid, f.created_at, f.parked, g.n + 1 FROM g CROSS JOIN LATERAL" +
			" (SELECT o.aggregateid, o.created_at, o.parked FROM {outbox} o WHERE o.aggregatetype = ? AND o.aggregateid > g.aggregateid" +
			" ORDER BY o.aggregateid, o.seq LIMIT 1) f WHERE g.n < ?)" +
			" SELECT g.aggregateid, l.seq, {now} - g.created_at, g.parked FROM g CROSS JOIN LATERAL" +
			" (SELECT o.seq FROM {outbox} o WHERE o.aggregatetype = ? AND (o.aggregateid, o.seq) <= (g.aggregateid, 9223372036854775807)" +
			" ORDER BY o.aggregateid DESC, o.seq DESC LIMIT 1) l")
		s.groupArgs = func(box, after string, limit int) []any { return []any{box, after, box, limit, box} }
		s.heads = sql("SELECT g.name, f.seq, l.seq FROM json_array_elements_text(CAST(CAST(? AS text) AS json)) AS g (name) CROSS JOIN LATERAL" +
			" (SELECT o.aggregatetype, o.aggregateid, o.seq FROM {outbox} o WHERE (o.aggregatetype, o.aggregateid, o.seq) > (?, g.name, 0)" +
			" ORDER BY o.aggregatetype, o.aggregateid, o.seq LIMIT 1) f CROSS JOIN LATERAL" +
			" (SELECT o.seq FROM {outbox} o WHERE (o.aggregatetype, o.aggregateid, o.seq) <= (?, g.name, 9223372036854775807)" +
			" ORDER BY o.aggregatetype DESC, o.aggregateid DESC, o.seq DESC LIMIT 1) l" +
			" WHERE f.aggregatetype = ? AND f.aggregateid = g.name")
	case d.Is(sqldb.SQLite):
		s.groups = sql("WITH RECURSIVE g (name, n) AS (" +
			"SELECT * FROM (SELECT aggregateid, 1 FROM {outbox} WHERE aggregatetype = ? AND aggregateid > ? ORDER BY aggregateid LIMIT 1)" +
			" UNION ALL SELECT (SELECT o.aggregateid FROM {outbox} o WHERE o.aggregatetype = ? AND o.aggregateid > g.name" +
			" ORDER BY o.aggregateid LIMIT 1), n + 1 FROM g WHERE g.name IS NOT NULL AND g.n < ?)" +
			" SELECT g.name, (SELECT MAX(o.seq) FROM {outbox} o WHERE o.aggregatetype = ? AND o.aggregateid = g.name), {now} - f.created_at, f.parked" +
			" FROM g CROSS JOIN {outbox} f WHERE f.seq = (SELECT MIN(o.seq) FROM {outbox} o WHERE o.aggregatetype = ? AND o.aggregateid = g.name)" +
			" AND g.name IS NOT NULL ORDER BY g.name")
		s.groupArgs = func(box, after string, limit int) []any { return []any{box, after, box, limit, box, box} }
	default:
		// The index is read group by group, the first and the last row of each. MySQL does so only if the grouping begins with the
		// index, which it does not where the outbox's column is compared with one value. No outbox has the name ''.
		s.groups = sql("SELECT g.name, g.highest, {now} - f.created_at, f.parked FROM" +
			" (SELECT aggregateid AS name, MIN(seq) AS lowest, MAX(seq) AS highest FROM {outbox} FORCE INDEX FOR GROUP BY ({index}outbox_group)" +
			" WHERE aggregatetype IN (?, '') AND aggregateid > ? GROUP BY aggregatetype, aggregateid ORDER BY aggregatetype, aggregateid LIMIT ?) g" +
			" JOIN {outbox} f ON f.seq = g.lowest ORDER BY g.name")
		s.groupArgs = func(box, after string, limit int) []any { return []any{box, after, limit} }
		s.heads = "SELECT ? AS name," +
			" (SELECT MIN(seq) FROM {outbox} WHERE aggregatetype = ? AND aggregateid = ?) AS lowest," +
			" (SELECT MAX(seq) FROM {outbox} WHERE aggregatetype = ? AND aggregateid = ?) AS highest"
	}
	return s
}

// span replaces {span} by the table and the condition for a group's rows up to a bound (see [Outbox.span]), and {first} and
// {last} by their order and its reverse. The planners must read the index of groups, and stop when they have enough. Where
// their statistics say that the group is half of the table, they like to read the rows of all groups in the order of the
// primary key. The form of the condition gives PostgreSQL no other order, and the others are told. MariaDB sorts the whole
// group if the order names more than the number.
func span(d sqldb.Dialect, text string) string {
	rows, first, last := "{outbox} INDEXED BY {index}outbox_group WHERE aggregatetype = ? AND aggregateid = ? AND seq <= ?", "seq", "seq DESC"
	switch {
	case d.Is(sqldb.PostgreSQL):
		rows = "{outbox} WHERE (aggregatetype, aggregateid, seq) > (?, ?, 0) AND (aggregatetype, aggregateid, seq) <= (?, ?, ?)"
		first, last = "aggregatetype, aggregateid, seq", "aggregatetype DESC, aggregateid DESC, seq DESC"
	case d.Is(sqldb.MySQL):
		rows = "{outbox} FORCE INDEX ({index}outbox_group) WHERE aggregatetype = ? AND aggregateid = ? AND seq <= ?"
	}
	return strings.NewReplacer("{span}", rows, "{first}", first, "{last}", last).Replace(text)
}
