package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/internal/golden"
)

// goldenDatabase is what a version leaves in a database.
type goldenDatabase struct {
	Schema         []string // its migrations
	Records, Inbox []goldenRow
}

// goldenRow is a row: texts by column, and times as what remains until them. It has no seq, which the database numbers.
type goldenRow map[string]string

var (
	goldenTimes   = []string{"fence", "lease_until", "expires_at", "received_at", "due_at"}
	goldenNumbers = []string{"attempts", "receive_count", "lease_length"}
	goldenBytes   = []string{"result", "payload"}
)

var randomText = regexp.MustCompile(`[A-Z2-7]{26}(@[\w-]{1,32}\.[A-Z2-7]{8})?$`) // of crypto/rand: owners, with their process

// The tables and rows are those that the newest golden version writes. Those of every version are read, after a migration.
func TestGolden(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		name := strings.ToLower(b.Dialect.String()) + ".json"
		s := newStore(t, b)
		golden.WriteRecords(t, s)
		writeInbox(t, s)
		writeDeferred(t, s)
		golden.Check(t, name, goldenDatabase{Schema: allMigrations(b.Dialect), Records: rows(t, b, "{records}"), Inbox: rows(t, b, "{inbox}")})

		kind := strings.TrimPrefix(t.Name(), "TestGolden/")
		golden.Each(t, name, func(t *testing.T, old goldenDatabase) {
			b := EmptyBed(t, kind)
			for _, s := range old.Schema {
				exec(t, b.DB, s)
			}
			insert(t, b, "{records}", old.Records)
			insert(t, b, "{inbox}", old.Inbox)
			must.Do(t, Migrate(t.Context(), b.DB, b.Dialect))
			s := newStore(t, b)
			golden.CheckRecords(t, s, func(key string, by time.Duration) { age(t, b, key, by) })
			checkInbox(t, s)
			checkDeferred(t, s)
		})
	})
}

// Events of the inbox and of the deferred one. The deferred one has orderID too, which is pending.
const (
	doneID   = "done"
	failedID = "failed" // of the inbox: released; of the deferred one: parked
)

var errGolden = errors.New("no such account")

func failOne(_ context.Context, m *sqsonce.Message, _ *sql.Tx) error {
	if m.ID == "m-"+failedID {
		return errGolden
	}
	return nil
}

func writeInbox(t *testing.T, s *Store) {
	t.Helper()
	h := newInbox(t, s).Handler(failOne)
	must.Do(t, h(t.Context(), order(doneID, 1)))
	if err := h(t.Context(), order(failedID, 1)); !errors.Is(err, errGolden) {
		t.Fatalf("got error %v, want the handler's", err)
	}
}

func checkInbox(t *testing.T, s *Store) {
	t.Helper()
	if r, err := s.Inspect(t.Context(), "billing#orders|"+failedID); err != nil || r.LastError != errGolden.Error() {
		t.Errorf("record that the inbox released: got %+v and error %v, want the handler's error", r, err)
	}
	var runs []string
	h := newInbox(t, s).Handler(func(_ context.Context, m *sqsonce.Message, _ *sql.Tx) error {
		runs = append(runs, m.ID)
		return nil
	})
	if err := errors.Join(h(t.Context(), order(doneID, 2)), h(t.Context(), order(failedID, 2))); err != nil || !slices.Equal(runs, []string{"m-" + failedID}) {
		t.Errorf("inbox: got runs %q and error %v, want one of the event that failed", runs, err)
	}
}

func writeDeferred(t *testing.T, s *Store) {
	t.Helper()
	d := newDeferred(t, s)
	receive(t, d, order(doneID, 1), order(failedID, 1))
	_, stop := process(t, d, failOne, func(o *ProcessorOptions) { o.MaxAttempts, o.LeaseDuration = 1, time.Minute })
	awaitCounts(t, d, 0, 1)
	stop()
	receive(t, d, goldenMessage())
}

