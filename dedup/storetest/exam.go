package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/suite"
)

// exam is one run of a case on one store. Its methods end the case at the first sentence of the contract that does not
// hold.
type exam struct {
	dedup.Store
	Harness
	ctx     context.Context
	advance func(time.Duration) // lets time pass on the store's clock and on the caller's
	took    time.Duration       // the calls whose times are compared
}

func (x *exam) fatalf(format string, args ...any) { suite.Failf(format, args...) }

const key = "storetest#event"

// claim is owner's request for the key, with the usual lease and a retention of a day.
func (x *exam) claim(owner string) dedup.Claim {
	return dedup.Claim{Key: key, Owner: owner, Lease: x.Lease, Retention: 24 * time.Hour, ReceiveCount: 1}
}

// long is a claim whose lease outlasts the case, also where the machine stops for some seconds.
func (x *exam) long(owner string) dedup.Claim {
	c := x.claim(owner)
	c.Lease = 20 * x.Lease
	return c
}

// timed adds the time since start, of a call, to what near allows.
func (x *exam) timed(start time.Time) { x.took += time.Since(start) }

// ask expects the claim to get a verdict.
func (x *exam) ask(c dedup.Claim, why string) dedup.Grant {
	start := time.Now()
	g, err := x.Acquire(x.ctx, c)
	x.timed(start)
	if err != nil {
		x.fatalf("Acquire by %s %s: got error %v, want a verdict", c.Owner, why, err)
	}
	return g
}

// answer expects the claim to get this verdict.
func (x *exam) answer(c dedup.Claim, want dedup.Verdict, why string) dedup.Grant {
	g := x.ask(c, why)
	if g.Verdict != want {
		x.fatalf("Acquire by %s %s: got %+v, want %s", c.Owner, why, g, want)
	}
	return g
}

// fails expects the claim to get an error, and no verdict.
func (x *exam) fails(ctx context.Context, c dedup.Claim, why string) error {
	g, err := x.Acquire(ctx, c)
	if err == nil || g.Verdict != 0 {
		x.fatalf("Acquire %s: got %+v and error %v, want an error without a verdict", why, g, err)
	}
	return err
}

// refuses expects the claim to fail because of its own values, which other messages do not have.
func (x *exam) refuses(c dedup.Claim, why string) {
	err := x.fails(x.ctx, c, why)
	if _, refused := errors.AsType[*sqsonce.OptionError](err); !refused || errors.Is(err, sqsonce.ErrUnavailable) {
		x.fatalf("Acquire %s: got error %v, want a *sqsonce.OptionError, and not ErrUnavailable", why, err)
	}
}

// acquire expects the claim to be granted.
func (x *exam) acquire(c dedup.Claim) dedup.Lease {
	l := x.answer(c, dedup.VerdictGranted, "of a free record").Lease
	if l.Key != c.Key || l.Owner != c.Owner {
		x.fatalf("Acquire by %s of %.40q: got a lease of %q for %.40q", c.Owner, c.Key, l.Owner, l.Key)
	}
	return l
}

// inProgress expects the claim to be refused because another owner has the record lease, and returns the lease's end.
func (x *exam) inProgress(c dedup.Claim, why string) time.Time {
	return x.answer(c, dedup.VerdictInProgress, why).Until
}

// completed expects the claim to be refused because the event was completed.
func (x *exam) completed(c dedup.Claim, why string) dedup.Result {
	return x.answer(c, dedup.VerdictCompleted, why).Result
}

// lost expects an operation's error to be the lost lease.
func (x *exam) lost(op string, err error) {
	if !errors.Is(err, sqsonce.ErrLeaseLost) {
		x.fatalf("%s: got error %v, want sqsonce.ErrLeaseLost", op, err)
	}
}

func (x *exam) complete(l dedup.Lease, r dedup.Result) {
	if err := x.Complete(x.ctx, l, r); err != nil {
		x.fatalf("Complete by %s: got error %v, want nil", l.Owner, err)
	}
}

func (x *exam) release(l dedup.Lease, cause error) {
	if err := x.Release(x.ctx, l, cause); err != nil {
		x.fatalf("Release by %s: got error %v, want nil", l.Owner, err)
	}
}

func (x *exam) renew(l dedup.Lease, d time.Duration) dedup.Lease {
	start := time.Now()
	got, err := x.Renew(x.ctx, l, d)
	x.timed(start)
	if err != nil {
		x.fatalf("Renew by %s: got error %v, want a lease", l.Owner, err)
	}
	if got.Key != l.Key || got.Owner != l.Owner || got.Fence != l.Fence {
		x.fatalf("Renew by %s: got lease %+v, want key, owner and fence of %+v", l.Owner, got, l)
	}
	return got
}

// expire lets a lease of d end, and the store's grace.
func (x *exam) expire(d time.Duration) { x.advance(d + x.Grace) }

// ageOrWait is advance on a clock that can't be moved.
func (x *exam) ageOrWait(d time.Duration) {
	if d < 10*x.Lease {
		time.Sleep(d)
	} else if err := x.Age(x.ctx, x.Store, d); err != nil {
		x.fatalf("Age: %v", err)
	}
}

// near expects a lease's end, which a store may round to seconds or set later by its grace. The calls' own time counts for nothing: a
// store can't know when a slow call was carried out.
func (x *exam) near(what string, got, want time.Time) {
	// A quarter of the lease is less than the cases let pass between two times that they compare.
	if near := max(x.Lease/4, x.Grace) + x.took; got.Sub(want).Abs() > near {
		x.fatalf("%s: got %s, want about %s", what, got.UTC(), want.UTC())
	}
}
