package status

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/sqsonce/sqsonce/control"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/limit"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// Consumer is a *dedup.Once, or an inbox of dynamostore or sqlstore.
type Consumer interface{ Stats() dedup.Stats }

// Store is a *dynamostore.Store. The other stores don't count.
type Store interface {
	// Counts returns numbers by the Go name of their field of Stats.
	Counts() map[string]float64
}

// Options configure [Handler]. Set at least one worker or other component. You choose the names. If a component has its own
// name, such as a consumer, use that.
type Options struct {
	// Most users set these first.

	// Workers are the workers of this process, also before their Run. Without workers /live and /ready are 200.
	// Default: empty.
	Workers []*sqsworker.Worker
	// Consumers deduplicate for the handlers. The map's key is the consumer's name.
	// Default: empty.
	Consumers map[string]Consumer
	// Name is the program's name, in all answers.
	// Default: the name of its file.
	Name string

	// Other components.

	// Stores have the records. The map's key is a name, for example the table's.
	// Default: empty.
	Stores map[string]Store
	// Limits are the limiters of handlers, by name. Each of their rules has its own numbers, as NAME/RULE.
	// Default: empty.
	Limits map[string]*limit.Limiter
	// Controls are what operators ask of the consumers. The map's key is the consumer's name.
	// Default: empty.
	Controls map[string]*control.Control
	// Relays are the relays of an outbox, by name.
	// Default: empty.
	Relays map[string]*outbox.Relay
	// Publishers publish from this process. The map's key is a name, for example the queue's.
	// Default: empty.
	Publishers map[string]*fifo.Publisher

	// Answers and logs.

	// Version is the program's version.
	// Default: the version of its main module, as the build wrote it into the program, or "" if the build didn't.
	Version string
	// Identifiers adds the keys of events and the groups of messages to /running and the page, and the keys of limits with the most
	// waiting messages to /stats and the page. They may be personal. It also adds the queues' URLs and account IDs to all answers.
	// Default: false, with message IDs and names of queues only.
	Identifiers bool
	// Logger gets a line when a component panics.
	// Default: slog.Default().
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	o.Name = cmp.Or(o.Name, filepath.Base(os.Args[0]))
	if info, ok := debug.ReadBuildInfo(); ok {
		o.Version = cmp.Or(o.Version, info.Main.Version)
	}
	o.Logger = host.Logger(o.Logger)
}

func (o *Options) validate() error {
	p := host.Problems{Package: "status"}
	for i, w := range o.Workers {
		p.Add(w == nil, fmt.Sprintf("Options.Workers[%d]", i), "is nil")
	}
	named(&p, "Consumers", o.Consumers)
	named(&p, "Stores", o.Stores)
	named(&p, "Limits", o.Limits)
	named(&p, "Controls", o.Controls)
	named(&p, "Relays", o.Relays)
	named(&p, "Publishers", o.Publishers)
	p.Add(len(o.Workers)+len(o.Consumers)+len(o.Stores)+len(o.Limits)+len(o.Controls)+len(o.Relays)+len(o.Publishers) == 0, "Options.Workers",
		"is empty, and no other component is set: set one of them")
	return p.Err()
}

func named[T any](p *host.Problems, field string, components map[string]T) {
	for name, c := range sorted(components) {
		p.Add(host.IsNil(c), fmt.Sprintf("Options.%s[%q]", field, name), "is nil")
		p.Add(name == "", "Options."+field, "has a component without a name")
	}
}
