package outboxtest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/fifo/outbox"
)

var groupsCases = []testCase{
	{name: "groups/an empty outbox", run: func(x *exam) {
		if got := x.all(10); len(got) != 0 {
			x.fatalf("Groups of an empty outbox: got %v", got)
		}
	}},
	{name: "groups/every group once, in pages", run: func(x *exam) {
		var want []string
		for i := range 23 {
			name := fmt.Sprintf("g%02d", i)
			x.commit(name, 1+i%3)
			want = append(want, name)
		}
		for _, limit := range []int{1, 4, 23, 100} {
			if got := x.names(limit); !slices.Equal(got, want) {
				x.fatalf("Groups in pages of %d: got %v, want %v", limit, got, want)
			}
		}
	}},
	{name: "groups/names of any characters", run: func(x *exam) {
		want := []string{"!", "#", "%", "'", "A", "_", "a", "a#b", "a#c", "~", strings.Repeat("n", 128)}
		for _, name := range want {
			x.commit(name, 1)
		}
		slices.Sort(want)
		if got := x.names(3); !slices.Equal(got, want) {
			x.fatalf("Groups: got %v, want %v", got, want)
		}
	}},
	{name: "groups/without events they end", run: func(x *exam) {
		x.commit("a", 1)
		x.commit("b", 2)
		x.delete(x.read("a", 10)...)
		x.delete(x.read("b", 1)...)
		if got := x.names(10); !slices.Equal(got, []string{"b"}) {
			x.fatalf("Groups after the events of a were deleted, and one of b: got %v, want b", got)
		}
	}},
	{name: "groups/what changes meanwhile hides none", run: func(x *exam) {
		for i := range 12 {
			x.commit(fmt.Sprintf("g%02d", i), 1)
		}
		found := map[string]bool{}
		after := ""
		for turn := 0; ; turn++ {
			gs, next, err := x.Groups(x.ctx, after, 2)
			if err != nil || turn > 100 {
				x.fatalf("Groups after %q, turn %d: error %v", after, turn, err)
			}
			for _, g := range gs {
				found[g.Name] = true
				x.delete(x.read(g.Name, 10)...) // published meanwhile, the cursor's group among them
				x.commit(g.Name+"x", 1)
			}
			if next == "" {
				break
			}
			after = next
		}
		for i := range 12 {
			if name := fmt.Sprintf("g%02d", i); !found[name] {
				x.fatalf("Groups: %s was not found, though it was there all the time", name)
			}
		}
	}},
	{name: "groups/last, age and mark", run: func(x *exam) {
		x.commit("g", 3)
		x.pass(x.Lease)
		x.commit("g", 1)
		start := time.Now()
		es := x.read("g", 10)
		g, ok := x.find("g")
		took := time.Since(start)
		if !ok || g.Last > es[3].Seq || g.Last < 0 {
			x.fatalf("Groups: got %+v (%t), want Last at most %d", g, ok, es[3].Seq)
		}
		// Age is the oldest event's; 0 would say that it is not known.
		if g.Age != 0 && (g.Age-es[0].Age).Abs() > x.Lease/2+took {
			x.fatalf("Groups: got age %v, want about %v, that of the oldest event", g.Age, es[0].Age)
		}
		if g.Age == 0 {
			x.fatalf("Groups: got no age, want about %v", es[0].Age)
		}
		if g.Parked != 0 {
			x.fatalf("Groups: got %+v, want it not parked", g)
		}
		for _, p := range []outbox.RefusedPolicy{outbox.OnRefusedHalt, outbox.OnRefusedSkip} {
			x.park(es[0], p)
			if g, ok := x.find("g"); !ok || g.Parked != p {
				x.fatalf("Groups: got %+v (%t), want the mark %d of its first event", g, ok, p)
			}
			if err := x.Unpark(x.ctx, es[0]); err != nil {
				x.fatalf("Unpark: %v", err)
			}
		}
		x.park(es[1], outbox.OnRefusedHalt)
		if g, ok := x.find("g"); !ok || g.Parked != 0 {
			x.fatalf("Groups: got %+v (%t), want the mark of the first event, which has none", g, ok)
		}
	}},
	{name: "groups/a large group is one group", run: func(x *exam) {
		var big []string
		for range 3 {
			for _, e := range x.events("big", 60) {
				e.Body = strings.Repeat("x", 8<<10)
				x.commitTx(x.t, e)
				big = append(big, e.ID)
			}
		}
		x.commit("a", 1)
		x.commit("z", 1)
		if got := x.names(10); !slices.Equal(got, []string{"a", "big", "z"}) {
			x.fatalf("Groups beside one of %d events: got %v, want a, big, z", len(big), got)
		}
	}},
	{name: "groups/outboxes are told apart", run: func(x *exam) {
		other, commit := x.New(x.t)
		x.commit("g", 1)
		commit(x.t, x.events("h", 1)...)
		if got := x.names(10); !slices.Equal(got, []string{"g"}) {
			x.fatalf("Groups: got %v, want those of this outbox: g", got)
		}
		if es, err := other.Read(x.ctx, outbox.Group{Name: "g"}, outbox.Known{}, 10); err != nil || len(es) > 0 {
			x.fatalf("Read in another outbox: got %v, error %v, want nothing", seqs(es), err)
		}
	}},
}
