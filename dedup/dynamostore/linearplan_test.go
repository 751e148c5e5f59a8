package dynamostore

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/sqsonce/sqsonce/internal/linear"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// linearPlan is everything that happens in a run. It is drawn before the run, so that a failure prints it and can be replayed.
type linearPlan struct {
	owners []ownerPlan
	seed   uint64
	chance float64 // of each fault, per call
}

// ownerPlan is one host. Its clock is wrong by skew, and it delivers events one after the other.
type ownerPlan struct {
	skew       time.Duration
	deliveries []linear.Delivery
	late       []latePacket
}

// latePacket is a packet of the host, counted from 0, that the network delivers later by this time: instead, or again.
type latePacket struct {
	nth     int
	by      time.Duration
	instead bool
}

const (
	linearOwners = 8
	linearKeys   = 2
	linearLease  = 12 * time.Second
)

func duration(atMost time.Duration) *rapid.Generator[time.Duration] {
	return rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(0, atMost.Milliseconds()).Draw(t, "ms")) * time.Millisecond
	})
}

var genPlan = rapid.Custom(func(t *rapid.T) linearPlan {
	p := linearPlan{seed: rapid.Uint64().Draw(t, "seed"), chance: rapid.SampledFrom([]float64{0, 0.05, 0.12}).Draw(t, "chance")}
	for range linearOwners {
		p.owners = append(p.owners, genOwner.Draw(t, "owner"))
	}
	return p
})

var genOwner = rapid.Custom(func(t *rapid.T) ownerPlan {
	return ownerPlan{
		skew:       rapid.SampledFrom([]time.Duration{-30 * time.Second, 0, 30 * time.Second}).Draw(t, "skew"),
		deliveries: rapid.SliceOfN(genDelivery, 1, 4).Draw(t, "deliveries"),
		late:       rapid.SliceOfN(genLate, 0, 3).Draw(t, "late"),
	}
})

var genDelivery = rapid.Custom(func(t *rapid.T) linear.Delivery {
	return linear.Delivery{
		Wait:   duration(9*time.Second).Draw(t, "wait"),
		Key:    rapid.IntRange(0, linearKeys-1).Draw(t, "key"),
		Renews: rapid.SliceOfN(duration(8*time.Second), 0, 2).Draw(t, "renews"),
		Work:   duration(25*time.Second).Draw(t, "hold"),
		End:    rapid.SampledFrom([]string{"release", "release", "release", "crash", "complete"}).Draw(t, "end"),
	}
})

var genLate = rapid.Custom(func(t *rapid.T) latePacket {
	return latePacket{
		nth:     rapid.IntRange(0, 7).Draw(t, "nth"),
		by:      duration(40*time.Second).Draw(t, "by"),
		instead: rapid.Bool().Draw(t, "instead"),
	}
})

// faults are the server's. Late packets are the network's, since the history has to know when they arrive.
func (p linearPlan) faults() fault.Plan {
	plan := fault.Plan{Seed: p.seed}
	if p.chance == 0 {
		return plan
	}
	for _, r := range []fault.Rule{
		{Do: fault.LoseReply}, {Do: fault.Error}, {Do: fault.Error, After: true},
		{Do: fault.Error, Code: "TransactionConflictException"}, {Do: fault.Error, Code: "ProvisionedThroughputExceededException"},
	} {
		r.Prob = p.chance
		plan.Rules = append(plan.Rules, r)
	}
	return plan
}

func (p linearPlan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, chance of each fault %v\n", p.seed, p.chance)
	for i, o := range p.owners {
		fmt.Fprintf(&b, "host %d, clock wrong by %s: %+v, late %+v\n", i, o.skew, o.deliveries, o.late)
	}
	return b.String()
}
