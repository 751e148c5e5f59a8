package console

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/classes"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/ops"
)

func (s *Server) dlqRoutes() {
	s.handlePage("GET /dlq/{queue}", "dlq", "Dead letters", s.showDLQ)
	s.handlePage("GET /dlq/{queue}/class/{class}", "class", "Class", s.showClass)
	s.handlePage("GET /dlq/{queue}/{id}", "message", "Message", s.showMessage)
	// It changes receive counts, so it is no GET; it is there without Write too, as dlq ls is.
	s.mux.HandleFunc("POST /dlq/{queue}/look", s.postLook)
	s.handleFragment("GET /fragment/look/{queue}", "live-look", s.showLook)
}

// dlqData is what every page below a dead-letter queue has.
type dlqData struct {
	looked
	Queue   Queue
	FIFO    bool
	Limits  []int
	Records bool // states are known
	state   queueState
	typed   func(queue string, args ...string) string
}

// Command is a command about the queue, to be typed.
func (d dlqData) Command(args ...string) string { return d.typed(d.Queue.Name, args...) }

// Died are the processes in which events of the look crashed.
func (d dlqData) Died() []diedProcess {
	return diedProcesses(d.Look.Processes, d.Look.Complete && d.Look.AllRead, d.Command)
}

// About says how many messages there are, before anything is received.
func (d dlqData) About() string {
	n := d.state.Dead.Total()
	switch {
	case d.state.At.IsZero():
		return "How many messages it has is not known yet"
	case n == 0:
		return "It has no messages, as of " + clock(d.state.At)
	default:
		return "It has about " + count(n) + " messages, as of " + clock(d.state.At)
	}
}

func (d dlqData) PageTitle() string { return d.Queue.DLQName }

// Changed says that the look is older than the last act.
func (d dlqData) Changed() bool { return d.Look != nil && d.Acted.After(d.Look.AsOf) }

// Form is that of acts on a class.
func (d dlqData) Form(c classes.Class) actForm {
	return actForm{Queue: d.Queue.Name, Class: c.ID, State: c.State, Records: d.Records}
}

func (s *Server) queue(r *http.Request) (Queue, error) {
	name := r.PathValue("queue")
	i := slices.IndexFunc(s.opts.Queues, func(q Queue) bool { return q.Name == name })
	switch {
	case i < 0:
		return Queue{}, &pageError{http.StatusNotFound, fmt.Errorf("the console does not show queue %s: start it with --queue", name)}
	case s.opts.Queues[i].DLQURL == "":
		return Queue{}, &pageError{http.StatusNotFound, fmt.Errorf("%s has no redrive policy, so no dead-letter queue", name)}
	}
	return s.opts.Queues[i], nil
}

func (s *Server) dlq(r *http.Request) (dlqData, error) {
	q, err := s.queue(r)
	if err != nil {
		return dlqData{}, err
	}
	return dlqData{s.looks.of(q), q, host.IsFIFO(q.DLQName), lookLimits, s.opts.Joined, s.sampler.state(q.Name), s.opts.Typed}, nil
}

// classesData is the page of a queue, with one page of its classes.
type classesData struct {
	dlqData
	pager
	Classes []classes.Class
}

// showDLQ receives nothing.
func (s *Server) showDLQ(_ context.Context, r *http.Request) (any, error) {
	d, err := s.dlq(r)
	if err != nil || d.Look == nil {
		return classesData{dlqData: d, pager: pager{Pages: 1}}, err
	}
	p, err := newPager(r, len(d.Look.Classes), dlqPath(d.Queue.Name)+"?")
	if err != nil {
		return nil, err
	}
	return classesData{d, p, d.Look.Classes[p.First-1 : p.Last]}, nil
}

// showLook says whether a look is under way.
func (s *Server) showLook(_ context.Context, r *http.Request) (any, error) { return s.dlq(r) }

// lookWait is how long a browser waits for a look. One that takes longer goes on, and the page says so.
const lookWait = 20 * time.Second

