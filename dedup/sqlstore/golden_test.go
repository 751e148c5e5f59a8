package sqlstore

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
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
	goldenNumbers = []string{"attempts"}
	goldenBytes   = []string{"result", "payload"}
)

// The tables and rows are those that the newest golden version writes. Those of every version are read, after a migration.
func TestGolden(t *testing.T) {
	t.Parallel()
	EachDialect(t, func(t *testing.T, b *Bed) {
		name := strings.ToLower(b.engine.name) + ".json"
		s := newStore(t, b)
		golden.WriteRecords(t, s)
		receive(t, newDeferred(t, s), goldenMessage())
		golden.Check(t, name, goldenDatabase{Schema: allMigrations(b.Dialect), Records: rows(t, b, "{records}"), Inbox: rows(t, b, "{inbox}")})

		kind := strings.TrimPrefix(t.Name(), "TestGolden/")
		golden.Each(t, name, func(t *testing.T, old goldenDatabase) {
			b := EmptyBed(t, kind)
			for _, s := range old.Schema {
				exec(t, b.DB, s)
			}
			insert(t, b, "{records}", old.Records)
			insert(t, b, "{inbox}", old.Inbox)
			if err := Migrate(t.Context(), b.DB, b.Dialect); err != nil {
				t.Fatal(err)
			}
			s := newStore(t, b)
			golden.CheckRecords(t, s, func(key string, by time.Duration) { age(t, b, key, by) })
			jobs, err := newProcessor(t, newDeferred(t, s)).claim(t.Context(), 10)
			if err != nil || len(jobs) != 1 {
				t.Fatalf("claim: got %d events, %v, want that of the golden row", len(jobs), err)
			}
			got, want := jobs[0].message, goldenMessage()
			if got.ID != want.ID || got.Body != want.Body || got.Group != want.Group || fmt.Sprint(got.Attributes) != fmt.Sprint(want.Attributes) {
				t.Errorf("message of the golden row: got %+v, want %+v", got, want)
			}
		})
	})
}

func goldenMessage() *sqsonce.Message {
	m := inGroup("customer-7", orderID)
	m.Attributes["picture"] = sqsonce.Attribute{Type: "Binary.png", Binary: []byte{0, 255}}
	return m
}

func allMigrations(d Dialect) (all []string) {
	for v := 1; v <= SchemaVersion; v++ {
		all = append(all, d.migration(v)...)
	}
	return all
}

// rows returns a table's rows in the order of their IDs.
func rows(t *testing.T, b *Bed, table string) (all []goldenRow) {
	t.Helper()
	result, err := b.DB.QueryContext(t.Context(), b.Dialect.sql("SELECT * FROM "+table))
	if err != nil {
		t.Fatal(err)
	}
	defer result.Close()
	columns, err := result.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for result.Next() {
		values, targets := make([][]byte, len(columns)), make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := result.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		row := goldenRow{}
		for i, v := range values {
			if v != nil && columns[i] != "seq" {
				row[columns[i]] = goldenValue(t, columns[i], string(v))
			}
		}
		all = append(all, row)
	}
	if err := result.Err(); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b goldenRow) int { return cmp.Compare(a["id"], b["id"]) })
	return all
}

func goldenValue(t *testing.T, column, value string) string {
	t.Helper()
	if value == "0" || !slices.Contains(goldenTimes, column) {
		return value
	}
	ms, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
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
		d, err := time.ParseDuration(after)
		if err != nil {
			t.Fatal(err)
		}
		return time.Now().Add(d).UnixMilli()
	}
	switch {
	case slices.Contains(goldenBytes, column):
		return []byte(text)
	case slices.Contains(goldenTimes, column), slices.Contains(goldenNumbers, column):
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return text
}
