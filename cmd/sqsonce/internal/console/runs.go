package console

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/ops"
)

const (
	mostRuns     = 100 // that are remembered, the newest
	mostUnderWay = 16  // of them
	mostNotes    = 64 << 10
	mostLine     = 1 << 20 // of a command's output
)

func (s *Server) runsRoutes() {
	s.handlePage("GET /runs", "runs", "Runs", func(context.Context, *http.Request) (any, error) { return s.runs.views(), nil })
	s.handleFragment("GET /fragment/runs", "live-runs", func(context.Context, *http.Request) (any, error) { return s.runs.views(), nil })
	one := func(_ context.Context, r *http.Request) (any, error) {
		run, err := s.runs.get(r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		return run.view(), nil
	}
	s.handlePage("GET /runs/{id}", "run", "Run", one)
	s.handleFragment("GET /fragment/runs/{id}", "live-run", one)
}

// runs are the acts of this process.
type runs struct {
	mu   sync.Mutex
	list []*run // the newest last
}

func (l *runs) add(p *plan) (*run, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	under := 0
	for _, r := range l.list {
		if r.view().UnderWay() {
			under++
		}
	}
	if under >= mostUnderWay {
		return nil, &pageError{http.StatusConflict, fmt.Errorf("%d acts are under way: wait until one has ended", under)}
	}
	r := &run{
		id: rand.Text(), name: p.name, what: p.what, back: p.back, total: p.Count, meant: p.Count + p.Leave, began: time.Now(),
		begun: make(chan struct{}), ended: make(chan struct{}), last: map[string]outcome{}, counts: map[outcome]int{},
	}
	if l.list = append(l.list, r); len(l.list) > mostRuns {
		i := slices.IndexFunc(l.list, func(r *run) bool { return !r.view().UnderWay() })
		l.list = slices.Delete(l.list, i, i+1)
	}
	return r, nil
}

func (l *runs) get(id string) (*run, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.list {
		if r.id == id {
			return r, nil
		}
	}
	return nil, &pageError{http.StatusNotFound, errors.New("this console has not run it, or has forgotten it: audit.jsonl has it")}
}

// views are the runs, the newest first.
func (l *runs) views() []runView {
	l.mu.Lock()
	defer l.mu.Unlock()
	views := []runView{}
	for _, r := range slices.Backward(l.list) {
		views = append(views, r.view())
	}
	return views
}

// run is an act: a command that is under way, or has ended.
type run struct {
	id, name, what, back string
	total, meant         int // messages of the plan; also those that it leaves
	began                time.Time
	begun, ended         chan struct{} // closed: it has passed its guards; it is over

	mu               sync.Mutex
	once             sync.Once // of begun
	cancel           context.CancelCauseFunc
	stopped          bool
	end              time.Time
	code             int
	first            time.Time          // when the first message was sent or deleted
	last             map[string]outcome // of each message, by its ID; nil: over
	counts           map[outcome]int
	cameBack         int
	journal, archive string
	notes            []byte // of standard error
	line             []byte // of standard output, so far
}

// outcome is what became of a message.
type outcome struct {
	Action ops.Action
	Why    string
}

// Why an act ends before its end. The command takes either as an interrupt.
var (
	errStopped = errors.New("stopped by the console's user")
	errEnded   = errors.New("the console has ended")
)

// carryOut runs the command. It goes on where the browser has gone; the end of the console, or a stop, ends it cleanly. It returns
// the panic of one.
func (r *run) carryOut(ended context.Context, command func(context.Context, io.Writer, io.Writer, ...string) int, args []string) error {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ended))
	defer cancel(nil)
	defer context.AfterFunc(ended, func() { cancel(errEnded) })()
	r.mu.Lock()
	r.cancel = cancel
	if r.stopped {
		cancel(errStopped)
	}
	r.mu.Unlock()
	code := exitFailed
	err := host.Contain(func() error { code = command(ctx, outWriter{r}, notesWriter{r}, args...); return nil })
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil { // a panic: what it has done is in the journal and in the audit
		r.note([]byte(err.Error() + "\n"))
	}
	r.code, r.end, r.last = code, time.Now(), nil
	close(r.ended)
	return err
}

func (r *run) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped = true; r.cancel != nil {
		r.cancel(errStopped)
	}
}

// outWriter reads the lines of --json.
type outWriter struct{ *run }

