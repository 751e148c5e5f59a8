package fifo_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/fifokit"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// slowSQS answers each request after 20 ms.
var slowSQS = fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.Delay, Delay: 20 * time.Millisecond}

// visits is a relay's use of lanes: each group reads a page, enqueues it, waits for all results and reads the next one.
type visits struct {
	groups, pages, page int
	lanes               int           // the groups share them
	read                time.Duration // a page is read in no time to that time
}

// play returns the requests for each event.
func (v visits) play(x *fixture) float64 {
	p := x.publisher()
	var wg sync.WaitGroup
	for n := range v.lanes {
		l, closeLane := fifokit.OpenLane(p, x.Context())
		defer closeLane()
		for g := n; g < v.groups; g += v.lanes {
			wg.Go(func() {
				for at := range v.pages {
					time.Sleep(v.read * time.Duration((g*79+at*47)%64) / 64)
					var page []fifo.Event
					for i := range v.page {
						page = append(page, event(fmt.Sprint("g", g), at*v.page+i))
					}
					for _, q := range x.enqueueTo(l, page...) {
						if _, err := q.Get(x.Context()); err != nil {
							x.Error(err)
						}
					}
				}
			})
		}
	}
	wg.Wait()
	return float64(len(x.sizes())) / float64(v.groups*v.pages*v.page)
}

func (x *fixture) enqueueTo(l fifokit.Lane, es ...fifo.Event) (pending []*fifo.PublishResult) {
	x.Helper()
	for _, e := range es {
		q, err := l.Enqueue(x.Context(), e)
		if err != nil {
			x.Error(err)
			return pending
		}
		pending = append(pending, q)
	}
	return pending
}

// The events of many groups fill requests, whether they share a lane or not, are enqueued in pages or one by one, and however long
// it takes to read the next page: SQS bills requests.
func TestLanesFillRequests(t *testing.T) {
	t.Parallel()
	for _, v := range []visits{
		{groups: 64, pages: 1, page: 10, lanes: 1},
		{groups: 64, pages: 1, page: 10, lanes: 64},
		{groups: 64, pages: 10, page: 1, lanes: 1},
		{groups: 64, pages: 10, page: 1, lanes: 64},
		{groups: 64, pages: 10, page: 1, lanes: 64, read: 10 * time.Millisecond},
		{groups: 64, pages: 1, page: 10, lanes: 1, read: 100 * time.Millisecond},
		{groups: 64, pages: 10, page: 10, lanes: 1, read: 10 * time.Millisecond},
		{groups: 64, pages: 10, page: 10, lanes: 64, read: 100 * time.Millisecond},
	} {
		runIn(t, fmt.Sprintf("%+v", v), orders, func(x *fixture) {
			if n := v.play(x); n < 0.1 || n > 0.12 {
				x.Errorf("%.4f requests an event, want 0.10 to 0.12", n)
			}
		}, slowSQS)
	}
}

// What waits for others does so for 10 ms only, and a group that is alone waits before its first event only.
func TestALaneDoesNotLinger(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		p := x.publisher(func(o *fifo.Options) { o.Linger = time.Hour })
		l, closeLane := fifokit.OpenLane(p, x.Context())
		defer closeLane()
		start := time.Now()
		var page []fifo.Event
		for n := range 10 {
			page = append(page, event("g", n))
		}
		for _, q := range x.enqueueTo(l, page...) {
			must.Get(q.Get(x.Context()))(x)
		}
		if took := time.Since(start); took != 210*time.Millisecond {
			x.Errorf("ten events of a group took %v, want ten requests of 20 ms and 10 ms", took)
		}
	}, slowSQS)
	inBubble(t, orders, func(x *fixture) {
		p := x.publisher()
		l, closeLane := fifokit.OpenLane(p, x.Context())
		defer closeLane()
		start := time.Now()
		hung := x.enqueueTo(l, event("hung", 1))
		time.Sleep(15 * time.Millisecond)
		for _, q := range x.enqueueTo(l, event("g", 1), event("g", 2), event("g", 3)) {
			must.Get(q.Get(x.Context()))(x)
		}
		if took := time.Since(start); took != 45*time.Millisecond {
			x.Errorf("three events beside a request that hangs took %v, want 45ms: 10 ms each", took)
		}
		must.Get(hung[0].Get(x.Context()))(x)
	}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.Delay, Delay: time.Second})
}
