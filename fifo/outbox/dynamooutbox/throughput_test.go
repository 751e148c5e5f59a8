package dynamooutbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// A relay of 64 groups, in pages of 10, has 0.8 of the rate at which PublishAll sends the same events of 1 KB from memory. A
// request to SQS takes 15 ms and one to DynamoDB 5 ms; the clock is virtual, so that no other work on the machine is measured. With
// as slow a DynamoDB as SQS it is 0.7: a page waits for its Query and its delete, which are two requests beside ten.
func TestThroughput(t *testing.T) {
	t.Parallel()
	const groups, each, least = 64, 50, 0.8
	body := strings.Repeat("b", 1<<10)
	events := func() (es []fifo.Event) {
		for n := range each {
			for g := range groups {
				es = append(es, fifo.Event{ID: fmt.Sprintf("g%02d/v%d", g, n+1), Group: fmt.Sprintf("g%02d", g), Body: body})
			}
		}
		return es
	}()
	slow := func(d time.Duration) fault.Rule { return fault.Rule{Prob: 1, Do: fault.Delay, Delay: d} }
	var fromMemory, relayed time.Duration
	inRig(t, func(x *rig) {
		x.sqsFaults(slow(15 * time.Millisecond))
		p := x.publisher()
		start := time.Now()
		if _, err := p.PublishAll(x.Context(), events); err != nil {
			x.Fatal(err)
		}
		fromMemory = time.Since(start)
	})
	inRig(t, func(x *rig) {
		var names []string
		seqs := map[string]int64{}
		for _, e := range events {
			if seqs[e.Group]++; seqs[e.Group] == 1 {
				names = append(names, e.Group)
			}
			x.write(e, seqs[e.Group])
		}
		x.sqsFaults(slow(15 * time.Millisecond))
		x.faults(slow(5 * time.Millisecond))
		r := x.relay(x.box)
		start := time.Now()
		if err := r.Drain(x.Context(), names...); err != nil {
			x.Fatal(err)
		}
		relayed = time.Since(start)
		x.faults()
		x.wantStored("")
	})
	t.Logf("PublishAll %v, relay %v: %.2f of its rate", fromMemory, relayed, fromMemory.Seconds()/relayed.Seconds())
	if got := fromMemory.Seconds() / relayed.Seconds(); got < least {
		t.Errorf("the relay has %.2f of the rate of PublishAll, want %.2f", got, least)
	}
}
