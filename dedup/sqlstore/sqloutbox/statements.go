package sqloutbox

import (
	"strings"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

// statements are those with a constant text.
type statements struct {
	groups, highest, page               string
	parked, mark, unmark, discard, find string
	overdue, cancel                     string
	// groupArgs are the arguments of groups.
	groupArgs func(box, after string, limit int) []any
}

func newStatements(d sqldb.Dialect) statements {
	const (
		// One event of the outbox: see (*Outbox).ofEvent.
		one = " WHERE aggregatetype = ? AND aggregateid = ? AND seq = ? AND {raw}id{/raw} = {bytes}"
	)
	differs := d.Outbox()
	span := strings.NewReplacer("{span}", differs.Span, "{first}", differs.First, "{last}", differs.Last)
	sql := func(text string) string { return d.SQL(span.Replace(text)) }
	return statements{
		groups: sql(differs.Groups), groupArgs: differs.GroupArgs,
		highest: sql("SELECT seq FROM {span} ORDER BY {last} LIMIT 1"),
		page:    sql("SELECT " + columns + " FROM {span} ORDER BY {first} LIMIT ?"),
		parked:  sql("SELECT " + columns + " FROM {outbox} WHERE aggregatetype = ? AND parked <> '' ORDER BY seq LIMIT ?"),
		mark:    sql("UPDATE {outbox} SET parked = ?, error = {bytes}, parked_at = {now}" + one + " AND parked = ''"),
		unmark:  sql("UPDATE {outbox} SET parked = '', error = '', parked_at = 0" + one + " AND parked <> ''"),
		discard: sql("DELETE FROM {outbox}" + one + " AND parked <> ''"),
		find:    sql("SELECT parked FROM {outbox}" + one),
		overdue: sql("SELECT {now} - due_at FROM {outbox_later} WHERE aggregatetype = ? ORDER BY due_at LIMIT 1"),
		cancel:  sql("DELETE FROM {outbox_later} WHERE aggregatetype = ? AND later_key = ?"),
	}
}
