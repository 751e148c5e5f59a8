package storetest

import (
	"errors"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
)

// The same claim again: during its lease, a retry of the owner after a lost response; afterwards, a delayed copy of the
// request.
var retryCases = []testCase{
	{name: "own retry/lost reply recognised", run: func(x *exam) {
		c := x.claim("a")
		first := x.acquire(c)
		x.Advance(x.Lease / 2)
		again := x.acquire(c)
		if again.Fence != first.Fence {
			x.fatalf("Fence of the same claim again: got %d, want %d", again.Fence, first.Fence)
		}
		x.near("Until of the same claim again", again.Until, first.Until)
		if !again.OwnRetry || again.Takeover {
			x.fatalf("same claim again: got %+v, want OwnRetry and no Takeover", again)
		}
		x.complete(again, dedup.Result{})
	}},
	{name: "own retry/does not extend the lease", run: func(x *exam) {
		c := x.claim("a")
		x.acquire(c)
		x.Advance(x.Lease / 2)
		x.acquire(c)
		x.expire(x.Lease / 2)
		x.acquire(x.claim("b"))
	}},
	{name: "own retry/after a takeover keeps its fence", run: func(x *exam) {
		x.acquire(x.claim("a"))
		x.expire(x.Lease)
		c := x.claim("b")
		first := x.acquire(c)
		if again := x.acquire(c); again.Fence != first.Fence {
			x.fatalf("Fence of the same claim again: got %d, want %d", again.Fence, first.Fence)
		}
	}},
	{name: "zombie acquire/after expiry is no new lease", run: func(x *exam) {
		c := x.claim("a")
		first := x.acquire(c)
		x.expire(x.Lease)
		g := x.ask(c, "again after its end")
		if l := g.Lease; g.Verdict == dedup.VerdictGranted && (l.Fence != first.Fence || l.Until.After(time.Now())) {
			x.fatalf("same claim after its end: got %+v, want the values of the first lease", l)
		}
		x.acquire(x.claim("b"))
	}},
	{name: "zombie acquire/after complete", run: func(x *exam) {
		c := x.claim("a")
		l := x.acquire(c)
		x.complete(l, dedup.Result{Data: []byte("kept")})
		if r := x.completed(c, "again after its complete"); string(r.Data) != "kept" {
			x.fatalf("Result.Data: got %q, want %q", r.Data, "kept")
		}
		x.expire(x.Lease)
		x.completed(c, "again long after its complete")
		if r := x.completed(x.claim("b"), "after a's complete"); string(r.Data) != "kept" {
			x.fatalf("Result.Data: got %q, want %q", r.Data, "kept")
		}
	}},
	{name: "zombie acquire/after release", run: func(x *exam) {
		c := x.claim("a")
		x.release(x.acquire(c), errors.New("failed"))
		x.answer(c, dedup.VerdictLost, "again after the own release")
		x.expire(x.Lease)
		x.answer(c, dedup.VerdictLost, "again long after the own release")
		b := x.acquire(x.claim("b"))
		if b.LastError != "failed" || b.Takeover {
			x.fatalf("lease after a's release: got %+v, want LastError and no Takeover", b)
		}
	}},
	{name: "zombie acquire/after renew", run: func(x *exam) {
		c := x.claim("a")
		first := x.acquire(c)
		renewed := x.renew(first, 4*x.Lease)
		switch g := x.ask(c, "again after a renewal"); {
		case g.Verdict == dedup.VerdictGranted && g.Lease.Fence != first.Fence:
			x.fatalf("Fence of the same claim after a renewal: got %d, want %d", g.Lease.Fence, first.Fence)
		case g.Verdict == dedup.VerdictGranted:
			x.near("Until of the same claim after a renewal", g.Lease.Until, renewed.Until)
		case g.Verdict != dedup.VerdictLost:
			x.fatalf("same claim after a renewal: got %+v, want the renewed lease or VerdictLost", g)
		}
		x.expire(x.Lease) // past the first end, before the renewed one
		x.inProgress(x.claim("b"), "in a's renewed lease")
		x.complete(renewed, dedup.Result{})
	}},
	{name: "zombie acquire/after takeover", run: func(x *exam) {
		c := x.claim("a")
		x.acquire(c)
		x.expire(x.Lease)
		b := x.acquire(x.claim("b"))
		if g := x.ask(c, "again after a takeover"); g.Verdict != dedup.VerdictInProgress && g.Verdict != dedup.VerdictLost {
			x.fatalf("Acquire again after a takeover: got %+v, want in progress or lost", g)
		}
		x.renew(b, x.Lease)
		x.complete(b, dedup.Result{})
		x.completed(c, "again after a takeover and its complete")
	}},
}
