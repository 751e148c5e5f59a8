package scenario

import "time"

// Size is how much work a run does.
type Size struct {
	Rounds int
	// Far measures at every latency, not only at the first.
	Far bool
	// Work is for how long a contestant works, at the rate it is expected to have. Limit is when one is given up that has
	// not come to an end: far beyond what any needs, unless messages do not come back.
	Work, Limit time.Duration
	// Visibility is the visibility timeout of slow, in seconds, and Handler how long its handlers take.
	Visibility int
	Handler    time.Duration
	// Idle is how long idle waits.
	Idle time.Duration
	// Memory is how many messages memory handles. 0: as many as for Work.
	Memory int
	// Install is how long npm may take.
	Install time.Duration
}

// The sizes: Full for a report, Quick to see where one stands, Tiny to test the bench itself.
var (
	Full = Size{
		Rounds: 3, Far: true, Work: 5 * time.Second, Limit: time.Minute, Install: 5 * time.Minute,
		Visibility: 10, Handler: 24 * time.Second, Idle: 65 * time.Second, Memory: 1_000_000,
	}
	Quick = Size{
		Rounds: 1, Work: 2 * time.Second, Limit: 15 * time.Second, Install: 15 * time.Second,
		Visibility: 3, Handler: 7 * time.Second, Idle: 10 * time.Second,
	}
	Tiny = Size{
		Rounds: 1, Work: 100 * time.Millisecond, Limit: time.Minute, Install: 30 * time.Second,
		Visibility: 3, Handler: 4 * time.Second, Idle: 2 * time.Second,
	}
)
