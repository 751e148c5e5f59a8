package host

import "time"

// Believed is how long what was read of a queue is believed where nothing contradicts it: policies and dead-letter queues change while
// processes live. Protocol, 17.11.
const Believed = 5 * time.Minute

// LeastLeft is the last part of a message's life, which no delay reaches: time for another receive, and for a send. SQS deletes a
// message when its retention is over, also one that waits for its next attempt, and tells nobody. Protocol, 17.15.
func LeastLeft(visibility time.Duration) time.Duration { return max(2*visibility, time.Minute) }

// CrashCosts says whether a crash by the head of a FIFO group at that receive costs messages behind it their last receive but one: SQS
// moves the messages that it has delivered maxReceiveCount times, 0: not known. behind is the highest receive count of these: in a
// worker those behind the heads of all groups, in a function those behind this one; 0: none. With two receives the first crash would be the last, so the first receive costs nothing, and neither does that of a
// message whose count goes on from another queue. Protocol, 17.7.
func CrashCosts(maxReceives, received, behind int, moved bool) bool {
	return maxReceives > 0 && !moved && received >= max(2, maxReceives-1) && behind >= max(1, maxReceives-1)
}
