// Package backoff forwards to internal/host.
package backoff

import "github.com/sqsonce/sqsonce/internal/host"

// The functions of internal/host.
var (
	Default = host.DefaultBackoff
	Jitter  = host.Jitter
	Double  = host.Double
	Wait    = host.Wait
	Seconds = host.Seconds
)
