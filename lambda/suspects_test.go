package lambda

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// Suspects run one after the other, after the others and in the order of their starts, also when one of them calls runtime.Goexit.
func TestSuspectThatExits(t *testing.T) {
	withQueue(t, false, nil, func(x *fixture) {
		begun := time.Now()
		started := map[string]time.Time{"late": begun.Add(2 * time.Second), "exits": begun, "early": begun.Add(time.Second)}
		var mu sync.Mutex
		var ran []string
		f := x.wrap(func(ctx context.Context, m *sqsonce.Message) error {
			if at, is := started[m.Body]; is && settle.Suspects(ctx) > 0 { // as dedup does
				return settle.NewSuspect(sqsonce.Unavailable(errTest), at)
			}
			mu.Lock()
			ran = append(ran, m.Body)
			mu.Unlock()
			if m.Body == "exits" {
				runtime.Goexit()
			}
			return nil
		})
		x.send("late", "exits", "early", "other")
		e := x.receive()
		for i := range e.Records {
			e.Records[i].Attributes["ApproximateReceiveCount"] = "3"
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		r, err := f(ctx, e)
		if took := time.Since(begun); err != nil || len(r.BatchItemFailures) != 1 || took > 10*time.Second {
			t.Errorf("got %v, %v after %s, want one failure at once", r, err, took)
		}
		if want := []string{"other", "exits", "early", "late"}; !slices.Equal(ran, want) {
			t.Errorf("ran %q, want %q", ran, want)
		}
	})
}

// TestLoneSuspectWithoutAClient: what has succeeded cannot be deleted before a suspect runs. One that has crashed a process alone fails
// unrun while others are in its batch. It runs when it is alone, and so does another suspect.
func TestLoneSuspectWithoutAClient(t *testing.T) {
	for _, tt := range []struct {
		lone      bool
		batch     []string
		ran, fail string
	}{
		{true, []string{"suspect", "other"}, "other", "suspect"}, {true, []string{"suspect"}, "suspect", ""},
		{false, []string{"suspect", "other"}, "other suspect", ""},
	} {
		bubble(t, func(t *testing.T) {
			var r runs
			h := r.wrap(fails(nil))
			f := wrap(t, func(ctx context.Context, m *sqsonce.Message) error {
				if m.ID != "suspect" || settle.Suspects(ctx) == 0 { // as dedup does
					return h(ctx, m)
				}
				if tt.lone {
					return settle.NewLoneSuspect(sqsonce.Unavailable(errTest), time.Now())
				}
				return settle.NewSuspect(sqsonce.Unavailable(errTest), time.Now())
			})
			e := batch(tt.batch...)
			e.Records[0].Attributes["ApproximateReceiveCount"] = "3"
			if got := invoke(t, f, timeout(t, time.Minute), e); got != tt.fail || strings.Join(r.list(), " ") != tt.ran {
				t.Errorf("%+v: failed %q, ran %q", tt, got, r.list())
			}
		})
	}
}
