package netfault_test

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/proof/netfault"
)

// echo is a server that answers each line with the line.
type echo struct {
	listener net.Listener
	mu       sync.Mutex
	got      []string
}

func newEcho(t *testing.T) *echo {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	e := &echo{listener: l}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go e.serve(c)
		}
	}()
	return e
}

func (e *echo) serve(c net.Conn) {
	defer c.Close()
	for lines := bufio.NewScanner(c); lines.Scan(); {
		e.mu.Lock()
		e.got = append(e.got, lines.Text())
		e.mu.Unlock()
		fmt.Fprintln(c, lines.Text())
	}
}

func (e *echo) lines() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.got)
}

func newProxy(t *testing.T, e *echo) *netfault.Proxy {
	p, err := netfault.Start(e.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func dial(t *testing.T, p *netfault.Proxy) net.Conn {
	c, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func ask(c net.Conn, text string) error {
	if _, err := fmt.Fprintln(c, text); err != nil {
		return err
	}
	got, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && got != text+"\n" {
		err = fmt.Errorf("got %q, want %q", got, text)
	}
	return err
}

func TestCut(t *testing.T) {
	t.Parallel()
	p := newProxy(t, newEcho(t))
	c := dial(t, p)
	if err := ask(c, "before"); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if ask(c, "open") == nil {
		t.Error("an open connection works")
	}
	if d, err := net.Dial("tcp", p.Addr); err == nil && ask(d, "new") == nil {
		t.Error("a new connection works")
	}
	p.Mend()
	if err := ask(dial(t, p), "after"); err != nil {
		t.Error(err)
	}
	if broken, refused := p.Met(); broken != 1 || refused != 1 {
		t.Errorf("%d broken and %d refused, want 1 and 1", broken, refused)
	}
}

func TestStall(t *testing.T) {
	t.Parallel()
	e := newEcho(t)
	p := newProxy(t, e)
	c := dial(t, p)
	if err := ask(c, "before"); err != nil {
		t.Fatal(err)
	}
	p.Stall()
	answered := make(chan error, 1)
	go func() { answered <- ask(c, "stalled") }()
	select {
	case err := <-answered:
		t.Errorf("answered during the stall: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if got := e.lines(); len(got) != 1 {
		t.Errorf("the server has %q, want the first line only", got)
	}
	p.Resume()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestLostPackets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		plan netfault.Plan
		got  int
	}{{netfault.Plan{LoseRequest: 1}, 0}, {netfault.Plan{LoseReply: 1}, 1}} {
		e := newEcho(t)
		p := newProxy(t, e)
		p.Set(tt.plan)
		if ask(dial(t, p), "a") == nil {
			t.Errorf("%+v: answered", tt.plan)
		}
		if got := e.lines(); len(got) != tt.got {
			t.Errorf("%+v: the server has %q, want %d lines", tt.plan, got, tt.got)
		}
	}
}

func TestDoubledAndDelayedPackets(t *testing.T) {
	t.Parallel()
	e := newEcho(t)
	p := newProxy(t, e)
	p.Set(netfault.Plan{Double: 1, Delay: 1, MaxDelay: 5 * time.Millisecond})
	if err := ask(dial(t, p), "a"); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); len(e.lines()) < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the server has %q, want the line twice", e.lines())
		}
	}
}
