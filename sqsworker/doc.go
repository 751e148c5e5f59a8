// Package sqsworker is one of the two hosts of a handler: a worker that long-polls an SQS queue, for ECS, Kubernetes, EC2 or
// a laptop. The other host is package lambda, which runs the same handler.
//
//	w, err := sqsworker.New(client, queueURL, handler)
//	err = w.Run(ctx) // blocks, and returns nil after a clean stop
//
// docs/worker.md has the settings and a table of the failures. The package example shows the signals. Package
// localstack/memsqs is an SQS in memory for your tests, an http.RoundTripper under the real client. In a testing/synctest
// bubble a handler of twelve hours ends at once, and fault plans lose replies, fail entries and deliver twice.
//
// # Guarantees
//
// The worker deletes a message only if its handler returned nil or another success such as [sqsonce.Skip], an earlier delivery
// of it was done, or the dead-letter queue has confirmed it. In every other case (not started, panic, timeout, process killed)
// SQS delivers the message again.
//
// SQS delivers at least once, and a worker can die between a handler's effect and the delete. Package dedup skips the events
// that a handler has completed. A worker without it knows only the last 10,000 messages that it has finished itself, and deletes
// further copies of them without running the handler. Workers don't share this list.
//
// Package sqsonce describes the meaning of each error of a handler. [sqsonce.ErrInProgress] is not a failure, because the
// worker holds the message. See Options.MaxHeld.
//
// # Slow handlers
//
// A heartbeat hides each message from its receipt until SQS confirms its delete, also while the message waits for a handler. So
// a handler may run for longer than the visibility timeout. Options.VisibilityTimeout describes the heartbeat, and how a worker
// can lose the lease of a message. Options.StopGrace describes handlers that don't return after their context was cancelled.
//
// A worker receives only as many messages as its handlers can start soon. So messages don't wait here while another worker has
// a free slot. See Options.MaxInFlight. [Worker.Pause] stops the receives, and [Worker.SetConcurrency] changes the slots, while
// the worker runs. [RunAll] runs the workers of several queues with one stop.
//
// # Outages
//
// While calls of SQS fail, the worker makes one of each kind at a time, after delays that double up to 5 s. [Worker]
// describes how it holds messages while a store or another dependency is down.
//
// # FIFO
//
// If the queue's URL ends in .fifo, the messages of a group run one after the other, over all receives. The next one starts
// when the delete of the one before is confirmed. Groups don't wait for each other. Options.MaxAttempts describes messages
// that fail. When the worker loses the lease of one message of a group, it drops the messages behind it, and SQS delivers
// them again, in order. On a standard queue a group is a tenant of a fair queue and doesn't order messages.
//
// # Startup check and stop
//
// [Worker.Run] logs questionable settings of the queue before the first receive, and describes the steps of the stop.
// Options.StopTimeout has the times that your platform must allow, [Worker.Health] the probes, and [Client] the permissions.
package sqsworker
