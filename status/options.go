package status

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

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
	// Counts returns numbers by the Go name of their [Field].
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

// Handler returns the handler that the package's documentation describes. It reports every bad option at once, each as a
// [*sqsonce.OptionError]. It starts nothing, and keeps the components.
func Handler(optFns ...func(*Options)) (http.Handler, error) {
	o := Options{}
	for _, fn := range optFns {
		fn(&o)
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	o.setDefaults()
	return newHandler(o, time.Now()), nil
}

type handler struct {
	opts       Options
	started    time.Time
	components []component
	answers    map[string]func() (answer, error) // by path
}

func newHandler(o Options, started time.Time) *handler {
	h := &handler{opts: o, started: started, components: componentsOf(o)}
	h.opts.Workers = slices.Clone(o.Workers)
	h.answers = map[string]func() (answer, error){
		"/live":    func() (answer, error) { return probeAnswer(h.live()) },
		"/ready":   func() (answer, error) { return probeAnswer(h.ready()) },
		"/stats":   func() (answer, error) { return jsonAnswer(http.StatusOK, h.report()) },
		"/running": func() (answer, error) { return jsonAnswer(http.StatusOK, h.running(maxRunning)) },
		"/":        h.page,
	}
	return h
}

// answer is complete before anything of it is written: what is gathered under locks does not wait for a client.
type answer struct {
	status      int
	contentType string
	body        []byte
}

func (h *handler) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	find, ok := h.answers[r.URL.Path]
	if !ok {
		http.NotFound(rw, r)
		return
	}
	header := rw.Header()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(rw, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	var a answer
	var err error
	if panicked := host.Recover(func() { a, err = find() }); panicked != nil {
		err = panicked // of a component
	}
	if err != nil {
		h.opts.Logger.ErrorContext(r.Context(), "status: no answer", append(host.ErrorAttrs(err), "path", r.URL.Path)...)
		http.Error(rw, "the answer could not be gathered: see the log of the program", http.StatusInternalServerError)
		return
	}
	header.Set("Content-Type", a.contentType)
	header.Set("Content-Length", strconv.Itoa(len(a.body)))
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", contentSecurity)
	rw.WriteHeader(a.status)
	// An error says that the client has closed its connection; nobody is left to report it to.
	_, _ = rw.Write(a.body)
}

func jsonAnswer(status int, v any) (answer, error) {
	var b bytes.Buffer
	err := json.NewEncoder(&b).Encode(v)
	return answer{status, "application/json", b.Bytes()}, err
}

func probeAnswer(p Probe) (answer, error) {
	if !p.OK {
		return jsonAnswer(http.StatusServiceUnavailable, p)
	}
	return jsonAnswer(http.StatusOK, p)
}

// sorted iterates over a map in the order of its names.
func sorted[T any](m map[string]T) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if !yield(name, m[name]) {
				return
			}
		}
	}
}
