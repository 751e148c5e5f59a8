package job

import (
	"strconv"

	"github.com/sqsonce/sqsonce/fifo"
)

// The outbox in the endpoint's DynamoDB.
const (
	OutboxTable  = "outbox"
	OutboxName   = "bench"
	OutboxSource = "bench"
)

// outboxBody is the size of a body, in bytes: with its attributes the item has more than 1 KB.
const outboxBody = 1024

// OutboxGroup is the name of a group in the outbox.
func OutboxGroup(n int) string { return "group-" + strconv.Itoa(n) }

// OutboxEvent is an event as a producer puts it into the outbox.
func OutboxEvent(e Event) fifo.Event {
	return fifo.Event{ID: EventID(e.N), Group: OutboxGroup(e.Group), Body: Body(e.N, outboxBody)}
}
