package storetest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/question"
	"github.com/sqsonce/sqsonce/internal/suite"
)

var unavailableCases = []testCase{
	{name: "unavailable/no server", on: away, run: func(x *exam) {
		x.eachMethod(func(method string, err error) {
			if !errors.Is(err, sqsonce.ErrUnavailable) || errors.Is(err, sqsonce.ErrMisconfigured) {
				x.fatalf("%s without a server: got error %v, want ErrUnavailable and not ErrMisconfigured", method, err)
			}
		})
	}},
	{name: "unavailable/an answer that the store does not know", on: unlisted, run: func(x *exam) {
		x.eachMethod(func(method string, err error) {
			_, refused := errors.AsType[*sqsonce.OptionError](err)
			if !errors.Is(err, sqsonce.ErrUnavailable) || errors.Is(err, sqsonce.ErrMisconfigured) || refused || errors.Is(err, dedup.ErrRecord) {
				x.fatalf("%s answered with an unknown error: got error %v, want ErrUnavailable, not ErrMisconfigured, and no failure of the message", method, err)
			}
		})
		x.accusesNoMessage()
	}},
	{name: "unavailable/a store that only answers reads", on: readOnly, run: func(x *exam) {
		if _, err := x.reopener().Inspect(x.ctx, key); !errors.Is(err, dedup.ErrNotFound) {
			x.fatalf("Inspect on a store that answers reads: got error %v, want ErrNotFound", err)
		}
		x.accusesNoMessage()
	}},
	{name: "unavailable/not for data that is no record", run: func(x *exam) {
		if len(x.NoRecord) == 0 {
			suite.Unsupported("no other program writes the store's data")
		}
		x.acquire(x.claim("a"))
		for kind, write := range x.NoRecord {
			c := x.claimOf(attributeConsumer + "#" + kind)
			if err := write(x.ctx, x.Store, c.Key); err != nil {
				x.fatalf("writing %s: %v", kind, err)
			}
			l := dedup.Lease{Key: c.Key, Owner: c.Owner, Fence: 1, Retention: c.Retention}
			x.isNoRecord("Acquire of "+kind, x.fails(x.ctx, c, "of "+kind))
			_, err := x.Renew(x.ctx, l, x.Lease)
			x.lost("Renew of "+kind, err)
			x.lost("Complete of "+kind, x.Complete(x.ctx, l, dedup.Result{}))
			x.lost("Release of "+kind, x.Release(x.ctx, l, nil))
			if r, ok := x.Store.(dedup.Reopener); ok {
				_, err := r.Inspect(x.ctx, c.Key)
				x.isNoRecord("Inspect of "+kind, err)
				if err := r.Reopen(x.ctx, dedup.Record{Lease: l}, "note", force); !errors.Is(err, dedup.ErrChanged) {
					x.isNoRecord("Reopen of "+kind, err)
				}
			}
			if k, ok := x.Store.(dedup.Keeper); ok {
				_, err := k.Keep(x.ctx, dedup.Record{Lease: dedup.Lease{Key: c.Key}}, "", nil, kept)
				x.isNoRecord("Keep of "+kind, err)
			}
			err = x.once().Handler(func(context.Context, *sqsonce.Message) error { return nil })(x.ctx, x.message(c.Key))
			if x.isNoRecord("a delivery of "+kind, err); sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomeFailed {
				x.fatalf("a delivery of %s: got error %v, want a failed attempt", kind, err)
			}
		}
		if list, ok := x.Store.(dedup.Lister); ok {
			listed := map[string]bool{key: false}
			for r, err := range list.List(x.ctx, func(o *dedup.ListOptions) { o.Consumer = attributeConsumer }) {
				if listed[r.Key] = true; r.Key != key {
					x.isNoRecord("List of "+r.Key, err)
				}
			}
			if len(listed) != 1+len(x.NoRecord) || !listed[key] {
				x.fatalf("List: got %v, want %s, and an error for each kind of %v", listed, key, slices.Collect(maps.Keys(x.NoRecord)))
			}
		}
	}},
	{name: "unavailable/not for a write of an inbox's handler", run: func(x *exam) {
		x.needInbox()
		ran := false
		h := x.inbox(func(context.Context, *sqsonce.Message) error { ran = true; return nil })
		// The last one finds what the first one has left.
		for _, d := range []struct {
			body string
			want sqsonce.OutcomeKind
		}{{"refused", sqsonce.OutcomeFailed}, {"other", sqsonce.OutcomeDone}, {"refused", sqsonce.OutcomeFailed}} {
			ran = false
			err := h(x.ctx, x.message(d.body))
			if kind := sqsonce.OutcomeOf(err).Kind; !ran || kind != d.want {
				x.fatalf("the inbox's event %q: got outcome %s and error %v, handler called: %t; want a run and %s", d.body, kind, err, ran, d.want)
			}
		}
	}},
	{name: "inbox/another payload is rejected", run: func(x *exam) {
		x.needInbox()
		hash := "hash"
		h := x.inbox(func(context.Context, *sqsonce.Message) error { return nil }, func(o *dedup.Options) {
			o.PayloadHash = func(*sqsonce.Message) string { return hash }
		})
		for _, hash = range []string{"hash", "other"} {
			err := h(x.ctx, x.message("other"))
			if want := hash == "other"; errors.Is(err, dedup.ErrPayloadMismatch) != want || sqsonce.OutcomeOf(err).Reject != want {
				x.fatalf("a delivery to an inbox with the hash %q: got error %v, want it rejected: %t", hash, err, want)
			}
		}
	}},
	{name: "unavailable/misconfigured", on: misconfigured, run: func(x *exam) {
		x.eachMethod(func(method string, err error) {
			if !errors.Is(err, sqsonce.ErrMisconfigured) {
				x.fatalf("%s on a misconfigured server: got error %v, want ErrMisconfigured", method, err)
			}
		})
	}},
}

