package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// outageTime is how long the store is away.
const outageTime = 10 * time.Second

// outage is a proxy between the store and the workers and functions. It forwards bytes, whatever the protocol, and can
// refuse connections.
type outage struct {
	address  string // for the processes
	upstream string // host and port of the store
	listener net.Listener
	running  sync.WaitGroup
	served   error // of the accept loop; read after running.Wait

	mu       sync.Mutex
	refusing bool
	conns    map[*net.TCPConn]bool // of the processes
	broken   int
	refused  int
}

func startOutage(upstream string) (*outage, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	o := &outage{address: l.Addr().String(), upstream: upstream, listener: l, conns: map[*net.TCPConn]bool{}}
	o.running.Go(o.serve)
	return o, nil
}

func (o *outage) serve() {
	for {
		c, err := o.listener.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				o.served = fmt.Errorf("proxy of the store: %w", err)
			}
			return
		}
		o.running.Go(func() { o.forward(c.(*net.TCPConn)) })
	}
}

// forward copies bytes both ways until one side closes its connection. Errors are not the demo's: a killed worker breaks its
// connections, and each process reports what it could not send.
func (o *outage) forward(process *net.TCPConn) {
	defer process.Close()
	if !o.admit(process) {
		return
	}
	defer o.leave(process)
	store, err := net.Dial("tcp", o.upstream)
	if err != nil {
		return
	}
	defer store.Close()
	o.running.Go(func() {
		_, _ = io.Copy(store, process)
		_ = store.Close()
	})
	_, _ = io.Copy(process, store)
}

// admit says that a connection is forwarded. One that is refused is reset: closing the listener would leave its port to others.
func (o *outage) admit(c *net.TCPConn) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refusing {
		o.refused++
		_ = c.SetLinger(0) // fails where the process has closed it
		return false
	}
	o.conns[c] = true
	return true
}

func (o *outage) leave(c *net.TCPConn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.conns, c)
}

// begin breaks the open connections, also in the middle of a request, and refuses new ones.
func (o *outage) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refusing = true
	for c := range o.conns {
		o.broken++
		_ = c.SetLinger(0)
		_ = c.Close()
	}
}

func (o *outage) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refusing = false
}

// met returns how many connections the outage broke and refused.
func (o *outage) met() (broken, refused int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.broken, o.refused
}

// close ends the proxy. It is called when the processes have exited.
func (o *outage) close() error {
	err := o.listener.Close()
	o.begin()
	o.running.Wait()
	return errors.Join(err, o.served)
}
