package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/fleet"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
	"github.com/sqsonce/sqsonce/internal/host"
)

// mostPlotted is how many queues have their plots on one page: each has four, with tables, every five seconds.
const mostPlotted = 5

func (s *Server) overviewRoutes() {
	s.handlePage("GET /{$}", "overview", "Overview", s.showOverview)
	s.handleFragment("GET /fragment/queues", "live-queues", s.showOverview)
}

// overviewData is the first page.
type overviewData struct {
	Queues []queueView
	Chosen string // the queue whose plots are shown alone; "": those of the first ones
	AgeErr error

	Banners []string // of consumers that are paused or limited
	Wrong   []wrong
	Unknown string // why it is not known that nothing is wrong; "": it is
}

// queueView is a queue on the first page.
type queueView struct {
	Queue
	queueState
	Number int
	Loss   loss
	Plots  []plot // nil: of other queues
}

// Path is that of the fragment, with the choice.
func (d overviewData) Path() string {
	if d.Chosen == "" {
		return "/fragment/queues"
	}
	return "/fragment/queues?" + url.Values{"queue": {d.Chosen}}.Encode()
}

// Plotted are the queues with plots.
func (d overviewData) Plotted() []queueView {
	return slices.DeleteFunc(slices.Clone(d.Queues), func(q queueView) bool { return q.Plots == nil })
}

// PlotsPath is the page with the plots of this queue alone.
func (q queueView) PlotsPath() string {
	return "/?" + url.Values{"queue": {q.Name}}.Encode() + "#plots"
}

// showOverview shows what the sampler has: AWS is not asked for a page.
func (s *Server) showOverview(_ context.Context, r *http.Request) (any, error) {
	now := time.Now()
	d := overviewData{Chosen: r.URL.Query().Get("queue"), AgeErr: s.sampler.ageErr()}
	if d.Chosen != "" && !slices.ContainsFunc(s.opts.Queues, func(q Queue) bool { return q.Name == d.Chosen }) {
		return nil, &pageError{http.StatusNotFound, fmt.Errorf("the console does not show queue %s: start it with --queue", d.Chosen)}
	}
	for i, q := range s.opts.Queues {
		state := s.sampler.state(q.Name)
		v := queueView{Queue: q, queueState: state, Number: i, Loss: lossOf(q, state, s.lookFacts(q), d.AgeErr, now)}
		if d.Chosen == q.Name || d.Chosen == "" && i < mostPlotted {
			v.Plots = s.plots("q"+strconv.Itoa(i), q, state.samples, now)
		}
		d.Queues = append(d.Queues, v)
	}
	read := s.sampler.lastRead()
	d.Banners = fleet.Banners(read.workers)
	d.findWrong(len(s.opts.Workers) > 0, read)
	return d, nil
}

// plots are those that have something to show.
func (s *Server) plots(prefix string, q Queue, samples []sample, now time.Time) []plot {
	kinds := []plotOf{depthPlot}
	if s.opts.CloudWatch != nil {
		kinds = append(kinds, agePlot)
	}
	if q.DLQURL != "" {
		kinds = append(kinds, deadPlot)
	}
	if len(s.opts.Workers) > 0 {
		kinds = append(kinds, ratePlot)
	}
	var drawn []plot
	for _, kind := range kinds {
		drawn = append(drawn, kind.draw(prefix, samples, now))
	}
	return drawn
}

// loss is when SQS deletes the oldest message of a dead-letter queue. At is never later than that, as far as SQS can be asked:
// a message that waited in its source has less time than the metric says, because a standard queue counts from the send, and the
// metric from the move.
type loss struct {
	None  bool      // there is no message, or no dead-letter queue
	At    time.Time // zero: not known, see Why
	Exact bool      // by the look at AsOf
	AsOf  time.Time
	Seen  time.Time // when the oldest message is lost that the look showed, where what came since may be lost before; zero: no such
	Why   string
}

// lookFacts are what a look at a dead-letter queue has shown.
type lookFacts struct {
	asOf     time.Time // zero: nobody has looked
	complete bool      // no message was hidden, or left
	lostAt   time.Time // the first of its messages; zero: it had none
}

// mostRetention is SQS's: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
const mostRetention = 14 * 24 * time.Hour

func lossOf(q Queue, state queueState, looked lookFacts, metricErr error, now time.Time) loss {
	if q.DLQURL == "" {
		return loss{None: true}
	}
	if state.At.IsZero() {
		return loss{Why: "SQS has not answered yet"}
	}
	if state.Dead.Total() == 0 {
		if state.Err != nil { // by now there may be one
			return loss{Why: "there was none at " + clock(state.At) + ", and SQS was not read since"}
		}
		return loss{None: true}
	}
	// A message in the dead-letter queue has this long from its move at least: less than the whole retention of the queue by what it
	// may have waited in its source.
	left := state.Dead.Retention
	if !host.IsFIFO(q.DLQName) {
		waited := state.Main.Retention
		if state.Ages.Shared { // their sources' retentions are not known
			waited = mostRetention
		}
		left -= waited
	}
	sourcesKnown := host.IsFIFO(q.DLQName) || state.Ages.Read && state.Ages.SharedErr == nil

	l := loss{}
	switch metric := state.Ages.Dead; {
	case !sourcesKnown && state.Ages.SharedErr != nil:
		l.Why = short(fmt.Sprintf("the queues whose dead letters these are cannot be listed: %v", state.Ages.SharedErr))
	case metric.At.IsZero() && metricErr != nil:
		l.Why = "CloudWatch gives no ages"
	case !state.Ages.Read:
		l.Why = "CloudWatch has not answered yet"
	case metric.At.IsZero():
		l.Why = "CloudWatch has no age of the oldest message"
	default:
		l.At = metric.At.Add(left - metric.Age)
	}
	if !looked.lostAt.After(now) { // it had no message, or none that is still there
		return l
	}
	// What has been moved there since the look may be older than what it showed, but not by more than it can have waited.
	// Round: where the computer sleeps, only the calendar's clock goes on.
	since := looked.asOf.Round(0).Add(left)
	switch bound := sourcesKnown && looked.complete; {
	case bound && !host.IsFIFO(q.DLQName) && !looked.lostAt.After(since): // a FIFO queue counts from SQS's own move, which no message tells
		return loss{At: looked.lostAt, Exact: true, AsOf: looked.asOf}
	case bound && l.At.IsZero():
		l = loss{At: earlier(looked.lostAt, since)}
	case !l.At.IsZero():
		l.At = earlier(l.At, looked.lostAt) // this one is lost then
	}
	if l.AsOf = looked.asOf; l.At.Before(looked.lostAt) {
		l.Seen = looked.lostAt
	}
	return l
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Text says it in words.
func (l loss) Text() string {
	in := func(t time.Time) string { return "in " + shown.Brief(time.Until(t), true) }
	text := ""
	switch {
	case l.None:
		return "none there"
	case l.Exact && time.Now().Before(l.At):
		return in(l.At) + ", as of the look at " + clock(l.AsOf)
	case l.At.IsZero():
		text = "unknown: " + l.Why
	case !time.Now().Before(l.At):
		text = "may be lost at any time"
	default:
		text = in(l.At) + " at least"
	}
	if !l.Seen.IsZero() {
		text += "; what the look at " + clock(l.AsOf) + " showed, " + in(l.Seen)
	}
	return text
}

// Urgent says that it may be within two days: a night and a day to mend the cause.
func (l loss) Urgent() bool { return !l.None && !l.At.IsZero() && time.Until(l.At) < 48*time.Hour }
