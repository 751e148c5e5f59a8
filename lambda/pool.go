package lambda

import (
	"slices"
	"sync"
)

// pool runs items on goroutines, at most limit at once, in the order in which they were added.
type pool[T any] struct {
	limit int
	run   func(T, *worker)

	mu       sync.Mutex
	waiting  []T
	workers  int
	starting bool // a worker that has not taken an item yet
}

// worker is a goroutine of a pool. run sets replaced where a replace was for it.
type worker struct{ replaced bool }

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
	p.workers--
	p.startWorker()
}

// queued returns the items that wait.
func (p *pool[T]) queued() []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.waiting)
}

// startWorker starts a worker if there is something to do for it. Each worker starts the next one when it takes its first
// item: if items wait for something, all workers are soon there. Items that take no time are run by the first worker or two,
// because a goroutine for each would cost more than they do.
func (p *pool[T]) startWorker() {
	if len(p.waiting) > 0 && p.workers < p.limit && !p.starting {
		p.workers++
		p.starting = true
		go p.work()
	}
}

// work runs items until none is left, or until its worker is replaced. Its goroutine ends when an item calls runtime.Goexit: then
// the worker goes on with another goroutine.
func (p *pool[T]) work() {
	var w worker
	returned := false
	defer func() {
		if !returned && !w.replaced {
			go p.work()
		}
	}()
	for item, ok := p.next(true); ok; item, ok = p.next(false) {
		if p.run(item, &w); w.replaced {
			break
		}
	}
	returned = true
}

// next takes an item. begun is true for a worker's first one.
func (p *pool[T]) next(begun bool) (item T, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if begun {
		p.starting = false
	}
	if len(p.waiting) == 0 {
		p.workers--
		return item, false
	}
	item, p.waiting = p.waiting[0], p.waiting[1:]
	p.startWorker()
	return item, true
}
