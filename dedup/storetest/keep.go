package storetest

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/suite"
)

// keeper is the store, if an operator can keep texts in it.
func (x *exam) keeper() dedup.Keeper {
	k, ok := x.Store.(dedup.Keeper)
	if !ok {
		suite.Unsupported("the store is no dedup.Keeper")
	}
	return k
}

// none says that the key has no record.
var none = dedup.Record{Lease: dedup.Lease{Key: key}}

const kept = time.Hour

// keep expects the text to be kept, and returns its record.
func (x *exam) keep(seen dedup.Record, text string, d time.Duration) dedup.Record {
	start := time.Now()
	r, err := x.keeper().Keep(x.ctx, seen, "Zoë", []byte(text), d)
	x.timed(start)
	if err != nil {
		x.fatalf("Keep of %q: got error %v, want the record", text, err)
	}
	return r
}

// notKept expects the record to be another one than the one that was seen, and to stay as it is.
func (x *exam) notKept(seen dedup.Record, why string) {
	before, _ := x.keeper().Inspect(x.ctx, key)
	if r, err := x.keeper().Keep(x.ctx, seen, "Zoë", []byte("other"), kept); !errors.Is(err, dedup.ErrChanged) {
		x.fatalf("Keep %s: got %+v, %v, want ErrChanged", why, r, err)
	}
	after, err := x.keeper().Inspect(x.ctx, key)
	same := before.Owner == after.Owner && before.Fence == after.Fence && before.Completed == after.Completed && bytes.Equal(before.Result.Data, after.Result.Data)
	if !same || before.Owner == "" && !errors.Is(err, dedup.ErrNotFound) {
		x.fatalf("record after a Keep %s that was refused: got %+v, want %+v", why, after, before)
	}
}

// isKept checks the record of a text.
func (x *exam) isKept(r dedup.Record, text string, start time.Time, d time.Duration) {
	random, named := strings.CutPrefix(r.Owner, host.OperatorPrefix+"Zoë/")
	if !named || len(random) < 22 {
		x.fatalf("kept record: got owner %q, want %sZoë/ with 128 random bits", r.Owner, host.OperatorPrefix)
	}
	if state := r.State(time.Now()); r.Key != key || state != dedup.StateCompleted || string(r.Result.Data) != text {
		x.fatalf("kept record: got %+v, want key %q, completed, with %q", r, key, text)
	}
	if r.Result.Validation != "" || r.Note != "" || r.LastError != "" || r.Committed || r.ReceiveCount != 0 || !r.Until.IsZero() {
		x.fatalf("kept record: got %+v, want nothing but the text", r)
	}
	x.near("ExpiresAt of a kept record", r.ExpiresAt, start.Add(d))
}

