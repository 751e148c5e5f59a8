package memdynamodb

import (
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

// A transaction is decided at one instant. With the fault HalfApplied its changes are made later, each at a time of its own.

// transaction counts the changes of a decided transaction that are not yet made.
type transaction struct {
	last time.Time // of its late changes
	left int
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

// lock locks mu and makes the changes whose time has come. Whatever looks at the tables locks first, so the changes need no
// goroutine and no timer.
func (s *Server) lock() {
	s.mu.Lock()
	now := s.now()
	s.applyUntil(now)
	s.at = now
}

// applyUntil makes the late changes up to a time, in the order of their times.
func (s *Server) applyUntil(now time.Time) {
	n := 0
	for ; n < len(s.late) && !s.late[n].at.After(now); n++ {
		s.at = s.late[n].at
		s.late[n].perform()
	}
	s.late = slices.Delete(s.late, 0, n)
}

func (l *lateChange) perform() {
	delete(l.table.ongoing, l.key)
	l.apply()
	l.tx.left--
}

// decide makes the changes of a transaction at once, or with the fault HalfApplied later. Until then no other change of the
// item can be made: what evaluate computed stays true. The caller holds mu.
func (s *Server) decide(c *call, changes []*change) *transaction {
	tx := &transaction{}
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
		l := &lateChange{ch, s.at.Add(late[i]), tx}
		at, _ := slices.BinarySearchFunc(s.late, l, func(o, l *lateChange) int {
			if o.at.After(l.at) {
				return 1
			}
			return -1 // behind those of the same time
		})
		s.late = slices.Insert(s.late, at, l)
		ch.table.ongoing[ch.key] = true
		tx.left++
		if l.at.After(tx.last) {
			tx.last = l.at
		}
	}
	return tx
}

// finish waits until the transaction is applied, or the server is closed; then the rest is applied at once. The caller holds
// mu, which is unlocked meanwhile.
func (s *Server) finish(c *call, tx *transaction) {
	if tx.left == 0 {
		return
	}
	wait := time.NewTimer(tx.last.Sub(s.at))
	defer wait.Stop()
	s.mu.Unlock()
	select {
	case <-wait.C:
	case <-c.ctx.Done():
	}
	s.lock()
	s.late = slices.DeleteFunc(s.late, func(l *lateChange) bool { // by another clock than time's it may not be due
		if l.tx == tx {
			l.perform()
		}
		return l.tx == tx
	})
}
