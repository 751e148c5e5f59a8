package sqsworker

// crew are goroutines that do one thing after the other, as many as there is to do at once. One that has done something
// has the stack that it takes, which a new one would have to grow again for every call of the SDK and every handler.
//
// The loop alone uses it.
type crew struct{ next chan func() }

func newCrew() crew { return crew{next: make(chan func())} }

// do has f done beside the loop, by one that waits or by a new one. It never blocks.
func (c *crew) do(f func()) {
	select {
	case c.next <- f:
	default:
		go work(f, c.next)
	}
}

// work ends with its crew, or with an f that ends its goroutine: a handler may call runtime.Goexit.
func work(f func(), next <-chan func()) {
	for ok := true; ok; f, ok = <-next {
		f()
	}
}

// dismiss lets those go that have nothing to do, now or when they are done.
func (c *crew) dismiss() {
	close(c.next)
	*c = newCrew()
}
