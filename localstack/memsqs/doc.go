// Package memsqs is an SQS in memory: the JSON protocol, standard and FIFO queues, by the text of AWS's documentation. It
// is an http.Handler for any client in any language, and an http.RoundTripper under a real SDK client: in a
// testing/synctest bubble time is virtual, so that a 20 s long poll or a visibility timeout of hours takes no time.
//
// # What goes wrong
//
// Options.Faults is a plan of what goes wrong, as data: errors before or after the effect, lost replies, delays, resets,
// requests replayed later, failed and forgotten entries of batches, duplicates and visibility timeouts that end early.
// Server.Calls tells which calls took which fault. As with AWS, a client that cancels a long poll does not stop it: what
// the poll receives is stranded until its visibility timeout ends.
//
// # Choices where AWS says nothing
//
// A duplicate sent to a FIFO queue is answered with the message ID and the sequence number of the first. A visibility
// change with a superseded receipt handle is an InvalidParameterValue, and one after the visibility timeout has ended is a
// MessageNotInflight; AWS was seen to answer success to both, which Options.LooseHandles does. A receive that is repeated with the same
// ReceiveRequestAttemptId does not raise the receive count. Changes of queue attributes are in force at once, except
// DeduplicationScope, which stays as the queue was created.
//
// A handler tested on it, with duplicates, expired visibility timeouts and a crash, is in
// examples/orders/own_handler_test.go.
//
// Package sqstest holds the rules as test cases, each with its source, and runs them against this package and against
// emulators that others wrote.
//
// # What it does not do
//
// It verifies no signatures and no permissions (AddPermission and RemovePermission are unknown operations), encrypts
// nothing, throttles only by a plan of faults, has no fairness between the tenants of a standard queue, and keeps nothing
// after the process.
package memsqs
