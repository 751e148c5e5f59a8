package testserver

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
)

// Serve serves each connection to a port of the loopback interface, and closes it then. At the end of the test all are closed.
func Serve(t testing.TB, serve func(net.Conn)) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(Host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	var (
		mu    sync.Mutex
		conns []net.Conn
		all   sync.WaitGroup
	)
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			all.Go(func() {
				defer c.Close() // nothing is lost
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close() // the test may have closed it
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return l
}

// Refusal is an error of a server.
type Refusal struct {
	Code   string // five letters and digits
	Number uint16
	Text   string
}

// Refusals are n errors that nobody has written a list of: every second one is the same each time, the others are drawn anew.
func Refusals(n int) (all []Refusal) {
	words := strings.Fields("ERR FATAL upstream internal error connection refused failure limit exceeded not allowed from script duplicate key" +
		" value table does not exist syntax near message body too large timeout denied quota record owner lease expired node shard retry later unknown code")
	each := [2]*rand.Rand{rand.New(rand.NewPCG(17, 1)), rand.New(rand.NewPCG(rand.Uint64(), 1))}
	for i := range n {
		random := each[i%2]
		r := Refusal{Number: uint16(1 + random.IntN(9999))}
		for range 5 {
			r.Code += string("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[random.IntN(36)])
		}
		for range 1 + random.IntN(6) {
			r.Text += " " + words[random.IntN(len(words))]
		}
		r.Text = strings.TrimSpace(r.Text)
		all = append(all, r)
	}
	return all
}

func (r Refusal) String() string { return fmt.Sprintf("%s, %d, %q", r.Code, r.Number, r.Text) }
