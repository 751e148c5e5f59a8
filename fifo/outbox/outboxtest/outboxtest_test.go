package outboxtest

import (
	"testing"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/fifo/outbox/internal/refstore"
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

// TestDefectsAreSeen: each line of testdata/defects.txt has a store that breaks one rule, and a case that must fail on it.
func TestDefectsAreSeen(t *testing.T) {
	t.Parallel()
	suite.SeesDefects(t, suite.Defects(t), func(defect string) (all []suite.Case) {
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
