package dedup

import (
	"context"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/internal/settle"
)

// peers are the record leases that deliveries of this process own or are about to acquire, by the record's key.
type peers struct {
	mu     sync.Mutex
	leases map[string]*recordLease
}

func newPeers() peers { return peers{leases: make(map[string]*recordLease)} }

// join enters rl, which is about to acquire key. Where a peer's lease on key is live, join returns that lease and does
// not enter rl. A peer whose lease was lost or may be over is replaced: the store knows more.
func (p *peers) join(key string, rl *recordLease) (peer *recordLease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if peer = p.leases[key]; peer != nil && peer.live() {
		return peer
	}
	p.leases[key] = rl
	return nil
}

func (p *peers) leave(key string, rl *recordLease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leases[key] == rl { // else it was replaced
		delete(p.leases, key)
	}
}

// joinPeers decides a delivery without a request where this process knows enough: the event was completed here, or a peer
// has its record. Else known is false: rl has joined the peers, and the store must be asked.
//
// A delivery that finds a peer waits for it and checks again when the peer has ended. Copies of an event often reach a
// process in one batch. If all but the first were refused as in progress at once, each would come back a lease later and
// spend one more receive. A moment later they are acknowledged after the first one's success, or the next one runs after
// its failure.
//
// The wait cannot deadlock. It has a bound. A delivery that waits owns no record, so nothing waits for it. A call from
// inside a handler of a Once does not wait: the peer may be that handler's own delivery, or may wait for it. And the peer
// needs nothing that the waiting deliveries occupy: it has its slot of the host and its record.
func (o *Once) joinPeers(ctx context.Context, rl *recordLease) (known bool, err error) {
	t := &rl.task
	waits := o.o.PeerWait >= 0 && !rl.nested
	var bound <-chan time.Time // one bound for the ends of all peers together
	for {
		if r, ok := o.cache.get(t.key); ok && t.replay == nil && !t.redriven {
			o.counts.cacheHits.Add(1)
			return true, o.duplicate(ctx, t, r, true)
		}
		peer := o.peers.join(t.key, rl)
		if peer == nil {
			return false, nil
		}
		// A host that can hold the message waits until peer.ended. A call of Do waits here: its caller may have done
		// something that must not be repeated.
		if waits && t.replay == nil && settle.Holding(ctx) {
			o.counts.cacheHits.Add(1)
			return true, o.inProgress(ctx, t, Decision{Until: peer.until(), Memory: true}, peer.ended.wait())
		}

		select {
		case <-peer.acquired.wait():
		case <-ctx.Done():
			return true, o.notStarted(ctx, t)
		}
		if !peer.live() {
			continue
		}
		if waits {
			if bound == nil {
				bound = time.After(o.o.PeerWait)
			}
			select {
			case <-peer.ended.wait():
				continue
			case <-bound:
				waits = false
			case <-ctx.Done():
			}
		}
		if peer.live() {
			o.counts.cacheHits.Add(1)
			return true, o.inProgress(ctx, t, Decision{Until: peer.until(), Memory: true}, nil)
		}
	}
}

// nested reports whether the call comes from inside a handler of a Once.
func nested(ctx context.Context) bool {
	return ctx.Value(leaseContextKey{}) != nil
}

// signal is given once. Its channel is made for the first that waits: most deliveries have no peer.
type signal struct {
	mu    sync.Mutex
	given bool
	ch    chan struct{}
}

func (s *signal) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = true
	if s.ch != nil {
		close(s.ch)
	}
}

// wait returns a channel that is closed when the signal is given.
func (s *signal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
		if s.given {
			close(s.ch)
		}
	}
	return s.ch
}
