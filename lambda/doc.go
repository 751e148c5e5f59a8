// Package lambda is a host: it runs a handler in a Lambda function behind an SQS event source mapping.
//
// [Start] is the main of a function. [Wrap] returns the function that Lambda calls, for tests and for the runtime's own
// options.
//
// # Response
//
// The event source mapping deletes every message that the response does not name. So each message counts as failed until
// its handler has returned nil. The response names a message that was not started, panicked, called [runtime.Goexit], is
// behind a failed one of its FIFO group, or still runs when the time is up. An event that is not from SQS, or has no
// records, is an error.
//
// The mapping must have ReportBatchItemFailures in its FunctionResponseTypes. Without it Lambda ignores the response and
// deletes the failed messages too, and the event does not tell the function so: set Options.AllOrNothing then.
//
// # Time
//
// At the deadline of the invocation Lambda ends the process, and every success that was not reported is lost. So the parts of an
// invocation end before it, by Options.Margin:
//
//	before the deadline
//	16/16 of the margin   no more messages are started, and the handlers' contexts end with cause [sqsonce.ErrShutdown]
//	 8/16                 handlers that have not returned are abandoned
//	 6/16                 sends to the dead-letter queue that are not confirmed are abandoned
//	 4/16                 changes of visibility timeouts end
//	 3/16                 the context of Finish hooks ends
//	 2/16                 the answer is returned, whatever hooks do
//
// A handler that is abandoned is logged, its
// message is reported as failed, and its result changes neither the response nor a queue. Lambda freezes the process
// after the response, and the handler goes on in a later invocation: no library can end it. Its writes to the event's
// record depend on the record's owner, as always.
//
// The calls of SQS are bounded too, with a client that ignores its context as well: the function answers a quarter of the
// margin before its deadline at the latest. What was abandoned and has not returned is counted. Beyond Options.Abandoned the
// next invocation, or this one if nothing succeeded in it, returns an error, after which awslambda.Start ends the process.
//
// A message is also not started where the run times of this process say that it cannot end before the margin: where more
// than 5% of the latest 100 runs, successful or not, took longer than what is left. It is reported as failed, with the rest
// of its FIFO group, and costs a receive but no cut-off run. One message of each invocation is started whatever they say, and
// so is a message at its last receive by the queue's redrive policy.
//
// # Order
//
// Messages run in parallel, at most Options.Concurrency at once in one invocation. On a FIFO queue (the ARN ends in .fifo)
// the groups run in parallel, and the messages of a group in order. After a failed message the rest of its group is not
// started and is reported as failed. On a standard queue a group ID is the tenant of a fair queue and gives no order.
//
// # Retries
//
// [Start] makes an SQS client for the function's role; [Wrap] has the one of Options.Client. A failed message is visible again
// after the delay of its [sqsonce.RetryAfter], or after the backoff, and the rest of its FIFO group with it: one visibility
// change, when the handlers have ended. A message that was not started, was abandoned or has lost its lease keeps its
// visibility timeout.
//
// A message that was rejected ([sqsonce.Reject]) is sent to the dead-letter queue, with the reason. A send whose answer is lost
// is repeated, so that a standard dead-letter queue may have the message more than once. Once SQS has confirmed
// that, the message counts as a success, and Lambda deletes it.
//
// The messages of a FIFO group share their receives, and after the last one SQS would move them all, without a run. So the
// host sends a FIFO message to the dead-letter queue that failed or was cut off at its last receive, by the queue's redrive
// policy. It sends the head of a group one receive earlier if messages behind it share that receive, from the second receive
// on. The messages behind it then run in the same invocation, or have the last receive for themselves. At their last receive
// the context of a message ends after half of the time that is left while others of its group wait behind it.
//
// A handler that does not return makes no difference, and neither does a message that is unavailable alone at its last receive. Where the
// host cannot send a message at its last receive, those behind it run if SQS moves it. The host sends no message in an outage, none that is
// in progress elsewhere, and none that middleware keeps from its handler: SQS moves it after its last receive, with its group.
//
// No delay reaches into the last two visibility timeouts of a message's retention, at least 1 min. A message that fails there is sent to the
// dead-letter queue with this reason.
//
// The sends run beside the handlers, as many at once. After one that SQS did not answer within 10 s the invocation sends no
// more, and what was rejected is a failure as any other.
//
// Without a client a failed message is visible again when the visibility timeout of the queue ends, also after RetryAfter. A
// Reject is then a failure as any other: only the redrive policy of the queue moves the message. The first such error is
// logged.
//
// Lambda cannot hold a message: one whose event is in progress elsewhere is reported as failed, and each delivery adds to
// its receive count. With a client it is visible again after half the visibility timeout, doubled with each receive up to
// 11 h 30 min, and not before the other owner's lease is over. Keep visibility timeout x maxReceiveCount above the longest
// handler of any host that shares the record.
//
// The host reads visibility timeout, retention and redrive policy with one call of GetQueueAttributes, when a message needs them. It
// reads them again after 5 min, and sooner where SQS contradicts them. It then logs settings that do not fit the function: a visibility timeout below 6 function
// timeouts, a maxReceiveCount below 5
// (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html).
//
// # Hooks
//
// Options.Hooks are called around handlers and invocations, for traces and metrics: see [Hooks]. Finish gets a report of what
// became of each message. What it does delays the answer, and it can export what was gathered: after the answer Lambda freezes the
// process. It is given up an eighth of the margin before the deadline, so that it costs no success.
package lambda
