package storetest

import (
	"context"
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
	{name: "unavailable/an answer that the store does not know", on: unlisted, run: func(x *exam) {
		x.eachMethod(func(method string, err error) {
			_, refused := errors.AsType[*sqsonce.OptionError](err)
			if !errors.Is(err, sqsonce.ErrUnavailable) || errors.Is(err, sqsonce.ErrMisconfigured) || refused || errors.Is(err, dedup.ErrRecord) {
				x.fatalf("%s answered with an unknown error: got error %v, want ErrUnavailable, not ErrMisconfigured, and no failure of the message", method, err)
			}
		})
		once, err := dedup.New(x.Store, "storetest")
		if err != nil {
			x.fatalf("dedup.New: %v", err)
		}
		ran := false
		handler := once.Handler(func(context.Context, *sqsonce.Message) error { ran = true; return nil })
		err = handler(x.ctx, &sqsonce.Message{ID: "1", QueueARN: "arn:aws:sqs:eu-west-1:1:q", ReceiveCount: 1})
		if kind := sqsonce.OutcomeOf(err).Kind; ran || kind != sqsonce.OutcomeUnavailable {
			x.fatalf("a delivery: got outcome %s and error %v, handler called: %t; want unavailable, which costs no attempt", kind, err, ran)
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