var keepCases = []testCase{
	{name: "keep/a text where there is none", run: func(x *exam) {
		start := time.Now()
		r := x.keep(none, "a", kept)
		x.isKept(r, "a", start, kept)
		found := x.inspect()
		x.isKept(found, "a", start, kept)
		if found.Owner != r.Owner || found.Fence != r.Fence {
			x.fatalf("Inspect: got %+v, want the owner and the fence that Keep returned: %+v", found, r)
		}
		if got := x.completed(x.claim("b"), "of a kept record"); string(got.Data) != "a" {
			x.fatalf("Result.Data: got %q, want the text", got.Data)
		}
	}},
	{name: "keep/in place of the record that was seen", run: func(x *exam) {
		x.keeper()
		l := x.acquire(x.claim("a"))
		x.release(l, errors.New("failed"))
		x.complete(x.acquire(x.claim("b")), dedup.Result{Data: []byte("1"), Validation: "hash", Note: "note"})
		seen := x.inspect()
		for text, d := range map[string]time.Duration{"longer": 48 * time.Hour, "shorter": kept} {
			start := time.Now()
			r := x.keep(seen, text, d)
			x.isKept(r, text, start, d)
			if r.Owner == seen.Owner || r.Fence <= seen.Fence {
				x.fatalf("record that was replaced: got owner %q, fence %d, want another owner than %q and more than %d", r.Owner, r.Fence, seen.Owner, seen.Fence)
			}
			if seen = x.inspect(); seen.Owner != r.Owner || seen.Fence != r.Fence {
				x.fatalf("Inspect: got %+v, want the owner and the fence that Keep returned: %+v", seen, r)
			}
		}
	}},
	{name: "keep/another record than the one that was seen", run: func(x *exam) {
		first := x.keep(none, "a", kept)
		x.notKept(none, "where a record is")
		seen := first
		seen.Owner = "b"
		x.notKept(seen, "with another owner")
		seen = first
		seen.Fence--
		x.notKept(seen, "with another fence")
		x.keep(first, "b", kept)
		x.notKept(first, "after another operator's")
	}},
	{name: "keep/no record", run: func(x *exam) {
		x.notKept(dedup.Record{Lease: dedup.Lease{Key: key, Owner: "a", Fence: 1}, Completed: true}, "of a record that is gone")
	}},
	{name: "keep/in progress", run: func(x *exam) {
		x.keeper()
		l := x.acquire(x.claim("a"))
		x.notKept(x.inspect(), "of a live lease")
		x.notKept(none, "of a live lease that was not seen")
		x.expire(x.Lease)
		x.notKept(x.inspect(), "of a crash")
		x.release(l, nil)
		x.notKept(x.inspect(), "of a released record")
	}},
	{name: "keep/a text whose time has passed is as none", run: func(x *exam) {
		x.keep(none, "a", x.Lease)
		x.expire(x.Lease + x.Grace) // a store may count in whole seconds
		r := x.keep(none, "b", kept)
		if string(x.inspect().Result.Data) != "b" {
			x.fatalf("Inspect: got %+v, want the text that was kept later", r)
		}
		x.notKept(none, "where another operator's text is")
		x.keep(r, "c", x.Lease)
		x.expire(x.Lease + x.Grace)
		x.acquire(x.claim("an event's"))
	}},
	{name: "keep/a text whose time has passed is replaced as it was seen", run: func(x *exam) {
		x.keep(none, "a", x.Lease)
		x.expire(x.Lease + x.Grace)
		seen, err := x.keeper().Inspect(x.ctx, key)
		if errors.Is(err, dedup.ErrNotFound) {
			seen, err = none, nil
		}
		if err != nil {
			x.fatalf("Inspect: got error %v", err)
		}
		if x.keep(seen, "b", kept); string(x.inspect().Result.Data) != "b" {
			x.fatalf("Inspect: got %+v, want the text that was kept later", x.inspect())
		}
	}},
	{name: "keep/one of 16 operators", run: func(x *exam) {
		for _, seen := range []func() dedup.Record{func() dedup.Record { return none }, x.inspect} {
			before := seen()
			var wg sync.WaitGroup
			records, errs := make([]dedup.Record, 16), make([]error, 16)
			for i := range errs {
				wg.Go(func() { records[i], errs[i] = x.keeper().Keep(x.ctx, before, "", []byte{byte('a' + i)}, kept) })
			}
			wg.Wait()
			won := -1
			for i, err := range errs {
				switch {
				case err == nil && won >= 0:
					x.fatalf("two of 16 operators have changed the record")
				case err == nil:
					won = i
				case !errors.Is(err, dedup.ErrChanged):
					x.fatalf("Keep by 16 at once: got error %v, want nil or ErrChanged", err)
				}
			}
			if won < 0 {
				x.fatalf("none of 16 operators has changed the record")
			}
			if r := x.inspect(); r.Owner != records[won].Owner || string(r.Result.Data) != string(rune('a'+won)) {
				x.fatalf("Inspect: got %+v, want %+v", r, records[won])
			}
		}
	}},
	{name: "keep/bad arguments are refused", run: func(x *exam) {
		k := x.keeper()
		keep := func(key, operator string, data int, d time.Duration) error {
			_, err := k.Keep(x.ctx, dedup.Record{Lease: dedup.Lease{Key: key}}, operator, make([]byte, data), d)
			return err
		}
		for field, bad := range map[string][]error{
			"seen.Key": {keep("", "", 0, kept)},
			"operator": {keep(key, strings.Repeat("a", 129), 0, kept), keep(key, "a\nb", 0, kept), keep(key, "a\xff", 0, kept)},
			"data":     {keep(key, "", 4001, kept)},
			"d":        {keep(key, "", 0, time.Second-1), keep(key, "", 0, -kept)},
		} {
			for _, err := range bad {
				if option, ok := errors.AsType[*sqsonce.OptionError](err); !ok || option.Field != field {
					x.fatalf("Keep with a bad %s: got error %v, want *sqsonce.OptionError of it", field, err)
				}
			}
		}
		if _, err := k.Inspect(x.ctx, key); !errors.Is(err, dedup.ErrNotFound) {
			x.fatalf("Inspect after refused calls: got error %v, want ErrNotFound", err)
		}
		most := map[string][]byte{strings.Repeat("ä", 64): bytes.Repeat([]byte("ä"), 2000), "": nil}
		seen := none
		for _, operator := range slices.Sorted(maps.Keys(most)) {
			r, err := k.Keep(x.ctx, seen, operator, most[operator], kept)
			if err != nil || !bytes.Equal(r.Result.Data, most[operator]) {
				x.fatalf("Keep by %q of %d bytes: got %d bytes and error %v", operator, len(most[operator]), len(r.Result.Data), err)
			}
			seen = r
		}
	}},
}
