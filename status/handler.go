package status

import (
	"bytes"
	"encoding/json"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/statusreport"
	"github.com/sqsonce/sqsonce/limit"
)

// Handler returns the handler that the package's documentation describes. It reports every bad option at once, each as a
// [*sqsonce.OptionError]. It doesn't start anything, and keeps the components.
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
	limits     map[string]*limit.Limiter
	answers    map[string]func() (answer, error) // by path
}

func newHandler(o Options, started time.Time) *handler {
	h := &handler{opts: o, started: started, components: componentsOf(o), limits: maps.Clone(o.Limits)}
	h.opts.Workers, h.opts.Controls = slices.Clone(o.Workers), maps.Clone(o.Controls)
	h.answers = map[string]func() (answer, error){
		"/live":    func() (answer, error) { return probeAnswer(h.live()) },
		"/ready":   func() (answer, error) { return probeAnswer(h.ready()) },
		"/stats":   func() (answer, error) { return jsonAnswer(http.StatusOK, h.report()) },
		"/running": func() (answer, error) { return jsonAnswer(http.StatusOK, h.running(maxRunning)) },
		"/":        h.page,
	}
	return h
}

// An answer is complete before the handler writes any part of it, so the locks of the components don't wait for a client.
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

func probeAnswer(p statusreport.Probe) (answer, error) {
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
