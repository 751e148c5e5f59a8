package outbox

import (
	"context"
	"log/slog"

	"github.com/sqsonce/sqsonce/internal/guard"
)

// Hooks are called for telemetry. The rules of [sqsonce.Hooks] apply.
type Hooks struct {
	// Attach is called by NewRelay: for instruments that read Stats and Backlog when they are asked. A Relay has no end, and
	// nothing detaches it: whoever reads it keeps it.
	Attach func(r *Relay)
}

func (r *Relay) attach(log *slog.Logger, hooks []Hooks) {
	for _, h := range hooks {
		if h.Attach != nil {
			guard.New(log, "outbox: Hooks.Attach").Call(context.Background(), func() { h.Attach(r) })
		}
	}
}
