package limittest

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/question"
	"github.com/sqsonce/sqsonce/internal/suite"
	"github.com/sqsonce/sqsonce/limit"
)

// defects are counters that break one rule, and a case that must fail on each. Other cases may fail too.
var defects = []suite.Defect{
	{"grants one token only", "take/up to N tokens, a step apart"},
	{"grants more than N", "take/up to N tokens, a step apart"},
	{"grants a token in the next process again", "take/no two are granted one token"},
	{"does not know a burst", "take/a burst at once"},
	{"gives a burst with each take", "take/a burst at once"},
	{"saves more than a burst", "take/a rest gives back a burst"},
	{"forgets a part of a step", "take/a rest gives back a burst"},
	{"ignores Ahead", "take/what is within Ahead"},
	{"ignores Reach", "take/one within Reach"},
	{"grants all within Reach", "take/one within Reach"},
	{"says to ask again too late", "take/asks again when it is told"},
	{"counts a refusal as a token", "take/asks again when it is told"},
	{"does not say when to ask again", "take/a burst at once"},
	{"gives out tokens twice", "take/the rate of a fleet"},
	{"skips tokens", "take/the rate of a fleet"},
	{"gives tokens back that nobody used", "take/a lost answer wastes only its tokens"},
	{"has one schedule for all keys", "take/keys have schedules of their own"},
	{"takes tokens of all keys", "take/keys have schedules of their own"},
	{"has a schedule for each plan", "take/two plans of one key"},
	{"cuts steps to microseconds", "take/a step below a microsecond"},
	{"ignores a pause", "pause/moves the tokens"},
	{"lets a burst through after a pause", "pause/moves the tokens"},
	{"lets a later pause end an earlier one", "pause/never back"},
	{"adds a pause to the tokens that are taken", "pause/of a key with tokens taken"},
	{"grants nothing with a pause", "pause/grants what is within Reach"},
	{"lets a burst through after a pause", "pause/ends a burst"},
	{"forgets a pause behind a line", "pause/behind a line"},
	{"gives all the same place", "line/each a step after the one before"},
	{"gives two processes one place", "line/no two have one place"},
	{"puts the line before the tokens", "line/behind the tokens that are taken"},
	{"never ends a line", "line/ends"},
	{"takes a token with a place", "line/takes no token"},
	{"ends a line with a take", "line/takes no token"},
	{"forgets the tokens with a place", "line/behind the tokens that are taken"},
	{"lets nobody wait for a line", "line/others wait for it"},
	{"lets all wait for a line", "line/others wait for it"},
	{"lets others wait for a short line", "line/a short one keeps nobody"},
	{"has no owners", "slot/one owner"},
	{"checks before it locks", "slot/one winner of 16"},
	{"never frees a slot", "slot/free when the lease has ended"},
	{"lets any owner release", "slot/free when the lease has ended"},
	{"renews for any owner", "slot/a renewal extends the lease"},
	{"renews nothing", "slot/a renewal extends the lease"},
	{"does not release", "slot/released at once"},
	{"says nothing of a server that is down", "errors/no server"},
	{"takes a missing table for an outage", "errors/misconfigured"},
	{"writes what is read-only", "errors/read-only"},
	{"works for a cancelled caller", "errors/a cancelled call changes nothing"},
	{"accepts anything", "errors/bad arguments"},
	{"takes tokens of an event", "errors/a record of an event"},
	{"remembers a deleted key", "delete/resets a key"},
	{"remembers a deleted slot", "delete/frees a slot"},
	{"lists keys without their owner", "list/keys and slots are records"},
	{"retains nothing", "list/a key outlives its tokens and its line by an hour"},
	{"retains nothing", "list/a key outlives its line by an hour"},
	{"lists no keys", "list/keys and slots are records"},
	{"asks twice", "cost/a take and a place are a write each"},
	{"asks twice", "cost/a busy key is about a write for each token"},
	{"asks twice", "cost/a fleet at ten a second"},
	{"asks twice", "cost/a fleet at a hundred a second"},
	{"asks twice", "cost/slots"},
}

func TestSuite(t *testing.T) {
	t.Parallel()
	suite.SeesDefects(t, defects, func(defect string) []suite.Case { return harness(defect).cases() })
}

func harness(defect string) Harness {
	with := func(down error) func(*testing.T) limit.Counter {
		return func(*testing.T) limit.Counter { return &broken{table: newTable(defect), down: down} }
	}
	return Harness{
		New: func(*testing.T) func() limit.Counter {
			t := newTable(defect)
			return func() limit.Counter { return &broken{table: t} }
		},
		Away:          with(sqsonce.Unavailable(errors.New("no answer"))),
		Misconfigured: with(sqsonce.ErrMisconfigured),
		ReadOnly:      with(errReadOnly),
		Writes:        func(c limit.Counter) float64 { return c.(*broken).writes },
		Store:         func(c limit.Counter) dedup.Lister { return store{c.(*broken)} },
		Delete: func(_ context.Context, c limit.Counter, record string) error {
			b := c.(*broken)
			if _, isSlot := b.slots[record]; isSlot && !b.has("remembers a deleted slot") {
				delete(b.slots, record)
			}
			if !b.has("remembers a deleted key") {
				delete(b.tats, record)
				delete(b.lines, record)
			}
			return nil
		},
	}.withDefaults()
}

// store has the keys and slots of a counter, and records of events that are acquired and completed.
type store struct{ *broken }

func (s store) Acquire(_ context.Context, c dedup.Claim) (dedup.Grant, error) {
	s.events[c.Key] = true
	return dedup.Grant{Verdict: dedup.VerdictGranted, Lease: dedup.Lease{Key: c.Key}}, nil
}

func (s store) Complete(context.Context, dedup.Lease, dedup.Result) error { return nil }

func (s store) Renew(context.Context, dedup.Lease, time.Duration) (dedup.Lease, error) {
	return dedup.Lease{}, nil
}

func (s store) Release(context.Context, dedup.Lease, error) error { return nil }

func (s store) List(context.Context, ...func(*dedup.ListOptions)) iter.Seq2[dedup.Record, error] {
	return func(yield func(dedup.Record, error) bool) {
		owner := "limit"
		if s.has("lists keys without their owner") {
			owner = "x"
		}
		kept := time.Now().Add(60 * time.Hour)
		if s.has("retains nothing") {
			kept = time.Now().Add(time.Hour)
		}
		records := map[string]bool{}
		for record := range s.tats {
			records[record] = !s.has("lists no keys") && !question.IsKey(record)
		}
		for record := range s.lines {
			records[record] = !s.has("lists no keys") && !question.IsKey(record)
		}
		for record, listed := range records {
			if listed && !yield(dedup.Record{Lease: dedup.Lease{Key: record, Owner: owner}, ExpiresAt: kept}, nil) {
				return
			}
		}
		for record, h := range s.slots {
			if !yield(dedup.Record{Lease: dedup.Lease{Key: record, Owner: h.owner, Until: h.until}, ExpiresAt: kept}, nil) {
				return
			}
		}
	}
}

var errReadOnly = sqsonce.Unavailable(errors.New("read-only"))
