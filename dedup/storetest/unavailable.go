package storetest

import (
	"errors"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

var unavailableCases = []testCase{
	{name: "unavailable/no server", on: away, run: func(x *exam) {
		x.eachMethod(func(method string, err error) {
			if !errors.Is(err, sqsonce.ErrUnavailable) || errors.Is(err, sqsonce.ErrMisconfigured) {
				x.fatalf("%s without a server: got error %v, want ErrUnavailable and not ErrMisconfigured", method, err)
			}
		})
	}},
	{name: "unavailable/misconfigured", on: misconfigured, run: func(x *exam) {
		x.eachMethod(func(method string, err error) {
			if !errors.Is(err, sqsonce.ErrMisconfigured) {
				x.fatalf("%s on a misconfigured server: got error %v, want ErrMisconfigured", method, err)
			}
		})
	}},
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
	if list, ok := x.Store.(dedup.Lister); ok {
		for _, err := range list.List(x.ctx) {
			check("List", err)
		}
	}
}
