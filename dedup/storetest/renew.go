package storetest

import (
	"time"

	"github.com/sqsonce/sqsonce/dedup"
)

var renewCases = []testCase{
	{name: "renew/moves the end", run: func(x *exam) {
		l := x.acquire(x.claim("a"))
		x.advance(x.Lease / 2)
		d := x.long("a").Lease
		sent := time.Now()
		got := x.renew(l, d)
		x.near("Until after a renewal", got.Until, sent.Add(d))
		if latest := time.Now().Add(d); got.Until.After(latest) {
			x.fatalf("Until after a renewal: got %s, later than now + d (%s)", got.Until.UTC(), latest.UTC())
		}
		x.expire(x.Lease)
		x.inProgress(x.claim("b"), "after the first end of a renewed lease")
	}},
	{name: "renew/ends later too", run: func(x *exam) {
		l := x.acquire(x.claim("a"))
		x.renew(l, 2*x.Lease)
		x.expire(2 * x.Lease)
		if b := x.acquire(x.claim("b")); !b.Takeover {
			x.fatalf("lease after the end of a renewed lease: Takeover false, want true")
		}
	}},
	{name: "renew/never back", run: func(x *exam) {
		l := x.acquire(x.long("a"))
		got := x.renew(l, x.Lease/2)
		x.near("Until after a shorter renewal", got.Until, l.Until)
		x.expire(x.Lease)
		x.inProgress(x.claim("b"), "after a renewal that would have shortened the lease")
	}},
	{name: "renew/after expiry while none took over", run: func(x *exam) {
		l := x.acquire(x.claim("a"))
		x.expire(x.Lease)
		got := x.renew(l, x.long("a").Lease)
		if !got.Until.After(time.Now()) {
			x.fatalf("Until after a late renewal: got %s, want it ahead", got.Until.UTC())
		}
		x.inProgress(x.claim("b"), "after a late renewal")
	}},
	{name: "renew/stale owner refused", run: func(x *exam) {
		a := x.acquire(x.claim("a"))
		x.expire(x.Lease)
		b := x.acquire(x.claim("b"))
		_, err := x.Renew(x.ctx, a, 100*x.Lease)
		x.lost("Renew by the stale owner", err)
		x.expire(x.Lease)
		if c := x.acquire(x.claim("c")); c.Fence <= b.Fence {
			x.fatalf("Fence after b: got %d, want more than %d", c.Fence, b.Fence)
		}
	}},
	{name: "renew/after complete refused", run: func(x *exam) {
		l := x.acquire(x.claim("a"))
		x.complete(l, dedup.Result{})
		_, err := x.Renew(x.ctx, l, x.Lease)
		x.lost("Renew after a complete", err)
		x.completed(x.claim("b"), "after a refused renewal")
	}},
	{name: "renew/after release refused", run: func(x *exam) {
		l := x.acquire(x.claim("a"))
		x.release(l, nil)
		// A delayed copy of a renewal must not lease the key to an owner that no longer runs.
		_, err := x.Renew(x.ctx, l, x.Lease)
		x.lost("Renew after a release", err)
		x.acquire(x.claim("b"))
	}},
	{name: "renew/keeps a long lease past the retention", hours: true, run: func(x *exam) {
		c := x.claim("a")
		c.Retention = x.Lease
		l := x.acquire(c)
		for range 6 {
			l = x.renew(l, time.Hour)
			x.advance(45 * time.Minute)
			x.inProgress(x.claim("b"), "while a renews past its first retention")
		}
		x.complete(l, dedup.Result{})
		x.completed(x.claim("b"), "after a long handler")
	}},
}