// postLook answers when the look has ended, or takes its time. It goes on where the browser has gone.
func (s *Server) postLook(w http.ResponseWriter, r *http.Request) {
	q, err := s.queue(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	limit, err := strconv.Atoi(r.PostFormValue("limit"))
	if err != nil || !slices.Contains(lookLimits, limit) {
		s.fail(w, r, &pageError{http.StatusBadRequest, fmt.Errorf("limit is %q, must be one of %d", r.PostFormValue("limit"), lookLimits)})
		return
	}
	if err := s.looks.begin(q, "a look"); err != nil {
		s.fail(w, r, err)
		return
	}
	ended := make(chan struct{})
	s.background(func(ctx context.Context) {
		defer close(ended)
		s.look(ctx, q, limit)
	})
	patience := time.NewTimer(lookWait)
	defer patience.Stop()
	select {
	case <-ended:
	case <-patience.C:
	case <-r.Context().Done():
	}
	http.Redirect(w, r, dlqPath(q.Name), http.StatusSeeOther)
}

// classData is one page of a class.
type classData struct {
	dlqData
	pager
	Class    classes.Class
	Messages []*message
}

func (d classData) PageTitle() string { return "Class " + d.Class.ID + " of " + d.Queue.DLQName }

// Problem is why the record of the first of the messages is not known: often one for all, such as a table that cannot be read.
func (d classData) Problem() string {
	for _, m := range d.Messages {
		if m.Problem != nil {
			return m.Problems()
		}
	}
	return ""
}

func classPath(q Queue, c classes.Class) string {
	return dlqPath(q.Name) + "/class/" + url.PathEscape(c.ID) + "?" + url.Values{"state": {string(c.State)}}.Encode()
}

func messagePath(q Queue, id string) string { return dlqPath(q.Name) + "/" + url.PathEscape(id) }

func (s *Server) showClass(_ context.Context, r *http.Request) (any, error) {
	d, err := s.dlq(r)
	if err != nil {
		return nil, err
	}
	id, state := r.PathValue("class"), dedup.RecordState(r.FormValue("state"))
	if d.Look == nil {
		return nil, notListed(fmt.Errorf("press Look first: the messages of %s have not been read yet", d.Queue.DLQName))
	}
	i := slices.IndexFunc(d.Look.Classes, func(c classes.Class) bool { return c.ID == id && (state == "" || c.State == state) })
	if i < 0 {
		return nil, notListed(fmt.Errorf("the newest look, of %s, shows no class %s %s", clock(d.Look.AsOf), id, state))
	}
	c := d.Look.Classes[i]
	found := d.Look.of(c.ID, c.State)
	p, err := newPager(r, len(found), classPath(d.Queue, c)+"&")
	if err != nil {
		return nil, err
	}
	return classData{d, p, c, found[p.First-1 : p.Last]}, nil
}

func notListed(err error) error {
	return &pageError{http.StatusNotFound, fmt.Errorf("%w: look again", err)}
}

func otherSource(m *ops.Message) bool { return errors.Is(m.Problem, ops.ErrOtherSource) }

// messageData is the page of a message.
type messageData struct {
	dlqData
	Message *message
}

func (d messageData) PageTitle() string { return "Message " + d.Message.ID }

// Act is the form of acts on this message.
func (d messageData) Act() actForm {
	return actForm{Queue: d.Queue.Name, ID: d.Message.ID, State: d.Message.State, Records: d.Records}
}

// Back is the class of the message.
func (d messageData) Back() string {
	return classPath(d.Queue, classes.Class{ID: d.Message.Class.ID, State: d.Message.State})
}

// showMessage shows what the newest look has kept: nothing is received, and the record is as it was then.
func (s *Server) showMessage(_ context.Context, r *http.Request) (any, error) {
	d, err := s.dlq(r)
	if err != nil {
		return nil, err
	}
	if d.Look == nil {
		return nil, notListed(fmt.Errorf("press Look first: the messages of %s have not been read yet", d.Queue.DLQName))
	}
	m := d.Look.byID[r.PathValue("id")]
	if m == nil {
		return nil, notListed(fmt.Errorf("message %s is not among the %d that were read at %s", r.PathValue("id"), d.Look.Read, clock(d.Look.AsOf)))
	}
	return messageData{d, m}, nil
}

// attribute is one as a page shows it.
type attribute struct{ Name, Type, Value string }

// Shown returns the attributes. Binary ones are in base64.
func (m *message) Shown() (list []attribute) {
	for _, name := range slices.Sorted(maps.Keys(m.Attributes)) {
		a := m.Attributes[name]
		value := a.String
		if a.Binary != nil {
			value = base64.StdEncoding.EncodeToString(a.Binary)
		}
		list = append(list, attribute{name, a.Type, value})
	}
	return list
}

// Problems says why the record is not known.
func (m *message) Problems() string {
	if m.Problem == nil {
		return ""
	}
	return m.Problem.Error()
}

// RecordShown returns the record as it was at the look, or nil.
func (m *message) RecordShown() *ops.Record {
	if m.Record == nil {
		return nil
	}
	r := ops.NewRecord(*m.Record, m.State)
	r.ResultBytes = m.ResultBytes
	return &r
}
