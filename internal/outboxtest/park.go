package outboxtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce/fifo/outbox"
)

var parkCases = []testCase{
	{name: "park/marks and keeps", run: func(x *exam) {
		x.commit("g", 4)
		es := x.read("g", 10)
		x.park(es[0], outbox.OnRefusedSkip)
		x.park(es[2], outbox.OnRefusedHalt)
		got := x.ids("g", "after two were parked", 1, 2, 3, 4)
		for i, want := range []outbox.RefusedPolicy{outbox.OnRefusedSkip, 0, outbox.OnRefusedHalt, 0} {
			if got[i].Parked != want || (got[i].Reason == "refused") != (want != 0) {
				x.fatalf("event %d: got mark %d with reason %q, want %d", i+1, got[i].Parked, got[i].Reason, want)
			}
		}
	}},
	{name: "park/holds for all relays", run: func(x *exam) {
		x.commit("g", 2)
		x.park(x.read("g", 10)[0], outbox.OnRefusedSkip)
		es, err := x.Reopen(x.t, x.Store).Read(x.ctx, outbox.Group{Name: "g"}, outbox.Known{}, 10)
		if err != nil || len(es) != 2 || es[0].Parked != outbox.OnRefusedSkip || es[1].Parked != 0 {
			x.fatalf("Read by another relay: got %+v, error %v, want the mark of the first", es, err)
		}
	}},
	{name: "park/gone stays gone", run: func(x *exam) {
		x.commit("g", 2)
		es := x.read("g", 10)
		x.delete(es[0])
		x.park(es[0], outbox.OnRefusedHalt) // a late relay
		x.ids("g", "after a park of a deleted event", 2)
		x.delete(es[1])
		x.park(es[1], outbox.OnRefusedSkip)
		x.ids("g", "after a park of a deleted event, the last one")
		if got := x.parked(10); len(got) > 0 {
			x.fatalf("Parked: got %v, want none", seqs(got))
		}
	}},
	{name: "park/a mark stays", run: func(x *exam) {
		x.commit("g", 2)
		es := x.read("g", 10)
		for i, p := range []outbox.RefusedPolicy{outbox.OnRefusedSkip, outbox.OnRefusedHalt} {
			x.park(es[i], p)
			if err := x.Park(x.ctx, es[i], outbox.OnRefusedHalt+outbox.OnRefusedSkip-p, "again"); err != nil {
				x.fatalf("Park of a parked event: got error %v, want none", err)
			}
			if got := x.read("g", 10)[i]; got.Parked != p || got.Reason != "refused" {
				x.fatalf("after a second park: got mark %d, %q, want the first one", got.Parked, got.Reason)
			}
		}
	}},
	{name: "park/another event in its place", needs: replace, run: func(x *exam) {
		x.commit("g", 1)
		es := x.read("g", 10)
		x.Replace(x.t, x.Store, es[0], x.events("g", 1)[0])
		x.park(es[0], outbox.OnRefusedHalt)
		if got := x.ids("g", "after the park of an event whose place has another one", 2); got[0].Parked != 0 {
			x.fatalf("the other event was parked")
		}
		if err := x.Unpark(x.ctx, es[0]); !errors.Is(err, outbox.ErrNotFound) {
			x.fatalf("Unpark of an event whose place has another one: got error %v, want ErrNotFound", err)
		}
		x.park(got(x, "g")[0], outbox.OnRefusedHalt)
		if err := x.Discard(x.ctx, es[0]); !errors.Is(err, outbox.ErrNotFound) {
			x.fatalf("Discard of an event whose place has another, parked one: got error %v, want ErrNotFound", err)
		}
		x.ids("g", "after Discard of an event whose place has another one", 2)
	}},
	{name: "park/the reason", run: func(x *exam) {
		for i, reason := range []string{"", "short", strings.Repeat("r", 256), strings.Repeat("r", 300), strings.Repeat("ü", 200), strings.Repeat("r", 255) + "鍵"} {
			group := fmt.Sprint("g", i)
			x.commit(group, 1)
			e := x.read(group, 1)[0]
			if err := x.Park(x.ctx, e, outbox.OnRefusedHalt, reason); err != nil {
				x.fatalf("Park with a reason of %d bytes: %v", len(reason), err)
			}
			got := x.read(group, 1)[0].Reason
			if !strings.HasPrefix(reason, got) || len(got) > 256 || !utf8.ValidString(got) || len(got) < min(len(reason), 253) {
				x.fatalf("reason: got %q of %q, want its first 256 bytes, between characters", got, reason)
			}
		}
	}},
	{name: "park/unpark", run: func(x *exam) {
		x.commit("g", 3)
		es := x.read("g", 10)
		x.park(es[1], outbox.OnRefusedSkip)
		if err := x.Unpark(x.ctx, es[1]); err != nil {
			x.fatalf("Unpark: %v", err)
		}
		if got := x.ids("g", "after Unpark", 1, 2, 3); got[1].Parked != 0 || got[1].Reason != "" {
			x.fatalf("after Unpark: got %+v, want neither mark nor reason", got[1])
		}
		if got := x.parked(10); len(got) > 0 {
			x.fatalf("Parked after Unpark: got %v, want none", seqs(got))
		}
	}},
	{name: "park/discard", run: func(x *exam) {
		x.commit("g", 3)
		es := x.read("g", 10)
		x.park(es[1], outbox.OnRefusedHalt)
		if err := x.Discard(x.ctx, es[1]); err != nil {
			x.fatalf("Discard: %v", err)
		}
		x.ids("g", "after Discard", 1, 3)
	}},
	{name: "park/unpark and discard of what is not parked or gone", run: func(x *exam) {
		x.commit("g", 2)
		es := x.read("g", 10)
		for op, f := range x.decisions() {
			if err := f(es[0]); !errors.Is(err, outbox.ErrNotParked) {
				x.fatalf("%s of an event that is not parked: got error %v, want ErrNotParked", op, err)
			}
		}
		x.ids("g", "after Unpark and Discard of an event that is not parked", 1, 2)
		x.delete(es[0])
		for op, f := range x.decisions() {
			if err := f(es[0]); !errors.Is(err, outbox.ErrNotFound) {
				x.fatalf("%s of an event that is gone: got error %v, want ErrNotFound", op, err)
			}
		}
		x.ids("g", "after Unpark and Discard of an event that is gone", 2)
	}},
	{name: "park/list, the oldest first", run: func(x *exam) {
		var want []string
		for i := range 5 {
			group := fmt.Sprint("g", 4-i)
			x.commit(group, 2)
			x.pass(x.Lease / 4) // a store may keep milliseconds
			if i != 2 {
				x.park(x.read(group, 2)[1], outbox.OnRefusedHalt+outbox.RefusedPolicy(i%2))
				want = append(want, group+"/v2")
			}
		}
		var ids []string
		for _, e := range x.parked(10) {
			if e.Parked == 0 || e.Reason != "refused" || e.Body == "" || e.Source != x.Source {
				x.fatalf("Parked: got %+v, want the whole event with mark and reason", e)
			}
			ids = append(ids, e.ID)
		}
		if !slices.Equal(ids, want) {
			x.fatalf("Parked: got %v, want %v: the oldest first", ids, want)
		}
		if got := x.parked(2); len(got) != 2 || got[0].ID != want[0] || got[1].ID != want[1] {
			x.fatalf("Parked with limit 2: got %v, want the two oldest", seqs(got))
		}
	}},
	{name: "park/skipped events are no part of a page", run: func(x *exam) {
		x.commit("g", 9)
		es := x.read("g", 10)
		for _, i := range []int{0, 1, 3, 6} {
			x.park(es[i], outbox.OnRefusedSkip)
		}
		x.same(withoutSkipped(x.read("g", 3)), "g", "limit 3 among skipped ones", 3, 5, 6)
		x.same(withoutSkipped(x.read("g", 5)), "g", "limit 5 among skipped ones", 3, 5, 6, 8, 9)
	}},
	{name: "park/halted events are a part of a page", run: func(x *exam) {
		x.commit("g", 4)
		es := x.read("g", 10)
		x.park(es[1], outbox.OnRefusedHalt)
		if got := x.read("g", 2); len(got) != 2 || got[1].Parked != outbox.OnRefusedHalt {
			x.fatalf("limit 2: got %v, want the first and the halted one", seqs(got))
		}
	}},
	{name: "park/many skipped events", run: func(x *exam) {
		x.commitTx(x.t, x.events("g", 80)...)
		x.commitTx(x.t, x.events("g", outbox.MaxSkipped+3-80)...)
		es := x.read("g", 1000)
		for _, e := range es[1 : outbox.MaxSkipped+1] {
			x.park(e, outbox.OnRefusedSkip)
		}
		got := x.read("g", 1)
		if len(got) < 1 || got[0].ID != "g/v1" {
			x.fatalf("limit 1: got %v", seqs(got))
		}
		if got := x.read("g", 10); len(got) != outbox.MaxSkipped+3 {
			x.fatalf("Read with %d skipped events: got %d events, want all %d", outbox.MaxSkipped, len(got), outbox.MaxSkipped+3)
		}
		x.park(es[outbox.MaxSkipped+1], outbox.OnRefusedSkip)
		got, err := x.Read(x.ctx, outbox.Group{Name: "g"}, outbox.Known{}, 10)
		if !errors.Is(err, outbox.ErrManySkipped) {
			x.fatalf("Read with %d skipped events: got %d events and error %v, want ErrManySkipped", outbox.MaxSkipped+1, len(got), err)
		}
		x.same(withoutSkipped(got), "g", "beside ErrManySkipped", 1)
		if n := len(got) - 1; n > outbox.MaxSkipped {
			x.fatalf("Read: got %d skipped events, want at most %d", n, outbox.MaxSkipped)
		}
	}},
}

func withoutSkipped(es []outbox.Entry) []outbox.Entry {
	return slices.DeleteFunc(es, func(e outbox.Entry) bool { return e.Parked == outbox.OnRefusedSkip })
}

func got(x *exam, group string) []outbox.Entry { return x.read(group, 10) }

func (x *exam) parked(limit int) []outbox.Entry {
	es, err := x.Parked(x.ctx, limit)
	if err != nil {
		x.fatalf("Parked: got error %v, want none", err)
	}
	return es
}

func (x *exam) decisions() map[string]func(outbox.Entry) error {
	return map[string]func(outbox.Entry) error{
		"Unpark":  func(e outbox.Entry) error { return x.Unpark(x.ctx, e) },
		"Discard": func(e outbox.Entry) error { return x.Discard(x.ctx, e) },
	}
}
