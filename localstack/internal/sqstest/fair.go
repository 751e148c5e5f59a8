package sqstest

import (
	"slices"
	"time"
)

var fairCases = []testCase{
	// Guide sqs-fair-queues: MessageGroupId on a standard queue names the tenant. API ReceiveMessage: MessageGroupId.
	{name: "fair/group of a standard queue is returned", run: func(x *exam) {
		q := x.standard()
		x.send(q, "a", inGroup(ptr("tenant"), nil))
		if got := x.one(q, "a").Attributes["MessageGroupId"]; got != "tenant" {
			x.fatalf("MessageGroupId %q, want tenant", got)
		}
	}},
	// Guide sqs-fair-queues: it neither orders messages nor limits how many are in flight.
	{name: "fair/group of a standard queue locks nothing", run: func(x *exam) {
		q := x.standard()
		for _, body := range []string{"a", "b", "c"} {
			x.send(q, body, inGroup(ptr("tenant"), nil))
		}
		for range 3 {
			if got := x.receive(q, 1); len(got) != 1 {
				x.fatalf("received %q, want one message", bodiesOf(got))
			}
		}
	}},
	// Guide sqs-fair-queues-detailed: a tenant with over 10% of the messages in flight, and at least 30 of them, is noisy.
	// A poll then returns messages of quiet tenants as long as there are any, and the noisy one's after them: those are neither dropped nor
	// throttled. AWS calls the numbers approximate, so the cases stay far from them.
	{name: "fair/quiet tenants before a noisy one", run: func(x *exam) {
		q := x.standard(longHidden)
		x.flood(q, "noisy", 60)
		x.hold(q, 40, "noisy")
		for _, tenant := range []string{"a", "b", "c", "d", "e"} {
			x.flood(q, tenant, 2)
		}
		x.hold(q, 10, "a", "b", "c", "d", "e")
		x.hold(q, 20, "noisy")
	}},
	// As above: a message without a group is a tenant of its own, and quiet.
	{name: "fair/messages without a group before a noisy tenant", run: func(x *exam) {
		q := x.standard(longHidden)
		x.flood(q, "noisy", 60)
		x.hold(q, 40, "noisy")
		x.sendAll(q, "1", "2", "3", "4", "5")
		x.hold(q, 5, "")
	}},
	// As above: so is a tenant with over 10% of the recent processing time, however few its messages in flight are.
	{name: "fair/quiet tenants before a slow one", passes: 2 * time.Second, run: func(x *exam) {
		q := x.standard(longHidden)
		x.flood(q, "slow", 20)
		x.hold(q, 5, "slow")
		x.pass(2 * time.Second)
		x.flood(q, "a", 5)
		x.hold(q, 5, "a")
	}},
	// As above: of several noisy tenants the one with the fewest messages in flight comes first.
	{name: "fair/noisy tenant with the fewest in flight first", run: func(x *exam) {
		q := x.standard(longHidden)
		x.flood(q, "more", 80)
		x.hold(q, 60, "more")
		x.flood(q, "fewer", 80)
		x.hold(q, 50, "fewer")
	}},
}

// longHidden keeps what a case has received in flight until its end.
var longHidden = attrs{"VisibilityTimeout": "600"}

// flood sends n messages of a tenant.
func (x *exam) flood(q *queue, tenant string, n int) {
	for left := n; left > 0; left -= 10 {
		e := entries(slices.Repeat([]string{tenant}, min(left, 10))...)
		for i := range e {
			e[i].MessageGroupId = &tenant
		}
		x.sendBatch(q, e)
	}
}

// hold receives n messages, and expects each to be of one of the tenants. It leaves them in flight.
func (x *exam) hold(q *queue, n int, tenants ...string) {
	for left := n; left > 0; {
		got := x.receive(q, int32(min(left, 10)))
		if len(got) == 0 {
			x.fatalf("received %d messages, want %d", n-left, n)
		}
		for _, m := range got {
			if g := m.Attributes["MessageGroupId"]; !slices.Contains(tenants, g) {
				x.fatalf("after %d messages received one of tenant %q, want of %q", n-left, g, tenants)
			}
		}
		left -= len(got)
	}
}
