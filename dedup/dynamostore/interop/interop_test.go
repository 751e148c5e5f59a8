package interop_test

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

const payload = `{"order":42,"Customer":{"name":"Zoë <z@example.com>","id":7},"amounts":[1.50,20,1e21],"2":"b","10":"a","note":null}`

// key is the record's key, the same for both programs.
func (b *bed) key() string {
	b.Helper()
	k := must.Get(dynamostore.PowertoolsKey([]byte(payload)))(b)
	return prefix + "#" + k
}

func (b *bed) theirs(remaining time.Duration, then string, optFns ...func(*command)) run {
	b.Helper()
	return b.pt.start(json.RawMessage(payload), remaining, then, optFns...)
}

// once is a handler of ours on the same event, with a lease of two seconds.
func (b *bed) once(optFns ...func(*dedup.Options)) *dedup.Once {
	b.Helper()
	o, err := dedup.New(b.store, prefix, append([]func(*dedup.Options){func(o *dedup.Options) {
		o.LeaseDuration = 2 * time.Second
		o.CacheSize = -1
		o.Key = func(m *sqsonce.Message) (string, error) { return dynamostore.PowertoolsKey([]byte(m.Body)) }
	}}, optFns...)...)
	if err != nil {
		b.Fatal(err)
	}
	return o
}

// deliver runs our handler on the event, and reports whether it was called.
func (b *bed) deliver(err error, optFns ...func(*dedup.Options)) (called bool, outcome error) {
	b.Helper()
	h := b.once(optFns...).Handler(func(context.Context, *sqsonce.Message) error { called = true; return err })
	outcome = h(b.Context(), &sqsonce.Message{ID: "m", Body: payload, ReceiveCount: 1})
	return called, outcome
}

func (b *bed) acquire(d time.Duration) dedup.Lease {
	b.Helper()
	l := must.Get(granted.Lease(b.store.Acquire(b.Context(), dedup.Claim{Key: b.key(), Owner: "ours", Lease: d, Retention: time.Hour, ReceiveCount: 1})))(b)
	return l
}

// theirResult is what their function returns.
type theirResult struct {
	By string `json:"by"`
}

func TestTheirCompletedIsOurs(t *testing.T) {
	onBoth(t, func(b *bed) {
		r := b.theirs(10*time.Second, "return")
		r.started()
		want := r.next()
		if called, err := b.deliver(nil); called || err != nil {
			b.Errorf("our delivery: got called %t, %v, want nil without a call", called, err)
		}
		key, _ := dynamostore.PowertoolsKey([]byte(payload))
		got, err := dedup.Do(b.Context(), b.once(), key, func(context.Context) (theirResult, error) { return theirResult{}, errFailed })
		if err != nil || got.By != "powertools" {
			b.Errorf("Do: got %v, %v, want the result of Powertools' function, %s", got, err, want.Result)
		}
	})
}

func TestTheirInProgressIsRespected(t *testing.T) {
	onBoth(t, func(b *bed) {
		r := b.theirs(time.Minute, "wait")
		r.started()
		called, err := b.deliver(nil)
		in, ok := errors.AsType[*dedup.InProgressError](err)
		if called || !ok {
			b.Fatalf("our delivery: got called %t, %v, want in progress", called, err)
		}
		if wait := time.Until(in.Until); wait < 55*time.Second || wait > 65*time.Second {
			b.Errorf("in progress for %s, want the minute that the function has, and the takeover margin", wait)
		}
		if e := r.finish("throw"); e.Error == "" {
			b.Errorf("Powertools: got %+v, want its function's error", e)
		}
		if called, err := b.deliver(nil); !called || err != nil {
			b.Errorf("our delivery after their failure: got called %t, %v, want a call", called, err)
		}
	})
}

func TestTheirCrashIsTakenOver(t *testing.T) {
	onBoth(t, func(b *bed) {
		b.theirs(500*time.Millisecond, "wait").started()
		time.Sleep(4500 * time.Millisecond) // the end of their lease, the takeover margin of 2 s, and a Date's second
		if called, err := b.deliver(nil); !called || err != nil {
			b.Errorf("our delivery after their crash: got called %t, %v, want a call", called, err)
		}
	})
}

func TestOurCompletedIsTheirs(t *testing.T) {
	onBoth(t, func(b *bed) {
		if called, err := b.deliver(nil); !called || err != nil {
			b.Fatalf("our delivery: got called %t, %v", called, err)
		}
		if e := b.theirs(10*time.Second, "return").next(); e.Event != "done" || e.Error != "" || string(e.Result) != "null" {
			b.Errorf("Powertools on our completed event: got %+v, want no call and no result", e)
		}
	})
}

// Where Powertools compares payloads it refuses a record without its hash. Our hash is its own where Options.PayloadHash returns
// the key of the same part of the payload.
func TestOurCompletedIsValidatedByThem(t *testing.T) {
	onBoth(t, func(b *bed) {
		validated := func(c *command) { c.Validate = "Customer" }
		if called, err := b.deliver(nil); !called || err != nil {
			b.Fatalf("our delivery: got called %t, %v", called, err)
		}
		b.theirs(10*time.Second, "return", validated).refused("IdempotencyValidationError")
		must.Do(b, b.store.Delete(b.Context(), b.key()))
		called, err := b.deliver(nil, func(o *dedup.Options) {
			o.PayloadHash = func(m *sqsonce.Message) string {
				var part struct{ Customer json.RawMessage }
				if json.Unmarshal([]byte(m.Body), &part) != nil {
					return ""
				}
				hash, _ := dynamostore.PowertoolsKey(part.Customer) // "" for what is not JSON
				return hash
			}
		})
		if !called || err != nil {
			b.Fatalf("our delivery with Validate: got called %t, %v", called, err)
		}
		if e := b.theirs(10*time.Second, "return", validated).next(); e.Event != "done" || e.Error != "" {
			b.Errorf("Powertools on our event with its hash: got %+v, want no error and no call", e)
		}
	})
}

