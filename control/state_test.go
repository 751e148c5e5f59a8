package control_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/control"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// stores are those of a test, in its bubble.
var stores = map[string]func(t *testing.T) dedup.Keeper{
	"memory": func(*testing.T) dedup.Keeper { return memstore.New() },
	"DynamoDB": func(t *testing.T) dedup.Keeper {
		srv := memdynamodb.New()
		t.Cleanup(srv.Close)
		c := testaws.DynamoDB(srv)
		must.Do(t, dynamostore.CreateTable(t.Context(), c, "records"))
		return must.Get(dynamostore.New(c, "records"))(t)
	},
}

// What was set is read, until its time has passed. Of two operators one changes it.
func TestSet(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := open(t)
				read := func() control.Snapshot { return must.Get(control.Read(t.Context(), store, consumer))(t) }
				none := read()
				if !none.Open() || none.By != "" {
					t.Fatalf("Read without a record: got %+v, want open", none)
				}
				long := strings.Repeat("ü", 250)
				want := control.State{Paused: true, By: long, Reason: `"<&>" ` + long[:400]}
				first, err := control.Set(t.Context(), store, none, want, time.Hour)
				must.Do(t, err)
				if got := read(); got.State != first.State || (time.Until(got.Until)-time.Hour).Abs() > 5*time.Second {
					t.Errorf("Read: got %+v, want %+v, for an hour", got.State, first.State)
				}
				if want.Until = first.Until; first.State != want {
					t.Errorf("Set: got %+v, want %+v", first.State, want)
				}

				const operators = 20
				var wg sync.WaitGroup
				errs := make([]error, operators)
				for i := range errs {
					wg.Go(func() {
						_, errs[i] = control.Set(t.Context(), store, first, control.State{Concurrency: i + 1, By: "b", Reason: "r"}, host.LeastControl)
					})
				}
				wg.Wait()
				if won := slices.Index(errs, nil); won < 0 || read().Concurrency != won+1 {
					t.Errorf("state after %d operators at once: got %+v, want that of operator %d", operators, read().State, won)
				}
				for _, err := range slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, dedup.ErrChanged) }) {
					if err != nil {
						t.Errorf("Set at once: got error %v, want nil or ErrChanged", err)
					}
				}
				time.Sleep(host.LeastControl + 5*time.Second)
				if over := read(); !over.Open() || over.By != "" {
					t.Errorf("Read after its time: got %+v, want open", over)
				} else if _, err := control.Set(t.Context(), store, over, want, host.MostControl); err != nil {
					t.Errorf("Set after its time: got error %v", err)
				}
				if got := read(); !got.Paused {
					t.Errorf("Read: got %+v, want a pause", got)
				}
			})
		})
	}
}

// A record that can't be used is replaced by whoever has seen it.
func TestSetOverABrokenRecord(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	must.Get(store.Keep(t.Context(), dedup.Record{Lease: dedup.Lease{Key: key}}, "by hand", []byte("broken"), time.Hour))(t)
	broken, err := control.Read(t.Context(), store, consumer)
	if !errors.Is(err, control.ErrState) || !broken.Open() {
		t.Fatalf("Read: got %+v, %v, want open, and ErrState", broken, err)
	}
	must.Get(control.Set(t.Context(), store, broken, control.State{Paused: true, By: "a", Reason: "b"}, time.Hour))(t)
	if got := must.Get(control.Read(t.Context(), store, consumer))(t); !got.Paused {
		t.Errorf("Read: got %+v, want a pause", got)
	}
}

func TestSetRefuses(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	good := control.State{Paused: true, By: "a", Reason: "b"}
	seen := must.Get(control.Read(t.Context(), store, consumer))(t)
	for _, c := range []struct {
		change func(s *control.State, seen *control.Snapshot, d *time.Duration)
		want   string
	}{
		{func(_ *control.State, seen *control.Snapshot, _ *time.Duration) { *seen = control.Snapshot{} }, "seen"},
		{func(_ *control.State, _ *control.Snapshot, d *time.Duration) { *d = host.LeastControl - 1 }, "d"},
		{func(_ *control.State, _ *control.Snapshot, d *time.Duration) { *d = host.MostControl + 1 }, "d"},
		{func(s *control.State, _ *control.Snapshot, _ *time.Duration) { s.Concurrency = 1 }, "State"},
		{func(s *control.State, _ *control.Snapshot, _ *time.Duration) { s.Paused, s.Concurrency = false, -1 }, "State.Concurrency"},
		{func(s *control.State, _ *control.Snapshot, _ *time.Duration) {
			s.Paused, s.Concurrency = false, 120_001
		}, "State.Concurrency"},
		{func(s *control.State, _ *control.Snapshot, _ *time.Duration) { s.By = "" }, "State.By"},
		{func(s *control.State, _ *control.Snapshot, _ *time.Duration) { s.By = strings.Repeat("a", 501) }, "State.By"},
		{func(s *control.State, _ *control.Snapshot, _ *time.Duration) { s.Reason = "" }, "State.Reason"},
		{func(s *control.State, _ *control.Snapshot, _ *time.Duration) { s.Reason = "a\nb" }, "State.Reason"},
		{func(s *control.State, _ *control.Snapshot, _ *time.Duration) { s.Reason = "a\xff" }, "State.Reason"},
	} {
		s, seen, d := good, seen, time.Hour
		c.change(&s, &seen, &d)
		_, err := control.Set(t.Context(), store, seen, s, d)
		if got := testaws.Fields(err); !slices.Equal(got, []string{c.want}) {
			t.Errorf("got the problems %v (%v), want %s", got, err, c.want)
		}
	}
	for _, consumer := range []string{"a#", "sqsonce.control"} {
		if _, err := control.Read(t.Context(), nil, consumer); !slices.Equal(testaws.Fields(err), []string{"store", "consumer"}) {
			t.Errorf("Read of consumer %q: got error %v, want problems of store and consumer", consumer, err)
		}
	}
	if got := must.Get(control.Read(t.Context(), store, consumer))(t); !got.Open() {
		t.Errorf("Read after refused calls: got %+v, want open", got)
	}
}
