package storetest

import (
	"errors"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/suite"
)

// reopener is the store, if an operator can reopen its records.
func (x *exam) reopener() dedup.Reopener {
	r, ok := x.Store.(dedup.Reopener)
	if !ok {
		suite.Unsupported("the store is no dedup.Reopener")
	}
	return r
}

func (x *exam) inspect() dedup.Record {
	r, start := x.reopener(), time.Now()
	rec, err := r.Inspect(x.ctx, key)
	x.timed(start)
	if err != nil {
		x.fatalf("Inspect: got error %v, want the record", err)
	}
	return rec
}

func (x *exam) reopen(seen dedup.Record, optFns ...func(*dedup.ReopenOptions)) {
	if err := x.reopener().Reopen(x.ctx, seen, "note", optFns...); err != nil {
		x.fatalf("Reopen of %+v: got error %v, want nil", seen, err)
	}
}

func (x *exam) changed(seen dedup.Record, why string) {
	for _, force := range []bool{false, true} {
		err := x.reopener().Reopen(x.ctx, seen, "note", func(o *dedup.ReopenOptions) { o.Force = force })
		if !errors.Is(err, dedup.ErrChanged) {
			x.fatalf("Reopen %s, force %v: got error %v, want ErrChanged", why, force, err)
		}
	}
}

// noted checks the record's note, and that it is not the last error.
func (x *exam) noted(after, note string) {
	r, got := x.inspect(), strings.ReplaceAll(note, "\x00", "")
	whole := r.Note == got && len(got) <= 256
	cut := len(got) > 256 && len(r.Note) >= 128 && len(r.Note) <= 256 && strings.HasPrefix(got, r.Note) && utf8.ValidString(r.Note)
	if r.LastError != "failed" || !whole && !cut {
		x.fatalf("record after %s with the note %.20q: got %d bytes, %.20q, and the error %q, want it, at most 256 bytes of whole characters, and %q", after, note, len(r.Note), r.Note, r.LastError, "failed")
	}
}

// crashed is the record of an owner whose lease has expired.
func (x *exam) crashed() (dedup.Lease, dedup.Record) {
	l := x.acquire(x.claim("a"))
	x.expire(x.Lease)
	return l, x.inspect()
}

func force(o *dedup.ReopenOptions) { o.Force = true }