func checkDeferred(t *testing.T, s *Store) {
	t.Helper()
	d := newDeferred(t, s)
	receive(t, d, order(doneID, 2), order(failedID, 2)) // stored already
	p := newProcessor(t, d)
	claimed := func() *sqsonce.Message {
		jobs, err := p.claim(t.Context(), 10)
		if err != nil || len(jobs) != 1 {
			t.Fatalf("claim: got %d events, %v, want one", len(jobs), err)
		}
		return jobs[0].message
	}
	got, want := claimed(), goldenMessage()
	if got.ID != want.ID || got.Body != want.Body || got.Group != want.Group || fmt.Sprint(got.Attributes) != fmt.Sprint(want.Attributes) {
		t.Errorf("message of the golden row: got %+v, want %+v", got, want)
	}
	if e, err := d.Inspect(t.Context(), "billing#orders|"+doneID); err != nil || !e.Done {
		t.Errorf("event that is done: got %+v and error %v", e, err)
	}
	parked, err := d.Parked(t.Context(), 10)
	if err != nil || len(parked) != 1 || parked[0].Error != errGolden.Error() {
		t.Fatalf("parked: got %+v and error %v, want the event that failed", parked, err)
	}
	must.Do(t, d.Unpark(t.Context(), parked[0].Key))
	if got, want := claimed(), order(failedID, 1); got.ID != want.ID || got.Body != want.Body {
		t.Errorf("message that was parked: got %+v, want %+v", got, want)
	}
}

func goldenMessage() *sqsonce.Message {
	m := inGroup("customer-7", orderID)
	m.Attributes["picture"] = sqsonce.Attribute{Type: "Binary.png", Binary: []byte{0, 255}}
	return m
}

func allMigrations(d Dialect) (all []string) {
	for v := 1; v <= schema.Last(); v++ {
		all = append(all, schema.Migration(sqldb.Dialect(d), v)...)
	}
	return all
}

// rows returns a table's rows in the order of their IDs.
func rows(t *testing.T, b *Bed, table string) (all []goldenRow) {
	t.Helper()
	for _, r := range must.Get(sqlbed.Rows(t.Context(), b.DB, b.Dialect.sql("SELECT * FROM "+table)))(t) {
		delete(r, "seq")
		for column, value := range r {
			r[column] = goldenValue(t, column, value)
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b goldenRow) int { return cmp.Compare(a["id"], b["id"]) })
	return all
}

func goldenValue(t *testing.T, column, value string) string {
	t.Helper()
	if column == "owner" {
		return randomText.ReplaceAllString(value, "RANDOM")
	}
	if value == "0" || !slices.Contains(goldenTimes, column) {
		return value
	}
	ms := must.Get(strconv.ParseInt(value, 10, 64))(t)
	return "now " + time.Until(time.UnixMilli(ms)).Round(10*time.Minute).String()
}

func insert(t *testing.T, b *Bed, table string, rows []goldenRow) {
	t.Helper()
	for _, row := range rows {
		var columns, marks []string
		var values []any
		for column, text := range row {
			columns, marks = append(columns, column), append(marks, "?")
			values = append(values, databaseValue(t, column, text))
		}
		exec(t, b.DB, b.Dialect.sql("INSERT INTO "+table+" ("+strings.Join(columns, ", ")+") VALUES ("+strings.Join(marks, ", ")+")"), values...)
	}
}

func databaseValue(t *testing.T, column, text string) any {
	t.Helper()
	if after, ok := strings.CutPrefix(text, "now "); ok {
		d := must.Get(time.ParseDuration(after))(t)
		return time.Now().Add(d).UnixMilli()
	}
	switch {
	case slices.Contains(goldenBytes, column):
		return []byte(text)
	case slices.Contains(goldenTimes, column), slices.Contains(goldenNumbers, column):
		return must.Get(strconv.ParseInt(text, 10, 64))(t)
	}
	return text
}
