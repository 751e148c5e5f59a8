package status

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// Consumer is a *dedup.Once, or an inbox of dynamostore or sqlstore.
type Consumer interface{ Stats() dedup.Stats }

// Store is a *dynamostore.Store; the other stores count nothing.
type Store interface {
	// Counts returns numbers by the Go name of their field of Stats.
	Counts() map[string]float64
}

// Options configure [Handler]. At least one worker or other component must be there. Names are the user's: where a component has
// one of its own, such as a consumer, take that.
type Options struct {
	// Name is the program's, in all answers. Default: the name of its file.
	Name string
	// Version is the program's. Default: that of its main module, as the build wrote it into the program; "" if it did not.
	Version string
	// Workers are those of this process, also before their Run. Default: none; /live and /ready are 200 then.
	Workers []*sqsworker.Worker
	// Consumers are what deduplicates for the handlers, by consumer. Default: none.
	Consumers map[string]Consumer
	// Stores have the records, by name, such as that of the table. Default: none.
	Stores map[string]Store
	// Relays are those of an outbox, by name. Default: none.
	Relays map[string]*outbox.Relay
	// Publishers publish from this process, by name, such as that of the queue. Default: none.
	Publishers map[string]*fifo.Publisher
	// Identifiers says that /running and the page have the keys of events and the groups of messages. They may be personal.
	// Default: false, they have message IDs only.
	Identifiers bool
	// Logger gets a line when a component panics. Default: slog.Default().
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	o.Name = cmp.Or(o.Name, filepath.Base(os.Args[0]))
	if info, ok := debug.ReadBuildInfo(); ok {
		o.Version = cmp.Or(o.Version, info.Main.Version)
	}
	o.Logger = host.Logger(o.Logger)
}

// problems collects the bad fields, so that Handler reports all of them at once.
type problems []error

func (p *problems) add(bad bool, field, problem string, args ...any) {
	if bad {
		*p = append(*p, &sqsonce.OptionError{Package: "status", Field: field, Problem: fmt.Sprintf(problem, args...)})
	}
}

func (o *Options) validate() error {
	var p problems
	for i, w := range o.Workers {
		p.add(w == nil, fmt.Sprintf("Options.Workers[%d]", i), "is nil")
	}
	named(&p, "Consumers", o.Consumers)
	named(&p, "Stores", o.Stores)
	named(&p, "Relays", o.Relays)
	named(&p, "Publishers", o.Publishers)
	p.add(len(o.Workers)+len(o.Consumers)+len(o.Stores)+len(o.Relays)+len(o.Publishers) == 0, "Options.Workers",
		"is empty, and no other component is there: there is nothing to answer with")
	return errors.Join(p...)
}

func named[T any](p *problems, field string, components map[string]T) {
	for name, c := range sorted(components) {
		p.add(host.IsNil(c), fmt.Sprintf("Options.%s[%q]", field, name), "is nil")
		p.add(name == "", "Options."+field, "has a component without a name")
	}
}
