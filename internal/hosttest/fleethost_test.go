package hosttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sqsonce/sqsonce"
	publish "github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// live runs the processes of a worker, one after the other.
func (f *fleet) live(index int) {
	w := f.plan.workers[index]
	for i, l := range w.lives {
		if f.at(l.from) {
			// An orchestrator replaces a process whose handlers are all stuck, and one that has ended.
			for n := 0; f.liveOnce(fmt.Sprintf("worker %d.%d.%d", index, i, n), index, w, l); n++ {
				time.Sleep(2 * time.Second)
			}
		}
	}
}

// liveOnce runs one process, and reports whether it was ended before the end of its life.
func (f *fleet) liveOnce(name string, index int, w workerPlan, l life) (replaced bool) {
	n := f.newNode(name, index)
	k := must.Get(sqsworker.New(n.sqs, f.url, f.handler(n), f.hooks.worker, func(o *sqsworker.Options) {
		o.Concurrency, o.MaxInFlight, o.Logger = w.concurrency, w.inFlight, f.log
		if p := f.plan.limiter; p != nil {
			o.MaxHeld = p.held
		}
	}))(f)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- k.Run(ctx) }()
	for _, z := range l.freezes {
		if z.at > f.now() {
			timer := time.AfterFunc(z.at-f.now(), func() { n.freeze(z.length) })
			defer timer.Stop()
		}
	}
	end, err := f.watch(n, k, l.to, stopped)
	if end == byItself && !n.mayEnd() {
		f.Errorf("%s ended by itself at %s: %v", name, f.now(), err)
		return false
	}
	if end == byPlan && l.killed {
		n.end(byKill)
		n.kill()
	}
	n.end(byStop)
	cancel()
	// The process ends when Run returns, and with it the handlers that a stop has given up.
	if end != byItself {
		<-stopped
	}
	n.closeLimiter()
	n.kill()
	f.count(workersFrozen, len(n.frozen))
	f.count(workersKilled, count(l.killed))
	f.count(workersStopped, count(!l.killed))
	return end != byPlan
}

// end is how the life of a process ends.
type end int

const (
	byPlan   end = iota
	byItself     // Run has returned
	byProbe      // /live says that a restart helps
	byDeath      // a handler has ended its process
)

// watch waits for the end of a life.
func (f *fleet) watch(n *node, k *sqsworker.Worker, to time.Duration, stopped <-chan error) (end, error) {
	timer := time.NewTimer(to - f.now())
	defer timer.Stop()
	probe := time.NewTicker(time.Minute)
	defer probe.Stop()
	held := time.NewTicker(5 * time.Second)
	defer held.Stop()
	for {
		select {
		case err := <-stopped:
			return byItself, err
		case <-n.dead:
			return byDeath, nil
		case <-timer.C:
			return byPlan, nil
		case <-f.over:
			return byPlan, nil
		case <-held.C:
			f.noteHeld(n, k)
			continue
		case <-probe.C:
		}
		w := httptest.NewRecorder()
		k.Health().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/live", nil))
		switch stuck := k.Stats().Stuck; {
		case w.Code == http.StatusOK:
		case stuck == 0:
			f.Errorf("an orchestrator would restart a worker without stuck handlers at %s: %s", f.now(), w.Body)
		default:
			return byProbe, nil
		}
	}
}

// publish publishes the events and their copies. A publisher has the groups of its number, and publishes what an error or
// its end has left open again, in order.
func (f *fleet) publish() {
	p := f.plan
	for i := range p.publishers {
		f.run.Go(func() { f.publisher(i) })
	}
	if p.publishers == 0 {
		f.run.Go(func() {
			for from := 0; from < len(p.events); {
				var due []message
				for ; from < len(p.events) && (len(due) == 0 || p.events[from].at <= f.now()); from++ {
					if len(due) == 0 && !f.at(p.events[from].at) {
						return
					}
					due = append(due, message{name: p.events[from].name})
				}
				f.send(due...)
				for _, m := range due {
					f.markPublished(m.name)
				}
			}
		})
	}
	for i := range p.events {
		for k, at := range p.events[i].copies {
			f.run.Go(func() {
				// Not before the event: the copy would take its place in the group.
				for f.at(at) {
					if f.isPublished(p.events[i].name) {
						f.send(message{name: p.events[i].name, copy: 1 + k})
						f.markPublished(fmt.Sprint(p.events[i].name, " copy ", k))
						return
					}
					at += time.Second
				}
			})
		}
	}
}

func (f *fleet) markPublished(names ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		f.published[name] = true
	}
}

func (f *fleet) isPublished(event string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.published[event]
}

func (f *fleet) allPublished() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	messages := len(f.plan.events)
	for i := range f.plan.events {
		messages += len(f.plan.events[i].copies)
	}
	return len(f.published) == messages
}

func (f *fleet) publisher(index int) {
	var mine []eventPlan
	for _, e := range f.plan.events {
		var group int
		must.Get(fmt.Sscanf(groupOf(e.name), "g%d", &group))(f)
		if group%f.plan.publishers == index {
			mine = append(mine, e)
		}
	}
	for life := 0; len(mine) > 0 && f.at(mine[0].at); life++ {
		n := f.newNode(fmt.Sprintf("publisher %d.%d", index, life), notAWorker)
		mine = f.publishUntilFailure(n, mine)
		n.kill()
		time.Sleep(time.Second) // a failure may take no time
	}
}

