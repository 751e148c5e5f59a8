package sqsworker

// room is what is left of the two limits on what is in flight: messages and bytes. Both are taken before a receive
// asks, since what SQS has handed out is in flight whether there is room for it or not.
type room struct {
	messages int   // limits
	bytes    int64 //
	used     int
	usedSize int64
	expect   int64 // of one message, from the largest seen lately
}

// reservation is the room of a receive under way.
type reservation struct {
	n    int
	size int64
}

// firstGuess is the size of a message before any was seen: the limit that most queues have.
const firstGuess = 256 << 10

func newRoom(messages int, bytes int64) room {
	return room{messages: messages, bytes: bytes, expect: firstGuess}
}

// fits returns how many messages a receive may ask for, 0 to 10.
func (r *room) fits() int {
	n := min(maxBatch, r.messages-r.used, int((r.bytes-r.usedSize)/r.expect))
	if r.used == 0 {
		n = max(n, 1) // a message is never larger than the limit alone
	}
	return max(n, 0)
}

// full is what a receive asks for when nothing else is in flight.
func (r *room) full() int { return min(maxBatch, r.messages) }

func (r *room) take(n int) reservation {
	res := reservation{n: n, size: int64(n) * r.expect}
	r.used += res.n
	r.usedSize += res.size
	return res
}

func (r *room) give(res reservation) {
	r.used -= res.n
	r.usedSize -= res.size
}

// add counts a message that arrived.
func (r *room) add(size int64) { r.used, r.usedSize = r.used+1, r.usedSize+size }

// learn adapts the expected size: up at once, down by an eighth per receive.
func (r *room) learn(largest int64) {
	if largest > 0 {
		r.expect = max(largest, r.expect-r.expect/8, 1024)
	}
}
