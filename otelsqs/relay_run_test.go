package otelsqs_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	need "github.com/sqsonce/sqsonce/internal/must" // must is in the examples
)

// fakeBox is an outbox with one event in each group.
type fakeBox struct {
	outbox.Store // what a relay does not call here

	mu     sync.Mutex
	events map[string]outbox.Entry
	due    time.Duration // of an event that can't be moved
	away   error         // of every call
	denied error         // of Delete
}

// commit commits an event of each group, so long ago.
func (b *fakeBox) commit(age time.Duration, groups ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.events == nil {
		b.events = map[string]outbox.Entry{}
	}
	for _, g := range groups {
		b.events[g] = outbox.Entry{Event: fifo.Event{ID: "secret-" + g, Group: g, Body: "{}"}, Source: "shop", Seq: 1, Age: age}
	}
}

func (b *fakeBox) Groups(context.Context, string, int) (found []outbox.Group, next string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range slices.Sorted(maps.Keys(b.events)) {
		e := b.events[g]
		found = append(found, outbox.Group{Name: g, Last: e.Seq, Age: e.Age, Parked: e.Parked})
	}
	return found, "", b.away
}

func (b *fakeBox) Move(context.Context) (int, time.Duration, error) { return 0, b.due, b.fails() }

func (b *fakeBox) Claim(_ context.Context, groups []string, _ time.Duration) ([]string, error) {
	return groups, b.fails()
}

func (b *fakeBox) Unclaim(context.Context, []string) error { return b.fails() }

func (b *fakeBox) fails() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.away
}

func (b *fakeBox) Read(_ context.Context, g outbox.Group, _ outbox.Known, _ int) ([]outbox.Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, there := b.events[g.Name]; there && b.away == nil {
		return []outbox.Entry{e}, nil
	}
	return nil, b.away
}

func (b *fakeBox) Delete(_ context.Context, es []outbox.Entry) ([]outbox.Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := cmp.Or(b.away, b.denied); err != nil {
		return es, err
	}
	for _, e := range es {
		delete(b.events, e.Group)
	}
	return nil, nil
}

func (b *fakeBox) Park(_ context.Context, e outbox.Entry, p outbox.RefusedPolicy, _ string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e.Parked = p
	b.events[e.Group] = e
	return b.away
}

func (b *fakeBox) fail(away, denied error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away, b.denied = away, denied
}

func (f *fixture) newRelay(b outbox.Store, optFns ...func(*outbox.Options)) *outbox.Relay {
	f.Helper()
	p := need.Get(fifo.NewPublisher(f.sqs, f.url, "shop", func(o *fifo.Options) { o.Logger = f.quiet }))(f)
	f.Cleanup(func() { _ = p.Close(context.Background()) }) // nothing is pending
	return need.Get(outbox.NewRelay(b, p, append([]func(*outbox.Options){f.tel.Relay, func(o *outbox.Options) { o.Logger = f.quiet }}, optFns...)...))(f)
}

func (f *fixture) runRelay(r *outbox.Relay) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- r.Run(ctx) }()
	return func() {
		f.Helper()
		cancel()
		need.Do(f, <-stopped)
	}
}

// What is reported of a relay follows its store and its queue, and ends with Run but for the counts.
func TestRelay(t *testing.T) {
	bubble(t, "orders.fifo", func(t *testing.T, f *fixture) {
		b := &fakeBox{}
		r := f.newRelay(b)
		want := func(when string, want map[string]float64) {
			t.Helper()
			for name, n := range want {
				if got := f.value("sqsonce.outbox."+name, ""); got != n {
					t.Errorf("%s: %s is %g, want %g", when, name, got, n)
				}
			}
		}
		none := map[string]float64{"groups": -1, "groups.halted": -1, "skipped": -1, "age": -1, "overdue": -1, "sweep.age": -1, "undeleted": 0}
		want("before Run", none)

		b.fail(errors.New("no answer"), nil)
		b.commit(7*time.Minute, "a", "b", "c")
		stop := f.runRelay(r)
		time.Sleep(6 * time.Minute)
		want("the store is away from the start", map[string]float64{"groups": -1, "age": -1, "sweep.age": 360, "published": 0})

		b.fail(nil, errors.New("not now"))
		time.Sleep(time.Minute)
		want("deletes fail", map[string]float64{"groups": 3, "age": 420, "groups.halted": 0, "published": 3, "deleted": 0, "undeleted": 3})

		b.fail(nil, nil)
		time.Sleep(time.Minute)
		want("all is well", map[string]float64{"groups": 0, "age": 0, "published": 3, "deleted": 3, "undeleted": 0})
		if age := f.value("sqsonce.outbox.sweep.age", ""); age > 2 {
			t.Errorf("the last whole sweep was %g s ago, and it polls each second", age)
		}
		if n, rounds := f.value("sqsonce.outbox.rounds", ""), r.Stats().Rounds; n != float64(rounds) || n < 60 {
			t.Errorf("%g rounds, want %d", n, rounds)
		}

		b.fail(errors.New("no answer"), nil)
		at := f.value("sqsonce.outbox.sweep.age", "")
		time.Sleep(10 * time.Minute)
		want("the store is away again", map[string]float64{"groups": 0, "sweep.age": at + 600})
		b.fail(nil, nil)
		time.Sleep(time.Minute)
		stop()
		none["published"], none["deleted"] = 3, 3
		want("after Run", none)
		stop = f.runRelay(r)
		b.commit(0, "d")
		time.Sleep(time.Minute)
		want("Run again", map[string]float64{"groups": 0, "published": 4, "deleted": 4})
		stop()
	})
}

// Relays of one queue are reported together, however they are used. A parked event halts its group, or is skipped.
func TestTwoRelays(t *testing.T) {
	bubble(t, "orders.fifo", func(t *testing.T, f *fixture) {
		halts, skips := &fakeBox{due: time.Minute}, &fakeBox{due: 2 * time.Minute}
		for i, b := range []*fakeBox{halts, skips} {
			b.commit(time.Duration(i+1)*time.Minute, "1", "2")
			for g, e := range b.events {
				e.Body = "\x01" // SQS has no such character
				b.events[g] = e
			}
		}
		skips.commit(20*time.Second, "young") // a sweep leaves it to its doorbell
		stop := f.runRelay(f.newRelay(halts))
		defer stop()
		other := f.newRelay(skips, func(o *outbox.Options) { o.OnRefused = outbox.OnRefusedSkip })
		f.newRelay(&fakeBox{}) // is not used
		for range 2 {
			time.Sleep(2 * time.Minute)
			need.Get(other.Sweep(context.Background()))(t)
		}
		time.Sleep(10 * time.Second)
		for name, want := range map[string]float64{"sweep.age": 10, "groups": 5, "groups.halted": 2, "skipped": 2, "age": 60, "overdue": 120, "refused": 4, "published": 0} {
			if got := f.value("sqsonce.outbox."+name, ""); got != want {
				t.Errorf("%s is %g, want %g", name, got, want)
			}
		}
	})
}
