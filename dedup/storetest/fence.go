package storetest

import (
	"errors"
	"fmt"

	"github.com/sqsonce/sqsonce/dedup"
)

var fenceCases = []testCase{
	{name: "fence/two owners in one millisecond", run: func(x *exam) {
		// In a bubble no time passes between these calls.
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
		long := make([]byte, 1024)
		for i := range long {
			long[i] = 'k'
		}
		longer := append([]byte(nil), long...)
		longer[1023] = 'K'
		keys := []string{
			"c#a", "c#A", "c#a ", " c#a", "c#", "c#a#b", "c#a/b", "c#ключ", "c#鍵", "c#\u00e9", "c#e\u0301", "c#%61", "c#'\"`;--",
			"d#a", string(long), string(longer),
		}
		for i, k := range keys {
			c := x.claim(fmt.Sprintf("owner-%d", i))
			c.Key = k
			x.acquire(c)
		}
		for _, k := range keys {
			c := x.claim("other")
			c.Key = k
			x.held(c, "while its own owner holds it")
		}
		first := x.claim("owner-0")
		first.Key = keys[0]
		x.complete(x.acquire(first), dedup.Result{})
		for _, k := range keys[1:] {
			c := x.claim("other")
			c.Key = k
			x.held(c, "after another key was completed")
		}
	}},
	{name: "key/empty refused", run: func(x *exam) {
		c := x.claim("a")
		c.Key = ""
		if l, err := x.Acquire(x.ctx, c); err == nil {
			x.fatalf("Acquire of an empty key: got lease %+v, want an error", l)
		}
	}},
	{name: "owner/empty refused", run: func(x *exam) {
		if l, err := x.Acquire(x.ctx, x.claim("")); err == nil {
			x.fatalf("Acquire by an empty owner: got lease %+v, want an error", l)
		}
		if l := x.acquire(x.claim("a")); l.Takeover {
			x.fatalf("the refused Acquire left a record: %+v", l)
		}
	}},
}
