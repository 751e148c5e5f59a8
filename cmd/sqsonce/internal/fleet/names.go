package fleet

// Names of a worker's counters and gauges in statusreport.Stats. One that a worker does not report is not known, and not zero.
const (
	Received      = "received"
	Done          = "done"
	Failed        = "failed"
	LeasesLost    = "leases_lost"
	Stuck         = "stuck"
	InFlight      = "in_flight"
	RunningNow    = "running"
	Held          = "held"
	Concurrency   = "concurrency"
	OldestRunning = "oldest_running_seconds"
)
