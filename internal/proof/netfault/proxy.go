// Package netfault is a TCP proxy for tests and the demo: it stands between processes and a server, and loses, delays,
// doubles and holds up what passes. It knows nothing of the protocol.
package netfault

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Proxy forwards connections to one server.
type Proxy struct {
	// Addr is the host and port for the processes.
	Addr string

	server   string
	listener net.Listener
	running  sync.WaitGroup
	served   error // of the accept loop; read after running.Wait

	mu      sync.Mutex
	conns   map[*net.TCPConn]bool // of the processes
	away    bool
	open    chan struct{} // closed: bytes pass
	plan    Plan
	rng     *rand.Rand
	broken  int
	refused int
}

// Plan is what happens to packets. A packet is what one read returns: a request or a reply, where the protocol does not
// send the next one before. A field n means one packet in n; 0 is none.
type Plan struct {
	LoseRequest int // the connection breaks before the server has the packet
	LoseReply   int // the connection breaks before the process has the packet
	Delay       int // for up to MaxDelay, requests and replies
	Double      int // the server gets the request once more on another connection, up to MaxDelay later
	MaxDelay    time.Duration
}

// Start starts a proxy to a server's host and port.
func Start(server string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		Addr: l.Addr().String(), server: server, listener: l, conns: map[*net.TCPConn]bool{}, open: make(chan struct{}),
		rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
	}
	close(p.open)
	p.running.Go(p.serve)
	return p, nil
}

// Set sets the plan for the packets that follow.
func (p *Proxy) Set(plan Plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan = plan
}

// Cut breaks the open connections, also in the middle of a request, and resets new ones until Mend. Closing the listener
// would leave its port to others.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = true
	for c := range p.conns {
		p.broken++
		reset(c)
	}
}

// Mend ends Cut.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = false
}

// Stall holds up all bytes until Resume. Connections can be made meanwhile.
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
		p.open = make(chan struct{})
	default: // stalled already
	}
}

// Resume ends Stall.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
	default:
		close(p.open)
	}
}

// Met returns how many connections Cut broke and refused.
func (p *Proxy) Met() (broken, refused int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken, p.refused
}

// Close breaks all connections and waits until nothing of the proxy runs.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.Cut()
	p.Resume()
	p.running.Wait()
	return errors.Join(err, p.served)
}

func (p *Proxy) serve() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				p.served = fmt.Errorf("proxy of %s: %w", p.server, err)
			}
			return
		}
		p.running.Go(func() { p.forward(c.(*net.TCPConn)) })
	}
}

// forward passes packets both ways until one side closes its connection. What breaks is the process's to report.
func (p *Proxy) forward(process *net.TCPConn) {
	defer process.Close()
	if !p.admit(process) {
		return
	}
	defer p.leave(process)
	dialled, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	server := dialled.(*net.TCPConn)
	defer server.Close()
	p.running.Go(func() {
		p.pass(server, process, p.request)
		_ = server.Close()
	})
	p.pass(process, server, p.reply)
}

func (p *Proxy) pass(to, from *net.TCPConn, fate func(packet []byte) (lost bool)) {
	buf := make([]byte, 256<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			lost := fate(buf[:n])
			<-p.gate()
			if lost {
				reset(to)
				reset(from)
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *Proxy) request(packet []byte) (lost bool) {
	p.mu.Lock()
	lost = p.chance(p.plan.LoseRequest)
	late := p.delay()
	if p.chance(p.plan.Double) {
		packet, by := append([]byte(nil), packet...), time.Duration(p.rng.Int64N(int64(p.plan.MaxDelay)+1))
		p.running.Go(func() { p.double(packet, by) })
	}
	p.mu.Unlock()
	time.Sleep(late)
	return lost
}

func (p *Proxy) reply([]byte) (lost bool) {
	p.mu.Lock()
	lost = p.chance(p.plan.LoseReply)
	late := p.delay()
	p.mu.Unlock()
	time.Sleep(late)
	return lost
}

// double sends a request once more. Its reply is for nobody.
func (p *Proxy) double(packet []byte, by time.Duration) {
	time.Sleep(by)
	c, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer c.Close()
	if _, err := c.Write(packet); err == nil {
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		_, _ = c.Read(make([]byte, 64<<10)) // a server may drop a request whose sender has left
	}
}

func (p *Proxy) gate() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

func (p *Proxy) chance(oneIn int) bool { return oneIn > 0 && p.rng.IntN(oneIn) == 0 }

func (p *Proxy) delay() time.Duration {
	if !p.chance(p.plan.Delay) {
		return 0
	}
	return time.Duration(p.rng.Int64N(int64(p.plan.MaxDelay) + 1))
}

func (p *Proxy) admit(c *net.TCPConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away {
		p.refused++
		_ = c.SetLinger(0) // fails where the process has closed it
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) leave(c *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// reset closes a connection so that the other side sees it broken and not ended.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
