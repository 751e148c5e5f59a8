// Package memsqs is an SQS in memory. It speaks the JSON protocol and has standard and FIFO queues that follow AWS's
// documentation. A standard queue whose messages have a MessageGroupId is a fair queue.
//
// A [Server] is an http.Handler for clients in any language, and an http.RoundTripper for the SDK's client. With the RoundTripper
// in a testing/synctest bubble time is virtual. A long poll of 20 s, or a visibility timeout of hours, ends at once in real time.
//
// # Faults
//
// Options.Faults is a plan of the faults to inject: errors before or after the effect of a call, lost responses, delays, resets,
// requests that are repeated later, entries of a batch that fail or are missing in the response, duplicate deliveries, and
// visibility timeouts that end early. Server.Calls returns which calls had which fault.
//
// As on AWS, a client that cancels a long poll does not stop it. A message that the poll receives after that stays hidden until
// its visibility timeout ends.
//
// # Rules that AWS does not document
//
//   - The response for a duplicate sent to a FIFO queue has the message ID and the sequence number of the first message.
//   - ChangeMessageVisibility succeeds with a receipt handle that a later receive has replaced, and after the visibility timeout
//     has ended, as AWS was recorded to answer. With Options.StrictHandles both are the errors that are documented or reported.
//   - A receive that is repeated with the same ReceiveRequestAttemptId does not raise the receive count.
//   - The number of messages that a move task has moved is 1.5 s old. AWS's is some seconds old, also after the end of the task.
//   - Changes of queue attributes apply at once, except DeduplicationScope, which a queue keeps from its creation.
//   - A fair queue applies AWS's approximate thresholds exactly and at once. A tenant stays noisy while its share is above the
//     threshold. Recent processing time is the time that messages were in flight, and a second counts half as much 42 s later. A tenant
//     without a backlog starts with no processing time. A tenant that has sent nothing for 5 minutes is quiet until its next send.
//
// A test of a handler with duplicates, expired visibility timeouts and a crash is in examples/orders/own_handler_test.go. Package
// localstack/internal/sqstest has these rules as test cases, each with its source, and runs them on this package and on emulators
// written by others.
//
// # Not implemented
//
// The server does not check signatures or permissions (AddPermission and RemovePermission are unknown operations). It does not
// encrypt, and keeps all data in memory. It throttles only as a fault plan says, and publishes no metrics.
package memsqs
