package console

import (
	"context"
	"errors"
	"net/http"

	"github.com/sqsonce/sqsonce/internal/host"
)

// pageError is an error with the status of the answer. Its text is shown.
type pageError struct {
	status int
	err    error
}

func (e *pageError) Error() string { return e.err.Error() }
func (e *pageError) Unwrap() error { return e.err }

var errNoPage = &pageError{http.StatusNotFound, errors.New("there is no such page")}

// errorData is the page of an error.
type errorData struct {
	Text    string
	NoToken bool
}

// fail answers with the page of an error. One of the console, or of AWS, is logged too.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(err)
	if status >= http.StatusInternalServerError && r.Context().Err() == nil {
		s.log.Error("console: a page failed", append([]any{"method", r.Method, "path", r.URL.Path}, host.ErrorAttrs(err)...)...)
	}
	s.showError(w, status, page{Path: r.URL.Path, Write: s.opts.Write, Queues: s.opts.Queues}, err)
}

// turnAway answers who may not come in, and shows nothing.
func (s *Server) turnAway(w http.ResponseWriter, err error) {
	s.showError(w, http.StatusForbidden, page{Closed: true}, err)
}

func (s *Server) showError(w http.ResponseWriter, status int, p page, err error) {
	p.Title = http.StatusText(status)
	p.Data = errorData{err.Error(), errors.Is(err, errNoToken)}
	s.execute(w, status, s.errorPage, p)
}

func statusOf(err error) int {
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	own, ok := errors.AsType[*pageError](err)
	switch {
	case tooLarge:
		return http.StatusRequestEntityTooLarge
	case ok:
		return own.status
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	default:
		return http.StatusInternalServerError
	}
}
