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
