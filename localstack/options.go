package localstack

import "strconv"

// Options say what [Start] sets up.
type Options struct {
	// Queues to create.
	Queues []Queue
	// Tables are idempotency tables: string key "id", TTL on "expiration".
	Tables []string
	// Endpoint is the URL of both services. Default: from the environment, else memory: see [Start].
	Endpoint string
	// HTTP makes the in-memory services also listen on a free port of 127.0.0.1, for other processes. It has no effect
	// where a service is at an endpoint. Do not set it in a synctest bubble: sockets know no virtual time. Default: false.
	HTTP bool
}

// Queue is a queue that [Start] creates.
type Queue struct {
	// Name of the queue; with the suffix ".fifo" it is a FIFO queue, and so is its dead-letter queue.
	Name string
	// MaxReceiveCount is after how many receives a message is moved to the dead-letter queue, which is called Name-dlq
	// (the suffix ".fifo" stays last). Default: 5; negative: no dead-letter queue.
	MaxReceiveCount int
	// Attributes are further queue attributes, such as VisibilityTimeout.
	Attributes map[string]string
}

func (q Queue) maxReceiveCount() string {
	if q.MaxReceiveCount == 0 {
		return "5"
	}
	return strconv.Itoa(q.MaxReceiveCount)
}
