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

// Draw decides about a run. choose returns a number below n: rapid's, or that of a random generator.
func Draw(choose func(what string, n int) int) Plan {
	percent := func(what string, values ...int) int { return values[choose(what, len(values))] }
	span := func(what string, values ...time.Duration) time.Duration { return values[choose(what, len(values))] }
	return Plan{
		Seed:   uint64(choose("seed", 1<<30)),
		Groups: 1 + choose("groups", 4),
		Events: 1 + choose("events of each", 40),
		Relays: 1 + choose("relays", 4),
		Page:   percent("page", 1, 3, 10, 25),
		AtOnce: percent("groups at once", 1, 2, 64),
		Kills:  choose("kills", 2) == 1,
		Freeze: span("freeze", 0, time.Minute, 20*time.Minute),
		Chaos: Chaos{
			Fail:      percent("fail", 0, 3, 20),
			FailAfter: percent("fail after the effect", 0, 3, 20),
			Late:      percent("late", 0, 3, 10),
			MostLate:  span("most late", time.Minute, 20*time.Minute),
		},
		Refusals:  percent("refusals", 0, 5),
		Throttle:  choose("throttle", 2) == 1,
		Lag:       percent("lag", 0, 10, 50),
		NoDeletes: percent("no deletes", 0, 20),
	}
}

// Defective returns a plan whose runs show a defect, in some of a few dozen seeds.
func Defective(d Defect, seed uint64) Plan {
	return Plan{
		Seed: seed, Groups: 2, Events: 20, Relays: 3, Page: 5, AtOnce: 64, Defect: d, Refusals: 25,
		Chaos: Chaos{Fail: 2, FailAfter: 5, Late: 10, MostLate: 20 * time.Minute}, Kills: true, Freeze: 10 * time.Minute,
	}
}
