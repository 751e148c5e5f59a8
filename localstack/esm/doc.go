// Package esm is a Lambda event source mapping for SQS, and with [RunStream] one for DynamoDB streams. [Run] polls a queue,
// builds batches, invokes a function with the event that Lambda would send, and applies the response as Lambda does.
//
//	err := esm.Run(ctx, client, esm.Config{
//		QueueURL:                url,
//		FunctionTimeout:         10 * time.Second,
//		ReportBatchItemFailures: true,
//	}, invoke)
//
// # Batches
//
// A batch is invoked when it is full, when the batching window has passed since its first message, or when the next record would
// make the event larger than 6 MB. A mapping receives only while fewer than MaximumConcurrency batches run, so every received
// batch can be invoked at once. After the invocation it deletes the messages that succeeded, ten a call. It leaves the messages
// that failed unchanged. They return when their visibility timeout ends, and only the function can shorten that.
//
// # Responses
//
// Without ReportBatchItemFailures a batch succeeds or fails as a whole, and the mapping ignores the response. With it:
//
//	the function failed, ran into its timeout, or crashed       the whole batch fails
//	nothing, null, {}, or an object without batchItemFailures   the whole batch is deleted
//	batchItemFailures is null or []                             the whole batch is deleted
//	batchItemFailures names messages of the batch               the others are deleted
//	any item is empty, has no itemIdentifier, is not a string,
//	or names no message of the batch                            the whole batch fails
//	not JSON, not an object, batchItemFailures not a list       the whole batch fails
//
// Two responses lose messages on AWS without any notice: one with batchItemFailures when ReportBatchItemFailures is off, and one
// with a wrong name, such as BatchItemFailures. This package logs both as warnings.
//
// # FIFO queues
//
// A message group is never in two invocations at once, and a message never overtakes a failed one of its group. The order inside
// a batch is the responsibility of the function. The mapping deletes a message that the function doesn't report, even if a
// message before it in its group failed.
//
// # Streams
//
// A mapping reads every shard of the stream, a parent to its end before its children. It invokes a failed batch again, after 0.5
// s and then twice as long up to 30 s. Later records of the shard wait until the batch succeeds, or until its records are dropped
// for their number of retries or their age. OnDropped and the log report dropped records. With ReportBatchItemFailures the lowest
// sequence number of the response is the checkpoint, from which the batch is invoked again. AWS does not say whether that is one
// of MaximumRetryAttempts. Here it is. A response that is invalid fails the batch, as above. If the stream has trimmed records
// before the mapping read them, the mapping goes on with the oldest record that is there. Checkpoints end with RunStream.
//
// # Not implemented
//
// Tumbling windows, destinations other than OnDropped, provisioned pollers, metrics and Lambda's scaling are not implemented.
// Up to MaximumConcurrency batches run at once from the start, also after errors. Only one poll is in flight at a time.
//
// The sources are https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html and
// https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html, and the pages below them. Rules that they don't cover follow events
// and responses that others recorded on AWS.
package esm
