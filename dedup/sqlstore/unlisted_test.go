package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// refuser is a store whose database answers every login, or else every statement, with the same error.
type refuser struct {
	store *Store
	with  func(testserver.Refusal)
}

func newRefuser(t *testing.T, k sqlbed.Kind, atLogin bool) refuser {
	t.Helper()
	if !slices.Contains(servers, k.Label) {
		db := sql.OpenDB(refusing{})
		t.Cleanup(func() { _ = db.Close() })
		return refuser{storeOn(t, db, Dialect(k.Dialect)), func(testserver.Refusal) {}}
	}
	stub := k.NewStub(t, atLogin)
	return refuser{storeOn(t, open(t, k.Driver, stub.DSN), Dialect(k.Dialect)), func(r testserver.Refusal) { stub.Refusal.Store(&r) }}
}

// refusing is a file of SQLite that cannot be used, with a result that nobody knows.
type refusing struct{}

func (refusing) Driver() driver.Driver                        { return nil }
func (refusing) Connect(context.Context) (driver.Conn, error) { return nil, sqliteError(99) }

// unrun are the ways of a message to a store, none of which may call its handler. The error is the delivery's.
func unrun(t *testing.T, s *Store) map[string]func(id string) error {
	never := func() error {
		t.Error("the handler was called")
		return nil
	}
	once := must.Get(dedup.New(s, "billing"))(t)
	plain := once.Handler(func(context.Context, *sqsonce.Message) error { return never() })
	inbox := newInbox(t, s).Handler(func(context.Context, *sqsonce.Message, *sql.Tx) error { return never() })
	deferred := newDeferred(t, s)
	return map[string]func(string) error{
		"once":     func(id string) error { return plain(t.Context(), order(id, 1)) },
		"inbox":    func(id string) error { return inbox(t.Context(), order(id, 1)) },
		"deferred": func(id string) error { return deferred.Receive(t.Context(), order(id, 1)) },
	}
}

// named are errors that were once taken for a message's, or might be.
func named() (all []testserver.Refusal) {
	codes := strings.Fields("55000 XX000 55006 25P03 25P04 XX001 72000 0A000 F0000 26000 42P05 25P02 23505 22001")
	for n, number := range []uint16{9001, 3032, 3100, 3168, 1105, 2003, 2013, 1158, 1159, 1180, 1206, 1412, 1637, 1030, 1026, 3, 1062, 60000} {
		all = append(all, testserver.Refusal{Code: codes[n%len(codes)], Number: number, Text: "no"})
	}
	return all
}

// Whatever a database answers before a handler ran costs the message no attempt: at the login, in the first acquire's check,
// and in the statement that writes the record or the message.
func TestUnlistedCodes(t *testing.T) {
	t.Parallel()
	for _, k := range sqlbed.Kinds {
		t.Run(k.Label, func(t *testing.T) {
			t.Parallel()
			for at, checked := range map[string]bool{"login": false, "check": false, "statement": true} {
				r := newRefuser(t, k, at == "login")
				ways := unrun(t, r.store)
				for n, refusal := range append(named(), testserver.Refusals(100)...) {
					r.with(refusal)
					r.store.checked.Store(checked)
					for way, deliver := range ways {
						err := deliver(fmt.Sprint(n))
						if kind := sqsonce.OutcomeOf(err).Kind; kind != sqsonce.OutcomeUnavailable {
							t.Errorf("%s at the %s, %s: got %s, want unavailable: %v", refusal, at, way, kind, err)
						}
					}
				}
			}
		})
	}
}

// A database that takes no logins (SQLSTATE 55000) costs no message an attempt.
func TestLoginsNotAllowed(t *testing.T) {
	t.Parallel()
	b := NewBed(t, "PostgreSQL")
	exec(t, open(t, b.Driver, strings.Replace(b.DSN, b.Name, "postgres", 1)), "ALTER DATABASE "+b.Name+" ALLOW_CONNECTIONS false")
	s := storeOn(t, b.Open(t), PostgreSQL)
	for way, deliver := range unrun(t, s) {
		if err := deliver(orderID); sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomeUnavailable {
			t.Errorf("%s: got error %v, want unavailable", way, err)
		}
	}
}

// After the handler ran, its own writes may be the reason for an answer: a commit that the database refuses counts.
func TestInboxCommitRefused(t *testing.T) {
	t.Parallel()
	b := NewBed(t, "PostgreSQL")
	exec(t, b.DB, "CREATE TABLE pets (id int PRIMARY KEY, mother int REFERENCES pets DEFERRABLE INITIALLY DEFERRED)")
	err := newInbox(t, newStore(t, b)).Handler(func(ctx context.Context, _ *sqsonce.Message, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO pets VALUES (1, 2)")
		return err
	})(t.Context(), order(orderID, 1))
	if kind := sqsonce.OutcomeOf(err).Kind; kind != sqsonce.OutcomeFailed {
		t.Errorf("got outcome %s of error %v, want failed", kind, err)
	}
}

