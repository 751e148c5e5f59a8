package fifo_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/proof/netfault"
	"github.com/sqsonce/sqsonce/internal/thaw/thawtest"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// invocation publishes eighty events in eight requests, each of which has a connection of its own.
func invocation(x *fixture, p *fifo.Publisher, n int) time.Duration {
	x.Helper()
	var es []fifo.Event
	for i := range 80 {
		es = append(es, event(fmt.Sprint("g", i), n))
	}
	start := time.Now()
	if _, err := p.PublishAll(x.Context(), es); err != nil {
		x.Error(err)
	}
	return time.Since(start)
}

// During a freeze all idle connections of the client break, and the client is not informed. After it no request waits for an
// answer on one of them.
func TestConnectionsThatDiedInAFreeze(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, orders, nil)
		t.Cleanup(x.srv.Close)
		n := thawtest.New(t, x.srv)
		x.sent.Client = sqs.New(x.sqs.Options(), func(o *sqs.Options) { o.HTTPClient = n.Client() })
		p := x.publisher()
		invocation(x, p, 1)
		n.Kill()
		time.Sleep(time.Minute)
		if took := invocation(x, p, 2); took != thawtest.Latency {
			t.Errorf("after the freeze: took %s, want that of one answer", took)
		}
	})
}

// The same over TCP: the old connections accept bytes and answer nothing.
func TestTCPConnectionsThatDiedInAFreeze(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("lasts 21 s")
	}
	srv := memsqs.New()
	t.Cleanup(srv.Close)
	web := &http.Server{Handler: srv}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = web.Serve(l) }()
	t.Cleanup(func() { _ = web.Close() })
	dead, alive := proxy(t, l.Addr().String()), proxy(t, l.Addr().String())
	var way atomic.Pointer[netfault.Proxy]
	way.Store(dead)
	transport := &http.Transport{MaxIdleConnsPerHost: 10, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", way.Load().Addr)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	c := newClient(transport)
	x := &fixture{T: t, srv: srv, sqs: c, sent: &recorder{Client: c}}
	x.url = x.create(orders, nil)
	p := x.publisher()
	invocation(x, p, 1)
	dead.Stall()
	way.Store(alive)
	time.Sleep(21 * time.Second) // longer than the pause after which package thaw does not trust a connection
	if r, err := p.PublishAll(t.Context(), []fifo.Event{event("a", 1), event("b", 1), event("c", 1)}); err != nil {
		t.Error(err)
	} else if r[0].Attempts != 1 {
		t.Errorf("%d attempts after the freeze, want 1: on a new connection", r[0].Attempts)
	}
}

func proxy(t *testing.T, server string) *netfault.Proxy {
	t.Helper()
	p, err := netfault.Start(server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}
