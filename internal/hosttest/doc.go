// Package hosttest has the tests that both hosts share. It has no other code.
//
// One handler, wrapped in dedup with records in DynamoDB, runs in a long-polling worker and in a Lambda function behind an
// event source mapping, with SQS and DynamoDB in memory and in virtual time. Each scenario says which end state the queue,
// the dead-letter queue and the records must have, the same for every host. If a host must differ, the scenario says so,
// with the reason.
//
// A simulation runs the function through invocations that are throttled, fail, time out or die at a random instant. It
// looks for a lost event, two runs at once, a run after the record was completed, and an effect that happened twice.
//
// Fleets are simulated with everything at once: workers that are killed, frozen and replaced, functions and publishers on one
// queue, handlers of every kind, outages of all that they need, and operators that change the queue, each drawn from a seed
// before it begins. Each message in the dead-letter queue has its clause of the protocol, with evidence. Beside them are the
// bounds of section 13.
//
// Further tests run batch handlers in both hosts, each message of a batch with its own record, and cut a worker off from
// SQS for longer than its visibility timeout.
package hosttest
