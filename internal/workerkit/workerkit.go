// Package workerkit is for packages of ours that watch or hold a worker. The functions are sqsworker's, see its kit.go.
package workerkit

import (
	"github.com/sqsonce/sqsonce/internal/hook"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/sqsworker"
)

var (
	// Hold stops the receives as Pause does, until release is called. It doesn't end a pause of the program or of another package: the
	// worker receives while it is not paused and nobody holds it. The log line has why. A second call of release does nothing.
	Hold = hook.Take[func(w *sqsworker.Worker, why string) (release func())]("sqsworker.hold")
	// Limit lets the worker run at most so many handlers at once, until release is called. The least of its Concurrency and of all
	// limits is in force, so packages can limit independently of each other and of the program. Less than 1 counts as 1.
	Limit = hook.Take[func(w *sqsworker.Worker, concurrency int, why string) (release func())]("sqsworker.limit")
	// Running returns the handlers that run, stuck ones included, the oldest first and at most limit, and their total number.
	// Handlers that the stop has abandoned are among them until they return, also after Run. Its cost depends on limit.
	Running = hook.Take[func(w *sqsworker.Worker, limit int) (oldest []host.RunningHandler, total int)]("sqsworker.running")
	// NotLive and NotReady return the reason if /live or /ready of Health is 503, else "".
	NotLive  = hook.Take[func(*sqsworker.Worker) string]("sqsworker.notLive")
	NotReady = hook.Take[func(*sqsworker.Worker) string]("sqsworker.notReady")
)
