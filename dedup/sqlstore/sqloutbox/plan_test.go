package sqloutbox

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
)

// Add is two statements, and one where it takes no lock. A lone event costs a relay four, and one whose group a sweep has
// found four with the sweep's.
func TestStatements(t *testing.T) {
	eachBed(t, func(t *testing.T, b *bed) {
		spy, db := spied(t, b)
		o := b.through(t, db, "box")
		must.Do(t, o.Check(t.Context()))
		expect := func(what string, want ...string) {
			t.Helper()
			var got []string
			for _, text := range spy.take() {
				got = append(got, short(text))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %d statements %q, want %q", what, len(got), got, want)
			}
		}
		add := func(o *Outbox, n int) {
			t.Helper()
			tx, err := db.BeginTx(t.Context(), nil)
			if err == nil {
				err = o.findPlace(t.Context())
			}
			if err == nil {
				spy.take()
				err = o.Add(t.Context(), tx, events("g", n)...)
			}
			if err == nil {
				err = tx.Commit()
			}
			must.Do(t, err)
		}
		spy.take()
		add(o, 1)
		expect("Add", append(slices.Clone(b.OutboxLock), "INSERT INTO")...)
		add(b.through(t, db, "locked", func(o *Options) { o.GroupLocked = true }), 100)
		expect("Add of 100, locked", "INSERT INTO")

		visit := func(g outbox.Group, want ...string) {
			t.Helper()
			groups, err := o.Claim(t.Context(), []string{"g"}, time.Minute)
			if err != nil || len(groups) != 1 {
				t.Fatalf("Claim: %v, %v", groups, err)
			}
			es, err := o.Read(t.Context(), g, outbox.Known{}, 10)
			if err != nil || len(es) != 1 {
				t.Fatalf("Read:%s, %v", ids(es), err)
			}
			must.Get(o.Delete(t.Context(), es))(t)
			must.Do(t, o.Unclaim(t.Context(), []string{"g"}))
			expect("a visit", want...)
		}
		claimed := append(slices.Clone(b.OutboxHeads), short(o.place.Dialect().SQL("UPDATE {outbox}")), "SELECT seq,", "DELETE FROM")
		if b.Dialect.OneWriter() {
			visit(outbox.Group{Name: "g"}, "SELECT seq", "SELECT seq,", "DELETE FROM")
		} else {
			visit(outbox.Group{Name: "g"}, claimed...)
		}
		add(o, 1)
		spy.take()
		found, _, err := o.Groups(t.Context(), "", 100)
		if err != nil || len(found) != 1 {
			t.Fatalf("Groups: %v, %v", found, err)
		}
		if n := len(spy.take()); n != 1 {
			t.Errorf("Groups: %d statements, want 1", n)
		}
		if b.Dialect.OneWriter() {
			visit(found[0], "SELECT seq,", "DELETE FROM")
		} else {
			visit(found[0], claimed...)
		}
	})
}

// backlog fills the outbox with rows of groups g000000 and on, of which the first one has half.
func backlog(t testing.TB, b *bed, rows, groups int) {
	t.Helper()
	numbers := "WITH RECURSIVE d (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM d WHERE n < 9)," +
		" n (n) AS (SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n + 100000 * f.n FROM d a, d b, d c, d d, d e, d f)"
	b.exec(t, "INSERT INTO {outbox} (aggregatetype, aggregateid, id, source, type, payload, attributes, trace, created_at) "+numbers+
		" SELECT 'box', "+fmt.Sprintf(b.OutboxGroup, groups)+", CONCAT('id-', n), 'orders', '', CONCAT('body ', n), '{}', '', {now} - 1000 FROM n WHERE n < ? ORDER BY n", rows)
	b.exec(t, strings.Replace(b.Analyze, "*", "{outbox}", 1))
}

