package storetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/question"
	"github.com/sqsonce/sqsonce/internal/suite"
)

// lister is the store, if its records can be listed.
func (x *exam) lister() dedup.Lister {
	l, ok := x.Store.(dedup.Lister)
	if !ok {
		suite.Unsupported("the store is no dedup.Lister")
	}
	return l
}

// list returns the listed records in their order.
func (x *exam) list(optFns ...func(*dedup.ListOptions)) []dedup.Record {
	var all []dedup.Record
	for r, err := range x.lister().List(x.ctx, optFns...) {
		if err != nil {
			x.fatalf("List: got error %v", err)
		}
		all = append(all, r)
	}
	return all
}

// keysOf returns the keys in order.
func keysOf(all []dedup.Record) []string {
	keys := make([]string, len(all))
	for i, r := range all {
		keys[i] = r.Key
	}
	slices.Sort(keys)
	return keys
}

// listed are records in each state, of two consumers, with the state of each by its key.
func (x *exam) listed() map[string]dedup.RecordState {
	x.lister()
	states := map[string]dedup.RecordState{}
	add := func(key string, state dedup.RecordState, lease time.Duration, end func(dedup.Lease)) {
		c := x.claim("owner of " + key)
		c.Key, c.Lease = key, lease
		end(x.acquire(c))
		states[key] = state
	}
	nothing := func(dedup.Lease) {}
	for _, consumer := range []string{"bill", "billing", "bill%_*?[ing]\\"} {
		add(consumer+"#crashed", dedup.StateCrashed, x.Lease, nothing)
	}
	x.expire(x.Lease)
	for _, consumer := range []string{"bill", "billing", "bill%_*?[ing]\\"} {
		add(consumer+"#running", dedup.StateRunning, time.Hour, nothing)
		add(consumer+"#completed", dedup.StateCompleted, x.Lease, func(l dedup.Lease) { x.complete(l, dedup.Result{Data: []byte("1")}) })
		add(consumer+"#released", dedup.StateReleased, x.Lease, func(l dedup.Lease) { x.release(l, errors.New("failed")) })
	}
	return states
}

