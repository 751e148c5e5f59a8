package outboxtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/suite"
)

// exam is one run of a case on one store. Its methods end the case at the first sentence of the contract that does not hold.
type exam struct {
	outbox.Store
	Harness
	t        *testing.T
	ctx      context.Context
	commitTx func(t *testing.T, es ...fifo.Event)
	numbers  map[string]int
}

func (x *exam) fatalf(format string, args ...any) { suite.Failf(format, args...) }

// events returns the next n events of a group.
func (x *exam) events(group string, n int) (es []fifo.Event) {
	if x.numbers == nil {
		x.numbers = make(map[string]int)
	}
	for range n {
		x.numbers[group]++
		id := fmt.Sprintf("%s/v%d", group, x.numbers[group])
		es = append(es, fifo.Event{ID: id, Group: group, Body: "body of " + id})
	}
	return es
}

// commit commits n events of a group, one transaction each.
func (x *exam) commit(group string, n int) (es []fifo.Event) {
	es = x.events(group, n)
	for _, e := range es {
		x.commitTx(x.t, e)
	}
	return es
}

// read reads a group as a relay does that knows nothing of it: while a transaction is not settled, again.
func (x *exam) read(group string, limit int) []outbox.Entry {
	es, err := x.Read(x.ctx, outbox.Group{Name: group}, outbox.Known{}, limit)
	if err != nil {
		x.fatalf("Read of %s: got error %v, want none", group, err)
	}
	x.ordered(es)
	return es
}

// ordered expects entries in the order of their Seq, which grows.
func (x *exam) ordered(es []outbox.Entry) {
	if !slices.IsSortedFunc(es, func(a, b outbox.Entry) int { return int(min(max(a.Seq-b.Seq, -1), 1)) }) {
		x.fatalf("Read: got %v, want the order of Seq", seqs(es))
	}
	for i := range es {
		if i > 0 && es[i].Seq == es[i-1].Seq {
			x.fatalf("Read: got %v, want each Seq once", seqs(es))
		}
	}
}

func seqs(es []outbox.Entry) (out []string) {
	for _, e := range es {
		out = append(out, fmt.Sprintf("%s (%d)", e.ID, e.Seq))
	}
	return out
}

// ids expects the events of a group that a Read with a large limit returns, by their numbers. At a hole among them the store may
// end with ErrUnsettled: it cannot tell an event that is gone from one that is not visible yet.
func (x *exam) ids(group, when string, numbers ...int) []outbox.Entry {
	es, err := x.Read(x.ctx, outbox.Group{Name: group}, outbox.Known{}, 1000)
	if n := len(es); errors.Is(err, outbox.ErrUnsettled) && n > 0 && n < len(numbers) && numbers[n] != numbers[n-1]+1 {
		numbers, err = numbers[:n], nil
	}
	if err != nil {
		x.fatalf("%s: Read of %s: got %v and error %v, want no error", when, group, seqs(es), err)
	}
	x.ordered(es)
	x.same(es, group, when, numbers...)
	return es
}

func (x *exam) same(es []outbox.Entry, group, when string, numbers ...int) {
	var got, want []string
	for _, e := range es {
		got = append(got, e.ID)
	}
	for _, n := range numbers {
		want = append(want, fmt.Sprintf("%s/v%d", group, n))
	}
	if !slices.Equal(got, want) {
		x.fatalf("%s: got events %v of group %s, want %v", when, got, group, want)
	}
}

func (x *exam) delete(es ...outbox.Entry) {
	if left, err := x.Delete(x.ctx, es); err != nil || len(left) > 0 {
		x.fatalf("Delete of %v: left %v, error %v, want neither", seqs(es), seqs(left), err)
	}
}

func (x *exam) park(e outbox.Entry, p outbox.RefusedPolicy) {
	if err := x.Park(x.ctx, e, p, "refused"); err != nil {
		x.fatalf("Park of %s: got error %v, want none", e.ID, err)
	}
}

// all returns what Groups finds from the beginning to the end, in pages.
func (x *exam) all(limit int) (found []outbox.Group) {
	after := ""
	for page := 0; ; page++ {
		gs, next, err := x.Groups(x.ctx, after, limit)
		if err != nil {
			x.fatalf("Groups after %q: got error %v, want none", after, err)
		}
		if len(gs) > limit {
			x.fatalf("Groups: got %d groups, want at most %d", len(gs), limit)
		}
		found = append(found, gs...)
		if next == "" {
			return found
		}
		if next == after || page > 1000 {
			x.fatalf("Groups: does not come to an end: next is %q after %q", next, after)
		}
		after = next
	}
}

// find returns the group of that name; ok is false if it is not found.
func (x *exam) find(name string) (g outbox.Group, ok bool) {
	for _, g := range x.all(10) {
		if g.Name == name {
			return g, true
		}
	}
	return outbox.Group{}, false
}

func (x *exam) names(limit int) (names []string) {
	for _, g := range x.all(limit) {
		names = append(names, g.Name)
	}
	slices.Sort(names)
	return names
}

// pass lets time pass on the clock of the store.
func (x *exam) pass(d time.Duration) { time.Sleep(d) }
