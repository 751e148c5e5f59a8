package outboxtest

import (
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/fifo/outbox"
)

var claimCases = []testCase{
	{name: "claim/no group that was not asked for", run: func(x *exam) {
		x.commit("a", 1)
		x.commit("b", 1)
		got := x.claim(x.Store, "a")
		if !slices.Equal(got, []string{"a"}) {
			x.fatalf("Claim of a: got %v", got)
		}
		if got := x.claim(x.Reopen(x.t, x.Store), "b"); !slices.Equal(got, []string{"b"}) {
			x.fatalf("Claim of b, which nobody has claimed: got %v", got)
		}
	}},
	{name: "claim/of none", run: func(x *exam) {
		if got := x.claim(x.Store); len(got) > 0 {
			x.fatalf("Claim of no group: got %v", got)
		}
		if err := x.Unclaim(x.ctx, nil); err != nil {
			x.fatalf("Unclaim of no group: %v", err)
		}
	}},
	{name: "claim/one of two", needs: claims, run: func(x *exam) {
		x.commit("a", 2)
		x.commit("b", 2)
		other := x.Reopen(x.t, x.Store)
		x.claim(x.Store, "a")
		if got := x.claim(other, "a", "b"); !slices.Equal(got, []string{"b"}) {
			x.fatalf("Claim of a and b while another relay has a: got %v, want b", got)
		}
	}},
	{name: "claim/ends", needs: claims, run: func(x *exam) {
		x.commit("a", 1)
		other := x.Reopen(x.t, x.Store)
		start := time.Now()
		x.claimFor(x.Lease, x.Store, "a")
		x.pass(x.Lease / 2)
		got := x.claim(other, "a")
		if len(got) > 0 && time.Since(start) < x.Lease {
			x.fatalf("Claim in the middle of another's lease: got %v, want none", got)
		}
		if len(got) == 0 { // else the call took so long that it came after the end
			x.pass(x.Lease/2 + x.Lease/4)
			got = x.claim(other, "a")
		}
		if len(got) != 1 {
			x.fatalf("Claim after the end of another's lease: got %v, want a", got)
		}
	}},
	{name: "claim/unclaimed", run: func(x *exam) {
		x.commit("a", 1)
		x.commit("b", 1)
		other := x.Reopen(x.t, x.Store)
		x.claim(x.Store, "a", "b")
		if err := x.Unclaim(x.ctx, []string{"a", "b", "c"}); err != nil {
			x.fatalf("Unclaim: %v", err)
		}
		if got := x.claim(other, "a", "b"); len(got) != 2 {
			x.fatalf("Claim after Unclaim: got %v, want a and b", got)
		}
	}},
	{name: "claim/unclaim leaves that of another", needs: claims, run: func(x *exam) {
		x.commit("a", 1)
		other, third := x.Reopen(x.t, x.Store), x.Reopen(x.t, x.Store)
		x.claimFor(x.Lease, x.Store, "a")
		x.pass(x.Lease + x.Lease/4)
		x.claim(other, "a")
		if err := x.Unclaim(x.ctx, []string{"a"}); err != nil { // the late one of a relay that was frozen
			x.fatalf("Unclaim: %v", err)
		}
		if got := x.claim(third, "a"); len(got) > 0 {
			x.fatalf("Claim after a late Unclaim of another relay: got %v, want none", got)
		}
	}},
	{name: "claim/needed for nothing", run: func(x *exam) {
		es := x.commit("a", 2)
		other := x.Reopen(x.t, x.Store)
		x.claim(x.Store, "a")
		got, err := other.Read(x.ctx, outbox.Group{Name: "a"}, outbox.Known{}, 10)
		if err != nil || len(got) != len(es) {
			x.fatalf("Read by a relay without the claim: got %v, error %v, want both events", seqs(got), err)
		}
		if left, err := other.Delete(x.ctx, got); err != nil || len(left) > 0 {
			x.fatalf("Delete by a relay without the claim: left %v, error %v", seqs(left), err)
		}
		x.ids("a", "after another relay's delete")
	}},
	{name: "claim/hides nothing from sweeps", run: func(x *exam) {
		x.commit("a", 1)
		x.claim(x.Store, "a")
		if _, ok := x.find("a"); !ok {
			x.fatalf("Groups: a claimed group is not found")
		}
	}},
}

// claim claims groups for longer than the case takes, also where the machine stops for some seconds.
func (x *exam) claim(s outbox.Store, groups ...string) []string {
	return x.claimFor(20*x.Lease, s, groups...)
}

func (x *exam) claimFor(lease time.Duration, s outbox.Store, groups ...string) []string {
	got, err := s.Claim(x.ctx, groups, lease)
	if err != nil {
		x.fatalf("Claim of %v: got error %v, want none", groups, err)
	}
	for _, name := range got {
		if !slices.Contains(groups, name) {
			x.fatalf("Claim of %v: got %v", groups, got)
		}
	}
	slices.Sort(got)
	return got
}
