//go:build unix

package attack

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/proof/netfault"
	"github.com/sqsonce/sqsonce/internal/proof/process"
)

// fleet is hosts that are processes, and their events.
type fleet struct {
	*bed
	ctx      context.Context // its end kills all processes
	settings settings
	bad      time.Time // until then processes are killed and stopped, and events come

	// With bed.mu.
	open          []*event // those that are not done
	kills, pauses int
	dooms         int            // given to processes, and to earlier fleets
	met           map[string]int // by point

	finished chan struct{}  // closed: all events are done
	late     sync.WaitGroup // requests of processes that were killed
}

// processes has processes deliver events while they are killed and stopped and their network is bad, and then until all
// events are done.
func processes(t *testing.T, target Target, inbox bool, s settings) {
	s.Inbox = inbox
	f := &fleet{
		bed: newBed(t, target, inbox), settings: s, bad: time.Now().Add(length() - lease), finished: make(chan struct{}),
		dooms: rand.IntN(len(storePoints)), met: map[string]int{},
	}
	ctx, cancel := context.WithDeadline(t.Context(), f.bad.Add(heal))
	defer cancel()
	f.ctx = ctx
	var wg sync.WaitGroup
	for i := range hosts {
		wg.Go(func() { f.seat(i) })
	}
	wg.Wait()
	f.late.Wait()
	runs := f.check()
	t.Logf("%d events, %d runs, %d processes killed, %d stopped; killed at %v", len(f.events), runs, f.kills, f.pauses, f.met)
	// In some seconds on a busy machine no process may come as far as its point.
	for _, point := range f.points() {
		if f.met[point] == 0 && length() > time.Minute {
			t.Errorf("no process was killed %s", point)
		}
	}
}

func (f *fleet) points() []string {
	if f.inbox {
		return inboxPoints
	}
	return storePoints
}

// doom is the next process's: each point in turn.
func (f *fleet) doom() process.Doom {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.points()
	f.dooms++
	return process.Doom{Point: all[f.dooms%len(all)], Nth: 1 + rand.IntN(4)}
}

// seat is a process and its successors. Each is killed: every second one at a point, unless it does not get there in time, and
// the others at any time, of those every second one after a stop. The last one is left in peace with a good network. The first
// one is not the last, however slow the machine is.
func (f *fleet) seat(n int) {
	for first := n; ; n++ {
		var doom process.Doom
		life := lease/4 + rand.N(lease/2)
		over := n > first && time.Now().After(f.bad)
		if !over && n%2 == 1 {
			doom, life = f.doom(), 3*lease
		}
		p := f.start(doom)
		p.live(life)
		switch {
		case over:
			p.end()
			return
		case n%4 == 0:
			p.pause(f.takeover())
			p.live(lease) // its handlers return, and their completes are refused
		case n%4 == 2:
			p.pause(lease + rand.N(lease/2))
			p.live(lease) // its handlers return, and their completes are refused
		}
		p.kill()
	}
}

func (f *fleet) takeover() time.Duration { return cmp.Or(f.target.Takeover, 2*lease) }

// window is how many events are open. Each is delivered on several hosts at once.
func (f *fleet) window() int {
	n := hosts * workers * 3 / 2
	if f.target.Addr == "" {
		n /= 4 // SQLite has one writer at a time
	}
	return n
}

// next returns the next delivery: of an event that is not done, or a copy that comes late. ok is false when all are done.
func (f *fleet) next() (d delivery, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = slices.DeleteFunc(f.open, (*event).isDone)
	for time.Now().Before(f.bad) && len(f.open) < f.window() {
		f.open = append(f.open, f.add())
	}
	if len(f.open) == 0 {
		select {
		case <-f.finished:
		default:
			close(f.finished)
		}
		return delivery{}, false
	}
	name := f.open[rand.IntN(len(f.open))].name
	if rand.IntN(16) == 0 {
		name = f.names[rand.IntN(len(f.names))]
	}
	f.deliveries++
	return delivery{f.deliveries, name}, true
}

func (f *fleet) event(name string) *event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.events[name]
}

// hostProcess is one host.
type hostProcess struct {
	*fleet
	*process.Process
	network *netfault.Proxy // nil: there is no server
	started chan struct{}   // closed: the process is known
	ready   chan struct{}   // closed: it runs
	rest    string          // what package testing printed
}

func (f *fleet) start(doom process.Doom) *hostProcess {
	p := &hostProcess{fleet: f, started: make(chan struct{}), ready: make(chan struct{})}
	s := f.settings
	if f.target.Addr != "" {
		p.network = f.proxy()
		p.network.Set(f.plan())
		s.Addr = p.network.Addr
	}
	env, err := json.Marshal(s)
	if err == nil {
		p.Process, err = process.Start(f.ctx, process.Options{
			Args: []string{"-test.run=" + s.pattern()}, Env: []string{envHost + "=" + string(env)}, Doom: doom, Stdout: p.read,
		})
	}
	if err != nil {
		f.Error(err)
		f.FailNow()
	}
	close(p.started)
	for range workers {
		p.deliver()
	}
	return p
}

// deliver gives the process its next delivery. A process that has died gets none: its reader reports how it ended.
func (p *hostProcess) deliver() {
	if d, ok := p.next(); ok {
		line, _ := json.Marshal(d) // of a number and a string
		_, _ = p.Stdin.Write(append(line, '\n'))
	}
}

// read notes what the process reports, and gives it a delivery for each that has ended.
func (p *hostProcess) read(stdout io.Reader) {
	<-p.started
	var rest strings.Builder
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var n note
		if err := json.Unmarshal(lines.Bytes(), &n); err != nil {
			rest.WriteString(lines.Text() + "\n")
			continue
		}
		if n.What == ready {
			close(p.ready)
			continue
		}
		p.event(n.Event).note(n)
		if n.ofDelivery() {
			p.deliver()
		}
	}
	p.rest = rest.String()
}

// live lets the process run for d, from when it is ready.
func (p *hostProcess) live(d time.Duration) {
	select {
	case <-p.ready:
		p.Live(d)
	case <-p.Over():
	}
}

// pause stops the process for longer than its leases.
func (p *hostProcess) pause(d time.Duration) {
	if err := p.Stop(func() { time.Sleep(d) }); err != nil {
		p.Error(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pauses++
}

// kill kills the process, unless it did so itself. What it sent shortly before reaches the server when others have taken its
// events over.
func (p *hostProcess) kill() {
	if p.network != nil {
		p.network.Stall()
		p.Live(rand.N(lease / 2))
	}
	if err := p.Kill(); err != nil {
		p.Error(err)
	}
	p.wait()
	if p.network != nil {
		p.late.Go(func() {
			time.Sleep(p.takeover())
			p.network.Resume()
		})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kills++
	if point := p.Met(); point != "" {
		p.met[point]++
	}
}

func (p *hostProcess) wait() {
	if err := p.Wait(); err != nil {
		p.Errorf("a host's process ended with %v:\n%s", err, p.rest)
	}
}

// end lets the process run until all events are done, and its deliveries have ended.
func (p *hostProcess) end() {
	if p.network != nil {
		p.network.Set(netfault.Plan{})
	}
	select {
	case <-p.finished:
	case <-p.Over():
	}
	_ = p.Stdin.Close() // fails where the process has died, which wait reports
	p.wait()
}
