package dedup_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// ended returns the channel of an error that matches ErrInProgress, and nil where it has none.
func ended(err error) <-chan struct{} {
	if inProgress(err) {
		return host.Ended(err)
	}
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A host that can hold a message gets the refusal at once, also while the peer's acquire is not answered yet. The channel
// in the refusal is closed when the peer has ended, whatever its outcome.
func TestHostThatHolds(t *testing.T) {
	t.Parallel()
	for _, outcome := range []error{nil, errors.New("declined")} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaults()
			f.before = slow("acquire", 3*time.Second)
			o := newOnce(t, f)
			h := o.Handler(func(context.Context, *sqsonce.Message) error {
				time.Sleep(5 * time.Minute)
				return outcome
			})
			ctx := settle.WithHolding(t.Context())
			returned := make(chan error, 1)
			go func() { returned <- h(ctx, message("1")) }()
			for range 4 {
				time.Sleep(time.Second)
				start := time.Now()
				err := h(ctx, message("1"))
				if c := ended(err); c == nil || isClosed(c) || time.Since(start) != 0 {
					t.Fatalf("got error %v after %s, want in progress at once, with a channel", err, time.Since(start))
				}
			}
			waiting := ended(h(ctx, message("1")))
			<-waiting
			synctest.Wait()
			if err := <-returned; err != outcome {
				t.Errorf("the peer: got error %v, want %v", err, outcome)
			}
			// A delivery after that finds no peer.
			f.before = nil
			if outcome == nil {
				if err := h(ctx, message("1")); err != nil {
					t.Errorf("after the success: got error %v, want nil", err)
				}
			} else if err := h(ctx, message("1")); err != outcome {
				t.Errorf("after the failure: got error %v, want the handler's own", err)
			}
		})
	}
}

// The host does not hold the message where the owner is in another process; in a call of Do, whose caller may have done
// something before it; in a call from inside a handler, which may be the peer's own; and where Wait is negative.
func TestNotHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := settle.WithHolding(t.Context())
		f := newFaults()
		must.Get(other(t, f, recordKey("1")))(t)
		if err := newOnce(t, f).Handler(hang(0))(ctx, message("1")); !inProgress(err) || ended(err) != nil {
			t.Errorf("owner in another process: got error %v, want in progress without a channel", err)
		}

		o := newOnce(t, newFaults())
		h := o.Handler(hang(time.Minute))
		go func() { _ = h(ctx, message("1")) }()
		synctest.Wait()
		start := time.Now()
		if err := h(t.Context(), message("1")); !inProgress(err) || ended(err) != nil || time.Since(start) != time.Second {
			t.Errorf("a host that cannot hold: got error %v after %s, want in progress after a second, without a channel", err, time.Since(start))
		}
		start = time.Now()
		_, err := dedup.Do(ctx, o, "orders|1", func(context.Context) (int, error) { return 0, nil })
		if !inProgress(err) || ended(err) != nil || time.Since(start) != time.Second {
			t.Errorf("Do: got error %v after %s, want in progress after a second, without a channel", err, time.Since(start))
		}
		outer := newOnce(t, newFaults()).Handler(func(ctx context.Context, _ *sqsonce.Message) error { return h(ctx, message("1")) })
		if err := outer(ctx, message("2")); !inProgress(err) || ended(err) != nil {
			t.Errorf("nested: got error %v, want in progress without a channel", err)
		}

		o = newOnce(t, newFaults(), func(o *dedup.Options) { o.PeerWait = -1 })
		h = o.Handler(hang(time.Minute))
		go func() { _ = h(ctx, message("1")) }()
		synctest.Wait()
		if err := h(ctx, message("1")); !inProgress(err) || ended(err) != nil {
			t.Errorf("no Wait: got error %v, want in progress without a channel", err)
		}
		time.Sleep(time.Hour)
	})
}
