package memdynamodb

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

// A transaction is decided at one instant. With the fault HalfApplied its changes are made later, each at a time of its own.

// transaction counts the changes of a decided transaction that are not yet made.
type transaction struct {
	tables []*table
	last   time.Time // of its late changes
	left   atomic.Int64
}

// lateChange is a change that is decided and not yet made.
type lateChange struct {
	*change
	at time.Time
	tx *transaction
}

// errConflict refuses a change of an item for which a transaction is ongoing.
var errConflict = &awsjson.Error{Code: "TransactionConflictException", Message: reasonMessages["TransactionConflict"]}

func conflict() reason {
	return reason{Code: "TransactionConflict", Message: reasonMessages["TransactionConflict"]}
}

// applyUntil makes the late changes up to a time, in the order of their times.
func (t *table) applyUntil(now time.Time) {
	n := 0
	for ; n < len(t.late) && !t.late[n].at.After(now); n++ {
		t.at = t.late[n].at
		t.late[n].perform()
	}
	t.late = slices.Delete(t.late, 0, n)
}

func (l *lateChange) perform() {
	delete(l.table.ongoing, l.key)
	l.apply()
	l.tx.left.Add(-1)
}

// decide makes the changes of a transaction at once, or with the fault HalfApplied later. Until then no other change of the
// item can be made: what evaluate computed stays true. The caller holds the tables' locks and that of transactions.
func (s *Server) decide(c *call, changes []*change) *transaction {
	tx, now := &transaction{}, s.now()
	var late []time.Duration
	if c.rule != nil && c.rule.Do == fault.HalfApplied {
		late = s.Lateness(c.rule, len(changes))
	}
	for _, i := range s.shuffle.Perm(len(changes)) { // the order of a stream's records
		ch := changes[i]
		if late == nil || late[i] <= 0 {
			ch.apply()
			continue
		}
		l := &lateChange{ch, now.Add(late[i]), tx}
		t := ch.table
		at, _ := slices.BinarySearchFunc(t.late, l, func(o, l *lateChange) int {
			if o.at.After(l.at) {
				return 1
			}
			return -1 // behind those of the same time
		})
		t.late = slices.Insert(t.late, at, l)
		t.ongoing[ch.key] = true
		tx.left.Add(1)
		if !slices.Contains(tx.tables, t) {
			tx.tables = append(tx.tables, t)
		}
		if l.at.After(tx.last) {
			tx.last = l.at
		}
	}
	return tx
}

// finish waits until the transaction is applied, or the server is closed; then the rest is applied at once.
func (s *Server) finish(c *call, tx *transaction) {
	if tx.left.Load() == 0 {
		return
	}
	wait := time.NewTimer(tx.last.Sub(s.now()))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-c.ctx.Done():
	}
	for _, t := range tx.tables {
		t.lock()
		t.late = slices.DeleteFunc(t.late, func(l *lateChange) bool { // by another clock than time's it may not be due
			if l.tx == tx {
				l.perform()
			}
			return l.tx == tx
		})
		t.mu.Unlock()
	}
}
