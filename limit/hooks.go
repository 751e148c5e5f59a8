package limit

import (
	"context"
	"sync"

	"github.com/sqsonce/sqsonce/internal/host"
)

// Hooks are called for telemetry. The rules of [sqsonce.Hooks] apply.
type Hooks struct {
	// Attach is called by New, and its result, which may be nil, at the end of the first Close. It is for instruments that read
	// Stats when they are collected.
	Attach func(l *Limiter) (detach func())
}

// attach calls the Attach hooks.
func (l *Limiter) attach() {
	var hooks []func(*Limiter) func()
	for _, h := range l.o.Hooks {
		hooks = append(hooks, h.Attach)
	}
	l.detach = sync.OnceFunc(host.Attach(context.Background(), l.o.Logger, "limit", hooks, l))
}
