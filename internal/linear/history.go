// Package linear is for tests of stores of package dedup. It checks that a history of concurrent calls is linearizable:
// whatever happened to messages and machines, the results of the calls must be those of one record per key that the calls
// changed one after another. Then no two owners have the lease at the same time, fences grow, and a completed record stays
// completed.
//
// A test starts the stores and the faults. This package has the owners ([Host]), the record of their calls ([History]) and
// the model of a record.
package linear

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// History is the calls of a run and their results. The zero History is empty.
type History struct {
	mu  sync.Mutex
	ops []porcupine.Operation
}

// Add adds a call that has just returned. The calls of one client must not overlap.
func (h *History) Add(client int, called time.Time, c Call, a Result) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.returned = time.Now()
	returned := c.returned.UnixNano()
	if a.Status == "unknown" {
		// The call may have its effect at any later time.
		returned, c.returned = math.MaxInt64, time.Now().Add(100*time.Hour)
	}
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: c, Call: called.UnixNano(), Output: a, Return: returned})
}

// searchTime limits the search for an order of the calls of one record.
const searchTime = 20 * time.Second

// Check returns an error with the calls of a record if no order of them explains their results.
func (h *History) Check() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	byKey := map[string][]porcupine.Operation{}
	for _, op := range h.ops {
		key := op.Input.(Call).Key
		byKey[key] = append(byKey[key], op)
	}
	for key, ops := range byKey {
		result := porcupine.CheckOperationsTimeout(model, ops, searchTime)
		if result == porcupine.Ok {
			continue
		}
		slices.SortFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
		var b strings.Builder
		for _, op := range ops {
			c, a := op.Input.(Call), op.Output.(Result)
			fmt.Fprintf(&b, "%v: %v, %d to %d ms, until %d, fence %d\n", c, a.Status, op.Call/1e6, op.Return/1e6, a.Until.UnixMilli(), a.Fence)
		}
		return fmt.Errorf("the history of %s is %s:\n%s", key, strings.ToLower(string(result)), b.String())
	}
	return nil
}

// Len returns the number of calls.
func (h *History) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.ops)
}

// Delivery is one try of an event: it acquires the record lease, renews it, and completes or releases it.
type Delivery struct {
	// Wait is the time before the acquire.
	Wait time.Duration
	Key  int
	// Renews are the times before each renewal.
	Renews []time.Duration
	// Work is the time before the end.
	Work time.Duration
	// End is "complete", "release", or "crash", which calls nothing.
	End string
}

// Host makes deliveries, one after another.
type Host struct {
	Store dedup.Store
	// Client is the number of the host, in the history.
	Client int
	// Skew is how far the host's clock is ahead of time.Now.
	Skew time.Duration
	// Lease is the lease of each acquire and renewal.
	Lease time.Duration
	// Context returns the context of the next call. Default: one that does not end.
	Context func() (context.Context, context.CancelFunc)
}

// Deliver makes one delivery, with this owner.
func (h *History) Deliver(host Host, owner string, d Delivery) {
	time.Sleep(d.Wait)
	call := Call{Key: fmt.Sprint("key ", d.Key), Owner: owner}
	c := dedup.Claim{Key: call.Key, Owner: owner, Lease: host.Lease, Retention: 24 * time.Hour, Attempt: 2}
	do := func(kind string, f func(context.Context) (Result, error)) bool {
		ctx, cancel := context.Background(), func() {}
		if host.Context != nil {
			ctx, cancel = host.Context()
		}
		defer cancel()
		called := time.Now()
		a, err := f(ctx)
		call.Kind = kind
		if err != nil {
			a.Status = status(err)
		}
		h.Add(host.Client, called, call, a)
		return err == nil
	}
	// The lease's end is a time of the host's clock.
	granted := func(l dedup.Lease) Result {
		return Result{Status: "granted", Until: l.Until.Add(-host.Skew), Fence: l.Fence}
	}
	var l dedup.Lease
	if !do("acquire", func(ctx context.Context) (a Result, err error) {
		l, err = host.Store.Acquire(ctx, c)
		return granted(l), err
	}) {
		return
	}
	for _, wait := range d.Renews {
		time.Sleep(wait)
		do("renew", func(ctx context.Context) (Result, error) {
			r, err := host.Store.Renew(ctx, l, host.Lease)
			if err == nil {
				l = r
			}
			return granted(l), err
		})
	}
	time.Sleep(d.Work)
	switch d.End {
	case "complete":
		do("complete", func(ctx context.Context) (Result, error) {
			return Result{Status: "granted"}, host.Store.Complete(ctx, l, dedup.Result{})
		})
	case "release":
		do("release", func(ctx context.Context) (Result, error) {
			return Result{Status: "granted"}, host.Store.Release(ctx, l, errors.New("failed"))
		})
	}
}

func status(err error) string {
	_, completed := errors.AsType[*dedup.CompletedError](err)
	switch {
	case completed:
		return "completed"
	case errors.Is(err, sqsonce.ErrInProgress):
		return "in progress"
	case errors.Is(err, sqsonce.ErrLeaseLost):
		return "lost"
	}
	return "unknown"
}
