// Package console is the browser's view of what the command shows: queues, dead-letter queues, records, workers. It changes nothing
// without Options.Write, and then by the same commands, after the same questions.
package console

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"html/template"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/doctor"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/ops"
)

//go:embed templates static
var files embed.FS

// Server is the console's HTTP handler.
type Server struct {
	opts      Options
	access    *access
	mux       *http.ServeMux
	pages     http.Handler // mux, below the path of access
	errorPage *template.Template
	log       *slog.Logger

	// What goes on behind the pages ends with ctx: see background.
	ctx    context.Context
	cancel context.CancelFunc
	mu     sync.Mutex
	closed bool // of mu
	behind sync.WaitGroup

	sampler      *sampler
	looks        looks
	plans        plans
	runs         runs
	examinations examinations
}

// New makes the pages. Nothing is asked of AWS until Serve runs, or a page is shown.
func New(opts Options) *Server {
	s := &Server{opts: opts, access: newAccess(opts.Addr), mux: http.NewServeMux(), log: opts.Logger}
	if s.log == nil {
		s.log = slog.Default()
	}
	s.sampler = newSampler(opts, s.log)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.errorPage = parse("error")
	s.staticRoutes()
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.fail(w, r, errNoPage) })
	s.overviewRoutes()
	s.workersRoutes()
	s.doctorRoutes()
	s.dlqRoutes()
	s.recordRoutes()
	if opts.Write {
		s.actRoutes()
	}
	s.runsRoutes()
	s.pages = s.access.below(http.HandlerFunc(s.servePage))
	return s
}

// URL is what a person opens: it has the token.
func (s *Server) URL() string { return "http://" + s.opts.Addr + "/?token=" + s.access.token }

const (
	headerTimeout = 5 * time.Second
	mostHeaders   = 32 << 10
	mostBody      = 64 << 10 // of a form
	// stopTimeout is how long requests are awaited at the end.
	stopTimeout = 2 * time.Second
)

// Serve answers at l until ctx ends, and then waits for what goes on behind the pages.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer s.Close()
	s.background(s.sampler.run)
	// No WriteTimeout: a listing takes up to a minute.
	server := &http.Server{
		Handler: s, DisableGeneralOptionsHandler: true, // it answers without a look at the token
		ReadHeaderTimeout: headerTimeout, ReadTimeout: 2 * headerTimeout, IdleTimeout: time.Minute, MaxHeaderBytes: mostHeaders,
		BaseContext: func(net.Listener) context.Context { return s.ctx }, // a page that waits for AWS is of no use at the end
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	s.cancel()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return server.Close()
}

// Close ends what goes on behind the pages, and waits for it.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.behind.Wait()
}

// background runs f until it returns. Its context ends with the console, not with the request that began it. A panic is logged.
func (s *Server) background(f func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed { // a request that is still answered: f ends at once, and nobody waits for it
		f = func(context.Context) {}
	}
	s.behind.Go(func() { contain(s.log, func() { f(s.ctx) }) })
}

// contain keeps the process alive where f panics: what runs in the background has no request that could fail instead.
func contain(log *slog.Logger, f func()) {
	if err := host.Recover(f); err != nil {
		log.Error("console: a task in the background failed", host.ErrorAttrs(err)...)
	}
}

// ServeHTTP lets in who may come in.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	r.Body = http.MaxBytesReader(w, r.Body, mostBody)
	switch ok, err := s.access.admit(w, r); {
	case err != nil:
		s.turnAway(w, err)
	case ok:
		s.pages.ServeHTTP(w, r)
	}
}

// servePage answers a panic of a page with an error.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	if err := host.Recover(func() { s.mux.ServeHTTP(w, r) }); err != nil {
		s.fail(w, r, err)
	}
}

// staticRoutes serves the stylesheet, the script and the icon. A file server would drop headers from its errors.
func (s *Server) staticRoutes() {
	for name, kind := range map[string]string{"style.css": "text/css; charset=utf-8", "console.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"} {
		content, err := files.ReadFile("static/" + name)
		if err != nil {
			panic(err) // it is embedded
		}
		s.mux.HandleFunc("GET /static/"+name, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(content) // an error says that the browser has gone
		})
	}
}

