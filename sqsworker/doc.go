// Package sqsworker is one of the two hosts of a handler: a worker that long-polls an SQS queue, for ECS, Kubernetes,
// EC2 or a laptop. The other is package lambda; the handler is the same.
//
//	w, err := sqsworker.New(client, queueURL, handler)
//	err = w.Run(ctx) // blocks; nil after a clean stop
//
// # Guarantees
//
// A message is deleted only after its handler returned nil, after it was done before, or after the dead-letter queue has
// confirmed it. Everything else (not started, panicked, timed out, process killed) is delivered again.
//
// SQS delivers at least once, and a worker can die between a handler's effect and the delete. For a handler that must
// run once per event wrap it with package dedup. The worker alone remembers the last 10,000 messages that it has
// handled and deletes further copies of them without running; two workers have two memories.
//
// What a handler returns decides what becomes of its message: see package sqsonce. [sqsonce.ErrInProgress] is not a
// failure: the message comes back when the other delivery should have ended. Where the next receive would move it to
// the dead-letter queue, and on FIFO queues, it is kept instead, under the heartbeat and without a slot. So is a copy of
// an event that this process is handling (package dedup knows), while such copies take less than half of what InFlight
// has beyond Concurrency and of Bytes: it is handled, or deleted, as soon as the other one has ended, in its first
// receive.
//
// # Slow handlers
//
// From its receipt until its delete is confirmed a message is hidden from others by a heartbeat, also while it waits for
// a handler. The visibility timeout is extended at half its length (at a third below ten seconds), ten messages per
// call, and failed extensions are tried again. Set [Options.Visibility] to how long a message may stay hidden after a
// worker died; it does not limit handlers.
//
// When SQS refuses an extension, or when the last one that succeeded is used up, the lease is lost: another worker may
// have the message. The handler's context ends with cause [sqsonce.ErrLeaseLost], and nothing is deleted or changed. A
// message whose lease cannot be proven is not started at all. SQS hides no message for longer than twelve hours after
// its receipt; neither does the worker.
//
// A handler that does not return within [Options.StopGrace] after its context has ended counts as stuck. Its slot goes
// to another; its message stays hidden while its lease can be proven.
//
// # Shutdown
//
// The end of Run's context starts the stop:
//
//  1. Nothing more is asked for. Long polls under way end by themselves, since SQS may still hand messages to a cancelled
//     one; what they bring is given back at once.
//  2. What has not been started is given back, except where it is at its last receive before the dead-letter queue: that
//     is run.
//  3. Handlers go on until [Options.StopTimeout]. Then their contexts end with cause [sqsonce.ErrShutdown], and they have
//     StopGrace to return. [Worker.Hurry] goes there directly.
//  4. Deletes and releases are sent; they have up to five more seconds. The heartbeat ends last.
//
// Run then returns nil, or a [*StopError] that says what is left. [Worker.Stats] is the full report.
//
// The platform must wait long enough: StopTimeout + StopGrace + 5 s, with a StopTimeout of at least Wait + 5 s. The
// defaults need 32 s.
//
// ECS sends SIGTERM and, after stopTimeout (30 s by default, 120 s at most on Fargate), SIGKILL. In the container
// definition:
//
//	"stopTimeout": 40
//
// The process must be the container's first one, or be run by one that passes signals on ("initProcessEnabled": true).
//
// Kubernetes waits for terminationGracePeriodSeconds, 30 by default:
//
//	terminationGracePeriodSeconds: 40
//	livenessProbe:  {httpGet: {path: /live, port: 8080}}
//	readinessProbe: {httpGet: {path: /ready, port: 8080}}
//
// See the package example for the signals and [Worker.Health] for the probes. A shorter Wait makes shorter stops, at the
// price of more receives on an idle queue.
//
// # At the start
//
// Run reads the queue's attributes before its first receive, and logs what is unwise in them and in the options, one line
// each, "sqsworker: unwise setting" with the keys setting, value and reason: no redrive policy, or one of one or two
// receives; a dead-letter queue that keeps messages for a shorter time than the queue; a stop shorter than a poll; a
// handler's time beyond what a message can be kept; options without effect on the kind of queue. None of it ends Run. What
// cannot work does: the queue does not exist, or a call is not allowed.
//
// # FIFO
//
// A queue URL that ends in .fifo makes the messages of a group run one after the other, over all receives: the next
// starts when the delete of the one before is confirmed. Groups do not wait for each other. On a standard queue a group
// is a tenant of a fair queue and orders nothing.
//
// A failing head is run again in this process, [Options.FIFORetries] times, its followers held back; then the group is
// given back, the head with a delay. SQS counts a receive of the followers too whenever the head comes again. Where a
// follower would be at its last receive, the worker therefore sends the failing head to the dead-letter queue by itself
// and goes on with the followers; none gets there without having been run. When the lease of one message is lost, those
// behind it are dropped: they come again, in order.
//
// # IAM
//
// On the queue: sqs:ReceiveMessage, sqs:DeleteMessage, sqs:ChangeMessageVisibility and sqs:GetQueueAttributes; without
// the last one the redrive policy is taken to allow three receives. On the dead-letter queue: sqs:SendMessage and
// sqs:GetQueueUrl; sqs:GetQueueAttributes there is for a line at the start alone. With a customer-managed KMS key:
// kms:Decrypt, and kms:GenerateDataKey for the dead-letter queue's.
//
// # Testing
//
// Package localstack/memsqs is an SQS in memory, an http.RoundTripper under the real client. In a testing/synctest
// bubble it makes a twelve-hour handler take no time, and its fault plans lose replies, fail entries and deliver twice.
package sqsworker
