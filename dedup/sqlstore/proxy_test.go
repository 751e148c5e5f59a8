package sqlstore

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/testserver"
)

// proxy stands between a pool and its server, and breaks a connection at a statement that the test names.
type proxy struct {
	server string
	listen net.Listener

	mu     sync.Mutex
	word   []byte // the next packet that contains it breaks its connection
	send   bool   // the server executes the statement, and only the reply is lost
	delay  bool   // the client sees the connection break before the server receives the statement
	broken int
}

// throughProxy returns a pool that reaches b's server through a proxy. Every statement is one packet in each direction.
func throughProxy(t *testing.T, b *Bed) (*proxy, *Bed) {
	t.Helper()
	p := &proxy{server: b.kind.Address(b.DSN)}
	p.listen = testserver.Serve(t, p.serve)
	dsn := strings.Replace(b.DSN, p.server, p.listen.Addr().String(), 1) + b.kind.OnePacket
	return p, b.with(t, dsn)
}

// loseReply lets the server execute the next statement that contains word, and breaks the connection instead of returning
// the reply.
func (p *proxy) loseReply(word string) { p.set(word, true) }

// loseStatement breaks the connection instead of sending the next statement that contains word.
func (p *proxy) loseStatement(word string) { p.set(word, false) }

// loseReplyEarly is loseReply, but the connection breaks 300 ms before the server receives the statement.
func (p *proxy) loseReplyEarly(word string) {
	p.set(word, true)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = true
}

func (p *proxy) isDelayed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delay
}

func (p *proxy) set(word string, send bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.word, p.send, p.delay = []byte(word), send, false
}

// breaks reports whether the packet breaks its connection, and whether it is sent before that.
func (p *proxy) breaks(packet []byte) (breaks, send bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.word == nil || !bytes.Contains(packet, p.word) {
		return false, true
	}
	p.word = nil
	p.broken++
	return true, p.send
}

func (p *proxy) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}

func (p *proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		_ = client.Close()
		return
	}
	var lost atomic.Bool // the server's next packet is the reply that is lost
	var wg sync.WaitGroup
	wg.Go(func() {
		defer client.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			if err != nil || lost.Load() {
				return
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			break
		}
		breaks, send := p.breaks(buffer[:n])
		if breaks {
			lost.Store(true)
		}
		if !send {
			break
		}
		if breaks && p.isDelayed() {
			_ = client.Close()
			time.Sleep(300 * time.Millisecond)
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			break
		}
		if breaks {
			wg.Wait() // until the server has replied
			break
		}
	}
	_, _ = client.Close(), server.Close()
	wg.Wait()
}
