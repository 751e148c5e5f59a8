// Package lambda is a host: it runs a handler in a Lambda function behind an SQS event source mapping.
//
// [Start] is the main of a function. [NewHandler] and [Wrap] return what it serves, for tests, and for WithContext,
// WithContextValue and WithEnableSIGTERM of awslambda.StartWithOptions. docs/lambda.md has a template, the permissions, and
// tables of the cases.
//
// # Response
//
// The event source mapping deletes every message that the response doesn't name. So each message counts as failed until its
// handler has returned nil or another success such as [sqsonce.Skip], or the dead-letter queue has confirmed it. The response
// names a message if its handler was not started, panicked, called [runtime.Goexit], or still runs when the time is up. It also
// names those behind a failed one of its FIFO group. An event that is not from SQS, or has an empty list of records, is an error.
//
// The mapping must have ReportBatchItemFailures in its FunctionResponseTypes. Without it Lambda ignores the response and
// deletes the failed messages too. The function can't see this in the event, so set Options.AllOrNothing then.
//
// # Time
//
// At the deadline of the invocation Lambda ends the process, and every success that was not reported is lost. So the parts of
// an invocation end before it, by Options.Margin:
//
//	before the deadline
//	16/16 of the margin   the function starts no more messages, and the handlers' contexts end with cause [sqsonce.ErrShutdown]
//	 8/16                 handlers that have not returned are abandoned
//	 6/16                 sends to the dead-letter queue that are not confirmed are abandoned
//	 4/16                 changes of visibility timeouts end
//	 3/16                 the context of Finish hooks ends
//	 2/16                 the answer is returned, whatever hooks do
//
// These times bound a client that ignores its context too. So the function answers a quarter of the margin before the deadline
// at the latest, or an eighth if a Finish hook hangs. Options.Abandoned describes handlers and calls that never return.
//
// # Order
//
// Messages run in parallel, at most Options.Concurrency at once in one invocation. On a FIFO queue (the ARN ends in .fifo)
// the groups run in parallel, and the messages of a group in order. After a failed message the rest of its group is not
// started and is reported as failed. On a standard queue a group ID is the tenant of a fair queue and gives no order.
//
// # Retries
//
// [Start] makes an SQS client for the function's role, and [NewHandler] and [Wrap] use Options.Client. A failed message is visible again
// after the delay of its [sqsonce.RetryAfter], or after Options.Backoff, and the rest of its FIFO group with it. The host
// changes the visibility when the handlers have ended. A message that was not started, was abandoned or has lost its lease
// keeps its visibility timeout.
//
// The host sends rejected messages ([sqsonce.Reject]) to the dead-letter queue, with the reason. It also sends FIFO messages
// that fail at their last receive, because SQS would move the messages behind them too. Options.DeadLetterQueue has the
// rules.
//
// Lambda can't hold a message. So the host reports a message as failed if its event is in progress elsewhere, and each delivery
// adds to its receive count. With a client it is visible again after half the visibility timeout, doubled with each receive up
// to 10 h 20 min. If the other owner's lease ends later, the message waits until then. At its second receive it waits for that
// lease only, because its first owner has probably died. Keep visibility timeout x maxReceiveCount above the longest handler of
// any host that shares the record.
package lambda
