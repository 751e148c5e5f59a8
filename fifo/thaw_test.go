package fifo_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/proof/netfault"
	"github.com/sqsonce/sqsonce/internal/thaw/thawtest"
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

// Connections that die together while the publisher works cost one attempt, and not one for each: a standard queue gets three.
func TestConnectionsThatDieTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, orders, nil)
		t.Cleanup(x.srv.Close)
		n := thawtest.New(t, x.srv)
		x.sent.Client = sqs.New(x.sqs.Options(), func(o *sqs.Options) { o.HTTPClient = n.Client() })
		p := x.publisher()
		invocation(x, p, 1)
		n.Kill()
		time.Sleep(time.Second)
		before := p.Stats().Requests
		if _, err := p.Publish(x.Context(), event("g", 2)); err != nil {
			t.Fatal(err)
		}
		if sent := p.Stats().Requests - before; sent != 2 {
			t.Errorf("%d attempts, want the one that timed out and one more", sent)
		}
	})
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
