package dedup_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
)

// A copy of a message whose delivery still sends its complete, under a lease that is over, does not run the event again.
func TestCopyOfASuccessThatIsNotRecorded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		f.down(sqsonce.Unavailable(errStore), "complete", "renew")
		var e effects
		h := newOnce(t, f).Handler(e.handler)
		ctx, _ := hosted(time.Hour)
		first := make(chan error, 1)
		go func() { first <- h(ctx, message("1")) }()
		time.Sleep(45*time.Second - time.Millisecond) // the lease is over
		f.up()
		copied, _ := hosted(time.Hour)
		if err := h(copied, message("1")); err != nil {
			t.Errorf("copy: got error %v, want nil", err)
		}
		if err := <-first; err != nil {
			t.Errorf("first delivery: got error %v, want nil", err)
		}
		if e.got() != 1 || !completed(t, f.Store, "1") {
			t.Errorf("%d runs, completed %v, want 1 and true", e.got(), completed(t, f.Store, "1"))
		}
	})
}
