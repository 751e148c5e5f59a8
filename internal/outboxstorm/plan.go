package outboxstorm

import "time"

// Plan is what is decided before a run.
type Plan struct {
	Seed           uint64
	Groups, Events int // events of each group
	Relays         int
	Page, AtOnce   int
	Kills          bool
	Freeze         time.Duration // the longest
	Chaos          Chaos
	Refusals       int // of 100 requests: SQS refuses an entry
	Throttle       bool
	Lag            int // of 100 calls of Groups: the answer is an earlier one
	NoDeletes      int // of 100 ten-minute spans: all deletes fail
	Defect         Defect
}

// Draw decides about a run. choose returns a random number below n.
func Draw(choose func(n int) int) Plan {
	percent := func(values ...int) int { return values[choose(len(values))] }
	span := func(values ...time.Duration) time.Duration { return values[choose(len(values))] }
	return Plan{
		Seed:   uint64(choose(1 << 30)),
		Groups: 1 + choose(4),
		Events: 1 + choose(40),
		Relays: 1 + choose(4),
		Page:   percent(1, 3, 10, 25),
		AtOnce: percent(1, 2, 64),
		Kills:  choose(2) == 1,
		Freeze: span(0, time.Minute, 20*time.Minute),
		Chaos: Chaos{
			Fail:      percent(0, 3, 20),
			FailAfter: percent(0, 3, 20),
			Late:      percent(0, 3, 10),
			MostLate:  span(time.Minute, 20*time.Minute),
		},
		Refusals:  percent(0, 5),
		Throttle:  choose(2) == 1,
		Lag:       percent(0, 10, 50),
		NoDeletes: percent(0, 20),
	}
}

// defective returns a plan whose runs show a defect, in some of a few dozen seeds.
func defective(d Defect, seed uint64) Plan {
	return Plan{
		Seed: seed, Groups: 2, Events: 20, Relays: 3, Page: 5, AtOnce: 64, Defect: d, Refusals: 25,
		Chaos: Chaos{Fail: 2, FailAfter: 5, Late: 10, MostLate: 20 * time.Minute}, Kills: true, Freeze: 10 * time.Minute,
	}
}
