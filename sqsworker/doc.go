// Package sqsworker is one of the two hosts of a handler: a worker that long-polls an SQS queue, for ECS, Kubernetes,
// EC2 or a laptop. The other host is package lambda; the handler is the same.
//
//	w, err := sqsworker.New(client, queueURL, handler)
//	err = w.Run(ctx) // blocks; nil after a clean stop
//
// # Guarantees
//
// The worker deletes a message only after its handler returned nil or [sqsonce.Skip], after an earlier delivery of it was done, or
// after the dead-letter queue has confirmed it. In every other case (not started, panic, timeout, process killed) SQS delivers
// the message again.
//
// SQS delivers at least once, and a worker can die between a handler's effect and the delete. Package dedup makes a
// handler run once per event. A worker without it knows only the last 10,000 messages that it has finished itself, and
// deletes further copies of them without running the handler. It shares this list with no other worker.
//
// Package sqsonce says what each error of a handler means. [sqsonce.ErrInProgress] is not a failure: the worker holds the message. It
// stays hidden, extended by the heartbeat, takes neither a slot nor a place in MaxInFlight, and is tried again when the other delivery of
// this process has ended, else when the lease of the other delivery should have ended. Beyond Options.MaxHeld and half of MaxBytes it is
// given back until then, unless it is at its last receive.
//
// # Slow handlers
//
// A heartbeat hides each message from its receipt until its delete is confirmed, also while the message waits for a
// handler. It extends the visibility timeout at half its length (at a third below ten seconds), ten messages per call,
// and tries failed extensions again. [Options.VisibilityTimeout] is how long a message may stay hidden after a worker died; it
// does not limit handlers.
//
// The worker loses the lease of a message when SQS refuses an extension, or when the time of the last extension that
// succeeded is over. Another worker may have the message then. The handler's context is cancelled with cause
// [sqsonce.ErrLeaseLost], and the worker neither deletes nor changes the message. It does not start a message whose lease
// it cannot prove. SQS hides no message for longer than twelve hours after its receipt; neither does the worker.
//
// An answer to a receive may arrive late: a slow network, a process that was stopped. Its Date says when SQS handed the
// messages out. They are extended before their handlers start if less than half of the visibility timeout is left, and not
// started if nothing is. A visibility timeout below 5 s is too short for that: Dates are whole seconds.
//
// While calls of SQS fail, the worker makes one of each kind at a time, after delays that double up to 5 s.
//
// A handler that does not return within [Options.StopGrace] after its context was cancelled counts as stuck. The worker
// gives its slot to another message, and goes on to extend the message of the stuck handler. If its lease was lost, the
// message may be received here again: it waits for the handler until that counts as stuck. Then it is given back for other
// workers, for half the visibility timeout, doubled with each receive, with what came of its FIFO group; at its last receive
// it goes on waiting. When as many handlers as Concurrency are stuck, /live of [Worker.Health] is 503.
//
// # Many workers, slow handlers
//
// A message that waits in a worker for a slot cannot be handled by another one that has a slot free. A worker therefore
// receives for its free slots, and beyond them only what its handlers will take up within a second, as far as their last
// runs tell; until some have returned, nothing. Receives for quick handlers are for ten messages each, which costs least.
// [Options.MaxInFlight] and [Options.MaxBytes] are the upper limits.
//
// [Worker.Pause] stops the receives, and [Worker.SetConcurrency] changes the slots, while the worker runs. [RunAll] runs
// the workers of several queues with one stop.
//
// # Outages
//
// A handler that returns [sqsonce.ErrUnavailable], as package dedup does while its store does not work, has made no attempt: the message
// is held, with its FIFO group, outside MaxInFlight. Where the error has a question ([sqsonce.UnavailableUntil], and every error of
// dedup's store), the worker asks it. While it fails the worker receives nothing and runs nothing, and gives messages back after a
// minute as long as each has two receives left, because other workers may be better off. Where it passes only the message is set
// aside, and tried again after 1 s, doubling to 5 min. Without a question three such outcomes in a row make the worker doubt: it
// receives one message a second, to see whether others can be handled, and gives them back after 90 s. A worker starts with one
// message, until one has had another outcome. [Worker.Health] is not ready while a question fails or the worker is in doubt. The
// worker logs one line a minute while messages are unavailable, and one at the end.
//
// # Shutdown
//
// Cancelling Run's context starts the stop:
//
//  1. The worker starts no new receive. It does not cancel long polls under way, since SQS may hand messages to a
//     cancelled one. Messages that they still bring are given back at once.
//  2. Messages that have not been started are given back. A message at its last receive before the dead-letter queue is
//     run instead, as long as handlers go on. What has not been started then is given back too, and SQS moves it unrun.
//  3. Handlers go on until [Options.StopTimeout]. Then their contexts are cancelled with cause [sqsonce.ErrShutdown], and
//     they have StopGrace to return. [Worker.Shutdown] cancels them at once, and gives back also what is at its last receive.
//  4. Deletes and releases that are still open are sent, for up to five more seconds. The heartbeat ends last.
//  5. Run waits for the last log lines, and for what [sqsonce.OnSettled] runs, at most a second each.
//
// Run then returns nil after a clean stop, or a [*StopError] that counts what the stop could not finish. [Worker.Stats]
// is the full report.
//
// The platform must wait for StopTimeout + StopGrace + 7 s before it kills the process, and StopTimeout should be at
// least WaitTime + 5 s. The defaults take at most 29 s: ECS (stopTimeout) and Kubernetes (terminationGracePeriodSeconds) send
// SIGTERM and, 30 s later by default, SIGKILL. Handlers that need longer to finish need a longer StopTimeout, and for two
// minutes, the most that Fargate waits:
//
//	o.StopTimeout = 110 * time.Second
//
//	"stopTimeout": 120                   in the container definition of ECS
//	terminationGracePeriodSeconds: 120   in the pod of Kubernetes
//
// In a container the process must be the first one, or be run by one that passes signals on ("initProcessEnabled": true
// on ECS). The probes of Kubernetes:
//
//	livenessProbe:  {httpGet: {path: /live, port: 8080}}
//	readinessProbe: {httpGet: {path: /ready, port: 8080}}
//
// See the package example for the signals and [Worker.Health] for the probes. A shorter WaitTime makes stops shorter, and
// costs more receives on an idle queue.
//
// # Startup check
//
// Run reads the queue's attributes before its first receive, and logs each questionable setting of the queue and the
// options in one line, "sqsworker: questionable setting" with the keys setting, value and reason: no redrive policy, or
// one of one or two receives; a dead-letter queue with a shorter retention than the queue; a stop shorter than a poll;
// options without effect on this kind of queue. The first timeout beyond MaxExtension is logged so when its handler starts.
// None of these ends Run. A queue that does not exist, or a call that is not allowed, does; also later, after the same stop.
// To a queue that was deleted nothing is sent again.
//
// Attributes that may not be read delay nothing: see IAM. Those that are not answered (throttling, an outage) are waited for,
// for 30 s; /ready says so. Then the worker receives as without permission, and asks for them once a minute. If the queue's
// URL does not have a form of AWS's, so that its ARN is not known, it waits on. If no request could be sent in the 30 s, for example
// without credentials, Run ends with the error: nothing was received yet. If GetQueueUrl fails, the URL of the
// dead-letter queue is that of its name beside the queue.
//
// # Log
//
// One line at the start says what the worker runs with, "sqsworker: started". Each line about a message has message_id, and
// key if the message has one: that which package dedup has used, and logs after the consumer and "#"; before the handler has
// come so far, and with a dedup.Options.Key, that of [sqsonce.Message.Key] without [sqsonce.OpenEnvelope]. One line says which
// message is sent to the dead-letter queue, and why (reason); one which is given back at its last receive, so that SQS moves
// it there, if the dead-letter queue was found.
//
// # Hooks
//
// Options.Hooks are called around handlers and around calls of SQS, for traces and metrics: see [Hooks]. They run on the goroutines
// of handlers and calls, and one that takes long delays its own message or call. For counts and gauges read [Worker.Stats] instead:
// an Attach hook gets the worker.
//
// # FIFO
//
// If the queue's URL ends in .fifo, the messages of a group run one after the other, over all receives: the next one
// starts when the delete of the one before is confirmed. Groups do not wait for each other. On a standard queue a group
// is a tenant of a fair queue and orders nothing.
//
// A failing head is run again in this process, [Options.MaxAttempts] times, and the group waits behind it. Then it is sent to the
// dead-letter queue with its last error, and the next message is the head. SQS counts no receive of the group meanwhile, so
// no follower gets there without having been run. What waits takes no part of MaxInFlight: poisoned groups leave the others
// their speed; see [Options.MaxHeld]. Without a redrive policy the group is given back after so many tries. If the dead-letter
// queue refuses the message, the worker leaves the head to SQS at its last receive. If the queue is missing or unknown, SQS would
// deliver the head again, after the messages behind it: the worker holds the group, logs it once, looks for the queue every
// 30 s, and goes on within a minute after you create it.
// When the worker loses the lease of one message of a group, it drops those behind it: SQS delivers them again, in order.
//
// # IAM
//
// On the queue: sqs:ReceiveMessage, sqs:DeleteMessage, sqs:ChangeMessageVisibility and sqs:GetQueueAttributes. Without
// the last one the worker assumes a redrive policy of three receives, and knows no dead-letter queue unless
// Options.DeadLetterQueue names it: messages behind a FIFO message that always fails then wait. On the dead-letter queue:
// sqs:SendMessage and sqs:GetQueueUrl; there sqs:GetQueueAttributes serves the startup check only. With a customer-managed KMS key:
// kms:Decrypt, and kms:GenerateDataKey for the dead-letter queue's key.
//
// # Testing
//
// Package localstack/memsqs is an SQS in memory, an http.RoundTripper under the real client. In a testing/synctest
// bubble a handler of twelve hours takes no time, and fault plans lose replies, fail entries and deliver twice.
package sqsworker
