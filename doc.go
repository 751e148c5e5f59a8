// Package sqsonce is the vocabulary of a toolkit that makes an SQS handler run once per event.
//
// SQS delivers at least once: a worker dies after charging the card and before deleting the message, a slow handler
// outlives its visibility timeout, a producer retries. A [Handler] written against this package runs unchanged in two
// hosts, a Lambda function (package lambda) and a long-polling worker (package sqsworker), and is guarded by a record
// per event (package dedup and its stores).
//
// # Outcomes
//
// What a handler returns decides what becomes of its message, in the same way in both hosts:
//
//   - nil: done; the message is deleted.
//   - [Skip]: done without an effect, with the reason; the message is deleted.
//   - [RetryAfter]: delivered again after the asked delay.
//   - [Reject]: never again; sent to the dead-letter queue with the reason, then deleted. Where the host knows no
//     dead-letter queue it is treated as any other error and never deleted.
//   - [Unavailable], [UnavailableUntil]: something that messages need is down; delivered again, after a longer delay for all, and not counted as a
//     failure of the message.
//   - any other error, a panic ([PanicError]) or [runtime.Goexit]: delivered again, by the host's backoff.
//
// # Keys
//
// [EventKey] is the one function that publisher and consumer share: the publisher derives the FIFO
// MessageDeduplicationId from it, the consumer the key of the event's record ([Message.Key]).
//
// # Envelopes
//
// [OpenEnvelope] takes a message out of the envelopes of SNS, EventBridge and CloudEvents, before its key is made.
//
// # Nil
//
// This holds for all packages. New functions refuse a nil handler, client or store with a [OptionError]; those that return a
// Handler alone, such as [OpenEnvelope], return one that fails each message with it. A nil option function, context or message
// panics, as with the AWS SDK. The zero value of a type that a New function makes cannot be used.
//
// The package imports the standard library and this module's internal packages alone.
package sqsonce