// The plans of a relay's statements on a large outbox: all of them search the index of groups or the primary key, and none
// reads the table, also where one group has half of it and the statistics say so.
func TestPlans(t *testing.T) {
	eachBed(t, func(t *testing.T, b *bed) {
		backlog(t, b, 20000, 100)
		b.exec(t, "INSERT INTO {outbox_later} (later_key, due_at, place, "+eventColumns+") SELECT id, created_at + 1000 * (seq - 100), 0, "+eventColumns+" FROM {outbox}")
		b.exec(t, strings.Replace(b.Analyze, "*", "{outbox_later}", 1))
		o := b.outbox(t)
		must.Do(t, o.Check(t.Context()))
		s := o.stmts()
		const last = math.MaxInt64
		type statement struct {
			name, text string
			args       []any
			uses       string // part of the plan, of some databases only
		}
		const (
			group = `outbox_group`
			row   = `using sqsonce_outbox_|outbox_pkey|integer primary key|key=primary`
		)
		all := []statement{
			{"groups", s.groups, s.groupArgs("box", "", 64), group},
			{"groups after one", s.groups, s.groupArgs("box", "g000001", 64), group},
			{"page", s.page, append(o.span("g000000", last), 10), group},
			{"page of a small one", s.page, append(o.span("g000007", last), 10), group},
			{"highest", s.highest, o.span("g000000", last), group},
			{"highest of a small one", s.highest, o.span("g000099", last), group},
			{"parked", s.parked, []any{"box", 10}, `outbox_parked`},
			{"park", s.mark, []any{halted, "", "box", "g", 1, "id"}, row},
			{"unpark", s.unmark, []any{"box", "g", 1, "id"}, row},
			{"discard", s.discard, []any{"box", "g", 1, "id"}, row},
			{"overdue", s.overdue, []any{"box"}, `outbox_due`},
			{"due", o.dueQuery(1), []any{"box", source, "g000000", moveRows}, `outbox_due`},
			{"order", o.orderQuery(2), []any{"box", source, time.Now().UnixMilli(), "g000000", "g000007", mostOrdered}, `outbox_due`},
			{"cancel", s.cancel, []any{"box", "id-1"}, `outbox_later_pkey|sqlite_autoindex_sqsonce_outbox_later|key=primary`},
			{"find", s.find, []any{"box", "g", 1, "id"}, row + `|impossible where`},
		}
		if !b.Dialect.OneWriter() {
			text, args, err := o.headsQuery([]string{"g000000", "g000007"})
			must.Do(t, err)
			// MySQL reads the first and the last entry of the index when it plans.
			all = append(all, statement{"heads", text, args, `outbox_group|select tables optimized away`})
		}
		text, args := o.deletion([]outbox.Entry{{Event: event("g000000", "x"), Seq: 1}, {Event: event("g000000", "y"), Seq: 2}})
		all = append(all, statement{"delete", text, args, row})
		for _, st := range all {
			got := b.Plan(t, b.db, st.text, st.args...)
			if !regexp.MustCompile(st.uses).MatchString(got) {
				t.Errorf("%s: the plan has no %q:\n%s", st.name, st.uses, got)
			}
			if strings.HasPrefix(st.name, "page") || strings.HasPrefix(st.name, "highest") {
				if regexp.MustCompile(`filesort|temporary|temp b-tree|sort key`).MatchString(got) {
					t.Errorf("%s: the plan sorts the whole group:\n%s", st.name, got)
				}
			}
			for line := range strings.Lines(got) {
				if regexp.MustCompile(`seq scan|type=all|type=index|scan (sqsonce_outbox|sqsonce_outbox_later|o|f)\b`).MatchString(line) && !strings.Contains(line, "derived") {
					t.Errorf("%s: the plan reads the whole table:\n%s", st.name, got)
				}
			}
		}
		if got := b.Plan(t, b.db, s.groups, s.groupArgs("box", "", 64)...); !strings.Contains(got, b.OutboxGroupsPlan) {
			t.Errorf("groups: the plan reads each row of a group:\n%s", got)
		}
	})
}
