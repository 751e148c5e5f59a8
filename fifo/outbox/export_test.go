package outbox

import (
	"sync/atomic"
	"time"
)

// SetClocks sets what the relay takes for its clocks.
func (r *Relay) SetClocks(f func() instant) { r.clocks = f }

// Freezable returns clocks of which freeze advances the wall clock alone.
func Freezable() (clocks func() instant, freeze func(time.Duration)) {
	var frozen atomic.Int64
	return func() instant {
		i := readClocks()
		i.wall = i.wall.Add(time.Duration(frozen.Load()))
		return i
	}, func(d time.Duration) { frozen.Add(int64(d)) }
}

// Rung and Remembered return how many names the relay keeps.
func (r *Relay) Rung() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.rung)
}

func (r *Relay) Remembered() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.groups)
}
