// Package inboxkit is for inboxes. An inbox runs the handler's writes and the record's complete in one transaction. The functions
// are dedup's, see its inbox.go.
package inboxkit

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/hook"
)

var (
	// Guard is the Once's Handler for a function whose own transaction may complete the record.
	Guard = hook.Take[func(*dedup.Once, func(context.Context, *sqsonce.Message, dedup.Lease) (bool, error)) sqsonce.Handler]("dedup.guard")
	// LeaseFrom returns the record lease under which ctx's handler runs.
	LeaseFrom = hook.Take[func(context.Context) (dedup.Lease, bool)]("dedup.leaseFrom")
	// StopRenewal ends the renewals of that lease, before the commit. At least so much of the lease is left then.
	StopRenewal = hook.Take[func(context.Context, time.Duration) (dedup.Lease, error)]("dedup.stopRenewal")
	// Recording tells the host whether the handler has returned. After StopRenewal it has.
	Recording = hook.Take[func(context.Context, bool)]("dedup.recording")
	// ResultOf returns the result that the transaction completes the record with, after a handler that returned the error.
	ResultOf = hook.Take[func(context.Context, error) dedup.Result]("dedup.handlerResult")
)