var reopenCases = []testCase{
	{name: "reopen/a completed event runs again", run: func(x *exam) {
		a := x.acquire(x.claim("a"))
		x.complete(a, dedup.Result{Data: []byte("1"), Validation: "hash"})
		x.reopen(x.inspect())
		b := x.acquire(x.claim("b"))
		if b.Takeover || b.LastError != "" || b.Fence <= a.Fence+1 {
			x.fatalf("lease after a reopen: got %+v, want no Takeover, no error, and a fence above the operator's, which is above %d", b, a.Fence)
		}
		x.complete(b, dedup.Result{})
		if r := x.completed(x.claim("c"), "after b's complete"); len(r.Data) != 0 || r.Validation != "" {
			x.fatalf("Grant.Result: got %+v of the first run, want none", r)
		}
	}},
	{name: "reopen/a crash is released", run: func(x *exam) {
		a, seen := x.crashed()
		x.reopen(seen)
		c := x.claim("b")
		c.NoTakeover = true
		if b := x.acquire(c); b.Takeover || b.LastError != "" || b.Fence <= a.Fence+1 {
			x.fatalf("lease after a reopen: got %+v, want no Takeover, no error, and a fence above the operator's, which is above %d", b, a.Fence)
		}
	}},
	{name: "reopen/leaves a released record of the operator", run: func(x *exam) {
		l := x.acquire(x.claim("a"))
		x.complete(l, dedup.Result{Data: []byte("1"), Validation: "hash"})
		seen := x.inspect()
		x.reopen(seen, func(o *dedup.ReopenOptions) { o.Name = "Zoë" })
		r := x.inspect()
		random, named := strings.CutPrefix(r.Owner, host.OperatorPrefix+"Zoë/")
		if !named || len(random) < 22 || r.Fence <= seen.Fence {
			x.fatalf("record after a reopen: got owner %q, fence %d, want %sZoë/ with 128 random bits and more than %d",
				r.Owner, r.Fence, host.OperatorPrefix, seen.Fence)
		}
		if state := r.State(time.Now()); state != dedup.StateReleased || r.Note != "note" || len(r.Result.Data) != 0 || r.Result.Validation != "" {
			x.fatalf("record after a reopen: got %s, %+v, want released, with the note and no result", state, r)
		}
		x.reopen(r)
		if again := x.inspect(); again.Owner == r.Owner || again.Fence <= r.Fence {
			x.fatalf("record after a second reopen: got owner %q, fence %d, want others than %q, %d", again.Owner, again.Fence, r.Owner, r.Fence)
		}
	}},
	{name: "reopen/the note", run: func(x *exam) {
		x.release(x.acquire(x.claim("a")), errors.New("failed"))
		note := "n" + strings.Repeat("ż", 1000) // 256 bytes end in the middle of a character
		for i, note := range []string{note, "", "nul\x00nul"} {
			if err := x.reopener().Reopen(x.ctx, x.inspect(), note); err != nil {
				x.fatalf("Reopen with the note %.20q: got error %v, want nil", note, err)
			}
			x.noted("a reopen", note)
			if note != "" {
				x.complete(x.acquire(x.claim(strings.Repeat("n", i+1))), dedup.Result{Note: "c" + note})
				x.noted("a complete", "c"+note)
			}
		}
		x.reopen(x.inspect())
		x.release(x.acquire(x.claim("b")), errors.New("again"))
		x.complete(x.acquire(x.claim("c")), dedup.Result{})
		if r := x.inspect(); r.LastError != "again" || r.Note != "note" {
			x.fatalf("record after a reopen, a failure and a complete: got error %q and note %q, want %q and %q", r.LastError, r.Note, "again", "note")
		}
	}},
	{name: "reopen/shows why an event was skipped", run: func(x *exam) {
		x.release(x.acquire(x.claim("a")), errors.New("failed"))
		for _, why := range []string{"void", ""} { // an empty text is one too
			x.complete(x.acquire(x.claim("skips "+why)), dedup.Result{Skipped: errors.New(why)})
			if r := x.inspect(); r.LastError != why {
				x.fatalf("record of a skipped event: got error %q, want %q in place of the earlier failure's", r.LastError, why)
			}
			x.reopen(x.inspect())
		}
	}},
	{name: "reopen/crashes end", run: func(x *exam) {
		x.release(x.acquire(x.claim("a")), errors.New("dedup: was running in a process that crashed, started at 1767222000000, crash 2: it runs apart"))
		seen := x.inspect()
		if seen.Crashes(time.Now()) != 2 {
			x.fatalf("record after two crashes: got %+v, which counts %d, want 2", seen, seen.Crashes(time.Now()))
		}
		x.reopen(seen)
		l := x.acquire(x.long("b"))
		if r := x.inspect(); l.LastError != "" || r.LastError != "" || r.Crashes(time.Now()) != 0 {
			x.fatalf("record and lease after a reopen: got the errors %q and %q, want none: the crashes were before it", r.LastError, l.LastError)
		}
	}},
	{name: "reopen/earlier owners are refused", run: func(x *exam) {
		for name, done := range map[string]bool{"crashed": false, "completed": true} {
			c := x.claim(name)
			l := x.acquire(c)
			if done {
				x.complete(l, dedup.Result{})
			} else {
				x.expire(x.Lease)
			}
			x.reopen(x.inspect())
			before := x.inspect()
			_, err := x.Renew(x.ctx, l, 10*x.Lease)
			x.lost("Renew by the "+name+" owner after a reopen", err)
			x.lost("Complete by the "+name+" owner after a reopen", x.Complete(x.ctx, l, dedup.Result{}))
			x.lost("Release by the "+name+" owner after a reopen", x.Release(x.ctx, l, errors.New("late")))
			if r := x.inspect(); r.Owner != before.Owner || r.Note != "note" || r.Completed || !r.Until.IsZero() {
				x.fatalf("record after late calls of the %s owner: got %+v, want %+v", name, r, before)
			}
		}
	}},
	{name: "reopen/a live lease", run: func(x *exam) {
		l := x.acquire(x.long("a"))
		seen, start := x.inspect(), time.Now()
		err := x.reopener().Reopen(x.ctx, seen, "note")
		x.timed(start)
		in, ok := errors.AsType[*dedup.InProgressError](err)
		if !ok {
			x.fatalf("Reopen of a live lease: got error %v, want *InProgressError", err)
		}
		x.near("InProgressError.Until", in.Until, l.Until)
		x.renew(l, x.Lease)
		x.reopen(x.inspect(), force)
		_, err = x.Renew(x.ctx, l, x.Lease)
		x.lost("Renew after a forced reopen", err)
		if b := x.acquire(x.claim("b")); b.Takeover || b.LastError != "" || b.Fence <= l.Fence+1 {
			x.fatalf("lease after a forced reopen: got %+v, want no Takeover, no error, and a greater fence", b)
		}
	}},
	{name: "reopen/taken over meanwhile", run: func(x *exam) {
		_, seen := x.crashed()
		b := x.acquire(x.claim("b"))
		x.changed(seen, "after b's takeover")
		x.renew(b, x.Lease)
		x.expire(2 * x.Lease)
		x.changed(seen, "after b's crash")
		x.complete(b, dedup.Result{Data: []byte("b's")})
		x.changed(seen, "after b's complete")
		if r := x.completed(x.claim("c"), "after b's complete"); string(r.Data) != "b's" {
			x.fatalf("Result.Data: got %q, want b's", r.Data)
		}
	}},
	{name: "reopen/completed meanwhile by its owner", run: func(x *exam) {
		l, seen := x.crashed()
		x.complete(l, dedup.Result{Data: []byte("late")})
		x.changed(seen, "of a crash that was completed since")
		if r := x.completed(x.claim("b"), "after a's complete"); string(r.Data) != "late" {
			x.fatalf("Result.Data: got %q, want a's", r.Data)
		}
	}},
	{name: "reopen/another owner or fence", run: func(x *exam) {
		_, seen := x.crashed()
		other := seen
		other.Owner = "b"
		x.changed(other, "with another owner")
		seen.Fence--
		x.changed(seen, "with another fence")
	}},
	{name: "reopen/no record", run: func(x *exam) {
		seen := dedup.Record{Lease: dedup.Lease{Key: key, Owner: "a", Fence: 1}}
		x.changed(seen, "without a record")
		if r, err := x.reopener().Inspect(x.ctx, key); !errors.Is(err, dedup.ErrNotFound) {
			x.fatalf("Inspect after a refused reopen: got %+v, %v, want ErrNotFound", r, err)
		}
		if l := x.acquire(x.claim("b")); l.LastError != "" || l.Takeover {
			x.fatalf("lease after a reopen without a record: got %+v, want a fresh one", l)
		}
	}},
	{name: "reopen/one of 16 operators", run: func(x *exam) {
		x.complete(x.acquire(x.claim("a")), dedup.Result{})
		seen := x.inspect()
		var wg sync.WaitGroup
		errs := make([]error, 16)
		for i := range errs {
			wg.Go(func() { errs[i] = x.reopener().Reopen(x.ctx, seen, "note") })
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, dedup.ErrChanged) {
				x.fatalf("Reopen by 16 at once: got error %v, want nil or ErrChanged", err)
			}
		}
		if won != 1 {
			x.fatalf("%d of 16 operators reopened the record, want 1", won)
		}
	}},
	{name: "reopen/retention", run: func(x *exam) {
		x.complete(x.acquire(x.claim("a")), dedup.Result{}) // for a day
		for _, step := range []struct{ given, want time.Duration }{{2 * time.Hour, 24 * time.Hour}, {48 * time.Hour, 48 * time.Hour}, {0, 29 * 24 * time.Hour}} {
			x.reopen(x.inspect(), func(o *dedup.ReopenOptions) { o.Retention = step.given })
			if left := time.Until(x.inspect().ExpiresAt); (left - step.want).Abs() > 2*time.Minute {
				x.fatalf("retention after a reopen with %s: got %s, want %s", step.given, left, step.want)
			}
		}
	}},
	{name: "reopen/bad arguments are refused", run: func(x *exam) {
		_, seen := x.crashed()
		noOwner, noKey := seen, seen
		noOwner.Owner, noKey.Key = "", ""
		for what, err := range map[string]error{
			"seen.Owner":              x.reopener().Reopen(x.ctx, noOwner, "note", force),
			"seen.Key":                x.reopener().Reopen(x.ctx, noKey, "note"),
			"ReopenOptions.Name":      x.reopener().Reopen(x.ctx, seen, "note", func(o *dedup.ReopenOptions) { o.Name = "a\nb" }),
			"ReopenOptions.Retention": x.reopener().Reopen(x.ctx, seen, "note", func(o *dedup.ReopenOptions) { o.Retention = time.Minute }),
		} {
			if field, ok := errors.AsType[*sqsonce.OptionError](err); !ok || field.Field != what {
				x.fatalf("Reopen with a bad %s: got error %v, want *sqsonce.OptionError of it", what, err)
			}
		}
		if r := x.inspect(); r.Owner != seen.Owner {
			x.fatalf("record after refused reopens: got %+v, want %+v", r, seen)
		}
	}},
}
