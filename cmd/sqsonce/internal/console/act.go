package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// actRoutes are there with Options.Write only.
func (s *Server) actRoutes() {
	s.mux.HandleFunc("POST /plan", s.postPlan)
	s.handlePage("GET /plan/{token}", "plan", "Plan", s.showPlan)
	s.mux.HandleFunc("POST /act/{token}", s.postAct)
	s.mux.HandleFunc("POST /runs/{id}/stop", s.postStop)
}

// The exit codes of the command.
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2
	exitPart    = 4
	exitRefused = 5
	exitDenied  = 6
)

// refusal is the answer to what a command has not done.
func refusal(code int, text string) error {
	if text == "" {
		text = fmt.Sprintf("the command ended with %d, and has not said why", code)
	}
	err := errors.New(text)
	switch code {
	case exitUsage:
		return &pageError{http.StatusBadRequest, err}
	case exitRefused:
		return &pageError{http.StatusConflict, err}
	case exitDenied:
		return &pageError{http.StatusForbidden, err}
	default:
		return &pageError{http.StatusBadGateway, err}
	}
}

// actWait is how long an act is awaited. What it has refused by then is the answer; what goes on has a page.
const actWait = 10 * time.Second

// postAct carries out a plan, once: a second click, or the form sent again, is led to the same run.
func (s *Server) postAct(w http.ResponseWriter, r *http.Request) {
	p, err := s.plans.get(r.PathValue("token"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if err := p.confirmed(r); err != nil {
		s.fail(w, r, err)
		return
	}
	run, started, err := s.plans.once(p, func() (*run, error) { return s.start(p) })
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if !started {
		http.Redirect(w, r, run.Path(), http.StatusSeeOther)
		return
	}
	patience := time.NewTimer(actWait)
	defer patience.Stop()
	select {
	case <-run.begun: // every guard has let it through
	case <-run.ended:
		if view := run.view(); view.Code == exitUsage || view.Code == exitRefused || view.Code == exitDenied {
			s.fail(w, r, refusal(view.Code, strings.Join(view.Notes, "\n")))
			return
		}
		if p.key != "" && run.view().Code == exitDone {
			http.Redirect(w, r, p.back, http.StatusSeeOther)
			return
		}
	case <-patience.C:
	case <-r.Context().Done():
	}
	http.Redirect(w, r, run.Path(), http.StatusSeeOther)
}

// confirmed compares what was typed with what the command would ask for.
func (p *plan) confirmed(r *http.Request) error {
	switch typed := strings.TrimSpace(r.PostFormValue("typed")); {
	case p.Nothing():
		return badForm("there is nothing to do")
	case p.Typed != "" && typed != p.Typed:
		return badForm("%q was typed, and not %q: nothing was changed", typed, p.Typed)
	}
	return nil
}

// start runs the command behind the pages.
func (s *Server) start(p *plan) (*run, error) {
	if p.queue.Name != "" {
		if err := s.looks.begin(p.queue, "a "+p.name); err != nil {
			return nil, err
		}
	}
	r, err := s.runs.add(p)
	if err != nil {
		s.looks.end(p.queue)
		return nil, err
	}
	s.looks.acted(p.queue)
	// A look is let in before the run is said to have ended.
	command := func(ctx context.Context, out, err io.Writer, args ...string) int {
		if p.queue.Name != "" {
			defer s.looks.end(p.queue)
		}
		return s.opts.Command(ctx, out, err, args...)
	}
	s.background(func(ctx context.Context) {
		if err := r.carryOut(ctx, command, p.command(p.flagsOf()...)); err != nil {
			s.log.Error("console: an act failed", append([]any{"act", p.PageTitle()}, host.ErrorAttrs(err)...)...)
		}
		if ctx.Err() != nil { // its page is gone: what it has done, and with which command it goes on, is said here
			view := r.view()
			s.log.Warn("console: an act has ended with the console", "act", view.Title, "state", view.State(), "done", view.Done, "of", view.Total, "said", strings.Join(view.Notes[max(0, len(view.Notes)-3):], "; "))
		}
	})
	return r, nil
}

func (s *Server) postStop(w http.ResponseWriter, r *http.Request) {
	run, err := s.runs.get(r.PathValue("id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	run.stop()
	http.Redirect(w, r, run.Path(), http.StatusSeeOther)
}
