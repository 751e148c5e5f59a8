package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce"
)

// handlerPool admits the transactions of handlers to the pool, not more than it has connections, and notices when their
// handlers wait for each other. A handler that reads through the pool, and not through its *sql.Tx, needs a second
// connection while handlers have all of them.
type handlerPool struct {
	db *sql.DB

	mu   sync.Mutex
	open int // transactions that have a connection, or will have one
	// changes counts the transactions that began or ended, and since has the pool's statistics at the last change.
	changes int
	since   sql.DBStats
	ended   chan struct{} // closed when a transaction ends, or nil if no transaction waits for that
}

// lookAfter is how much longer than CallTimeout the pool must be stuck. Every wait of this module for a connection ends
// before, so only handlers, or other parts of the program, still wait then.
const lookAfter = 2 * time.Second

// begin begins a transaction when the pool has a connection that no handler has. Until then it does not wait in the pool,
// where its wait would look like a handler's.
func (p *handlerPool) begin(ctx context.Context) (*sql.Tx, error) {
	for ended := p.enter(); ended != nil; ended = p.enter() {
		select {
		case <-ended:
		case <-ctx.Done():
			return nil, fmt.Errorf("handlers have all connections of the pool: set its limit (SetMaxOpenConns) above the host's concurrency: %w", context.Cause(ctx))
		}
	}
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		p.leave()
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed()
	return tx, nil
}

// enter returns nil, or a channel that is closed when a transaction has ended.
func (p *handlerPool) enter() (ended <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if limit := p.db.Stats().MaxOpenConnections; limit > 0 && p.open >= limit {
		if p.ended == nil {
			p.ended = make(chan struct{})
		}
		return p.ended
	}
	p.open++
	return nil
}

func (p *handlerPool) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
	p.changed()
	if p.ended != nil {
		close(p.ended)
		p.ended = nil
	}
}

func (p *handlerPool) changed() {
	p.changes++
	p.since = p.db.Stats()
}

// stuck reports whether handlers have all connections and a caller has waited for one since the last change. A wait that
// has ended is part of WaitDuration.
func (p *handlerPool) stuck() bool {
	now := p.db.Stats()
	return p.open >= now.MaxOpenConnections && now.WaitCount > p.since.WaitCount && now.WaitDuration == p.since.WaitDuration
}

// watch returns a context for a handler, and the function that ends the watch. If the pool is found stuck twice without a
// change between, the context is cancelled with a cause that names the pool. One handler at a time is cancelled: when its
// transaction is rolled back, another one goes on.
func (p *handlerPool) watch(ctx context.Context, wait time.Duration) (_ context.Context, stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.MaxOpenConnections == 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	w := &poolWatch{pool: p, cancel: cancel, every: wait + lookAfter}
	w.timer = time.AfterFunc(w.every, w.look)
	return ctx, w.stop
}

// poolWatch is the watch of one handler. The pool's mutex guards it.
type poolWatch struct {
	pool    *handlerPool
	cancel  context.CancelCauseFunc
	every   time.Duration
	timer   *time.Timer
	stuckAt int // the pool's changes when it was last found stuck
	stopped bool
}

func (w *poolWatch) look() {
	p := w.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case w.stopped:
		return
	case !p.stuck():
		w.stuckAt = 0
	case w.stuckAt != p.changes:
		w.stuckAt = p.changes
	default:
		p.changed() // the other handlers are not cancelled for the same wait
		w.cancel(sqsonce.Unavailable(fmt.Errorf("sqlstore: transaction: handlers have all %d connections of the pool, and wait for more:"+
			" read through the *sql.Tx, or set the pool's limit (SetMaxOpenConns) above the host's concurrency", p.since.MaxOpenConnections)))
		return
	}
	w.timer.Reset(w.every)
}

func (w *poolWatch) stop() {
	w.pool.mu.Lock()
	defer w.pool.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
	w.cancel(nil)
}
