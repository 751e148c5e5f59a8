package outboxtest

import (
	"testing"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/outboxtest/refstore"
	"github.com/sqsonce/sqsonce/internal/suite"
)

// harness is that of a store with a defect; "" is a correct one.
func harness(defect string) Harness {
	var shared *refstore.Table
	return Harness{
		New: func(*testing.T) (outbox.Store, func(*testing.T, ...fifo.Event)) {
			table := refstore.NewTable()
			if defect == "shows other outboxes" && shared != nil {
				table = shared
			}
			shared = table
			s := table.Open()
			s.Defect = defect
			return s, func(_ *testing.T, es ...fifo.Event) { s.Commit(es...) }
		},
		Begin: func(_ *testing.T, s outbox.Store, es ...fifo.Event) (commit, rollback func()) {
			t := s.(*refstore.Store)
			if t.Defect == "shows what is not committed" {
				t.Commit(es...)
				return func() {}, func() {}
			}
			return func() { t.Commit(es...) }, func() {}
		},
		Half: func(_ *testing.T, s outbox.Store, es ...fifo.Event) func() { return s.(*refstore.Store).Half(es...) },
		Break: func(_ *testing.T, s outbox.Store, e outbox.Entry) {
			s.(*refstore.Store).Change(e.Group, e.Seq, func(*outbox.Entry) bool { return true })
		},
		Replace: func(_ *testing.T, s outbox.Store, e outbox.Entry, with fifo.Event) {
			s.(*refstore.Store).Change(e.Group, e.Seq, func(there *outbox.Entry) bool { there.Event = with; return false })
		},
		Reopen: func(_ *testing.T, s outbox.Store) outbox.Store {
			again := s.(*refstore.Store).Open()
			again.Defect = defect
			return again
		},
	}.withDefaults()
}

// defects are stores that break one rule, and a case that must fail on each. Other cases may fail too.
var defects = []suite.Defect{
	{"begins behind what was confirmed", "read/from the first"},
	{"begins with the cursor", "groups/every group once, in pages"},
	{"claims for ever", "claim/ends"},
	{"claims nothing", "claim/one of two"},
	{"claims what is claimed for nobody", "claim/one of two"},
	{"counts skipped events", "park/skipped events are no part of a page"},
	{"cuts bodies", "read/a large body"},
	{"cuts reasons inside characters", "park/the reason"},
	{"deletes 25 at most", "delete/several groups, many events"},
	{"deletes all for want of names", "delete/of none"},
	{"deletes another event of the same Seq", "delete/another event in its place stays"},
	{"deletes by range", "delete/what it names and nothing else"},
	{"deletes the first group only", "delete/several groups, many events"},
	{"discards nothing", "park/discard"},
	{"does not find parked events", "groups/last, age and mark"},
	{"does not say that there are many skipped events", "park/many skipped events"},
	{"ends after a page", "groups/every group once, in pages"},
	{"ends the claims of others", "claim/unclaim leaves that of another"},
	{"finds a group that is not there", "groups/an empty outbox"},
	{"finds a large group twice", "groups/a large group is one group"},
	{"finds a Last that was never there", "groups/last, age and mark"},
	{"finds no age", "groups/last, age and mark"},
	{"finds no mark", "groups/last, age and mark"},
	{"folds groups", "read/groups are told apart"},
	{"forgets a skipped mark", "park/marks and keeps"},
	{"forgets attributes", "read/the whole event"},
	{"forgets the age", "read/age"},
	{"forgets the reason", "park/marks and keeps"},
	{"forgets the source", "read/the whole event"},
	{"has one mark", "park/marks and keeps"},
	{"ignores the limit of Groups", "groups/every group once, in pages"},
	{"ignores the limit of Parked", "park/list, the oldest first"},
	{"ignores the limit of Read", "read/limit"},
	{"keeps claims", "claim/unclaimed"},
	{"keeps reasons of any length", "park/the reason"},
	{"leaves out broken events", "read/an event that cannot be decoded"},
	{"leaves out halted events", "park/halted events are a part of a page"},
	{"leaves out skipped events", "park/marks and keeps"},
	{"lists the newest first", "park/list, the oldest first"},
	{"lists what is not parked", "park/unpark"},
	{"names groups without events", "groups/without events they end"},
	{"operates on another event of the same Seq", "park/another event in its place"},
	{"operates on what is not parked", "park/unpark and discard of what is not parked or gone"},
	{"parks again", "park/a mark stays"},
	{"parks blindly", "park/gone stays gone"},
	{"reads another group", "read/an empty group"},
	{"reads backwards", "read/in the order of the commits"},
	{"reads past a gap", "read/what was committed before the last one is there"},
	{"reads past a gap", "read/the same behind what was confirmed"},
	{"refuses a call without groups", "claim/of none"},
	{"reports that a parked event is gone", "park/gone stays gone"},
	{"returns any number of skipped events", "park/many skipped events"},
	{"returns groups that were not asked for", "claim/no group that was not asked for"},
	{"returns nothing before a broken event", "read/an event that cannot be decoded"},
	{"says nothing of what is gone", "park/unpark and discard of what is not parked or gone"},
	{"says nothing of what is not parked", "park/unpark and discard of what is not parked or gone"},
	{"shows other outboxes", "groups/outboxes are told apart"},
	{"shows what is not committed", "read/a transaction that was rolled back"},
	{"shows what is not committed", "read/a transaction that is not committed"},
	{"takes a gap for the end", "read/fewer than limit and no error is the end"},
	{"unparks nothing", "park/unpark"},
	{"works for a cancelled caller", "context/ended before the call"},
}

func TestDefectsAreSeen(t *testing.T) {
	t.Parallel()
	suite.SeesDefects(t, defects, func(defect string) (all []suite.Case) {
		for _, c := range cases() {
			all = append(all, harness(defect).suiteCase(c))
		}
		return all
	})
}

func TestRunOnACorrectStore(t *testing.T) {
	t.Parallel()
	Run(t, harness(""))
}

// A harness without means for a case skips it and no other.
func TestCasesThatNeedMore(t *testing.T) {
	t.Parallel()
	h := harness("")
	h.Begin, h.Half, h.Break, h.Replace, h.NoClaims = nil, nil, nil, nil, true
	skipped := 0
	for _, c := range cases() {
		if s := h.suiteCase(c); s.Skip != "" {
			skipped++
		} else if err := s.Examine(t, true); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if skipped != 12 {
		t.Errorf("%d cases are skipped, want 12", skipped)
	}
}