var listCases = []testCase{
	{name: "list/no record", run: func(x *exam) {
		if all := x.list(func(o *dedup.ListOptions) { o.Consumer = "another" }); len(all) != 0 {
			x.fatalf("List without a record: got %+v", all)
		}
	}},
	{name: "list/each record as Inspect returns it", run: func(x *exam) {
		states := x.listed()
		all := x.list(func(o *dedup.ListOptions) { o.Consumer = "bill" })
		if got, want := keysOf(all), []string{"bill#completed", "bill#crashed", "bill#released", "bill#running"}; !slices.Equal(got, want) {
			x.fatalf("List of a consumer: got %q, want %q", got, want)
		}
		for _, r := range all {
			want, err := x.Store.(dedup.Inspector).Inspect(x.ctx, r.Key)
			if err != nil {
				x.fatalf("Inspect of %s: got error %v", r.Key, err)
			}
			if r.Owner != want.Owner || r.Fence != want.Fence || r.ReceiveCount != want.ReceiveCount || r.LastError != want.LastError || r.Note != want.Note || r.Completed != want.Completed ||
				string(r.Result.Data) != string(want.Result.Data) || r.Until.IsZero() != want.Until.IsZero() || r.ExpiresAt.Sub(want.ExpiresAt).Abs() > time.Minute {
				x.fatalf("List: got %+v, want %+v", r, want)
			}
			if got := r.State(time.Now()); got != states[r.Key] {
				x.fatalf("state of %s: got %s", r.Key, got)
			}
		}
	}},
	{name: "list/no record of a question", run: func(x *exam) {
		x.lister()
		c := x.claim("asker")
		c.Key = "asking" + question.KeyPrefix + "x"
		x.release(x.acquire(c), nil)
		if all := x.list(func(o *dedup.ListOptions) { o.Consumer = "asking" }); len(all) != 0 {
			x.fatalf("List: got %+v, want no record of a question", all)
		}
	}},
	{name: "list/all consumers", run: func(x *exam) {
		states := x.listed()
		got := keysOf(x.list())
		got = slices.DeleteFunc(got, func(key string) bool { return states[key] == "" }) // the harness may have records of its own
		if want := slices.Sorted(maps.Keys(states)); !slices.Equal(got, want) {
			x.fatalf("List: got %q, want %q", got, want)
		}
	}},
	{name: "list/by state", run: func(x *exam) {
		states := x.listed()
		all := []dedup.RecordState{dedup.StateReleased, dedup.StateRunning, dedup.StateCrashed, dedup.StateCompleted, dedup.StateForeign}
		for i, state := range all {
			wanted := []dedup.RecordState{state, all[(i+1)%len(all)]}
			var want []string
			for key, state := range states {
				if slices.Contains(wanted, state) && strings.HasPrefix(key, "billing#") {
					want = append(want, key)
				}
			}
			slices.Sort(want)
			got := keysOf(x.list(func(o *dedup.ListOptions) { o.Consumer, o.States = "billing", wanted }))
			if !slices.Equal(got, want) {
				x.fatalf("List of %s: got %q, want %q", wanted, got, want)
			}
		}
	}},
	{name: "list/special characters in the consumer's name", run: func(x *exam) {
		x.listed()
		for _, consumer := range []string{"bill%_*?[ing]\\", "bil", "BILL", "bill%", "bill*", "bill_____"} {
			want := 0
			if consumer == "bill%_*?[ing]\\" {
				want = 4
			}
			if got := x.list(func(o *dedup.ListOptions) { o.Consumer = consumer }); len(got) != want {
				x.fatalf("List of the consumer %q: got %q, want %d", consumer, keysOf(got), want)
			}
		}
	}},
	{name: "list/limit", run: func(x *exam) {
		x.listed()
		for limit, want := range map[int]int{1: 1, 3: 3, 4: 4, 5: 4, 0: 4, -1: 4} {
			if got := x.list(func(o *dedup.ListOptions) { o.Consumer, o.Limit = "bill", limit }); len(got) != want {
				x.fatalf("List with a limit of %d: got %q, want %d", limit, keysOf(got), want)
			}
		}
		open := func(o *dedup.ListOptions) {
			o.Consumer, o.Limit, o.States = "bill", 2, []dedup.RecordState{dedup.StateRunning, dedup.StateCrashed}
		}
		if got := keysOf(x.list(open)); !slices.Equal(got, []string{"bill#crashed", "bill#running"}) {
			x.fatalf("List of two states with a limit of 2: got %q: the limit counts what is listed", got)
		}
	}},
	{name: "list/goes on after a key", run: func(x *exam) {
		x.lister()
		for i := range 30 {
			c := x.claim("a")
			c.Key = fmt.Sprint("bill#", i)
			x.acquire(c)
		}
		var all []dedup.Record
		for len(all) <= 30 {
			page := func(o *dedup.ListOptions) {
				o.Consumer, o.Limit = "bill", 7
				if len(all) > 0 {
					o.After = all[len(all)-1].Key
				}
			}
			for r, err := range x.lister().List(x.ctx, page) {
				if field, ok := errors.AsType[*sqsonce.OptionError](err); ok && field.Field == "ListOptions.After" {
					suite.Unsupported("the store has no order of keys")
				}
				if err != nil {
					x.fatalf("List: got error %v", err)
				}
				all = append(all, r)
			}
			if len(all)%7 != 0 {
				break
			}
		}
		keys := keysOf(all)
		if len(slices.Compact(keys)) != 30 || len(all) != 30 {
			x.fatalf("lists of 7 keys each: got %q, want 30 keys once", keys)
		}
	}},
	{name: "list/ends with its caller's loop", run: func(x *exam) {
		x.listed()
		n := 0
		for range x.lister().List(x.ctx) {
			n++
			break
		}
		if n != 1 {
			x.fatalf("List, left after the first record: got %d", n)
		}
	}},
}
