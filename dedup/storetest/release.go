package storetest

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce/dedup"
)

var rerenewCases = []testCase{
	{name: "release/frees and keeps the error", run: func(x *exam) {
		a := x.acquire(x.claim("a"))
		x.release(a, errors.New("card declined"))
		b := x.acquire(x.claim("b")) // at once: no grace after a release
		if b.LastError != "card declined" {
			x.fatalf("LastError: got %q, want %q", b.LastError, "card declined")
		}
		if b.Takeover {
			x.fatalf("lease after a release: Takeover true, want false")
		}
		if b.Fence <= a.Fence {
			x.fatalf("Fence after a release: got %d, want more than %d", b.Fence, a.Fence)
		}
	}},
	{name: "release/nil keeps no error", run: func(x *exam) {
		x.release(x.acquire(x.claim("a")), errors.New("first"))
		x.release(x.acquire(x.claim("b")), nil)
		if c := x.acquire(x.claim("c")); c.LastError != "" {
			x.fatalf("LastError after a release with nil: got %q, want none", c.LastError)
		}
	}},
	{name: "release/a long error is shortened", run: func(x *exam) {
		cause := "e" + strings.Repeat("ż", 300_000) // 256 bytes end in the middle of a character
		x.release(x.acquire(x.claim("a")), errors.New(cause))
		b := x.acquire(x.claim("b"))
		if n := len(b.LastError); n < 128 || n > 256 || !utf8.ValidString(b.LastError) || !strings.HasPrefix(cause, b.LastError) {
			x.fatalf("LastError of a long cause: got %d bytes, %.60q, want at most 256 of its beginning in whole characters", n, b.LastError)
		}
	}},
	{name: "release/texts of any bytes", run: func(x *exam) {
		text := errors.New("declined\x00\xff")
		x.release(x.acquire(x.claim("a")), text)
		b := x.acquire(x.claim("b"))
		if !strings.HasPrefix(b.LastError, "declined") || !utf8.ValidString(b.LastError) {
			x.fatalf("LastError: got %q, want UTF-8 that begins with %q", b.LastError, "declined")
		}
		x.complete(b, dedup.Result{Skipped: text})
	}},
	{name: "release/twice", run: func(x *exam) {
		l := x.acquire(x.claim("a"))
		x.release(l, errors.New("once"))
		x.release(l, errors.New("once"))
		if b := x.acquire(x.claim("b")); b.LastError != "once" {
			x.fatalf("LastError after two releases: got %q, want %q", b.LastError, "once")
		}
	}},
	{name: "release/after complete keeps it", run: func(x *exam) {
		l := x.acquire(x.claim("a"))
		x.complete(l, dedup.Result{Data: []byte("kept")})
		x.release(l, errors.New("too late"))
		if r := x.completed(x.claim("b"), "after complete and release"); string(r.Data) != "kept" {
			x.fatalf("Result.Data: got %q, want %q", r.Data, "kept")
		}
	}},
	{name: "release/stale owner is told and touches nothing", run: func(x *exam) {
		a := x.acquire(x.claim("a"))
		x.expire(x.Lease)
		b := x.acquire(x.long("b"))
		x.lost("Release by a, whose record b took over", x.Release(x.ctx, a, errors.New("a failed")))
		x.inProgress(x.claim("c"), "during b's lease, after the stale owner's release")
		x.release(b, errors.New("b failed"))
		x.lost("Complete by a, after b's release", x.Complete(x.ctx, a, dedup.Result{}))
		if c := x.acquire(x.claim("c")); c.LastError != "b failed" {
			x.fatalf("LastError: got %q, want b's", c.LastError)
		}
	}},
	{name: "release/a delayed copy touches nothing", run: func(x *exam) {
		a := x.acquire(x.claim("a"))
		x.release(a, nil)
		x.acquire(x.long("b"))
		x.lost("Release by a again, after b's acquire", x.Release(x.ctx, a, errors.New("again")))
		x.inProgress(x.claim("c"), "during b's lease, after a's second release")
	}},
	{name: "release/after another owner's complete", run: func(x *exam) {
		a := x.acquire(x.claim("a"))
		x.expire(x.Lease)
		x.complete(x.acquire(x.claim("b")), dedup.Result{Data: []byte("b's")})
		x.lost("Complete by a, after b's complete", x.Complete(x.ctx, a, dedup.Result{Data: []byte("a's")}))
		x.lost("Release by a, after b's complete", x.Release(x.ctx, a, errors.New("a failed")))
		if r := x.completed(x.claim("c"), "after b's complete and a's release"); string(r.Data) != "b's" {
			x.fatalf("Result.Data: got %q, want %q", r.Data, "b's")
		}
	}},
	{name: "release/without a record", run: func(x *exam) {
		nothing := dedup.Lease{Key: key, Owner: "a", Fence: 1}
		x.lost("Release without a record", x.Release(x.ctx, nothing, errors.New("nothing there")))
		if b := x.acquire(x.claim("b")); b.LastError != "" || b.Takeover {
			x.fatalf("lease after a release without a record: got %+v, want a fresh one", b)
		}
	}},
	{name: "release/late, none took over", run: func(x *exam) {
		a := x.acquire(x.claim("a"))
		x.expire(x.Lease)
		x.release(a, errors.New("slow"))
		if b := x.acquire(x.claim("b")); b.Takeover || b.LastError != "slow" {
			x.fatalf("lease after a late release: got %+v, want no Takeover and the error", b)
		}
	}},
	{name: "release/the error outlives a crash", run: func(x *exam) {
		x.release(x.acquire(x.claim("a")), errors.New("first failure"))
		x.acquire(x.claim("b")) // b crashes
		x.expire(x.Lease)
		if c := x.acquire(x.claim("c")); c.LastError != "first failure" {
			x.fatalf("LastError after a failure and a crash: got %q, want the error of the last release", c.LastError)
		}
	}},
}
