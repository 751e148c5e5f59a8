package dedup_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/inboxkit"
	"github.com/sqsonce/sqsonce/internal/question"
)

// refusingStore refuses writes for some keys. Reads are answered.
type refusingStore struct {
	*memstore.Store
	refuses func(key string) bool
	keeps   atomic.Bool  // releases are refused
	asked   atomic.Int32 // acquires of questions
	keys    sync.Map
	takes   time.Duration
}

var errNewCode = errors.New("a code that nobody listed")

func (s *refusingStore) Acquire(ctx context.Context, c dedup.Claim) (dedup.Grant, error) {
	if question.IsKey(c.Key) {
		s.asked.Add(1)
		s.keys.Store(c.Key, true)
	}
	refused := s.refuses(c.Key)
	time.Sleep(s.takes)
	if refused {
		return dedup.Grant{}, errNewCode
	}
	return s.Store.Acquire(ctx, c)
}

func (s *refusingStore) Release(ctx context.Context, l dedup.Lease, cause error) error {
	if s.keeps.Load() {
		return errNewCode
	}
	return s.Store.Release(ctx, l, cause)
}

// questionAfter runs one delivery that the store refuses, and returns its question.
func questionAfter(t *testing.T, s dedup.Store, optFns ...func(*dedup.Options)) question.Question {
	t.Helper()
	once := must.Get(dedup.New(s, "payments", optFns...))(t)
	ran := false
	err := once.Handler(func(context.Context, *sqsonce.Message) error { ran = true; return nil })(t.Context(), message("e"))
	q, ok := question.Of(err)
	if ran || !errors.Is(err, sqsonce.ErrUnavailable) || !ok {
		t.Fatalf("got %v, ran %t: want ErrUnavailable with a question, and no run", err, ran)
	}
	return q
}

// A question is a write: it fails where only writes are refused, and passes where one event's record is.
func TestQuestionWrites(t *testing.T) {
	t.Parallel()
	for name, refuses := range map[string]func(string) bool{
		"all writes":  func(string) bool { return true },
		"one message": func(key string) bool { return !question.IsKey(key) },
	} {
		q := questionAfter(t, &refusingStore{Store: memstore.New(), refuses: refuses})
		if err := q.Ask(t.Context()); (err == nil) != (name == "one message") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Each call of a question may take as long as a delivery's, and a host lets the question take as long as they all. So it also hears that a
// store hangs, and those who wait for that answer ask no further question.
func TestQuestionPatience(t *testing.T) {
	for name, tt := range map[string]struct {
		acquire, release time.Duration
		down             bool
	}{"slow": {acquire: 20 * time.Second, release: 19 * time.Second}, "hangs": {acquire: time.Hour, down: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFaults()
				f.before = func(ctx context.Context, op string, n int) error {
					if op == "acquire" && n == 1 {
						return errNewCode
					}
					if !host.Wait(ctx, map[string]time.Duration{"acquire": tt.acquire, "release": tt.release}[op]) {
						return context.Cause(ctx)
					}
					return nil
				}
				q := questionAfter(t, f, func(o *dedup.Options) { o.CallTimeout = 20 * time.Second })
				ctx, cancel := context.WithTimeout(t.Context(), q.Within())
				defer cancel()
				if err := q.Ask(ctx); (err != nil) != tt.down || ctx.Err() != nil {
					t.Errorf("got %v, within the host's time: %t; want an answer in time, an error %t", err, ctx.Err() == nil, tt.down)
				}
			})
		})
	}
}

// A store that takes acquires and refuses releases fails each question, also the one that finds the record of the one before. When it
// works again the next question passes.
func TestQuestionIsReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &refusingStore{Store: memstore.New(), refuses: func(key string) bool { return !question.IsKey(key) }}
		q := questionAfter(t, s)
		for n := range 4 {
			s.keeps.Store(n < 3)
			if err := q.Ask(t.Context()); (err == nil) != (n == 3) {
				t.Errorf("question %d: got %v", n, err)
			}
			time.Sleep(2 * time.Second)
		}
	})
}

// A thousand that ask at once, and those that ask within a second, share one question. All questions have one record.
func TestQuestionIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &refusingStore{Store: memstore.New(), takes: time.Second}
		s.refuses = func(key string) bool { return !question.IsKey(key) }
		q := questionAfter(t, s)
		begun := time.Now()
		for round := range 10 {
			var wg sync.WaitGroup
			for range 1000 {
				wg.Go(func() {
					if err := q.Ask(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if asked := int(s.asked.Load()); asked > 1+int(time.Since(begun)/time.Second)/2 || round == 0 && asked != 1 {
				t.Fatalf("%d questions in %s", asked, time.Since(begun))
			}
			time.Sleep(500 * time.Millisecond)
		}
		records := 0
		s.keys.Range(func(any, any) bool { records++; return true })
		if records != 1 {
			t.Errorf("the questions have %d records, want 1", records)
		}
	})
}

// A transaction that the store refuses is a failure of the message only where a question that began after the refusal passes: one that
// passed before, or began before, says nothing of an outage that began since. Questions stay a second apart.
func TestQuestionAfterTheRefusal(t *testing.T) {
	t.Parallel()
	for name, takes := range map[string]time.Duration{"passed before": 0, "began before": 250 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				store := &refusingStore{Store: memstore.New(), takes: takes}
				store.refuses = func(key string) bool {
					return question.IsKey(key) && time.Since(begun) >= time.Second && time.Since(begun) < 4*time.Second
				}
				once := must.Get(dedup.New(store, "payments"))(t)
				deliver := func(id string, at time.Duration) error { // whose transaction is refused then
					return guard(once, t.Context(), message(id), func(context.Context, dedup.Lease) (bool, error) {
						time.Sleep(at - time.Since(begun))
						return false, question.FromStore(errNewCode)
					})
				}
				var wg sync.WaitGroup
				for id, tt := range map[string]struct {
					at     time.Duration
					outage bool
				}{
					"before": {at: 900 * time.Millisecond}, "in": {at: 1100 * time.Millisecond, outage: true}, "too": {at: 1200 * time.Millisecond, outage: true},
					"after": {at: 6 * time.Second},
				} {
					wg.Go(func() {
						if err := deliver(id, tt.at); !errors.Is(err, errNewCode) || errors.Is(err, sqsonce.ErrUnavailable) != tt.outage {
							t.Errorf("%s: got %v, want unavailable %t", id, err, tt.outage)
						}
					})
				}
				wg.Wait()
				if asked := store.asked.Load(); asked != 3 {
					t.Errorf("%d questions, want 3", asked)
				}
			})
		})
	}
}

