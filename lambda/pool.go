package lambda

import (
	"slices"
	"sync"
)

// pool runs items on goroutines, at most limit at once, in the order in which they were added.
type pool[T any] struct {
	limit int
	run   func(T)

	mu      sync.Mutex
	waiting []T
	workers int
}

func (p *pool[T]) add(items ...T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, items...)
	p.startWorker()
}

// replace has another worker run in the place of one whose item does not end.
func (p *pool[T]) replace() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit++
	p.startWorker()
}

// queued returns the items that wait.
func (p *pool[T]) queued() []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.waiting)
}

// startWorker starts a worker if there is something to do for it. Each worker starts the next one when it takes an item:
// where items wait for something all workers are soon there, and items that take no time are run by the first few, for which
// a goroutine each would cost more than they do.
func (p *pool[T]) startWorker() {
	if len(p.waiting) > 0 && p.workers < p.limit {
		p.workers++
		go p.work()
	}
}

// work runs items until none is left. Its goroutine ends when an item calls runtime.Goexit: another one then replaces it.
func (p *pool[T]) work() {
	returned := false
	defer func() {
		if !returned {
			go p.work()
		}
	}()
	for {
		item, ok := p.next()
		if !ok {
			break
		}
		p.run(item)
	}
	returned = true
}

func (p *pool[T]) next() (item T, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		p.workers--
		return item, false
	}
	item, p.waiting = p.waiting[0], p.waiting[1:]
	p.startWorker()
	return item, true
}
