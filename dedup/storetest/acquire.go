package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

var acquireCases = []testCase{
	{name: "acquire/fresh key", run: func(x *exam) {
		before := time.Now()
		c := x.claim("a")
		c.ReceiveCount = 3
		l := x.acquire(c)
		x.near("Until of a fresh lease", l.Until, before.Add(x.Lease))
		// An owner with a later end than the store's would still run when another owner takes over.
		if latest := time.Now().Add(x.Lease); l.Until.After(latest) {
			x.fatalf("Until: got %s, later than now + Lease (%s)", l.Until.UTC(), latest.UTC())
		}
		if l.Takeover || l.OwnRetry || l.LastError != "" {
			x.fatalf("fresh lease: got %+v, want neither Takeover nor OwnRetry nor LastError", l)
		}
		// Hosts read from it when an owner that crashed had started.
		if at := time.UnixMilli(l.Fence); at.Sub(before).Abs() > time.Hour {
			x.fatalf("Fence: got %d, which is %s, want about the time in milliseconds", l.Fence, at.UTC())
		}
		if l.ReceiveCount != 3 || l.Retention != c.Retention {
			x.fatalf("fresh lease: got %+v, want the claim's ReceiveCount and Retention", l)
		}
		if _, ok := x.Store.(dedup.Reopener); ok {
			r := x.inspect()
			if r.Completed || r.Owner != "a" || r.Fence != l.Fence || r.ReceiveCount != 3 {
				x.fatalf("Inspect: got %+v, want the owner, fence and receive count of %+v", r, l)
			}
			x.near("Record.Until", r.Until, l.Until)
		}
	}},
	{name: "acquire/held", run: func(x *exam) {
		l := x.acquire(x.long("a"))
		until := x.inProgress(x.claim("b"), "during a's lease")
		x.near("Grant.Until", until, l.Until)
		x.advance(x.Lease / 2)
		x.inProgress(x.claim("c"), "in the middle of a's lease")
	}},
	{name: "acquire/held until says when", run: func(x *exam) {
		c := x.claim("a")
		c.Lease = 3 * x.Lease
		x.acquire(c)
		until := x.inProgress(x.claim("b"), "during a's lease")
		if !until.After(time.Now()) {
			x.fatalf("Grant.Until: got %s, want it ahead", until.UTC())
		}
		// A host comes back one second later than that.
		x.advance(time.Until(until) + time.Second)
		x.acquire(x.claim("b"))
	}},
	{name: "acquire/takeover after expiry", run: func(x *exam) {
		a := x.acquire(x.claim("a"))
		x.expire(x.Lease)
		c := x.long("b")
		c.ReceiveCount = 2
		b := x.acquire(c)
		if !b.Takeover {
			x.fatalf("lease after a's expiry: Takeover false, want true")
		}
		if b.TakenFrom != a.Fence {
			x.fatalf("lease after a's expiry: TakenFrom %d, want a's fence %d", b.TakenFrom, a.Fence)
		}
		if b.TakenOwner != a.Owner {
			x.fatalf("lease after a's expiry: TakenOwner %q, want %q", b.TakenOwner, a.Owner)
		}
		if b.Fence <= a.Fence {
			x.fatalf("Fence after a takeover: got %d, want more than %d", b.Fence, a.Fence)
		}
		if b.ReceiveCount != 2 {
			x.fatalf("ReceiveCount after a takeover: got %d, want the claim's 2", b.ReceiveCount)
		}
		x.inProgress(x.claim("c"), "after b's takeover")
	}},
	{name: "acquire/one winner of 32", run: func(x *exam) {
		race(x, 32)
	}},
	{name: "acquire/one taker of 32", run: func(x *exam) {
		x.acquire(x.claim("crashed"))
		x.expire(x.Lease)
		race(x, 32)
	}},
	{name: "acquire/cancelled before the call stores nothing", run: func(x *exam) {
		ctx, cancel := context.WithCancel(x.ctx)
		cancel()
		x.fails(ctx, x.claim("a"), "with an ended context")
		if l := x.acquire(x.claim("b")); l.Takeover {
			x.fatalf("a cancelled Acquire has stored a record: %+v", l)
		}
	}},
	{name: "owner/cancelled before the call changes nothing", run: func(x *exam) {
		c := x.long("a")
		l := x.acquire(c)
		ctx, cancel := context.WithCancel(x.ctx)
		cancel()
		_, err := x.Renew(ctx, l, 2*c.Lease)
		errs := map[string]error{"Renew": err, "Complete": x.Complete(ctx, l, dedup.Result{}), "Release": x.Release(ctx, l, nil)}
		if r, ok := x.Store.(dedup.Reopener); ok {
			errs["Reopen"] = r.Reopen(ctx, x.inspect(), "note", force)
		}
		if k, ok := x.Store.(dedup.Keeper); ok {
			other := dedup.Record{Lease: dedup.Lease{Key: "storetest#other"}}
			_, errs["Keep"] = k.Keep(ctx, other, "", nil, kept)
			if _, err := k.Inspect(x.ctx, other.Key); !errors.Is(err, dedup.ErrNotFound) {
				x.fatalf("Inspect after a cancelled Keep: got error %v, want ErrNotFound", err)
			}
		}
		if list, ok := x.Store.(dedup.Lister); ok {
			errs["List"] = nil
			for r, err := range list.List(ctx) {
				if errs["List"] = err; r.Key != "" {
					x.fatalf("List with an ended context: got %+v, %v, want an error without a key", r, err)
				}
			}
		}
		for method, err := range errs {
			if err == nil {
				x.fatalf("%s with an ended context: got nil, want an error", method)
			}
		}
		x.inProgress(x.claim("b"), "after cancelled calls")
		x.near("Until after cancelled calls", x.acquire(c).Until, l.Until)
	}},
	{name: "acquire/given up leaves no crash", run: func(x *exam) {
		given := func(i int) dedup.Claim {
			c := x.claim(fmt.Sprint("gives up ", i))
			c.Key = fmt.Sprint(key, i)
			return c
		}
		const n = 16
		var wg sync.WaitGroup
		errs := make([]error, n)
		for i := range n {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(x.ctx, time.Duration(i)*200*time.Microsecond)
				defer cancel()
				c := given(i)
				g, err := x.Acquire(ctx, c)
				if g.Verdict == dedup.VerdictGranted || errors.Is(err, dedup.ErrOutcomeUnknown) {
					errs[i] = x.Release(x.ctx, dedup.Lease{Key: c.Key, Owner: c.Owner, Retention: c.Retention}, ctx.Err())
				}
			})
		}
		wg.Wait()
		for _, err := range errs {
			if err != nil && !errors.Is(err, sqsonce.ErrLeaseLost) {
				x.fatalf("Release of an acquire that was given up: got error %v, want nil or ErrLeaseLost", err)
			}
		}
		x.expire(x.Lease) // a lease that nobody released would look like a crash now
		for i := range n {
			c := given(i)
			c.Owner, c.NoTakeover = fmt.Sprint("next ", i), true
			x.answer(c, dedup.VerdictGranted, "after an acquire that was given up")
		}
	}},
	{name: "acquire/no takeover of a crashed holder", run: func(x *exam) {
		blocked := x.long("a")
		blocked.Key += " leased"
		x.acquire(blocked)
		blocked.Owner, blocked.NoTakeover = "b", true
		x.inProgress(blocked, "with NoTakeover during a's lease")
		x.acquire(x.claim("a"))
		x.expire(x.Lease)
		blocked.Key, blocked.Owner = key, "c"
		x.answer(blocked, dedup.VerdictCrashed, "with NoTakeover after a's expiry")
		x.acquire(x.claim("d")) // the policy is the claim's, not the record's
	}},
	{name: "acquire/no takeover, released is free", run: func(x *exam) {
		x.release(x.acquire(x.claim("a")), errors.New("failed"))
		c := x.claim("b")
		c.NoTakeover = true
		x.acquire(c)
	}},
}

