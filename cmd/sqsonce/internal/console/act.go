package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/ops"
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
		return badForm("nothing to do")
	case p.Typed != "" && typed != p.Typed:
		return badForm("you typed %q, not %q: nothing was changed", typed, p.Typed)
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

// recordTimeout bounds the reads of a page: a store that is away shall not keep its reader waiting.
const recordTimeout = 15 * time.Second

func (s *Server) recordRoutes() { s.handlePage("GET /record", "record", "Record", s.showRecord) }

// recordData is the page of a record.
type recordData struct {
	Stored bool   // there is a store
	Key    string // "": only the form, and List
	List   []ops.Record
	All    bool   // List is of the store, else of the newest looks
	Said   string // of the command that lists
	Record ops.Record
	AsOf   time.Time
	Acts   []recordAct
	Died   []diedProcess // of List
}

// recordAct is what a command would do to the record.
type recordAct struct {
	Op, Flag string // "free", "take"
	Does     string // "": it would be refused, or nothing to do
	Not      string // why
}

// Name is the command.
func (a recordAct) Name() string {
	if a.Flag == "" {
		return "record " + a.Op
	}
	return "record " + a.Op + " --" + a.Flag
}

func recordPath(key string) string { return "/record?" + url.Values{"key": {key}}.Encode() }

// showRecord reads, by one consistent read, and by one more for each act: dry runs of the commands say what they would do.
func (s *Server) showRecord(ctx context.Context, r *http.Request) (any, error) {
	d := recordData{Stored: s.opts.Record != nil, Key: r.FormValue("key"), AsOf: time.Now()}
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	if !d.Stored || d.Key == "" {
		var err error
		if d.All = d.Stored && r.FormValue("list") != ""; d.All {
			d.List, d.Said, err = s.listRecords(ctx)
		} else {
			d.List = s.seenRecords()
		}
		d.Died = diedProcesses(newest(d.List), false, nil) // it lists the first records only
		return d, err
	}
	record, state, err := s.opts.Record(ctx, d.Key)
	if errors.Is(err, dedup.ErrNotFound) {
		state, err = ops.StateUnknown, nil
	}
	if err != nil { // the command tells a wrong key from a store that is away
		code := s.opts.Command(ctx, io.Discard, io.Discard, "record", "show", "--", d.Key)
		return nil, refusal(code, err.Error())
	}
	d.Key = cmp.Or(record.Key, d.Key)
	d.Record = ops.NewRecord(record, state)
	for _, act := range actsOn(state) {
		d.Acts = append(d.Acts, s.wouldDo(ctx, act, d.Key))
	}
	return d, nil
}

// actsOn returns the commands that may be of use for a record in this state, the plain ones first.
func actsOn(state dedup.RecordState) []recordAct {
	acts := []recordAct{{Op: "free"}, {Op: "complete"}}
	switch state {
	case dedup.StateRunning:
		acts = slices.Insert(acts, 1, recordAct{Op: "free", Flag: "take"})
	case dedup.StateCompleted:
		acts = slices.Insert(acts, 1, recordAct{Op: "free", Flag: "again"})
	case ops.StateUnknown:
		acts = append(acts, recordAct{Op: "complete", Flag: "create"})
	}
	return acts
}

// wouldDo asks the command itself, which has the only rules.
func (s *Server) wouldDo(ctx context.Context, act recordAct, key string) recordAct {
	args := []string{"record", act.Op}
	if act.Flag != "" {
		args = append(args, "--"+act.Flag)
	}
	var out, notes bytes.Buffer
	code := s.opts.Command(ctx, &out, &notes, append(args, "--dry-run", "--json", "--", key)...)
	var p planJSON
	switch err := json.Unmarshal(out.Bytes(), &p); {
	case code != 0 || err != nil:
		act.Not = strings.TrimPrefix(strings.TrimSpace(notes.String()), act.Op+" "+key+": ")
	case p.Before == p.After:
		act.Not = "nothing to do: it is " + string(p.Before)
	default:
		act.Does = p.Effect
	}
	return act
}
