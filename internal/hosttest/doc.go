// Package hosttest holds the tests that both hosts share; it has no code of its own.
//
// One handler, guarded by records in DynamoDB, runs in a long-polling worker and in a Lambda function behind an event
// source mapping, over the in-memory SQS and DynamoDB, in virtual time. A table of outcomes says what must be left in the
// queue, the dead-letter queue and the records, the same for every host. Where a host must differ, the table says so,
// with the reason.
//
// A simulation runs the function through invocations that are throttled, fail, run out of time or die at a random
// instant, and looks for a lost event, two runs at once, a run after the record was completed, and an effect that
// happened twice.
//
// Batch handlers run in both hosts too, each message of a batch under its own record; and a worker is cut off from SQS for
// longer than its visibility timeout.
package hosttest
