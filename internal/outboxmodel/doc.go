// Package outboxmodel is a model of the outbox protocol, docs/protocol-outbox.md, and a search through all that can happen in it.
// It imports nothing of this module: it is the protocol without the code. The tests of package outbox and of its stores show that
// the code follows the protocol; this package shows that the protocol holds, and what happens without each clause.
//
// # What can happen
//
// Between any two steps of one party the others make any number of theirs:
//
//   - A transaction begins, commits or is rolled back. On DynamoDB a decided transaction reaches its item at any later time.
//   - A relay begins a visit, also of an empty outbox. It reads key by key (DynamoDB), in one snapshot (SQL) or row by row in any
//     order (SQL without snapshots), probes, sends, gets an answer, or gives up, wherever it is. It deletes what it has confirmed
//     at any later time, in any order, or never. Relays know nothing of each other: no lease is in the model.
//   - A request that was sent arrives at any time, any number of times, also after its relay died, or never.
//   - SQS forgets an event at any time: so an outage or a freeze may be of any length.
//   - SQS refuses an event at one arrival and accepts it at another. An operator unparks and discards what is parked.
//   - A relay crashes.
//
// # What is checked
//
// Of each step: an event that is accepted for the first time was committed, and all that were committed before it in its group
// are accepted, or were once left out; none is accepted twice while SQS remembers it; what is gone from the outbox was accepted or
// discarded; what is gone stays gone. So no state has a first event whose predecessors are neither in the queue nor in the outbox.
//
// Of a state (the first 100,000 of a run, then one in 16): if nothing disturbs it any more, one relay empties the outbox, of all but
// skipped events. Without this check a relay that sends nothing would hold. It shows that no state is a trap, not that a disturbed
// relay makes progress. N24 is how the protocol once said D1: this check found it.
//
// # What is not in it
//
// The loop of package fifo (a relay's sends of one event are one), requests for several groups (their entries are independent), the
// publisher's window, clocks, pages, failovers and restores, what a DynamoDB transaction does before it is decided.
//
// # The runs
//
// D are the protocol on DynamoDB, S on a SQL database; they hold. N leave out one clause, or do instead what looks as good; each
// fails in its own way, but for N6a: had DynamoDB no transactions that are half applied, then reading up to an event that was seen
// before (S1) would do on DynamoDB too, since all that was committed before that event would be visible to the second read. N6b is
// the same on the DynamoDB that there is. States are counted once for all orders of the relays, and up to the fault for a run that
// fails. The visited ones are kept as hashes of 64 bits: that one of the largest run is missed has a probability of about 10^-5.
//
//	run  states      result
//	D1       53,247  holds
//	D2      631,274  holds
//	D3      184,041  holds
//	D4       14,444  holds
//	D5       11,070  holds
//	D6      222,761  holds
//	D7       61,779  holds
//	D8      419,381  holds
//	D9      370,811  holds
//	D10      16,197  holds
//	D11      27,376  holds
//	D12       6,641  holds
//	D13   1,543,434  holds
//	D14  10,136,094  holds
//	D15  15,576,633  holds
//	D16   3,366,755  holds
//	D17  15,024,519  holds
//	D18   6,211,076  holds
//	D19   2,793,811  holds
//	S1       34,169  holds
//	S2      504,273  holds
//	S3       42,957  holds
//	S4      262,894  holds
//	S5    4,408,303  holds
//	S6    8,765,420  holds
//	N1           60  reordered
//	N2           70  lost
//	N3          124  lost
//	N4          160  reordered
//	N5          148  reordered
//	N6a      55,111  holds
//	N6b         259  reordered
//	N7          358  reordered
//	N8          271  reordered
//	N9            9  lost
//	N10         121  doubled
//	N11       1,341  resurrected
//	N12         325  reordered
//	N13         304  lost
//	N14       1,317  reordered
//	N15         133  reordered
//	N16         304  lost
//	N17          95  lost
//	N18         207  reordered
//	N19         146  resurrected
//	N20          45  invented
//	N21         326  reordered
//	N22       1,168  reordered
//	N23          13  stuck
//	N24       4,671  stuck
//
// All are searched with SOAK=1 (make soak). Each test searches those of at most 50,000 states, and all but D14 to D18, S5 and S6
// where this package or the page differs from testdata/searched.txt, which a test with -update writes. What a run changes is in
// [Runs]; its shortest way to the fault is printed with
//
//	go test ./internal/outboxmodel -run 'TestRuns/N5$' -v
package outboxmodel
