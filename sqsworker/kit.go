package sqsworker

import "github.com/sqsonce/sqsonce/internal/hook"

// This file is for packages of ours that watch or hold a worker. They call it by package internal/workerkit.

func init() {
	hook.Offer(map[string]any{
		"sqsworker.hold": (*Worker).holdReceives, "sqsworker.limit": (*Worker).limitHandlers, "sqsworker.running": (*Worker).listRunning,
		"sqsworker.notLive": (*Worker).whyNotLive, "sqsworker.notReady": (*Worker).whyNotReady,
	})
}
