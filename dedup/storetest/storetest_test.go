package storetest

import (
	"errors"
	"testing"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/suite"
)

// errUnlisted is an answer that a store does not know.
var errUnlisted = errors.New("code 55000")

// errReadOnly is a store that answers reads.
var errReadOnly = sqsonce.Unavailable(errors.New("read-only"))

func harness(defect string) Harness {
	with := func(down error) func(*testing.T) dedup.Store {
		return func(*testing.T) dedup.Store {
			return &switchable{defect: defect, rows: make(map[string]*row), down: down}
		}
	}
	return Harness{
		New: with(nil), Away: with(sqsonce.Unavailable(errors.New("no answer"))), Misconfigured: with(sqsonce.ErrMisconfigured),
		Unlisted: with(sqsonce.Unavailable(errUnlisted)), ReadOnly: with(errReadOnly), Inbox: refusedInbox,
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
