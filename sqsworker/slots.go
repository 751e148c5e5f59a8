package sqsworker

// slots are the places of running handlers. What limits how many may run at once is here, but for what keeps a message from starting
// at all: see mayStart.
type slots struct{ taken int }

// freeSlots is how many handlers may start. It is negative after Concurrency was lowered.
func (l *loop) freeSlots() int { return l.opts.Concurrency - l.slots.taken }

// waitForSlots is how many messages are ready. A receive for a free slot would bring one more than handlers can use.
func (l *loop) waitForSlots() int { return len(l.ready) }

func (l *loop) takeSlot(d *delivery) {
	d.slot = true
	l.slots.taken++
}

// endSlot gives the slot of a handler to another one: it has returned, or is stuck.
func (l *loop) endSlot(d *delivery) {
	l.endAgain(d)
	if d.slot {
		d.slot = false
		l.slots.taken--
	}
}
