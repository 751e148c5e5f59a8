package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/fleet"
	"github.com/sqsonce/sqsonce/internal/statusreport"
)

const (
	// mostRunning is how many handlers a page shows, the oldest of all processes.
	mostRunning = 100
	// runningFor is for how long the handlers are read after somebody has looked at them: they are megabytes.
	runningFor = 30 * time.Second
)

func (s *Server) workersRoutes() {
	s.handlePage("GET /workers", "workers", "Workers", s.showWorkers)
	s.handleFragment("GET /fragment/workers", "live-workers", s.showWorkers)
}

// workersRead is what the workers have said.
type workersRead struct {
	at        time.Time // zero: not yet
	workers   []fleet.Worker
	rates     map[fleet.Of]fleet.Rate
	running   []fleet.Running
	runningAt time.Time
}

// readWorkers asks the workers how they are. One that is slow keeps nobody waiting but the next read.
func (p *sampler) readWorkers(ctx context.Context) {
	if len(p.opts.Workers) == 0 {
		return
	}
	p.mu.Lock()
	read, wanted := p.read, time.Since(p.runningWanted) < runningFor
	p.mu.Unlock()
	before := read.workers
	read.workers, read.at = p.fleet.Stats(ctx), time.Now()
	read.rates = fleet.Rates(before, read.workers)
	if wanted {
		read.running, read.runningAt = p.fleet.Running(ctx, read.workers), time.Now()
		for _, r := range read.running { // each lists the oldest first
			if r.Report != nil && len(r.Report.Running) > mostRunning {
				r.Report.Running = slices.Clone(r.Report.Running[:mostRunning])
			}
		}
	} else {
		read.running, read.runningAt = nil, time.Time{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read = read
}

// workers returns the last read. The next ones have the running handlers too.
func (p *sampler) workers() workersRead {
	p.mu.Lock()
	p.runningWanted = time.Now()
	p.mu.Unlock()
	return p.lastRead()
}

func (p *sampler) lastRead() workersRead {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.read
}

// rate is what all workers of a queue do in a second. It is not known where none of them has been read twice.
func (w workersRead) rate(queue string) (sum fleet.Rate, known bool) {
	for i, process := range w.workers {
		if process.Report == nil {
			continue
		}
		for n, worker := range process.Report.Workers {
			r, ok := w.rates[fleet.Of{URL: w.workers[i].URL, Worker: n}]
			if worker.Queue != queue || !ok {
				continue
			}
			known = true
			sum.Done += r.Done
			sum.Failed += r.Failed
		}
	}
	return sum, known
}

// workersData is the page of the workers.
type workersData struct {
	Asked     bool // there are workers to ask
	At        time.Time
	Workers   []workerView
	Limits    []limitView
	RunningAt time.Time
	Running   []runningView
	Total     int // handlers that run
	Unread    []fleet.Running
	Keys      bool // some have keys or groups
}

// workerView is a worker of a process, or a process that does not answer.
type workerView struct {
	URL, Name, Version string
	Started            time.Time
	Err                error // why it is not known
	statusreport.Worker
	Rate  fleet.Rate
	Rated bool
}

var errNoReport = errors.New("it has not answered yet")

// runningView is a handler that runs.
type runningView struct {
	Process int
	Name    string
	statusreport.Running
}

// Number is one of the worker's, or "unknown".
func (v workerView) Number(name string) string {
	if n, ok := v.Stats[name]; ok {
		return whole(n)
	}
	return "unknown"
}

// Oldest is for how long the oldest handler runs.
func (v workerView) Oldest() string {
	switch n, ok := v.Stats[fleet.OldestRunning]; {
	case !ok:
		return "unknown"
	case n == 0:
		return "none"
	default:
		return seconds(n)
	}
}

// PerSecond is a rate, once the worker was read twice.
func (v workerView) PerSecond(n float64) string {
	if !v.Rated {
		return "not yet"
	}
	return perSecond(n)
}

// Ready says whether the worker is, and Mood how grave that is.
func (v workerView) Ready() string {
	switch {
	case v.NotLive != "":
		return "not live"
	case v.NotReady != "":
		return "not ready"
	default:
		return "ready"
	}
}

// Mood is the class of the badge.
func (v workerView) Mood() string {
	return map[string]string{"not live": "bad", "not ready": "warn", "ready": "good"}[v.Ready()]
}

// Trouble is how many messages are aside, in doubt or suspect.
func (v workerView) Trouble() string { return fleet.Trouble(v.Stats) }

// Why is the reason why it is not ready.
func (v workerView) Why() string { return cmp.Or(v.NotLive, v.NotReady) }

// ID is that of its row: scripts keep its element where others come or go.
func (v runningView) ID() string { return "r-" + strconv.Itoa(v.Process) + "-" + v.MessageID }

// For is for how long it runs.
func (v runningView) For() string { return seconds(v.Seconds) }

// Hidden is for how long SQS still hides its message.
func (v runningView) Hidden() string {
	if v.Lease < 0 {
		return "no longer hidden"
	}
	return seconds(v.Lease)
}

func workerViews(read workersRead) (all []workerView) {
	for _, p := range read.workers {
		if p.Err != nil || p.Report == nil {
			all = append(all, workerView{URL: p.URL, Err: cmp.Or(p.Err, errNoReport)})
			continue
		}
		for i, w := range p.Report.Workers {
			v := workerView{URL: p.URL, Name: p.Report.Name, Version: p.Report.Version, Started: p.Report.Started, Worker: w}
			v.Rate, v.Rated = read.rates[fleet.Of{URL: p.URL, Worker: i}]
			all = append(all, v)
		}
	}
	return all
}

// limitView is a rule of the workers' limits.
type limitView struct{ *fleet.Limit }

func limitViews(read workersRead) (all []limitView) {
	for _, l := range fleet.Limits(read.workers) {
		all = append(all, limitView{l})
	}
	return all
}

// Figure is a sum, or "unknown".
func (v limitView) Figure(n *float64) string {
	if n == nil {
		return "unknown"
	}
	return whole(*n)
}

// In is when the next waiting message has its turn.
func (v limitView) In() string {
	switch {
	case v.Waiting != nil && *v.Waiting == 0:
		return "none waits"
	case v.Next == nil:
		return "unknown"
	case *v.Next < 10:
		return fmt.Sprintf("%.1fs", *v.Next)
	}
	return seconds(*v.Next)
}

// Down are the addresses of the processes for which the Counter is down, or fails for a key.
func (v limitView) Down() (urls []string) {
	for _, p := range v.Processes {
		if p.Down != nil && *p.Down > 0 || p.KeysDown != nil && *p.KeysDown > 0 {
			urls = append(urls, p.URL)
		}
	}
	return urls
}

func (s *Server) showWorkers(context.Context, *http.Request) (any, error) {
	read := s.sampler.workers()
	d := workersData{Asked: len(s.opts.Workers) > 0, At: read.at, RunningAt: read.runningAt, Workers: workerViews(read), Limits: limitViews(read)}
	names := map[string]string{}
	for _, w := range d.Workers {
		names[w.URL] = w.Name
	}
	for i, r := range read.running {
		if r.Err != nil || r.Report == nil {
			d.Unread = append(d.Unread, r)
			continue
		}
		d.Total += r.Report.Total
		for _, h := range r.Report.Running {
			d.Running = append(d.Running, runningView{i, names[r.URL], h})
			d.Keys = d.Keys || h.Key != "" || h.Group != ""
		}
	}
	slices.SortStableFunc(d.Running, func(a, b runningView) int { return cmp.Compare(b.Seconds, a.Seconds) })
	d.Running = d.Running[:min(len(d.Running), mostRunning)]
	return d, nil
}
