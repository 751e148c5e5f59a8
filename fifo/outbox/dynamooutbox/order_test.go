package dynamooutbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"pgregory.net/rapid"

	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// orderPlan is a run of writers and relays. It is drawn before the run: rapid cannot draw in a bubble.
type orderPlan struct {
	groups  []int // transactions of each
	relays  int
	page    int
	seed    uint64
	ddb     []fault.Rule
	sqs     []fault.Rule
	breakIt func(x *rig) Client // what the relays' reads go through; nil: as it is
}

func (p orderPlan) String() string {
	s := fmt.Sprintf("groups %v relays %d page %d seed %d", p.groups, p.relays, p.page, p.seed)
	for _, r := range append(append([]fault.Rule(nil), p.ddb...), p.sqs...) {
		s += fmt.Sprintf("\n%+v", r)
	}
	return s
}

func drawOrderPlan(rt *rapid.T) orderPlan {
	rules := func(name string, rule func(*rapid.T) fault.Rule) []fault.Rule {
		return rapid.SliceOfN(rapid.Custom(rule), 0, 6).Draw(rt, name)
	}
	p := orderPlan{
		groups: rapid.SliceOfN(rapid.IntRange(1, 8), 1, 3).Draw(rt, "groups"),
		relays: rapid.IntRange(1, 4).Draw(rt, "relays"),
		page:   rapid.IntRange(1, 5).Draw(rt, "page"),
		seed:   rapid.Uint64().Draw(rt, "seed"),
		ddb:    rules("faults of DynamoDB", dynamoFault),
		sqs:    rules("faults of SQS", sqsFault),
	}
	p.ddb = append(p.ddb, fault.Rule{Op: "TransactWriteItems", Prob: 0.5, Do: fault.HalfApplied, Delay: rapid.SampledFrom([]time.Duration{time.Second, 20 * time.Second}).Draw(rt, "late")})
	return p
}

func dynamoFault(rt *rapid.T) fault.Rule {
	return drawnFault(rt, []string{"Query", "TransactGetItems", "BatchWriteItem", "Scan"}, []string{"", "ThrottlingException", "ProvisionedThroughputExceededException"})
}

func sqsFault(rt *rapid.T) fault.Rule {
	return drawnFault(rt, []string{"SendMessageBatch"}, []string{"", "RequestThrottled"})
}

func drawnFault(rt *rapid.T, ops, codes []string) fault.Rule {
	r := fault.Rule{
		Op:  rapid.SampledFrom(ops).Draw(rt, "op"),
		Nth: rapid.IntRange(1, 30).Draw(rt, "nth"), Times: rapid.IntRange(1, 10).Draw(rt, "times"),
		Do: rapid.SampledFrom([]fault.Kind{fault.Error, fault.LoseReply, fault.Reset, fault.Delay, fault.Replay, fault.FailEntries}).Draw(rt, "kind"),
	}
	if r.Do == fault.FailEntries && (r.Op == "Query" || r.Op == "Scan") {
		r.Do = fault.Error
	}
	switch r.Do {
	case fault.Error:
		r.Code = rapid.SampledFrom(codes).Draw(rt, "code")
	case fault.FailEntries:
		r.Entries = rapid.SliceOfN(rapid.IntRange(0, 9), 1, 3).Draw(rt, "entries")
	case fault.Delay, fault.Replay:
		r.Delay = rapid.SampledFrom([]time.Duration{time.Second, 8 * time.Second, 4 * time.Minute, 20 * time.Minute}).Draw(rt, "delay")
	}
	return r
}

// Whatever relays, network and DynamoDB do: nothing is lost, nothing is invented, and a group's events are accepted first in the
// order of its commits.
func TestOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := drawOrderPlan(rt)
		var problem string
		synctest.Test(t, func(t *testing.T) { problem = p.run(t) })
		if problem != "" {
			rt.Fatalf("%s\n%s", problem, p)
		}
	})
}

// The runs of TestOrder see a relay that reads without a probe, or with one by GetItem.
func TestOrderSeesAMissingProbe(t *testing.T) {
	t.Parallel()
	for name, breakIt := range map[string]func(x *rig) Client{
		"no probe": func(x *rig) Client {
			return &lens{Client: x.ddb, get: func(func() (*dynamodb.TransactGetItemsOutput, error)) (*dynamodb.TransactGetItemsOutput, error) {
				return absent, nil
			}}
		},
		"GetItem": func(x *rig) Client { return getProbe{x.ddb, x.ddb} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(200) {
				p := orderPlan{groups: []int{12, 12}, relays: 4, page: 2, seed: seed, breakIt: breakIt,
					ddb: []fault.Rule{{Op: "TransactWriteItems", Prob: 0.5, Do: fault.HalfApplied, Delay: 20 * time.Second}}}
				problem := ""
				synctest.Test(t, func(t *testing.T) { problem = p.run(t) })
				if problem != "" {
					t.Logf("seed %d: %s", seed, problem)
					return
				}
			}
			t.Error("200 runs kept the order without the probe")
		})
	}
}

// run commits beside relays that die and come back, and lets all of it be published at the end.
func (p orderPlan) run(t *testing.T) (problem string) {
	x := newRig(t)
	x.srv.Set(fault.Plan{Seed: p.seed, Rules: p.ddb})
	x.queue.Set(fault.Plan{Seed: p.seed, Rules: p.sqs})
	rng := rand.New(rand.NewPCG(p.seed, 1))
	box := x.box
	if p.breakIt != nil {
		box = x.outbox(p.breakIt(x), testBox)
	}
	var names []string
	var writers, relays sync.WaitGroup
	committed := make([]int, len(p.groups))
	ctx, stop := context.WithCancel(x.Context())
	defer stop()
	for g, transactions := range p.groups {
		name := fmt.Sprint("g", g)
		names = append(names, name)
		rng := rand.New(rand.NewPCG(p.seed, 2+uint64(g)))
		writers.Go(func() {
			for range transactions {
				n := 1 + rng.IntN(3)
				x.mustCommit(name, committed[g], n)
				committed[g] += n
				time.Sleep(time.Duration(rng.IntN(8)) * time.Second)
			}
		})
	}
	for range p.relays {
		seed := rng.Uint64()
		relays.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 0))
			r := x.relay(box, func(o *outbox.Options) { o.Page, o.Settle = p.page, -1 })
			for ctx.Err() == nil {
				visit, end := context.WithTimeout(ctx, time.Duration(1+rng.IntN(40))*time.Second)
				if rng.IntN(2) == 0 {
					_ = r.Drain(visit, names[rng.IntN(len(names))]) // what is left comes again
				} else {
					_, _ = r.Sweep(visit)
				}
				end()
				if rng.IntN(4) == 0 { // dies: the next one knows nothing
					r = x.relay(box, func(o *outbox.Options) { o.Page, o.Settle = p.page, -1 })
				}
				time.Sleep(time.Duration(rng.IntN(5000)) * time.Millisecond)
			}
		})
	}
	writers.Wait()
	time.Sleep(time.Duration(rng.IntN(60)) * time.Second)
	stop()
	relays.Wait()
	time.Sleep(30 * time.Minute) // late copies of requests come
	x.srv.Set(fault.Plan{})
	x.queue.Set(fault.Plan{})
	if err := x.relay(box, func(o *outbox.Options) { o.Page = p.page }).Drain(x.Context(), names...); err != nil {
		return err.Error()
	}
	for g, n := range committed {
		if problem := x.problem(names[g], n); problem != "" {
			return problem
		}
	}
	if left := x.stored(); left != "" {
		return "left in the table: " + left
	}
	return ""
}
