package console

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/ops"
)

const (
	planKept  = 10 * time.Minute // then it is to be made anew
	mostPlans = 100              // at once, the newest
)

// actForm is what templates/fragments/act-form.html asks a plan of: a class of a queue, or one message.
type actForm struct {
	Queue, Class, ID string
	State            dedup.RecordState
	Records          bool
}

// operation is what a form asks for, as a command.
type operation struct {
	name  string   // "redrive", "delete", "free", "complete"
	what  string   // "class a41f09 (released) of orders-dlq"
	queue Queue    // that it is about; without a name: none
	back  string   // the page that it came from
	args  []string // of the command
	key   string   // of a record; "": none
}

// command is the whole command line. A key may begin with a dash.
func (o operation) command(flags ...string) []string {
	args := append(slices.Clone(o.args), flags...)
	if o.key != "" {
		args = append(args, "--", o.key)
	}
	return args
}

// operation reads the form.
func (s *Server) operation(r *http.Request) (operation, error) {
	if err := r.ParseForm(); err != nil {
		return operation{}, badForm("%w", err)
	}
	switch name := r.PostFormValue("op"); name {
	case "redrive", "delete":
		return s.queueOperation(r, name)
	case "free", "complete":
		key := r.PostFormValue("key")
		if key == "" {
			return operation{}, badForm("key is empty")
		}
		o := operation{name: name, what: "the record " + key, back: recordPath(key), args: []string{"record", name}, key: key}
		o.flags(r, "take", "again", "create")
		if note := r.PostFormValue("note"); note != "" {
			o.args = append(o.args, "--note="+note)
		}
		return o, nil
	default:
		return operation{}, badForm("op is %q, must be redrive, delete, free or complete", name)
	}
}

func (s *Server) queueOperation(r *http.Request, name string) (operation, error) {
	r.SetPathValue("queue", r.PostFormValue("queue"))
	q, err := s.queue(r)
	if err != nil {
		return operation{}, err
	}
	o := operation{name: name, queue: q, args: []string{"dlq", name, "--queue=" + q.URL}}
	class, id, state := r.PostFormValue("class"), r.PostFormValue("id"), r.PostFormValue("state")
	switch {
	case (class == "") == (id == ""):
		return operation{}, badForm("class and id: one of them must be set")
	case id != "":
		o.what, o.back = "message "+id+" of "+q.DLQName, messagePath(q, id)
		o.args = append(o.args, "--id="+id)
	default:
		o.what, o.back = "class "+class+" of "+q.DLQName, dlqPath(q.Name)
		o.args = append(o.args, "--class="+class)
		if state != "" && s.opts.Joined {
			o.what = "class " + class + " (" + state + ") of " + q.DLQName
			o.args = append(o.args, "--state="+state)
		}
	}
	if name == "redrive" {
		o.flags(r, "crashed", "crash-loops", "unknown", "expired", "without-records")
		return o, nil
	}
	archive, err := s.opts.Archive(q.DLQName)
	o.args = append(o.args, "--archive="+archive)
	return o, err
}

// flags adds those that are checked in the form.
func (o *operation) flags(r *http.Request, names ...string) {
	for _, name := range names {
		if r.PostFormValue(name) != "" {
			o.args = append(o.args, "--"+name)
		}
	}
}

func badForm(format string, args ...any) error {
	return &pageError{http.StatusBadRequest, fmt.Errorf(format, args...)}
}

// planJSON is what a dry run prints: of a dead-letter queue, or of a record.
type planJSON struct {
	Hash  string `json:"hash"`
	Typed string `json:"typed"`

	Queue  string      `json:"queue"`
	Count  int         `json:"count"`
	Leave  int         `json:"left"` // messages that are meant, and would be left
	Groups []planGroup `json:"groups"`

	Key    string            `json:"key"`
	Before dedup.RecordState `json:"before"`
	After  dedup.RecordState `json:"after"`
	Effect string            `json:"effect"`
}

type planGroup struct {
	Class  string            `json:"class"`
	Reason string            `json:"reason"`
	State  dedup.RecordState `json:"state"`
	Count  int               `json:"count"`
	Action ops.Action        `json:"action"`
	Why    string            `json:"why"`
}

func (g planGroup) Left() bool { return g.Action != ops.ActionPlanned }

// plan is what a page has said would be done. It is carried out once at most.
type plan struct {
	planJSON
	operation
	Token string
	Made  time.Time // by the calendar: it grows old while the computer sleeps
	Notes []string  // what the dry run has said in words
	More  int       // groups that are not shown, the smallest

	run *run // of plans.mu; nil: it was not confirmed
}

