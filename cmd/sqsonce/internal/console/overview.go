package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
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

// Failed are those whose last read has failed.
func (d overviewData) Failed() []queueView {
	return slices.DeleteFunc(slices.Clone(d.Queues), func(q queueView) bool { return q.Err == nil })
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
		return nil, &pageError{http.StatusNotFound, fmt.Errorf("%s is none of the queues of this console", d.Chosen)}
	}
	for i, q := range s.opts.Queues {
		state := s.sampler.state(q.Name)
		v := queueView{Queue: q, queueState: state, Number: i, Loss: lossOf(q, state, s.lookFacts(q), d.AgeErr, now)}
		if d.Chosen == q.Name || d.Chosen == "" && i < mostPlotted {
			v.Plots = s.plots("q"+strconv.Itoa(i), q, state.samples, now)
		}
		d.Queues = append(d.Queues, v)
	}
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