// Where the commits of a processor's attempts are refused, whatever their handlers did, the events wait and none is parked.
func TestProcessorCommitsRefused(t *testing.T) {
	t.Parallel()
	b := NewBed(t, "PostgreSQL")
	exec(t, b.DB, "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'quota exceeded' USING ERRCODE = 'XX000'; END $$")
	exec(t, b.DB, "CREATE CONSTRAINT TRIGGER quota AFTER UPDATE ON sqsonce_inbox DEFERRABLE INITIALLY DEFERRED"+
		" FOR EACH ROW WHEN (OLD.due_at = 0 AND NEW.due_at = 0) EXECUTE FUNCTION refuse()") // an attempt moves no due time
	d := newDeferred(t, newStore(t, b))
	p := newProcessor(t, d, func(o *ProcessorOptions) { o.MaxAttempts = 1 })
	receive(t, d, order(orderID, 1))
	for n := range 3 {
		if n == 2 {
			exec(t, b.DB, "DROP TRIGGER quota ON sqsonce_inbox")
		}
		for _, j := range claimOf(t, p, p.due) {
			p.handle(t.Context(), j, func(context.Context, *sqsonce.Message, *sql.Tx) error { return nil })
		}
		exec(t, b.DB, "UPDATE sqsonce_inbox SET due_at = 1")
	}
	if got, want := p.Stats(), (ProcessorStats{Failed: 2, Done: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// A table that refuses a result, like one with a shorter column, gets the record without it: the effect does not happen again.
func TestRefusedResult(t *testing.T) {
	each(t, servers, NewBed, func(t *testing.T, b *Bed) {
		exec(t, b.DB, b.Dialect.sql("ALTER TABLE {records} ADD CONSTRAINT short CHECK (length(result) < 8)"))
		once := must.Get(dedup.New(newStore(t, b), "billing"))(t)
		effects := 0
		for _, want := range []error{nil, dedup.ErrNoResult} {
			_, err := dedup.Do(t.Context(), once, "order-1", func(context.Context) (string, error) { effects++; return "a long result", nil })
			if !errors.Is(err, want) || effects != 1 {
				t.Errorf("got error %v and %d effects, want %v and 1", err, effects, want)
			}
		}
	})
}

// The drivers' own errors, provoked on the databases.
func TestClassify(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		exec(t, b.DB, "CREATE TABLE pets (id int PRIMARY KEY, name varchar(60) NOT NULL)")
		exec(t, b.DB, "INSERT INTO pets VALUES (1, 'a'), (2, 'b')")
		for _, tt := range []struct {
			name, text string
			want       sqldb.Class
		}{
			{"duplicate", "INSERT INTO pets VALUES (1, 'Error 1213 (40001): no such table')", sqldb.Duplicate},
			{"no table", "SELECT * FROM cats", sqldb.NoTable},
			{"no column", "SELECT age FROM pets", sqldb.NoColumn},
			{"no column to insert into", "INSERT INTO pets (age) VALUES (1)", sqldb.NoColumn},
			{"syntax", "SELEC 1", sqldb.UnknownSyntax},
			{"no function", "SELECT no_such_function(1)", sqldb.UnknownSyntax},
			{"not null", "INSERT INTO pets VALUES (3, NULL)", sqldb.Other},
		} {
			_, err := b.DB.ExecContext(t.Context(), tt.text)
			if got := b.Dialect.classify(fmt.Errorf("wrapped: %w", err)); err == nil || got != tt.want {
				t.Errorf("%s: got class %d of error %v, want %d", tt.name, got, err, tt.want)
			}
		}
		for _, err := range []error{io.ErrUnexpectedEOF, context.DeadlineExceeded, errors.New("anything")} {
			if got := b.Dialect.classify(err); got != sqldb.Unknown {
				t.Errorf("%v: got class %d, want unknown", err, got)
			}
		}
	})
}

// A transaction that lost to another one may be run again.
func TestClassifyConflicts(t *testing.T) {
	t.Parallel()
	for d, errs := range map[Dialect][]error{
		PostgreSQL: {&pgconn.PgError{Code: "40001"}, &pgconn.PgError{Code: "40P01"}, &pgconn.PgError{Code: "55P03"}},
		MySQL:      {&mysqldriver.MySQLError{Number: 1213}, &mysqldriver.MySQLError{Number: 1205}, &mysqldriver.MySQLError{Number: 1020}, &mysqldriver.MySQLError{Number: 3572}, &mysqldriver.MySQLError{Number: 3101}},
		SQLite:     {sqliteError(5), sqliteError(6)},
	} {
		for _, err := range errs {
			if !sqldb.Dialect(d).IsConflict(fmt.Errorf("wrapped: %w", err)) {
				t.Errorf("%s: %v is no conflict", d, err)
			}
		}
	}
}
