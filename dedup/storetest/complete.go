package storetest

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
)

// full is a result with a value in every field, also in those that a later version adds.
func (x *exam) full() dedup.Result {
	r := dedup.Result{Data: []byte("1"), Skipped: errors.New("void"), Note: "note"}
	for field, v := range reflect.ValueOf(&r).Elem().Fields() {
		switch {
		case !v.IsZero():
		case v.Kind() == reflect.String:
			v.SetString(field.Name)
		case v.CanInt():
			v.SetInt(int64(time.Second))
		default:
			x.fatalf("Result.%s is a %s, for which this case has no value", field.Name, field.Type)
		}
	}
	return r
}

var completeCases = []testCase{
	{name: "complete/done", run: func(x *exam) {
		x.complete(x.acquire(x.claim("a")), dedup.Result{})
		if r := x.completed(x.claim("b"), "after a complete"); len(r.Data) != 0 || r.Validation != "" {
			x.fatalf("Grant.Result: got %+v, want none", r)
		}
	}},
	{name: "complete/stays after the lease's end", run: func(x *exam) {
		x.complete(x.acquire(x.claim("a")), dedup.Result{})
		x.expire(2 * x.Lease)
		c := x.claim("b")
		x.completed(c, "long after a complete")
		c.NoTakeover = true
		x.completed(c, "with NoTakeover long after a complete")
	}},
	{name: "complete/result is replayed", run: func(x *exam) {
		// The longest that dedup gives to a store: the event has had its effect when they are stored.
		data := []byte(`{"note":"zażółć ` + "\u2028" + strings.Repeat("x", 350<<10-26) + `"}`)
		hash := strings.Repeat(`a'"\%_ ~`, 16)
		x.complete(x.acquire(x.claim("a")), dedup.Result{Data: bytes.Clone(data), Validation: hash})
		for _, owner := range []string{"b", "c"} {
			r := x.completed(x.claim(owner), "after a complete with a result")
			if !bytes.Equal(r.Data, data) {
				x.fatalf("Result.Data: got %d bytes, %.40q, want %d, %.40q", len(r.Data), r.Data, len(data), data)
			}
			if r.Validation != hash {
				x.fatalf("Result.Validation: got %q, want %q", r.Validation, hash)
			}
		}
	}},
	{name: "complete/a hash without a result is kept", run: func(x *exam) {
		x.complete(x.acquire(x.claim("a")), dedup.Result{Validation: "hash", Skipped: errors.New("void"), Note: "note"})
		if r := x.completed(x.claim("b"), "after a complete"); len(r.Data) != 0 || r.Validation != "hash" {
			x.fatalf("Grant.Result: got %+v, want the hash alone", r)
		}
	}},
	{name: "complete/every field of a result is kept", run: func(x *exam) {
		want := x.full()
		x.complete(x.acquire(x.claim("a")), want)
		r := x.inspect()
		want.Skipped, want.Note = nil, "" // these are the record's own
		if !reflect.DeepEqual(r.Result, want) || r.LastError != "void" || r.Note != "note" {
			x.fatalf("record after a complete: got %+v, want the error %q, the note %q and %+v", r, "void", "note", want)
		}
		x.reopen(r)
		if r = x.inspect(); len(r.Result.Data) > 0 || !reflect.DeepEqual(r.Result, dedup.Result{Data: r.Result.Data}) {
			x.fatalf("record after a reopen: got %+v, want no result", r)
		}
	}},
	{name: "complete/twice", run: func(x *exam) {
		l := x.acquire(x.claim("a"))
		x.complete(l, dedup.Result{Data: []byte("1")})
		x.advance(x.Lease / 2)
		x.complete(l, dedup.Result{Data: []byte("1")})
		if r := x.completed(x.claim("b"), "after two completes"); string(r.Data) != "1" {
			x.fatalf("Result.Data: got %q, want %q", r.Data, "1")
		}
	}},
	{name: "complete/late, none took over", run: func(x *exam) {
		l := x.acquire(x.claim("a"))
		x.expire(2 * x.Lease)
		x.complete(l, dedup.Result{})
		x.completed(x.claim("b"), "after a late complete")
	}},
	{name: "complete/stale owner refused", run: func(x *exam) {
		a := x.acquire(x.claim("a"))
		x.expire(x.Lease)
		b := x.acquire(x.long("b"))
		x.lost("Complete by the stale owner", x.Complete(x.ctx, a, dedup.Result{Data: []byte("a")}))
		x.inProgress(x.claim("c"), "during b's lease, after the stale owner's complete")
		x.complete(b, dedup.Result{Data: []byte("b")})
		if r := x.completed(x.claim("c"), "after b's complete"); string(r.Data) != "b" {
			x.fatalf("Result.Data: got %q, want b's", r.Data)
		}
	}},
	{name: "complete/without a record refused", run: func(x *exam) {
		l := dedup.Lease{Key: key, Owner: "a", Fence: 1, Until: time.Now().Add(x.Lease), Retention: time.Hour}
		x.lost("Complete without a record", x.Complete(x.ctx, l, dedup.Result{}))
		_, err := x.Renew(x.ctx, l, x.Lease)
		x.lost("Renew without a record", err)
		x.acquire(x.claim("b"))
	}},
	{name: "retention/covers the lease", run: func(x *exam) {
		expect := func(when string, want time.Duration) {
			if left := time.Until(x.inspect().ExpiresAt); (left - want).Abs() > 2*time.Minute {
				x.fatalf("%s: the record is retained for %s, want %s", when, left, want)
			}
		}
		c := x.claim("a")
		c.Retention, c.Lease = time.Second, 4*time.Hour
		l := x.acquire(c)
		expect("a lease of 4 h", 5*time.Hour)
		for _, d := range []time.Duration{8 * time.Hour, time.Second} {
			l = x.renew(l, d)
			expect("renewed for 8 h", 9*time.Hour)
		}
		x.release(l, nil)
		expect("released", 9*time.Hour)
		c.Owner = "b"
		l = x.acquire(c)
		expect("acquired again", 5*time.Hour)
		x.complete(l, dedup.Result{})
		expect("completed", 5*time.Hour)
	}},
	{name: "retention/ends", hours: true, run: func(x *exam) {
		c := x.claim("a")
		c.Retention = 3 * time.Hour
		a := x.acquire(c)
		x.complete(a, dedup.Result{Data: []byte("old"), Validation: "old"})
		x.advance(c.Retention - time.Minute)
		x.completed(x.claim("b"), "just before the retention's end")
		x.expire(time.Minute)
		b := x.acquire(x.claim("b")) // expired, whether or not the store has deleted it
		if b.Fence <= a.Fence {
			x.fatalf("Fence after the retention's end: got %d, want more than %d", b.Fence, a.Fence)
		}
		if b.Takeover {
			x.fatalf("lease after the retention of a completed record: Takeover true, want false")
		}
		x.complete(b, dedup.Result{})
		if r := x.completed(x.claim("c"), "after the second complete"); len(r.Data) != 0 || r.Validation != "" {
			x.fatalf("Grant.Result: got %+v of the expired record, want none", r)
		}
	}},
	{name: "retention/counted from the acquire, renewals do not shorten it", hours: true, run: func(x *exam) {
		c := x.claim("a")
		c.Retention = 24 * time.Hour
		l := x.renew(x.acquire(c), 2*x.Lease)
		x.complete(l, dedup.Result{})
		x.advance(23 * time.Hour)
		x.completed(x.claim("b"), "before the retention's end")
	}},
	{name: "retention/never frees a live lease", hours: true, run: func(x *exam) {
		c := x.claim("a")
		c.Retention, c.Lease = time.Second, 4*time.Hour
		l := x.acquire(c)
		x.advance(3 * time.Hour)
		x.inProgress(x.claim("b"), "with a live lease longer than its retention")
		x.advance(time.Hour + 30*time.Minute) // half an hour after the lease's end; a record stays for at least an hour
		x.complete(l, dedup.Result{})
		x.completed(x.claim("b"), "after a complete within an hour of the lease's end")
	}},
}
