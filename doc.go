// Package sqsonce has the types and functions that the packages of this toolkit share. The toolkit skips SQS events that your
// handler has completed, and runs each event in one process at a time.
//
// SQS delivers at least once: a worker dies after charging the card and before deleting the message, a slow handler
// outlives its visibility timeout, a producer retries. You write a [Handler] against this package. It runs unchanged in
// two hosts, a Lambda function (package lambda) and a long-polling worker (package sqsworker). A record per event
// guards it (package dedup and its stores). A crash before the record is complete runs the event again.
//
// # Outcomes
//
// Your handler's error decides about its message, in the same way in both hosts:
//
//   - nil: The event is done, and the host deletes the message.
//   - [Skip]: The event is done without an effect, with the reason. The host deletes the message.
//   - [RetryAfter]: The message is delivered again after the delay that you ask for.
//   - [Reject]: The message can never work. The host sends it to the dead-letter queue with the reason, then deletes
//     it. If the host doesn't know a dead-letter queue, it treats the error like any other and never deletes the
//     message.
//   - [Unavailable], [UnavailableUntil]: A dependency is down. The message runs again later, and the host holds the
//     others too if the dependency is down for them. The delivery does not count as an attempt.
//   - [Postpone]: Only this message waits, for the delay that you ask for, and then runs again. The delivery does not count
//     as an attempt.
//   - any other error, a panic ([PanicError]) or [runtime.Goexit]: The message is delivered again, by the host's
//     backoff.
//
// # Keys
//
// [EventKey] is the one function that publisher and consumer share. The publisher derives the FIFO
// MessageDeduplicationId from it. The consumer derives the key of the event's record from it ([Message.Key]).
//
// # Envelopes
//
// [OpenEnvelope] unwraps a message from the envelopes of SNS, EventBridge and CloudEvents, and [S3] reads the
// notifications of S3, before the message's key is made.
//
// # Nil
//
// These rules hold for all packages. New functions refuse a nil handler, client or store with an [OptionError].
// Functions that return only a Handler, such as [OpenEnvelope], return one that fails each message with that error. A
// nil option function, context or message panics, as with the AWS SDK. Don't use the zero value of a type that has a
// New function.
//
// The package imports only the standard library and this module's internal packages.
package sqsonce
