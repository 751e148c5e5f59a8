// Package operate has what every store's Reopen, Keep and List share.
package operate

import (
	"cmp"
	"crypto/rand"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/cut"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/question"
)

const (
	leastRetention   = time.Hour
	mostName         = 128
	leastKept        = time.Second
	mostKept         = 4000 // bytes
	defaultReadUnits = 100
)

// Reopening is a call of Reopen, with a new owner.
type Reopening struct {
	Owner, Note string
	Retention   time.Duration
	Force       bool
	EndCrashes  bool // the last error counts crashes, and is removed
}

// NewReopening checks the arguments of Reopen. pkg is the store's package, for the errors.
func NewReopening(pkg string, seen dedup.Record, note string, optFns []func(*dedup.ReopenOptions)) (Reopening, error) {
	var o dedup.ReopenOptions
	for _, fn := range optFns {
		fn(&o)
	}
	p := host.Problems{Package: pkg}
	refuse := p.Add
	o.Retention = cmp.Or(o.Retention, host.DefaultRetention)
	refuse(seen.Key == "", "seen.Key", "is empty")
	refuse(seen.Owner == "", "seen.Owner", "is empty: the record was written by a program that does not check ownership; delete it")
	refuse(o.Retention < leastRetention, "ReopenOptions.Retention", "is less than 1 h")
	refuse(!isName(o.Name), "ReopenOptions.Name", noName)
	released := dedup.Record{Lease: dedup.Lease{Owner: seen.Owner, LastError: seen.LastError}}
	return Reopening{
		Owner:      newOwner(o.Name),
		Note:       cut.Text(note, cut.MostCause),
		Retention:  o.Retention,
		Force:      o.Force,
		EndCrashes: released.Crashes(time.Time{}) > 0,
	}, p.Err()
}

const noName = "is longer than 128 bytes, or not UTF-8 text without control characters"

func isName(s string) bool {
	return len(s) <= mostName && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

func newOwner(operator string) string { return host.OperatorPrefix + operator + "/" + rand.Text() }

// NewKept checks the arguments of Keep, and returns the record's new owner. pkg is the store's package, for the errors.
func NewKept(pkg string, seen dedup.Record, operator string, data []byte, d time.Duration) (owner string, err error) {
	p := host.Problems{Package: pkg}
	p.Add(seen.Key == "", "seen.Key", "is empty")
	p.Add(!isName(operator), "operator", noName)
	p.Add(len(data) > mostKept, "data", "has %d bytes, must have at most %d", len(data), mostKept)
	p.Add(d < leastKept, "d", "is %s, must be at least %s", d, leastKept)
	return newOwner(operator), p.Err()
}

// List is a list that is under way.
type List struct {
	dedup.ListOptions
	now  func() time.Time
	sent int
}

// NewList returns the list with its defaults. now is the clock of the records' times.
func NewList(now func() time.Time, optFns []func(*dedup.ListOptions)) *List {
	l := List{now: now}
	for _, fn := range optFns {
		fn(&l.ListOptions)
	}
	l.ReadUnits = cmp.Or(l.ReadUnits, defaultReadUnits)
	return &l
}

// Prefix is what the keys of the list begin with.
func (l *List) Prefix() string {
	if l.Consumer == "" {
		return ""
	}
	return l.Consumer + "#"
}

// OpenOnly reports whether no record that is completed can be in the list. A foreign one may be completed.
func (l *List) OpenOnly() bool {
	return len(l.States) > 0 && !slices.Contains(l.States, dedup.StateCompleted) && !slices.Contains(l.States, dedup.StateForeign)
}

// Send yields the record if it is one of the list's and belongs to an event, and reports whether the list goes on.
func (l *List) Send(r dedup.Record, yield func(dedup.Record, error) bool) bool {
	if question.IsKey(r.Key) || !strings.HasPrefix(r.Key, l.Prefix()) || len(l.States) > 0 && !slices.Contains(l.States, r.State(l.now())) {
		return true
	}
	l.sent++
	return yield(r, nil) && l.sent != l.Limit
}