func (w outWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line = append(w.line, p...)
	for {
		i := bytes.IndexByte(w.line, '\n')
		if i < 0 {
			break
		}
		w.event(w.line[:i])
		w.line = w.line[i+1:]
	}
	if len(w.line) > mostLine {
		return 0, fmt.Errorf("a line is longer than %d bytes", mostLine)
	}
	return len(p), nil
}

// event is one of the lines that work and redrive of package cli print. Others say nothing about messages.
func (r *run) event(line []byte) {
	var e struct {
		Event    string     `json:"event"`
		ID       string     `json:"id"`
		Action   ops.Action `json:"action"`
		Why      string     `json:"why"`
		CameBack bool       `json:"came_back"`
		Journal  string     `json:"journal"`
		Archive  string     `json:"archive"`
	}
	if json.Unmarshal(line, &e) != nil {
		return
	}
	switch e.Event {
	case "start":
		r.journal, r.archive = e.Journal, e.Archive
		r.once.Do(func() { close(r.begun) })
	case "result":
		if before, again := r.last[e.ID]; again {
			if r.counts[before]--; r.counts[before] == 0 {
				delete(r.counts, before)
			}
		} else if e.CameBack {
			r.cameBack++
		}
		now := outcome{e.Action, e.Why}
		r.last[e.ID] = now
		r.counts[now]++
		if r.first.IsZero() && now.done() {
			r.first = time.Now()
		}
	}
}

// notSelected is why the command has left what was not meant.
const notSelected = "not selected"

func (o outcome) done() bool { return o.Action == ops.ActionRedriven || o.Action == ops.ActionDeleted }

// notesWriter keeps the end of standard error.
type notesWriter struct{ *run }

func (w notesWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(p)
	return len(p), nil
}

func (r *run) note(p []byte) {
	r.notes = append(r.notes, p...)
	if extra := len(r.notes) - mostNotes; extra > 0 {
		r.notes = slices.Clone(r.notes[extra:])
	}
}

// runView is a run as it is now.
type runView struct {
	ID, Title, Back  string
	Began, End       time.Time // End is zero while it is under way
	Code, Total      int
	Stopping         bool
	Done, Left, ToDo int // messages; ToDo: of which nothing has become yet
	CameBack         int
	Rate             float64 // a second, since the first
	Counts           []outcomeCount
	Journal, Archive string
	Notes            []string
}

type outcomeCount struct {
	outcome
	Count int
}

func (r *run) Path() string { return "/runs/" + r.id }

func (r *run) view() runView {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := runView{
		ID: r.id, Title: verbs[r.name] + " " + r.what, Back: r.back, Began: r.began, End: r.end, Code: r.code, Total: r.total,
		Stopping: r.stopped && r.end.IsZero(), CameBack: r.cameBack, Journal: r.journal, Archive: r.archive,
	}
	if text := strings.TrimSpace(string(r.notes)); text != "" {
		v.Notes = strings.Split(text, "\n")
	}
	for o, n := range r.counts {
		v.Counts = append(v.Counts, outcomeCount{o, n})
		switch {
		case o.done():
			v.Done += n
		case o.Why != notSelected:
			v.Left += n
		}
	}
	v.ToDo = max(0, r.meant-v.Done-v.Left)
	slices.SortFunc(v.Counts, func(a, b outcomeCount) int {
		return strings.Compare(string(b.Action)+b.Why, string(a.Action)+a.Why)
	})
	until := r.end
	if until.IsZero() {
		until = time.Now()
	}
	if d := until.Sub(r.first).Seconds(); !r.first.IsZero() && d > 0 {
		v.Rate = float64(v.Done) / d
	}
	return v
}

func (v runView) PageTitle() string { return v.Title }
func (v runView) UnderWay() bool    { return v.End.IsZero() }

// State says in words how it stands, and Mood how grave that is.
func (v runView) State() string {
	switch {
	case v.Stopping:
		return "stopping"
	case v.UnderWay():
		return "under way"
	}
	switch v.Code {
	case exitDone:
		return "done"
	case exitPart:
		return "ended in part"
	case exitRefused, exitUsage:
		return "refused"
	case exitDenied:
		return "denied"
	default:
		return "failed"
	}
}

func (v runView) Mood() string {
	return map[string]string{"done": "good", "stopping": "warn", "ended in part": "warn", "refused": "warn", "denied": "bad", "failed": "bad"}[v.State()]
}
