package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
)

// unlisted is a server that answers every login, or else every statement, with an error.
type unlisted struct {
	err     error
	atLogin bool
}

func (u unlisted) Driver() driver.Driver { return nil }

func (u unlisted) Connect(context.Context) (driver.Conn, error) {
	if u.atLogin {
		return nil, fmt.Errorf("failed to connect: %w", u.err)
	}
	return u, nil
}

func (u unlisted) Prepare(string) (driver.Stmt, error) { return nil, u.err }
func (u unlisted) Begin() (driver.Tx, error)           { return u, nil }
func (u unlisted) Commit() error                       { return u.err }
func (u unlisted) Rollback() error                     { return nil }
func (u unlisted) Close() error                        { return nil }

func (u unlisted) store(t *testing.T, d Dialect) *Store {
	db := sql.OpenDB(u)
	t.Cleanup(func() { _ = db.Close() })
	return storeOn(t, db, d)
}

// unrun are the ways of a message to a store, none of which may call its handler. The error is the delivery's.
func unrun(t *testing.T, s *Store) map[string]func(id string) error {
	never := func() error {
		t.Error("the handler was called")
		return nil
	}
	once, err := dedup.New(s, "billing")
	if err != nil {
		t.Fatal(err)
	}
	plain := once.Handler(func(context.Context, *sqsonce.Message) error { return never() })
	inbox := newInbox(t, s).Handler(func(context.Context, *sqsonce.Message, *sql.Tx) error { return never() })
	deferred := newDeferred(t, s)
	return map[string]func(string) error{
		"once":     func(id string) error { return plain(t.Context(), order(id, 1)) },
		"inbox":    func(id string) error { return inbox(t.Context(), order(id, 1)) },
		"deferred": func(id string) error { return deferred.Receive(t.Context(), order(id, 1)) },
	}
}

// Whatever a database answers before a handler ran costs the message no attempt: at the login, in the first acquire's check,
// and in the statement that writes the record or the message.
func TestUnlistedCodes(t *testing.T) {
	t.Parallel()
	for _, k := range sqlbed.Kinds {
		for _, err := range k.Unlisted {
			for at, checked := range map[string]bool{"login": false, "check": false, "statement": true} {
				s := unlisted{err, at == "login"}.store(t, Dialect(k.Dialect))
				s.checked.Store(checked)
				for way, deliver := range unrun(t, s) {
					got := deliver(orderID)
					if kind := sqsonce.OutcomeOf(got).Kind; kind != sqsonce.OutcomeUnavailable {
						t.Errorf("%s, %v at the %s, %s: got %s, want unavailable: %v", k.Label, err, at, way, kind, got)
					}
				}
			}
		}
	}
}

// A database that takes no logins (SQLSTATE 55000) costs no message an attempt.
func TestLoginsNotAllowed(t *testing.T) {
	t.Parallel()
	b := NewBed(t, "PostgreSQL")
	exec(t, open(t, b.Driver, strings.Replace(b.DSN, b.Name, "postgres", 1)), "ALTER DATABASE "+b.Name+" ALLOW_CONNECTIONS false")
	s := storeOn(t, b.Open(t), PostgreSQL)
	for way, deliver := range unrun(t, s) {
		failed := 0
		for n := range 40 {
			if err := deliver(fmt.Sprint(n)); sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomeUnavailable {
				failed++
				t.Logf("%s: %v", way, err)
			}
		}
		if failed > 0 {
			t.Errorf("%s: %d of 40 messages failed, want all unavailable", way, failed)
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
