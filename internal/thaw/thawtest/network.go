// Package thawtest is a network whose connections can die unnoticed, as they do while a process is frozen.
package thawtest

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Latency is how long a response takes.
const Latency = time.Millisecond

// Network connects clients with a service. It works in a synctest bubble.
type Network struct {
	handler   http.Handler
	transport *http.Transport

	mu   sync.Mutex
	open []*deadable
}

// New returns a network that connects clients with h, until the test ends.
func New(t testing.TB, h http.Handler) *Network {
	t.Helper()
	n := &Network{handler: h}
	n.transport = &http.Transport{DialContext: n.dial, MaxIdleConnsPerHost: 10}
	t.Cleanup(func() {
		time.Sleep(2 * Latency) // a call that was given up may have a request that is still being served
		n.transport.CloseIdleConnections()
	})
	return n
}

// Client returns an HTTP client with up to ten idle connections, as the SDK's. It has no timeout.
func (n *Network) Client() *http.Client { return &http.Client{Transport: n.transport} }

// Kill lets every connection die: a write to it succeeds and arrives nowhere, and a read gets nothing more.
func (n *Network) Kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.open {
		c.mu.Lock()
		c.dead = true
		c.mu.Unlock()
	}
}

// Dials returns how many connections were made.
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
		// A response must not arrive before the end of its request, which may be in several writes: the SDK closes the
		// request's body when it has the response, and net/http then closes the connection.
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		time.Sleep(Latency)
		recorder := httptest.NewRecorder()
		n.handler.ServeHTTP(recorder, req)
		resp := recorder.Result()
		resp.ContentLength = int64(recorder.Body.Len())
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
