package runtimeapi

import "time"

// InitTimeout is how long a process may run before it asks for its first invocation.
func InitTimeout(o *Options) *time.Duration { return &o.initTimeout }

// ErrTooLarge is the error of an event above 6 MB.
var ErrTooLarge = errTooLarge

// The error types of Lambda.
const (
	TypeTimeout      = typeTimeout
	TypeExit         = typeExit
	TypeEntrypoint   = typeEntrypoint
	TypeResponseSize = typeResponseSize
)