// page is what a template of a page gets.
type page struct {
	Title  string
	Closed bool   // to whoever asks: without what the console shows
	Path   string // of the request, for the navigation
	Write  bool
	Queues []Queue
	Data   any // the page's own
}

// titled is data with a title of its own.
type titled interface{ PageTitle() string }

// parse reads a page: templates/NAME.html defines "content" for templates/layout.html. A fragment is a part of pages that is also
// served alone; a page has it by the name of its file: {{template "live-queues.html" .Data}}.
func parse(name string) *template.Template {
	return template.Must(template.New("layout.html").Funcs(funcs).ParseFS(files, "templates/layout.html", "templates/fragments/*.html", "templates/"+name+".html"))
}

// handlePage serves a page: templates/NAME.html in templates/layout.html, with what data returns.
func (s *Server) handlePage(pattern, name, title string, data func(ctx context.Context, r *http.Request) (any, error)) {
	t := parse(name)
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		d, err := data(r.Context(), r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		p := page{Title: title, Path: r.URL.Path, Write: s.opts.Write, Queues: s.opts.Queues, Data: d}
		if own, ok := d.(titled); ok {
			p.Title = own.PageTitle()
		}
		s.render(w, http.StatusOK, t, p)
	})
}

// handleFragment serves templates/fragments/NAME.html alone. A page that has it in an element with data-live="PATH" gets it anew
// every five seconds: nothing may be received or changed for it.
func (s *Server) handleFragment(pattern, name string, data func(ctx context.Context, r *http.Request) (any, error)) {
	t := template.Must(template.New(name+".html").Funcs(funcs).ParseFS(files, "templates/fragments/*.html"))
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		d, err := data(r.Context(), r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		s.execute(w, http.StatusOK, t, d)
	})
}

func (s *Server) render(w http.ResponseWriter, status int, t *template.Template, p page) {
	s.execute(w, status, t, p)
}

// execute makes the whole page before its first byte is sent: an error is no half of one.
func (s *Server) execute(w http.ResponseWriter, status int, t *template.Template, data any) {
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		s.log.Error("console: a page cannot be made", "template", t.Name(), "err", err)
		b.Reset()
		status = http.StatusInternalServerError
		b.WriteString(brokenPage)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(visible(b.Bytes())) // an error says that the browser has gone
}

// brokenPage is the answer where a template fails, which may be that of errors.
const brokenPage = `<!doctype html><html lang="en"><title>Error</title><h1>The page cannot be made</h1><p>The console's log says why.</p></html>`

// Options are what package cli gives the console.
type Options struct {
	Queues  []Queue
	Workers []string // as fleet.Fleet.Targets
	Write   bool     // also act: without it the routes do not exist
	Joined  bool     // Open joins messages with records: there is a consumer
	Addr    string   // where it listens, as "127.0.0.1:8080": requests for another host are refused

	SQS        *sqs.Client
	CloudWatch *cloudwatch.Client // nil: the age is not shown
	HTTP       *http.Client       // for workers

	// Open opens the dead-letter queue of a queue, joined with the consumer's records as far as the flags say.
	Open func(ctx context.Context, queue Queue) (*ops.DLQ, error)
	// Record reads a record; nil: there is no store.
	Record func(ctx context.Context, key string) (dedup.Record, dedup.RecordState, error)
	// Doctor examines the deployment of a queue.
	Doctor func(ctx context.Context, queue Queue) []doctor.Finding
	// Command runs a command of sqsonce, such as "dlq", "redrive", with the console's own --consumer, --table and so on, and
	// returns its exit code. Nobody is there to answer its questions: it has --yes, once the page has asked them.
	Command func(ctx context.Context, out, err io.Writer, args ...string) int

	// Typed is a command of sqsonce as it is typed, with the console's own --consumer, --table and so on. queue is a name of Queues.
	Typed func(queue string, args ...string) string

	// Archive names a new file for what is deleted from a dead-letter queue, whose name it gets.
	Archive func(dlq string) (string, error)

	Logger *slog.Logger
}

// Queue is a source queue and its dead-letter queue.
type Queue struct {
	Name            string // also in paths of pages
	URL             string
	DLQName, DLQURL string // "": it has none
}
