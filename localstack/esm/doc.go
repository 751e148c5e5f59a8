// Package esm is a Lambda event source mapping for SQS: it polls a queue, builds batches, invokes a function with the
// event Lambda would send, and applies the response as Lambda does.
//
//	err := esm.Run(ctx, client, esm.Config{
//		QueueURL:                url,
//		FunctionTimeout:         10 * time.Second,
//		ReportBatchItemFailures: true,
//	}, invoke)
//
// # What it does
//
// A batch is invoked when it is full, when the batching window has passed since its first message, or when the next
// record would not fit into 6 MB. A slot of MaximumConcurrency is taken before the queue is asked, so nothing is received
// that cannot be invoked. After the invocation the messages that succeeded are deleted, ten a call. Those that failed are
// left alone: they come back when their visibility timeout ends, and nothing shortens it but the function itself.
//
// Without ReportBatchItemFailures a batch succeeds or fails as a whole, and what the function says in its response is
// ignored. With it:
//
//	the function failed, ran into its timeout, or crashed       the whole batch fails
//	nothing, null, {}, or an object without batchItemFailures   the whole batch is deleted
//	batchItemFailures is null or []                             the whole batch is deleted
//	batchItemFailures names messages of the batch               the others are deleted
//	any item is empty, has no itemIdentifier, is not a string,
//	or names no message of the batch                            the whole batch fails
//	not JSON, not an object, batchItemFailures not a list       the whole batch fails
//
// Two of these lose messages on AWS without a trace: a response with batchItemFailures that the mapping was not told to
// read, and one under another name, such as BatchItemFailures. Both are logged as warnings here.
//
// On a FIFO queue a group is never in two invocations at once, and a message never overtakes one of its group that
// failed. Order inside a batch is the function's business: a message that the function does not report is deleted, also
// where one before it in its group failed.
//
// # What it does not do
//
// Lambda's scaling is not simulated: up to MaximumConcurrency batches run at once from the beginning, and errors do not
// lower it. One poll is in flight at a time. Provisioned pollers and metrics do not exist.
//
// The sources are https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html and the pages below it; where they are
// silent, answers recorded on AWS by others.
package esm