// A result of ours is a string to Powertools for TypeScript, which stores values and not JSON.
func TestOurResultIsTextToThem(t *testing.T) {
	onBoth(t, func(b *bed) {
		l := b.acquire(10 * time.Second)
		must.Do(b, b.store.Complete(b.Context(), l, dedup.Result{Data: []byte(`{"by":"us"}`)}))
		if e := b.theirs(10*time.Second, "return").next(); string(e.Result) != `"{\"by\":\"us\"}"` {
			b.Errorf("Powertools on our completed event: got %s %s, want our result's JSON as a string", e.Event, e.Result)
		}
	})
}

func TestOurInProgressIsRespected(t *testing.T) {
	onBoth(t, func(b *bed) {
		l := b.acquire(30 * time.Second)
		b.theirs(10*time.Second, "return").refused("IdempotencyAlreadyInProgressError")
		must.Do(b, b.store.Release(b.Context(), l, errFailed))
		b.theirs(10*time.Second, "return").started()
	})
}

// After our lease they take over, and our next write says so: their record has no owner.
func TestOurCrashIsTakenOver(t *testing.T) {
	onBoth(t, func(b *bed) {
		l := b.acquire(time.Second)
		time.Sleep(3500 * time.Millisecond) // the lease was asked for by a clock that is never behind: it is up to 2 s longer
		b.theirs(10*time.Second, "wait").started()
		if err := b.store.Complete(b.Context(), l, dedup.Result{}); !errors.Is(err, sqsonce.ErrLeaseLost) {
			b.Errorf("Complete after their takeover: got %v, want ErrLeaseLost", err)
		}
	})
}

// No condition of ours can prevent this: a function of theirs that returns after its timeout completes the record, and one
// that fails deletes it, also where another owner has the lease by then.
func TestTheirLateWritesAreUnconditional(t *testing.T) {
	for _, then := range []string{"return", "throw"} {
		t.Run(then, func(t *testing.T) {
			onBoth(t, func(b *bed) {
				late := b.theirs(500*time.Millisecond, "wait", func(c *command) { c.Retention = 60 })
				late.started()
				time.Sleep(4500 * time.Millisecond)
				l := b.acquire(time.Minute)
				late.finish(then)
				r, err := b.store.Inspect(b.Context(), b.key())
				_, renewErr := b.store.Renew(b.Context(), l, time.Minute)
				switch then {
				case "return":
					if err != nil || !r.Completed || r.Owner != l.Owner {
						b.Errorf("our record after their late success: got %+v, %v, want it completed under our owner", r, err)
					}
				case "throw":
					if !errors.Is(err, dedup.ErrNotFound) {
						b.Errorf("our record after their late failure: got %+v, %v, want it gone", r, err)
					}
				}
				completeErr := b.store.Complete(b.Context(), l, dedup.Result{})
				for _, err := range []error{renewErr, completeErr} {
					if !errors.Is(err, sqsonce.ErrLeaseLost) || errors.Is(err, dedup.ErrForeignWriter) != (then == "return") {
						b.Errorf("Renew and Complete after it: got %v, want ErrLeaseLost, and ErrForeignWriter where the record is there", err)
					}
				}
				if then == "return" {
					r, err = b.store.Inspect(b.Context(), b.key())
					if left := time.Until(r.ExpiresAt); err != nil || left < 55*time.Minute {
						b.Errorf("retention after our Complete: got %s, %v, want the hour of our claim, not their minute", left, err)
					}
				}
			})
		})
	}
}

// Both programs compute the same key for every form of payload.
func TestKeys(t *testing.T) {
	onBoth(t, func(b *bed) {
		for _, payload := range []string{
			`"order-42"`, `42`, `-0.0`, `1e-7`, `123456789012345680000`, `true`, `["b","a",{"z":1,"A":[{"y":null,"B":2}]}]`,
			`{"10":1,"9":2,"b":3,"A":4,"01":5,"":6}`, `"\u2028 \\u2028 \u0007 \b <&> \" / é \ud83d\ude00"`, payload,
		} {
			key, err := dynamostore.PowertoolsKey([]byte(payload))
			if err != nil {
				b.Errorf("PowertoolsKey of %s: %v", payload, err)
				continue
			}
			r := b.pt.start(json.RawMessage(payload), 10*time.Second, "return")
			r.started()
			r.next()
			if rec, err := b.store.Inspect(b.Context(), prefix+"#"+key); err != nil || !rec.Completed {
				b.Errorf("record of %s under our key %s: got %+v, %v, want Powertools' own", payload, key, rec, err)
			}
		}
	})
}

// The lock file has the exact packages.
//
//go:embed package.json package-lock.json powertools.mjs
var files embed.FS

// For the process, not for the test that runs first.
var installed = sync.OnceValues(func() (string, error) {
	return testserver.InstallNode(context.Background(), "interop/powertools", files)
})

// install returns the folder with Powertools. Where Powertools cannot be installed, the test is skipped with the reason, or
// fails with EMULATORS=required in the environment.
func install(t *testing.T) string {
	t.Helper()
	dir, err := installed()
	switch {
	case err == nil:
		return dir
	case os.Getenv("EMULATORS") == "required":
		t.Fatalf("EMULATORS=required, and Powertools cannot be installed: %v", err)
	default:
		t.Skipf("Powertools is not tested against: %v", err)
	}
	return ""
}
