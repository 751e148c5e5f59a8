package outboxtest

import (
	"context"
	"slices"
	"sync"

	"github.com/sqsonce/sqsonce/fifo/outbox"
)

var contextCases = []testCase{
	{name: "context/ended before the call", run: func(x *exam) {
		x.commit("g", 3)
		es := x.read("g", 10)
		x.park(es[2], outbox.OnRefusedHalt)
		ctx, cancel := context.WithCancel(x.ctx)
		cancel()
		for op, f := range map[string]func() error{
			"Groups": func() error { _, _, err := x.Groups(ctx, "", 10); return err },
			"Read":   func() error { _, err := x.Read(ctx, outbox.Group{Name: "g"}, outbox.Known{}, 10); return err },
			"Delete": func() error {
				left, err := x.Delete(ctx, es[:2])
				if err != nil && !slices.Equal(seqs(left), seqs(es[:2])) {
					x.fatalf("Delete with an ended context: left %v, want both", seqs(left))
				}
				return err
			},
			"Park":    func() error { return x.Park(ctx, es[0], outbox.OnRefusedHalt, "refused") },
			"Unpark":  func() error { return x.Unpark(ctx, es[2]) },
			"Discard": func() error { return x.Discard(ctx, es[2]) },
			"Parked":  func() error { _, err := x.Parked(ctx, 10); return err },
		} {
			if err := f(); err == nil {
				x.fatalf("%s with an ended context: got no error", op)
			}
		}
		got := x.ids("g", "after calls with an ended context", 1, 2, 3)
		if got[0].Parked != 0 || got[2].Parked != outbox.OnRefusedHalt {
			x.fatalf("a call with an ended context changed a mark: %+v", got)
		}
	}},
	{name: "context/all methods at the same time", run: func(x *exam) {
		x.commit("g", 40)
		es := x.read("g", 40)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				mine := es[i*5 : i*5+5]
				_, _, _ = x.Groups(x.ctx, "", 10)
				_, _ = x.Claim(x.ctx, []string{"g"}, x.Lease)
				_, _ = x.Read(x.ctx, outbox.Group{Name: "g"}, outbox.Known{}, 10)
				_ = x.Park(x.ctx, mine[0], outbox.OnRefusedSkip, "refused")
				_ = x.Park(x.ctx, mine[1], outbox.OnRefusedSkip, "refused")
				_, _ = x.Parked(x.ctx, 10)
				_, _ = x.Delete(x.ctx, mine[2:4])
				_ = x.Unpark(x.ctx, mine[0])
				_ = x.Discard(x.ctx, mine[1])
				_ = x.Unclaim(x.ctx, []string{"g"})
			})
		}
		wg.Wait()
		// A write may have met another one and have failed: once more, alone.
		var want []int
		for i := range 8 {
			mine := es[i*5 : i*5+5]
			_ = x.Park(x.ctx, mine[1], outbox.OnRefusedSkip, "refused")
			_ = x.Unpark(x.ctx, mine[0])
			_ = x.Discard(x.ctx, mine[1])
			x.delete(mine[2:4]...)
			want = append(want, i*5+1, i*5+5)
		}
		for _, e := range x.ids("g", "after all methods at the same time", want...) {
			if e.Parked != 0 {
				x.fatalf("event %s is parked", e.ID)
			}
		}
	}},
}
