package outbox

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/fifokit"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Options configure [NewRelay].
type Options struct {
	// Most users set these first.

	// OnRefused decides about a group whose next event SQS refuses for good.
	// Default: OnRefusedHalt.
	OnRefused RefusedPolicy
	// Poll is how often Run looks for groups while it is idle. Each poll is up to a tenth earlier or later.
	// Default: 1 s. Limits: 10 ms to 1 h.
	Poll time.Duration
	// Groups is how many groups are published at once. A request of ten entries needs ten groups.
	// Default: 64. Limits: 1 to 1,000.
	Groups int

	// Reads and claims.

	// Page is how many events of a group are read, sent one after the other, and deleted at once.
	// Default: 10. Limits: 1 to 1,000.
	Page int
	// Settle is how old a group's oldest event must be for a sweep to visit it, so that doorbells come first. A negative Settle
	// means that a sweep visits events of any age.
	// Default: any age in Run, 30 s in Sweep.
	Settle time.Duration
	// LeaseDuration is how long a claim lasts. A visit ends before.
	// Default: 30 s. Limits: 10 s to 1 h.
	LeaseDuration time.Duration
	// MaxAge is how old the events of a page may be, counted from their read, when their sending begins. The larger age of both
	// clocks counts.
	// Default: 30 s. Limits: 10 s to 2 min.
	MaxAge time.Duration

	// Hooks and logs.

	// Hooks are called for telemetry, see [Hooks].
	// Default: none.
	Hooks []Hooks
	// Logger gets the events that errors don't report. It gets one line for each event that SQS refuses for good (ERROR), and
	// once a minute the reason that keeps Run from publishing (ERROR). Sweep logs one line with the figures of its Backlog
	// (INFO). Run logs one a minute while groups wait. If its slog.Handler blocks, the relay drops lines. A call waits for it at
	// most 50 ms.
	// Default: slog.Default().
	Logger *slog.Logger
}

const (
	defaultSettle  = 30 * time.Second // of Sweep
	mostGroups     = 1000
	mostPage       = 1000
	leastPoll      = 10 * time.Millisecond
	leastTime      = 10 * time.Second // for LeaseDuration and MaxAge: a request takes 5 s, and a visit is more than one
	mostTime       = time.Hour
	mostAge        = 2 * time.Minute // well inside SQS's five-minute deduplication interval
	longestPause   = 30 * time.Second
	mostRemembered = 10_000 // groups of which a relay remembers something, and those that Ring has named
)

func (o *Options) setDefaults() {
	o.Groups = cmp.Or(o.Groups, 64)
	o.Page = cmp.Or(o.Page, 10)
	o.Poll = cmp.Or(o.Poll, time.Second)
	o.LeaseDuration = cmp.Or(o.LeaseDuration, 30*time.Second)
	o.MaxAge = cmp.Or(o.MaxAge, 30*time.Second)
	o.OnRefused = cmp.Or(o.OnRefused, OnRefusedHalt)
	o.Logger = host.Logger(o.Logger)
}

// validate reports every bad argument of NewRelay at once.
func validate(s Store, p *fifo.Publisher, o *Options) error {
	problems := host.Problems{Package: "outbox"}
	add := problems.Add
	between := func(d, least, most time.Duration, field string) {
		add(d < least || d > most, field, "is %v, must be %v to %v", d, least, most)
	}
	add(host.IsNil(s), "store", "is nil")
	add(p == nil, "publisher", "is nil")
	if source, ok := sourceOf(s); ok && p != nil {
		add(source != fifokit.Namespace(p), "publisher", "has namespace %.64q, the store's events are of %.64q", fifokit.Namespace(p), source)
	}
	add(o.Groups < 1 || o.Groups > mostGroups, "Options.Groups", "is %d, must be 1 to %d", o.Groups, mostGroups)
	add(o.Page < 1 || o.Page > mostPage, "Options.Page", "is %d, must be 1 to %d", o.Page, mostPage)
	between(o.Poll, leastPoll, mostTime, "Options.Poll")
	between(o.LeaseDuration, leastTime, mostTime, "Options.LeaseDuration")
	between(o.MaxAge, leastTime, mostAge, "Options.MaxAge")
	add(o.OnRefused != OnRefusedHalt && o.OnRefused != OnRefusedSkip, "Options.OnRefused", "is %d, must be OnRefusedHalt or OnRefusedSkip", o.OnRefused)
	return problems.Err()
}

// sourceOf returns the namespace that a store says its events are written for.
func sourceOf(s Store) (source string, ok bool) {
	sourced, ok := s.(interface{ Source() string })
	if !ok || host.IsNil(s) {
		return "", false
	}
	panicked := host.Recover(func() { source = sourced.Source() })
	return source, panicked == nil
}

func badField(field, format string, args ...any) error {
	return &sqsonce.OptionError{Package: "outbox", Field: field, Problem: fmt.Sprintf(format, args...)}
}
