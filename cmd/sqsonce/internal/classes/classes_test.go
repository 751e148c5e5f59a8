package classes_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/classes"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/ops"
)

var day = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func message(class string, s dedup.RecordState, sent time.Time) *ops.Message {
	return &ops.Message{Message: sqsonce.Message{SentAt: sent}, Class: ops.Class{ID: class, Text: "text of " + class}, Reason: "order " + string(s), State: s}
}

// One reason is two classes where the states differ: what to do does.
func TestOf(t *testing.T) {
	east := time.FixedZone("", 3600)
	got := classes.Of([]*ops.Message{
		message("bb", dedup.StateReleased, day), message("aa", dedup.StateReleased, day), message("cc", dedup.StateCrashed, day.Add(time.Hour).In(east)),
		message("cc", dedup.StateReleased, day), message("cc", dedup.StateCrashed, day), message("dd", ops.StateUnknown, time.Time{}),
	})
	class := func(id string, s dedup.RecordState, count int, last time.Time) classes.Class {
		return classes.Class{ID: id, Reason: "text of " + id, State: s, Count: count, Last: last, Do: ops.Do(s), Texts: 1, Reasons: []string{"order " + string(s)}}
	}
	want := []classes.Class{
		class("cc", dedup.StateCrashed, 2, day.Add(time.Hour)), class("cc", dedup.StateReleased, 1, day),
		class("aa", dedup.StateReleased, 1, day), class("bb", dedup.StateReleased, 1, day), class("dd", ops.StateUnknown, 1, time.Time{}),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
	if got := classes.Of(nil); got == nil || len(got) != 0 {
		t.Errorf("of none: %#v", got)
	}
}

func TestLostAt(t *testing.T) {
	lost := func(at ...time.Time) (all []*ops.Message) {
		for _, t := range at {
			all = append(all, &ops.Message{LostAt: t})
		}
		return all
	}
	if got := classes.LostAt(lost(day, time.Time{}, day.Add(-time.Hour), day.Add(time.Hour))); !got.Equal(day.Add(-time.Hour)) {
		t.Errorf("lost at %s", got)
	}
	if got := classes.LostAt(lost(time.Time{})); !got.IsZero() {
		t.Errorf("not known, and %s", got)
	}
}
