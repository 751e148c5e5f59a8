// Package thawtest is a network whose connections can die without a word, as they do while a process is frozen.
package thawtest

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Latency is how long an answer takes.
const Latency = time.Millisecond

// Network leads to a service. It works in a synctest bubble.
type Network struct {
	handler   http.Handler
	transport *http.Transport

	mu   sync.Mutex
	open []*deadable
}

// New returns a network that leads to h, until the test ends.
func New(t testing.TB, h http.Handler) *Network {
	t.Helper()
	n := &Network{handler: h}
	n.transport = &http.Transport{DialContext: n.dial, MaxIdleConnsPerHost: 10}
	t.Cleanup(n.transport.CloseIdleConnections)
	return n
}

// Client returns an HTTP client that keeps up to ten idle connections, as the SDK's does. It has no timeout.
func (n *Network) Client() *http.Client { return &http.Client{Transport: n.transport} }

// Kill lets every connection die: what is written to it is swallowed, and nothing more comes of it.
func (n *Network) Kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.open {
		c.mu.Lock()
		c.dead = true
		c.mu.Unlock()
	}
}

// Dials is how many connections were made.
func (n *Network) Dials() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.open)
}

func (n *Network) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	c := &deadable{Conn: ours}
	n.mu.Lock()
	n.open = append(n.open, c)
	n.mu.Unlock()
	go n.serve(theirs)
	return c, nil
}

func (n *Network) serve(conn net.Conn) {
	defer conn.Close()
	for r := bufio.NewReader(conn); ; {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		// No answer may overtake the end of its request: the SDK closes the request's body when it has the answer, and
		// net/http then gives the connection up.
		time.Sleep(Latency)
		answer := httptest.NewRecorder()
		n.handler.ServeHTTP(answer, req)
		resp := answer.Result()
		resp.ContentLength = int64(answer.Body.Len())
		if err := resp.Write(conn); err != nil {
			return
		}
	}
}

type deadable struct {
	net.Conn
	mu   sync.Mutex
	dead bool
}

func (d *deadable) Write(b []byte) (int, error) {
	d.mu.Lock()
	dead := d.dead
	d.mu.Unlock()
	if dead {
		return len(b), nil
	}
	return d.Conn.Write(b)
}
