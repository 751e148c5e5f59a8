// Package classes groups the messages of a dead-letter queue by why they are there, and by the state of their events.
package classes

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/cut"
	"github.com/sqsonce/sqsonce/internal/ops"
)

// Class is the messages with one class of reasons and one state.
type Class struct {
	ID     string
	Reason string
	State  dedup.RecordState
	Count  int
	Last   time.Time // when the newest was sent; zero: not known
	Do     string
	// Texts is how many different reasons the messages have. Reasons are the first bytes of the first of them.
	Texts   int
	Reasons []string
}

const (
	mostReasons     = 10
	mostReasonBytes = 1 << 10 // as long as a reject-reason
)

// Of returns the classes, the largest first. The states of one follow each other. It is never nil.
func Of(messages []*ops.Message) []Class {
	type id struct {
		class string
		state dedup.RecordState
	}
	type text struct {
		class  int
		reason string
	}
	at := map[id]int{}
	texts := map[text]bool{}
	total := map[string]int{} // of a class
	classes := []Class{}
	for _, m := range messages {
		i, seen := at[id{m.Class.ID, m.State}]
		if !seen {
			i = len(classes)
			at[id{m.Class.ID, m.State}] = i
			classes = append(classes, Class{ID: m.Class.ID, Reason: m.Class.Text, State: m.State, Do: ops.Do(m.State)})
		}
		c := &classes[i]
		total[c.ID]++
		if t := (text{i, m.Reason}); !texts[t] {
			texts[t] = true
			if c.Texts++; c.Texts <= mostReasons {
				c.Reasons = append(c.Reasons, strings.Clone(cut.Text(m.Reason, mostReasonBytes)))
			}
		}
		if c.Count++; m.SentAt.After(c.Last) {
			c.Last = m.SentAt.UTC()
		}
	}
	slices.SortFunc(classes, func(a, b Class) int {
		return cmp.Or(cmp.Compare(total[b.ID], total[a.ID]), cmp.Compare(a.ID, b.ID), cmp.Compare(b.Count, a.Count), cmp.Compare(a.State, b.State))
	})
	return classes
}

// LostAt is when SQS deletes the first of the messages; zero: not known.
func LostAt(messages []*ops.Message) (first time.Time) {
	for _, m := range messages {
		if !m.LostAt.IsZero() && (first.IsZero() || m.LostAt.Before(first)) {
			first = m.LostAt
		}
	}
	return first
}
