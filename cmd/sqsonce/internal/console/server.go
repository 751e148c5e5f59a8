package console

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
)

//go:embed templates static
var files embed.FS

// Server is the console's HTTP handler.
type Server struct {
	opts Options
	mux  *http.ServeMux
	log  *slog.Logger
}

// New makes the pages. Nothing is asked of AWS until one is shown.
func New(opts Options) *Server {
	s := &Server{opts: opts, mux: http.NewServeMux(), log: opts.Logger}
	s.overviewRoutes()
	s.workersRoutes()
	s.doctorRoutes()
	s.dlqRoutes()
	s.recordRoutes()
	if opts.Write {
		s.actRoutes()
	}
	s.runsRoutes()
	return s
}

// page is what a template of a page gets.
type page struct {
	Title  string
	Path   string // of the request, for the navigation
	Write  bool
	Queues []Queue
	Data   any // the page's own
}

// pageError is an error with the status of the answer. Its text is shown.
type pageError struct {
	status int
	err    error
}

func (e *pageError) Error() string { return e.err.Error() }
func (e *pageError) Unwrap() error { return e.err }

// handlePage serves a page: templates/NAME.html in templates/layout.html, with what data returns.
func (s *Server) handlePage(pattern, name, title string, data func(ctx context.Context, r *http.Request) (any, error)) {
	t := template.Must(template.New("layout.html").Funcs(funcs).ParseFS(files, "templates/layout.html", "templates/fragments/*.html", "templates/"+name+".html"))
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		d, err := data(r.Context(), r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		s.render(w, http.StatusOK, t, page{Title: title, Path: r.URL.Path, Write: s.opts.Write, Queues: s.opts.Queues, Data: d})
	})
}

func (s *Server) render(w http.ResponseWriter, status int, t *template.Template, p page) {
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		s.log.Error("console: a page cannot be made", "title", p.Title, "err", err)
		http.Error(w, fmt.Sprintf("the page cannot be made: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // an error says that the browser has gone
}