// publishUntilFailure publishes what is due, again and again, and returns what is not published when a call has failed. A
// part of that may be: the next process publishes all of it again.
func (f *fleet) publishUntilFailure(n *node, es []eventPlan) (rest []eventPlan) {
	p := must.Get(publish.NewPublisher(n.sqs, f.url, source, func(o *publish.Options) { o.Logger = f.log }))(f)
	for len(es) > 0 && f.at(es[0].at) {
		var due []publish.Event
		for len(due) < len(es) && es[len(due)].at <= f.now() {
			name := es[len(due)].name
			due = append(due, publish.Event{ID: name, Group: groupOf(name), Body: message{name: name}.text()})
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		_, err := p.PublishAll(ctx, due)
		cancel()
		if err != nil {
			f.count(publishFailures, 1)
			return es
		}
		for i := range due {
			f.markPublished(due[i].ID)
		}
		es = es[len(due):]
	}
	return es
}

// startFunction starts the function and its mapping, which is AWS's and has no faults.
func (f *fleet) startFunction() (stop func()) {
	if f.plan.functions == 0 {
		return func() {}
	}
	f.pool = &pool{perProcess: f.plan.perProcess, newEnvironment: func() *environment {
		n := f.newNode("function", notAWorker)
		return newEnvironment(f.T, n.process, f.handler(n), f.hooks.function, func(o *lambda.Options) {
			o.Client, o.DeadLetterQueue, o.Logger = n.sqs, f.dlq, f.log
		})
	}}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() {
		stopped <- esm.Run(ctx, f.fixture.admin.sqs, esm.Config{
			QueueURL: f.url, BatchSize: f.plan.batch, MaximumConcurrency: max(2, f.plan.functions), FunctionTimeout: functionTimeout,
			ReportBatchItemFailures: true, Logger: f.log,
		}, f.invoke)
	}()
	return func() {
		cancel()
		must.Do(f, <-stopped)
		f.pool.kill()
	}
}

var errResponseLost = errors.New("the response was lost")

// invoke is an esm.Invoker that applies the plan's disruption to each invocation before calm.
func (f *fleet) invoke(ctx context.Context, event []byte) ([]byte, error) {
	f.mu.Lock()
	d := f.plan.invocations[f.attempts%len(f.plan.invocations)]
	f.attempts++
	f.mu.Unlock()
	if f.now() >= f.plan.calm {
		d = disruption{}
	}
	if d.kind == throttle {
		f.count(throttled, 1)
		f.noteInvocation(nil, event, true)
		return nil, esm.ErrThrottled
	}
	f.count(invocations, 1)
	e := f.pool.take()
	defer f.pool.put(e)
	f.mu.Lock()
	n := f.nodes[e.process]
	f.mu.Unlock()
	if d.kind == killing {
		time.AfterFunc(d.after, func() { n.end(byKill); e.kill() })
	}
	f.noteInvocation(n, event, d.kind == failing || d.kind == stalled)
	response, err := e.invoke(ctx, event)
	switch {
	case errors.Is(err, errKilled):
		f.count(killedInside, 1)
	case d.kind == failing:
		f.count(responsesLost, 1)
		return nil, errResponseLost
	case d.kind == stalled:
		f.count(timedOut, 1)
		<-ctx.Done()
		n.end(byKill)
		e.kill()
		return nil, context.Cause(ctx)
	case !e.alive():
		n.end(byKill) // it did not respond in time
	}
	return response, err
}

// deadlineMargin is how long before its deadline an invocation may have ended for lack of time: it starts no message that may
// not end in time by what its handlers took before. They take up to 15 s.
const deadlineMargin = functionTimeout / 2

// noteInvocation notes the receives of an invocation.
func (f *fleet) noteInvocation(n *node, event []byte, disrupted bool) {
	var all []*receipt
	var in events.SQSEvent
	if err := json.Unmarshal(event, &in); err != nil {
		f.Errorf("event: %v", err)
	}
	for i := range in.Records {
		var count int
		if _, err := fmt.Sscan(in.Records[i].Attributes["ApproximateReceiveCount"], &count); err != nil {
			f.Errorf("receive count: %v", err)
		}
		r := f.note(n, in.Records[i].MessageId, count)
		r.sent = f.sentAt(in.Records[i].Attributes["SentTimestamp"])
		r.disrupted = disrupted
		r.event = aws.ToString(in.Records[i].MessageAttributes[sqsonce.AttrEventID].StringValue)
		all = append(all, r)
	}
	for _, r := range all {
		r.batch = all
	}
}

func (f *fleet) note(n *node, id string, count int) *receipt {
	rc := &receipt{node: n, id: id, count: count, at: f.now(), hidden: f.now() + fleetVisibility}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.receipts[id] = append(f.receipts[id], rc)
	return rc
}

// sentAt is the time of a SentTimestamp.
func (f *fleet) sentAt(timestamp string) time.Duration {
	return time.UnixMilli(must.Get(strconv.ParseInt(timestamp, 10, 64))(f)).Sub(f.start)
}

// receiptsOf returns the receives of a message with that count: more than one where SQS delivers a message twice.
func (f *fleet) receiptsOf(id string, count int) []*receipt {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.receipts[id]), func(r *receipt) bool { return r.count != count })
}
