package limittest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/internal/counting"
)

const slot = key + "#0"

func (x *exam) lease() time.Duration { return x.Step }

// acquire expects the owner to get the slot.
func (x *exam) acquire(owner string, d time.Duration, why string) {
	if err := x.Acquire(x.ctx, slot, owner, d); err != nil {
		x.fatalf("Acquire by %s %s: got error %v, want the slot", owner, why, err)
	}
}

func (x *exam) taken(owner, why string) {
	if err := x.Acquire(x.ctx, slot, owner, x.lease()); !errors.Is(err, counting.ErrTaken) {
		x.fatalf("Acquire by %s %s: got error %v, want ErrTaken", owner, why, err)
	}
}

func (x *exam) renewed(owner string, d time.Duration, want error, why string) {
	if err := x.Renew(x.ctx, slot, owner, d); !errors.Is(err, want) {
		x.fatalf("Renew by %s %s: got error %v, want %v", owner, why, err, want)
	}
}

func (x *exam) release(owner, why string) {
	if err := x.Release(x.ctx, slot, owner); err != nil {
		x.fatalf("Release by %s %s: got error %v, want none", owner, why, err)
	}
}

var slotCases = []testCase{
	{name: "slot/one owner", run: func(x *exam) {
		x.acquire("a", 20*x.lease(), "of a new slot")
		x.taken("b", "during a's lease")
		time.Sleep(x.lease() + x.Takeover)
		x.taken("c", "later in a's lease")
		if err := x.Acquire(x.ctx, key+"#1", "b", x.lease()); err != nil {
			x.fatalf("Acquire of another slot: got error %v, want it", err)
		}
	}},
	{name: "slot/free when the lease has ended", run: func(x *exam) {
		x.acquire("a", x.lease(), "of a new slot")
		time.Sleep(x.lease() + x.Takeover)
		x.acquire("b", 20*x.lease(), "after a's lease")
		x.renewed("a", x.lease(), counting.ErrLeaseLost, "after b's acquire")
		x.release("a", "after b's acquire")
		x.taken("c", "after a release that changes nothing")
	}},
	{name: "slot/one winner of 16", run: func(x *exam) {
		const hosts = 16
		var wg sync.WaitGroup
		errs := make([]error, hosts)
		start := make(chan struct{})
		for i := range hosts {
			c := x.process()
			wg.Go(func() {
				<-start
				errs[i] = c.Acquire(x.ctx, slot, fmt.Sprint("owner ", i), 20*x.lease())
			})
		}
		close(start)
		wg.Wait()
		won := 0
		for _, err := range errs {
			switch {
			case err == nil:
				won++
			case !errors.Is(err, counting.ErrTaken):
				x.fatalf("Acquire: got error %v, want the slot or ErrTaken", err)
			}
		}
		if won != 1 {
			x.fatalf("%d of %d owners got the slot, want 1", won, hosts)
		}
	}},
	{name: "slot/a renewal extends the lease", run: func(x *exam) {
		x.acquire("a", x.lease(), "of a new slot")
		x.renewed("a", 20*x.lease(), nil, "during its lease")
		time.Sleep(x.lease() + x.Takeover)
		x.taken("b", "after the first end of a renewed lease")
		x.renewed("b", x.lease(), counting.ErrLeaseLost, "without the slot")
	}},
	{name: "slot/released at once", run: func(x *exam) {
		x.release("a", "of a new slot")
		x.acquire("a", 20*x.lease(), "of a new slot")
		x.release("b", "without the slot")
		x.taken("b", "during a's lease")
		x.release("a", "of its slot")
		x.renewed("a", x.lease(), counting.ErrLeaseLost, "after its release")
		x.acquire("c", 20*x.lease(), "after a's release")
		x.release("a", "again")
		x.taken("d", "during c's lease")
	}},
}