var fenceCases = []testCase{
	{name: "fence/two owners in one millisecond", run: func(x *exam) {
		// No time passes between these calls in a bubble.
		var last int64
		for i := range 5 {
			l := x.acquire(x.claim(fmt.Sprintf("owner-%d", i)))
			if l.Fence <= last {
				x.fatalf("Fence of owner %d: got %d, want more than %d", i, l.Fence, last)
			}
			last = l.Fence
			x.release(l, nil)
		}
	}},
	{name: "fence/grows over releases, crashes and renewals", run: func(x *exam) {
		var last int64
		for i := range 6 {
			l := x.acquire(x.claim(fmt.Sprintf("owner-%d", i)))
			if l.Fence <= last {
				x.fatalf("Fence of owner %d: got %d, want more than %d", i, l.Fence, last)
			}
			last = l.Fence
			switch i % 3 {
			case 0:
				x.release(l, errors.New("failed"))
			case 1:
				x.expire(x.Lease)
			case 2:
				x.release(x.renew(l, x.Lease), nil)
			}
		}
	}},
}

var keyCases = []testCase{
	{name: "key/independent", run: func(x *exam) {
		long := strings.Repeat("k", 1023)
		keys := []string{
			"c#a", "c#A", "c#a ", " c#a", "c#", "c#a#b", "c#a/b", "c#ключ", "c#鍵", "c#\u00e9", "c#e\u0301", "c#%61", "c#'\"`;--",
			"d#a", long + "k", long + "K",
		}
		claim := func(owner, key string) dedup.Claim {
			c := x.claimOf(key)
			c.Owner, c.Lease = owner, time.Hour // all calls are within it
			return c
		}
		for i, k := range keys {
			x.acquire(claim(fmt.Sprint("owner-", i), k))
		}
		for _, k := range keys {
			x.inProgress(claim("other", k), "during the lease of the key's owner")
		}
		x.complete(x.acquire(claim("owner-0", keys[0])), dedup.Result{})
		for _, k := range keys[1:] {
			x.inProgress(claim("other", k), "after another key was completed")
		}
	}},
	{name: "key/empty refused", run: func(x *exam) {
		c := x.claim("a")
		c.Key = ""
		x.refuses(c, "of an empty key")
	}},
	{name: "owner/empty refused", run: func(x *exam) {
		x.refuses(x.claim(""), "by an empty owner")
		if l := x.acquire(x.claim("a")); l.Takeover {
			x.fatalf("the refused Acquire has stored a record: %+v", l)
		}
	}},
}

// race lets n owners acquire the key at the same time, and expects one to get the lease.
func race(x *exam, n int) {
	var wg sync.WaitGroup
	grants, errs := make([]dedup.Grant, n), make([]error, n)
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			grants[i], errs[i] = x.Acquire(x.ctx, x.long("racer-"+string(rune('A'+i))))
		})
	}
	close(start)
	wg.Wait()
	won := 0
	for i, g := range grants {
		switch {
		case g.Verdict == dedup.VerdictGranted:
			won++
		case g.Verdict != dedup.VerdictInProgress:
			x.fatalf("racer %d: got %+v and error %v, want a lease or in progress", i, g, errs[i])
		}
	}
	if won != 1 {
		x.fatalf("%d of %d owners got the lease, want 1", won, n)
	}
}