func (p *plan) PageTitle() string { return verbs[p.name] + " " + p.what }
func (p *plan) Name() string      { return p.name }
func (p *plan) Back() string      { return p.back }
func (p *plan) Deletes() bool     { return p.name == "delete" }

// Archive is where a delete keeps what it deletes; "" for others.
func (p *plan) Archive() string {
	for _, arg := range p.args {
		if path, ok := strings.CutPrefix(arg, "--archive="); ok {
			return path
		}
	}
	return ""
}

// Nothing says that there is nothing to confirm.
func (p *plan) Nothing() bool {
	return p.key == "" && p.Count == 0 || p.key != "" && p.Before == p.After
}

// Button says what happens when it is pressed.
func (p *plan) Button() string {
	if p.key != "" {
		return verbs[p.name] + " this record"
	}
	return verbs[p.name] + " " + count(p.Count) + " message" + map[bool]string{false: "s"}[p.Count == 1]
}

var verbs = map[string]string{"redrive": "Redrive", "delete": "Delete", "free": "Free", "complete": "Complete"}

// flagsOf are those with which the command does this plan or nothing.
func (p *plan) flagsOf() []string {
	flags := []string{"--yes", "--json", "--plan=" + p.Hash}
	if p.key == "" {
		flags = append(flags, "--expect="+strconv.Itoa(p.Count))
	}
	return flags
}

// plans are those that were made and not forgotten.
type plans struct {
	mu   sync.Mutex
	list []*plan // the newest last
}

func (l *plans) add(p *plan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget()
	l.list = append(l.list, p)
	if extra := len(l.list) - mostPlans; extra > 0 {
		l.list = slices.Delete(l.list, 0, extra)
	}
}

func (l *plans) forget() {
	l.list = slices.DeleteFunc(l.list, func(p *plan) bool { return time.Since(p.Made) >= planKept })
}

func (l *plans) get(token string) (*plan, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget()
	for _, p := range l.list {
		if p.Token == token {
			return p, nil
		}
	}
	return nil, &pageError{http.StatusConflict, fmt.Errorf("the plan does not exist, or is older than %s: list again", planKept)}
}

// once starts a plan where nobody has. It returns its run, whoever has started that.
func (l *plans) once(p *plan, start func() (*run, error)) (r *run, started bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.run != nil {
		return p.run, false, nil
	}
	p.run, err = start()
	return p.run, true, err
}

func (l *plans) runOf(p *plan) *run {
	l.mu.Lock()
	defer l.mu.Unlock()
	return p.run
}

// postPlan makes a plan. It receives the messages of the queue, so it is no GET.
func (s *Server) postPlan(w http.ResponseWriter, r *http.Request) {
	o, err := s.operation(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	p, err := s.makePlan(r.Context(), o)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.plans.add(p)
	http.Redirect(w, r, "/plan/"+p.Token, http.StatusSeeOther)
}

// makePlan runs the command without doing anything. It ends with the browser or the console: all is given back then.
func (s *Server) makePlan(ctx context.Context, o operation) (*plan, error) {
	if o.queue.Name != "" {
		if err := s.looks.begin(o.queue, "a plan"); err != nil {
			return nil, err
		}
		defer s.looks.end(o.queue)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	var out, notes bytes.Buffer
	if code := s.opts.Command(ctx, &out, &notes, o.command("--dry-run", "--json")...); code != exitDone {
		return nil, refusal(code, strings.TrimSpace(notes.String()))
	}
	p := &plan{operation: o, Token: rand.Text(), Made: time.Now().Round(0), Notes: strings.Split(strings.TrimSpace(notes.String()), "\n")}
	if err := json.Unmarshal(out.Bytes(), &p.planJSON); err != nil {
		return nil, fmt.Errorf("the plan cannot be read: %w", err)
	}
	if p.More = max(0, len(p.Groups)-pageSize); p.More > 0 { // who sends the messages decides how many reasons there are
		p.Groups = slices.Clone(p.Groups[:pageSize])
	}
	if p.Hash == "" && !p.Nothing() {
		return nil, errors.New("the plan has no hash")
	}
	return p, nil
}

// planData is the page of a plan. One that was carried out has no form.
type planData struct {
	*plan
	Run *run
}

// showPlan shows it again and again, and receives nothing.
func (s *Server) showPlan(_ context.Context, r *http.Request) (any, error) {
	p, err := s.plans.get(r.PathValue("token"))
	if err != nil {
		return nil, err
	}
	return planData{p, s.plans.runOf(p)}, nil
}
