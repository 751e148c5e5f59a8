package dynamostore

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// seen is the record as an operator sees it.
func (b *bed) seen(s *Store) dedup.Record {
	b.Helper()
	r := must.Get(s.Inspect(b.Context(), testKey))(b)
	return r
}

func (b *bed) reopen(s *Store, seen dedup.Record) {
	b.Helper()
	must.Do(b, s.Reopen(b.Context(), seen, "note"))
}

// A store that has asked nothing yet does not know DynamoDB's time: its first refusal tells it.
func TestReopenBeforeTheFirstDate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		after time.Duration
		live  bool
	}{{"crashed", lease + 5*time.Second, false}, {"in the takeover margin", lease + time.Second, true}, {"live", lease / 2, true}} {
		runStore(t, c.name, func(t *testing.T, b *bed, s *Store) {
			b.acquire(s, claim("a"))
			time.Sleep(c.after)
			before := b.seen(s)
			err := b.store(off(-time.Hour)).Reopen(t.Context(), before, "note")
			in, live := errors.AsType[*dedup.InProgressError](err)
			if live != c.live || !live && err != nil {
				t.Errorf("got error %v, want *InProgressError: %v", err, c.live)
			}
			if live && !in.Until.After(time.Now().Add(-time.Hour)) {
				t.Errorf("InProgressError.Until: got %s, want it ahead", in.Until)
			}
		})
	}
}

// The answer is lost, and the next request finds the record that the first one reopened.
func TestReopenAnswerLost(t *testing.T) {
	onStore(t, func(t *testing.T, b *bed, s *Store) {
		b.complete(s, b.acquire(s, claim("a")))
		r := b.seen(s)
		b.faults(fault.Rule{Op: "UpdateItem", Nth: 1, Do: fault.LoseReply})
		sent := len(b.srv.Calls())
		b.reopen(s, r)
		if got := b.ops(sent); !cmp.Equal(got, []string{"UpdateItem", "UpdateItem"}) {
			t.Errorf("calls: got %v, want two updates", got)
		}
		if now := b.seen(s); now.Note != "note" || now.Fence <= r.Fence {
			t.Errorf("after it: got %+v, want the note", now)
		}
	})
}

// What a program that does not check ownership has written is not reopened.
func TestReopenForeign(t *testing.T) {
	onStore(t, func(t *testing.T, b *bed, s *Store) {
		b.foreign(values{attrStatus: text(completed), TTLAttribute: seconds(time.Hour)})
		r := b.seen(s)
		if got := r.State(time.Now()); got != dedup.StateForeign {
			t.Errorf("state: got %s, want foreign", got)
		}
		listed := 0
		for l, err := range s.List(t.Context(), func(o *dedup.ListOptions) { o.States = []dedup.RecordState{dedup.StateForeign} }) {
			if listed++; err != nil || l.Key != testKey {
				t.Errorf("list: got %+v, %v", l, err)
			}
		}
		if listed != 1 {
			t.Errorf("%d records are listed as foreign, want 1, which is completed", listed)
		}
		err := s.Reopen(t.Context(), r, "note")
		if field, ok := errors.AsType[*sqsonce.OptionError](err); !ok || field.Field != "seen.Owner" {
			t.Errorf("without an owner: got error %v, want *OptionError of seen.Owner", err)
		}
	})
}

// Committed says that the record was completed by an inbox: a second run makes the handler's writes again.
func TestCommitted(t *testing.T) {
	onLedger(t, func(t *testing.T, b *bed) {
		s := b.store()
		l := b.acquire(s, claim("a"))
		if b.seen(s).Committed {
			t.Error("before the commit: Committed")
		}
		tx := &Tx{}
		tx.Update(book("alice"))
		must.Do(t, s.commit(t.Context(), l, dedup.Result{}, tx.close()))
		r := b.seen(s)
		if !r.Completed || !r.Committed {
			t.Errorf("after the commit: got %+v, want Completed and Committed", r)
		}
		b.reopen(s, r)
		if b.seen(s).Committed {
			t.Error("after a reopen: Committed")
		}
		b.complete(s, b.acquire(s, claim("b")))
		if r := b.seen(s); !r.Completed || r.Committed {
			t.Errorf("after a complete without a transaction: got %+v, want Completed only", r)
		}
	})
}

// The runbook's command reopens a record as Reopen does: it leaves no attribute of a result, no count of crashes, and no earlier note.
func TestRunbookReopens(t *testing.T) {
	t.Parallel()
	page := must.Get(os.ReadFile("../../docs/runbook.md"))(t)
	_, command, found := strings.Cut(string(page), " REMOVE ")
	removed, rest, _ := strings.Cut(command, "'")
	_, rest, named := strings.Cut(rest, "--expression-attribute-names '")
	names := map[string]string{}
	if err := json.NewDecoder(strings.NewReader(rest)).Decode(&names); err != nil || !found || !named {
		t.Fatalf("reading the command: %v", err)
	}
	var got, want []string
	for _, name := range strings.Split(removed, ", ") {
		got = append(got, names[name])
	}
	for _, a := range completeAttributes {
		if a.ofResult {
			want = append(want, a.name)
		}
	}
	if want = append(want, "error", "note"); !slices.Equal(got, want) {
		t.Errorf("the runbook's reopen removes %q, want %q", got, want)
	}
}