// isNoRecord expects the error of data that was read and is no record, which is the event's own.
func (x *exam) isNoRecord(what string, err error) {
	if !errors.Is(err, dedup.ErrRecord) || errors.Is(err, sqsonce.ErrUnavailable) || errors.Is(err, dedup.ErrOutcomeUnknown) {
		x.fatalf("%s: got error %v, want dedup.ErrRecord, and neither ErrUnavailable nor ErrOutcomeUnknown", what, err)
	}
}

// accusesNoMessage delivers a message, which costs no attempt, and asks the question of its error, which says that the store works
// for no other message either.
func (x *exam) accusesNoMessage() {
	ran := false
	err := x.once().Handler(func(context.Context, *sqsonce.Message) error { ran = true; return nil })(x.ctx, x.message(key))
	if kind := sqsonce.OutcomeOf(err).Kind; ran || kind != sqsonce.OutcomeUnavailable {
		x.fatalf("a delivery: got outcome %s and error %v, handler called: %t; want unavailable, which costs no attempt", kind, err, ran)
	}
	q, has := question.Of(err)
	if !has {
		x.fatalf("a delivery: got error %v without a question", err)
	}
	if q.Ask(x.ctx) == nil {
		x.fatalf("the question of %v: got nil, want an error", err)
	}
}

// eachMethod calls every method of the store and passes its error on.
func (x *exam) eachMethod(check func(method string, err error)) {
	l := dedup.Lease{Key: key, Owner: "a", Fence: 1, Retention: x.claim("a").Retention}
	_, err := x.Acquire(x.ctx, x.claim("a"))
	check("Acquire", err)
	_, err = x.Renew(x.ctx, l, x.Lease)
	check("Renew", err)
	check("Complete", x.Complete(x.ctx, l, dedup.Result{}))
	check("Release", x.Release(x.ctx, l, errors.New("failed")))
	if r, ok := x.Store.(dedup.Reopener); ok {
		_, err := r.Inspect(x.ctx, key)
		check("Inspect", err)
		check("Reopen", r.Reopen(x.ctx, dedup.Record{Lease: l}, "note"))
	}
	if k, ok := x.Store.(dedup.Keeper); ok {
		_, err := k.Keep(x.ctx, none, "", nil, kept)
		check("Keep", err)
	}
	if list, ok := x.Store.(dedup.Lister); ok {
		for _, err := range list.List(x.ctx) {
			check("List", err)
		}
	}
}

// The same claim again: during its lease, a retry of the owner after a lost response; afterwards, a delayed copy of the
// request.
var retryCases = []testCase{
	{name: "own retry/lost reply recognised", run: func(x *exam) {
		c := x.claim("a")
		first := x.acquire(c)
		x.advance(x.Lease / 2)
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
		x.advance(x.Lease / 2)
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
		renewed := x.renew(first, x.long("a").Lease)
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
		b := x.acquire(x.long("b"))
		if g := x.ask(c, "again after a takeover"); g.Verdict != dedup.VerdictInProgress && g.Verdict != dedup.VerdictLost {
			x.fatalf("Acquire again after a takeover: got %+v, want in progress or lost", g)
		}
		x.renew(b, x.Lease)
		x.complete(b, dedup.Result{})
		x.completed(c, "again after a takeover and its complete")
	}},
}
