// Package control pauses the workers of a consumer, and limits their concurrency, while they run. An operator writes one record
// into the consumer's store of records, by the command sqsonce pause or by [Set], and every worker reads it:
//
//	c, err := control.New(store, "billing")
//	handler := c.Handler(once.Handler(sqsonce.JSON(charge))) // outside of deduplication
//	w, err := sqsworker.New(client, queueURL, handler, func(o *sqsworker.Options) { o.Hooks = append(o.Hooks, c.Hooks()) })
//
// Rules:
//
//   - A worker reads the record before its first receive, and then every 5 to 6 s. It stops the receives of a paused consumer. A
//     long poll that is under way may still bring messages, for up to sqsworker.Options.WaitTime.
//   - Handlers that run go on to their end. [Control.Handler] holds the other messages of the worker, which costs neither an
//     attempt nor a receive. The worker gives back messages above MaxHeld, unless they have few receives left. This
//     costs each a receive.
//   - Every state has an end, at most 7 days away, and says who asked for it and why. At its end the workers go on, also while the
//     store is down.
//   - If the store is down or the record is broken, the state that was read last stays in force until its end. A worker that
//     starts then works.
//   - A limit is a cap for each worker: the lower one of it and of the program's concurrency counts.
//
// A paused worker is live and ready, and its intake is sqsworker.IntakePaused. The queue's retention goes on, so a pause that is
// longer than a message has left loses the message: the command sqsonce pause refuses it.
//
// The record's key is sqsonce.control#CONSUMER. On DynamoDB, limit who may write it by the condition dynamodb:LeadingKeys of a
// policy.
package control
