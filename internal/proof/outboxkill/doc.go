// Package outboxkill kills relays and producers of an outbox with SIGKILL at every step, stops others with SIGSTOP while SQS forgets
// what it accepted, and checks the queue against the versions that were committed. The parent has the queue, and the clock of its
// deduplication. Its children are processes of the test binary: see [Main].
package outboxkill
