package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/question"
)

var questionClaim = dedup.Claim{Key: "c" + question.KeyPrefix + "x", Owner: "x", Lease: time.Minute, Retention: time.Hour, ReceiveCount: 2}

// The question of an inbox passes on each database, again and again.
func TestInboxQuestion(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		i := newInbox(t, newStore(t, b))
		for range 3 {
			must.Do(t, (inboxStore{i}).Ask(t.Context(), questionClaim))
		}
	})
}

// A redelivery whose transaction could not begin has not run, and does not look like a crash.
func TestStartThatDoesNotFollow(t *testing.T) {
	t.Parallel()
	b := NewBed(t, "SQLite")
	i := newInbox(t, newStore(t, b))
	exec(t, b.DB, "CREATE TRIGGER refuse BEFORE UPDATE ON sqsonce_records WHEN NEW.lease_length > 0 AND NEW.lease_until > 0 BEGIN SELECT RAISE(ABORT, 'refused'); END")
	none := func(context.Context, *sqsonce.Message, *sql.Tx) error { return nil }
	if err := i.Handler(none)(t.Context(), order("o", 2)); !errors.Is(err, sqsonce.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	exec(t, b.DB, "DROP TRIGGER refuse")
	must.Do(t, i.Handler(none)(t.Context(), order("o", 3)))
	if s := i.Stats(); s.Takeovers != 0 || s.First != 1 {
		t.Errorf("got %+v, want a first run and no takeover", s)
	}
}

// The question fails where the inbox's record cannot be inserted, or not be completed, and a delivery that failed so has it.
func TestInboxQuestionWrites(t *testing.T) {
	t.Parallel()
	b := NewBed(t, "SQLite")
	i := newInbox(t, newStore(t, b))
	for _, operation := range []string{"INSERT", "UPDATE"} {
		exec(t, b.DB, "CREATE TRIGGER refuse BEFORE "+operation+" ON sqsonce_records BEGIN SELECT RAISE(ABORT, 'refused'); END")
		if err := (inboxStore{i}).Ask(t.Context(), questionClaim); !errors.Is(err, sqsonce.ErrUnavailable) {
			t.Errorf("%s refused: got %v, want ErrUnavailable", operation, err)
		}
		err := i.Handler(func(context.Context, *sqsonce.Message, *sql.Tx) error { return nil })(t.Context(), order("o", 1))
		if _, ok := question.Of(err); !ok || !errors.Is(err, sqsonce.ErrUnavailable) {
			t.Errorf("%s refused: got %v, want ErrUnavailable with a question", operation, err)
		}
		exec(t, b.DB, "DROP TRIGGER refuse")
	}
}
