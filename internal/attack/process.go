//go:build unix

package attack

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/netfault"
)

// fleet is hosts that are processes, and their events.
type fleet struct {
	*bed
	ctx      context.Context // its end kills all processes
	settings settings
	bad      time.Time // until then processes are killed and stopped, and events come

	open          []*event // those that are not done; with bed.mu
	kills, pauses int
	finished      chan struct{}  // closed: all events are done
	late          sync.WaitGroup // requests of processes that were killed
}

// processes has processes deliver events while they are killed and stopped and their network is bad, and then until all
// events are done.
func processes(t *testing.T, target Target, inbox bool, s settings) {
	s.Inbox = inbox
	f := &fleet{bed: newBed(t, target, inbox), settings: s, bad: time.Now().Add(length() - lease), finished: make(chan struct{})}
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
	t.Logf("%d events, %d runs, %d processes killed, %d stopped", len(f.events), runs, f.kills, f.pauses)
}

// seat is a process and its successors. Each is killed, every second one is stopped before, and the last one is left in
// peace with a good network. The first one is not the last, however slow the machine is.
func (f *fleet) seat(n int) {
	for first := n; ; n++ {
		p := f.start()
		p.live(lease/4 + rand.N(lease/2))
		over := n > first && time.Now().After(f.bad)
		switch {
		case over:
		case n%4 == 0:
			p.pause(f.takeover())
			p.live(lease) // its handlers return, and their completes are refused
		case n%4 == 2:
			p.pause(lease + rand.N(lease/2))
			p.live(lease) // its handlers return, and their completes are refused
		}
		if over {
			p.end()
			return
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

// process is one host.
type process struct {
	*fleet
	network *netfault.Proxy // nil: there is no server
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	ready   chan struct{} // closed: it runs
	gone    chan struct{} // closed: it has ended, and all its notes are read
	killed  atomic.Bool
}

func (f *fleet) start() *process {
	p := &process{fleet: f, ready: make(chan struct{}), gone: make(chan struct{})}
	s := f.settings
	if f.target.Addr != "" {
		p.network = f.proxy()
		p.network.Set(f.plan())
		s.Addr = p.network.Addr
	}
	env, err := json.Marshal(s)
	if err != nil {
		f.Error(err)
		f.FailNow()
	}
	p.cmd = exec.CommandContext(f.ctx, os.Args[0], "-test.run="+s.pattern())
	p.cmd.Env = append(os.Environ(), envHost+"="+string(env))
	p.cmd.Stderr = os.Stderr
	// A group of its own: if this process dies the kernel ends it, also while it is stopped.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.stdin, err = p.cmd.StdinPipe()
	if err != nil {
		f.Error(err)
		f.FailNow()
	}
	stdout, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		f.Error(err)
		f.FailNow()
	}
	go p.read(stdout)
	for range workers {
		p.deliver()
	}
	return p
}

// deliver gives the process its next delivery. A process that has died gets none: its reader reports how it ended.
func (p *process) deliver() {
	if d, ok := p.next(); ok {
		line, _ := json.Marshal(d) // of a number and a string
		_, _ = p.stdin.Write(append(line, '\n'))
	}
}

// read notes what the process reports, and gives it a delivery for each that has ended.
func (p *process) read(stdout io.Reader) {
	defer close(p.gone)
	var rest strings.Builder // what package testing prints
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
	if err := p.cmd.Wait(); err != nil && !p.killed.Load() {
		p.Errorf("a host's process ended with %v:\n%s", err, rest.String())
	}
}

// live lets the process run for d, from when it is ready.
func (p *process) live(d time.Duration) {
	select {
	case <-p.ready:
	case <-p.gone:
		return
	}
	select {
	case <-time.After(d):
	case <-p.gone:
	}
}

// pause stops the process for longer than its leases, as a debugger or a suspended machine does.
func (p *process) pause(d time.Duration) {
	p.signal(syscall.SIGSTOP)
	time.Sleep(d)
	p.signal(syscall.SIGCONT)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pauses++
}

func (p *process) signal(s syscall.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil {
		p.Errorf("%v: %v", s, err)
	}
}

// kill is kill -9. What the process sends shortly before reaches the server when others have taken its events over.
func (p *process) kill() {
	if p.network != nil {
		p.network.Stall()
		time.Sleep(rand.N(lease / 2))
	}
	p.killed.Store(true)
	p.signal(syscall.SIGKILL)
	<-p.gone
	if p.network != nil {
		p.late.Go(func() {
			time.Sleep(p.takeover())
			p.network.Resume()
		})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kills++
}

// end lets the process run until all events are done, and its deliveries have ended.
func (p *process) end() {
	if p.network != nil {
		p.network.Set(netfault.Plan{})
	}
	select {
	case <-p.finished:
	case <-p.gone:
	}
	_ = p.stdin.Close() // fails where the process has died, which its reader reports
	<-p.gone
}
