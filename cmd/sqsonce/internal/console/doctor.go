package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/doctor"
	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	// doctorTimeout ends an examination: what it could not look at by then is unknown.
	doctorTimeout = 2 * time.Minute
	// doctorWait is how long its answer is awaited before the page is shown without it.
	doctorWait = 20 * time.Second
)

// doctorRoutes: an examination is a POST, so that no link and no page that is loaded again makes its calls.
func (s *Server) doctorRoutes() {
	s.handlePage("GET /doctor", "doctor", "Doctor", s.showDoctor)
	s.handleFragment("GET /fragment/doctor", "live-doctor", s.showDoctor)
	s.mux.HandleFunc("POST /doctor", s.postDoctor)
}

// examinations has the newest one of each queue, in memory.
type examinations struct {
	mu     sync.Mutex
	queues map[string]examined // by name
}

// examined is what the doctor has found.
type examined struct {
	Findings []doctor.Finding
	AsOf     time.Time // when it ended; zero: there was none
	Failed   error     // why it found less, or nothing
	Since    time.Time // of the one that is under way; zero: there is none
}

func (e *examinations) of(queue string) examined {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.queues[queue]
}

// begin is false where one is under way.
func (e *examinations) begin(queue string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.queues[queue]
	if !now.Since.IsZero() {
		return false
	}
	now.Since = time.Now()
	e.put(queue, now)
	return true
}

// end keeps the findings before where one has failed without any.
func (e *examinations) end(queue string, findings []doctor.Finding, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.queues[queue]
	now.Since, now.Failed = time.Time{}, err
	if findings != nil || err == nil {
		now.Findings, now.AsOf = findings, time.Now()
	}
	e.put(queue, now)
}

func (e *examinations) put(queue string, now examined) {
	if e.queues == nil {
		e.queues = map[string]examined{}
	}
	e.queues[queue] = now
}

// examination is a queue on the page.
type examination struct {
	Queue
	Number int
	examined
}

// gravity is the order of findings: what must be mended comes first.
var gravity = []doctor.Verdict{doctor.Fail, doctor.Warn, doctor.Unknown, doctor.OK}

// Sorted returns the findings, the gravest first.
func (e examination) Sorted() []doctor.Finding {
	return slices.SortedStableFunc(slices.Values(e.Findings), func(a, b doctor.Finding) int {
		return cmp.Compare(slices.Index(gravity, a.Verdict), slices.Index(gravity, b.Verdict))
	})
}

// Summary counts them.
func (e examination) Summary() string {
	var parts []string
	for _, v := range gravity {
		n := 0
		for _, f := range e.Findings {
			if f.Verdict == v {
				n++
			}
		}
		parts = append(parts, fmt.Sprintf("%d %s", n, v))
	}
	return strings.Join(parts, ", ")
}

func (s *Server) showDoctor(context.Context, *http.Request) (any, error) {
	var all []examination
	for i, q := range s.opts.Queues {
		all = append(all, examination{q, i, s.examinations.of(q.Name)})
	}
	return all, nil
}

// postDoctor examines a queue. It goes on where the browser has gone; a second click waits for nothing, and begins nothing.
func (s *Server) postDoctor(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		s.fail(w, r, &pageError{http.StatusBadRequest, err})
		return
	}
	name := r.PostFormValue("queue")
	i := slices.IndexFunc(s.opts.Queues, func(q Queue) bool { return q.Name == name })
	if i < 0 {
		s.fail(w, r, &pageError{http.StatusNotFound, fmt.Errorf("the console does not show queue %q: start it with --queue", name)})
		return
	}
	if s.examinations.begin(name) {
		ended := make(chan struct{})
		s.background(func(ctx context.Context) {
			defer close(ended)
			s.examine(ctx, s.opts.Queues[i])
		})
		patience := time.NewTimer(doctorWait)
		defer patience.Stop()
		select {
		case <-ended:
		case <-patience.C:
		case <-r.Context().Done():
		}
	}
	http.Redirect(w, r, fmt.Sprintf("/doctor#doctor-%d", i), http.StatusSeeOther)
}

func (s *Server) examine(ctx context.Context, q Queue) {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	var findings []doctor.Finding
	err := host.Contain(func() error { findings = s.opts.Doctor(ctx, q); return nil })
	switch {
	case err != nil:
		s.log.Error("console: an examination failed", append([]any{"queue", q.Name}, host.ErrorAttrs(err)...)...)
	case ctx.Err() != nil:
		err = fmt.Errorf("it ended after %s: the checks that are not listed did not run", doctorTimeout)
	}
	s.examinations.end(q.Name, findings, err)
}
