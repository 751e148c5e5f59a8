// Package lambda is a host: it runs a handler in a Lambda function behind an SQS event source mapping.
//
// [Start] is a function's main; [Wrap] is the same as a function, for tests and for use with the runtime's own options.
//
// # What is answered
//
// The event source mapping deletes every message that the response does not name, so each message counts as failed
// until its handler returned nil. One that was not started, panicked, called [runtime.Goexit], waits behind a failed one
// of its FIFO group, or still runs when time is up, is named. An event that is not SQS's, or has no records, is an error.
//
// The mapping must have ReportBatchItemFailures in its FunctionResponseTypes. Without it Lambda ignores the response and
// deletes the failures too, and nothing in the event tells the function so: use Options.AllOrNothing then.
//
// # Time
//
// Lambda ends the process at the invocation's deadline, and with it every success that was not answered yet. So a
// margin before the deadline nothing more is started and the handlers' contexts end with cause [sqsonce.ErrShutdown].
// They have half of the margin to return. A handler that has not returned by then is abandoned: it is logged, its
// message is reported as failed, and whatever it returns later changes neither the response nor a queue. The process is
// frozen with it, and it goes on during a later invocation: no library can end it. What it does to the event's record is
// decided by the record's owner, as for any other.
//
// # Order
//
// Messages run in parallel, at most Options.Concurrency at once in one invocation. On a FIFO queue (the ARN ends in
// .fifo) the groups run in parallel and the messages of a group in order; the first that fails ends its group, and the
// rest of it is reported as failed without having been tried. A group ID on a standard queue names a tenant of a fair
// queue: it orders nothing.
//
// # Retries
//
// Without a client a failed message comes back when the queue's visibility timeout ends, RetryAfter or not, and
// [sqsonce.Reject] is a failure like any other, logged once: the queue's redrive policy alone moves it. With
// Options.Client the message comes back after the asked delay or the backoff, the rest of a FIFO group with it; what was
// not started, abandoned, or has lost its lease keeps its visibility timeout. With Options.DeadLetterQueue as well a
// rejected message is sent there, and once that is confirmed it counts as done, so that Lambda deletes it.
//
// Lambda cannot hold a message: one whose event is in progress elsewhere is reported as failed, and SQS counts a
// receive. Keep visibility timeout x maxReceiveCount above the longest handler of any host that shares the record.
package lambda
