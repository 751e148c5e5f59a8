package outbox

import (
	"context"
	"log/slog"

	"github.com/sqsonce/sqsonce/internal/guard"
)

// Hooks are called for telemetry. The rules of [sqsonce.Hooks] apply.
type Hooks struct {
	// Attach is called by NewRelay. It is for instruments that read Stats and Backlog when they are collected. You don't close
	// a Relay, so it has no detach, and an instrument that reads it keeps it in memory.
	Attach func(r *Relay)
}

func (r *Relay) attach(log *slog.Logger, hooks []Hooks) {
	for _, h := range hooks {
		if h.Attach != nil {
			guard.New(log, "outbox: Hooks.Attach").Call(context.Background(), func() { h.Attach(r) })
		}
	}
}