// A host asks about a failure that it knows: a question that began before, and passed, is no answer. Questions stay a second apart.
func TestQuestionOfAHostIsNew(t *testing.T) {
	t.Parallel()
	for name, takes := range map[string]time.Duration{"passed before": 0, "began before": 250 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &refusingStore{Store: memstore.New(), refuses: func(key string) bool { return !question.IsKey(key) }}
				q := questionAfter(t, s)
				begun := time.Now()
				s.takes, s.refuses = takes, func(string) bool { return time.Since(begun) >= time.Second }
				var wg sync.WaitGroup
				for at, fails := range map[time.Duration]bool{900 * time.Millisecond: false, 1100 * time.Millisecond: true, 1200 * time.Millisecond: true} {
					wg.Go(func() {
						time.Sleep(at)
						if err := q.Ask(t.Context()); (err != nil) != fails {
							t.Errorf("asked after %s: got %v", at, err)
						}
					})
				}
				wg.Wait()
				if asked := s.asked.Load(); asked != 2 {
					t.Errorf("%d questions, want 2", asked)
				}
			})
		})
	}
}

// An inbox's record is free while its question is asked: nothing renews its lease by then, and its end would look like a crash.
func TestQuestionAfterTheRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &refusingStore{Store: memstore.New(), refuses: func(string) bool { return false }}
		once := must.Get(dedup.New(store, "billing", func(o *dedup.Options) { o.LeaseDuration, o.CallTimeout = 12*time.Second, 10*time.Second }))(t)
		done := make(chan error, 1)
		go func() {
			done <- guard(once, t.Context(), message("e"), func(ctx context.Context, _ dedup.Lease) (bool, error) {
				time.Sleep(3 * time.Second) // the first renewal is due a second later
				if _, err := inboxkit.StopRenewal(ctx, time.Second); err != nil {
					t.Error(err)
				}
				store.takes = 10 * time.Second
				return false, question.FromStore(errNewCode)
			})
		}()
		for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(time.Second / 2) {
			if r, err := store.Inspect(t.Context(), recordKey("e")); err == nil && r.State(time.Now()) == dedup.StateCrashed {
				t.Fatalf("the record looks like a crash's: %+v", r)
			}
		}
		if err := <-done; !errors.Is(err, errNewCode) || errors.Is(err, sqsonce.ErrUnavailable) {
			t.Errorf("got %v, want the refusal", err)
		}
	})
}

// A question that its caller gives up says nothing to the others.
func TestQuestionGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &refusingStore{Store: memstore.New(), refuses: func(key string) bool { return !question.IsKey(key) }}
		q := questionAfter(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := q.Ask(ctx); err == nil {
			t.Error("no error after the end of the context")
		}
		if err := q.Ask(t.Context()); err != nil {
			t.Errorf("the next one: %v", err)
		}
	})
}

// panickingInbox has a driver that panics in its first question.
type panickingInbox struct {
	*refusingStore
	panicked atomic.Bool
}

func (s *panickingInbox) Ask(context.Context, dedup.Claim) error {
	if s.panicked.CompareAndSwap(false, true) {
		panic("the driver")
	}
	return nil
}

// A question that panics in the store fails, and the next one is asked.
func TestQuestionPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := questionAfter(t, &panickingInbox{refusingStore: &refusingStore{Store: memstore.New(), refuses: func(string) bool { return true }}})
		ask := func() error { // as hosts do
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			return host.Contain(func() error { return q.Ask(ctx) })
		}
		if err := ask(); err == nil {
			t.Error("no error of a question that panics")
		}
		time.Sleep(2 * time.Second)
		if err := ask(); err != nil {
			t.Errorf("the next one: %v", err)
		}
	})
}

// What a handler says of its own dependency is a claim, without a question, unless it has one of its own.
func TestClaimHasNoQuestion(t *testing.T) {
	t.Parallel()
	once := must.Get(dedup.New(memstore.New(), "payments"))(t)
	down := errors.New("payment provider is down")
	for i, claim := range []error{sqsonce.Unavailable(down), sqsonce.UnavailableUntil(down, nil), sqsonce.UnavailableUntil(down, func(context.Context) error { return nil })} {
		err := once.Handler(func(context.Context, *sqsonce.Message) error { return claim })(t.Context(), message(fmt.Sprint(i)))
		if _, asks := question.Of(err); !errors.Is(err, down) || !errors.Is(err, sqsonce.ErrUnavailable) || asks != (i == 2) {
			t.Errorf("%d: got %v, with a question: %t", i, err, asks)
		}
	}
}
