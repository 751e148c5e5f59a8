package hosttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/limit"
)

// node is a process of a fleet: of a worker, of the function or of a publisher.
//
// A kill cuts its connections: nothing leaves or arrives any more, and what its handlers do has no effect. A freeze
// delays everything that leaves or arrives, and the ends of its handlers, to its end. Its timers run on in a bubble: what
// they start leaves at the end too, as packets do that a process had sent just before its freeze.
type node struct {
	*process
	f     *fleet
	name  string
	index int // of the worker; else an index that no fault has
	rng   *rand.Rand

	mu      sync.Mutex
	thaw    time.Time
	frozen  []window // that were, in times of the simulation
	born    time.Duration
	ended   time.Duration // begin of its stop, or its death; 0: it runs
	by      ending
	beliefs []belief
	calls   map[int]int // of SQS, by minute of the simulation
	asks    map[int]int // calls of the store
	handles map[string]*receipt
	limiter *limit.Limiter // nil: none
}

// receipt is one receive of a message by a node, as SQS has it: the answer may be lost.
type receipt struct {
	node      *node
	id        string
	count     int
	at        time.Duration
	lost      bool          // the answer
	gaveBack  time.Duration // 0: it did not
	hidden    time.Duration // until then, in a worker
	sent      time.Duration
	disrupted bool // the invocation was throttled, its answer was lost, or came too late
	event     string
	batch     []*receipt // of the invocation
}

const notAWorker = -2

func (f *fleet) newNode(name string, index int) *node {
	p := f.newProcess()
	n := &node{process: p, f: f, name: name, index: index, born: f.now(), calls: map[int]int{}, asks: map[int]int{}, handles: map[string]*receipt{}}
	f.mu.Lock()
	f.nodes[p] = n
	n.rng = rand.New(rand.NewPCG(f.plan.seed, uint64(len(f.nodes))))
	f.mu.Unlock()
	link := func(to http.RoundTripper, store bool) *http.Client {
		c := &http.Client{Transport: &link{node: n, store: store, to: &connection{p: p, to: to, store: store, trip: n.trip}}}
		if f.plan.impatient {
			if c.Timeout = 25 * time.Second; store { // a receive polls for 15 s
				c.Timeout = 2 * time.Second
			}
		}
		return c
	}
	p.sqs = sqs.New(p.sqs.Options(), func(o *sqs.Options) {
		o.HTTPClient, o.Credentials = link(&observer{n, f.sqs}, false), n.credentials()
	})
	p.ddb = dynamodb.New(p.ddb.Options(), func(o *dynamodb.Options) {
		o.HTTPClient, o.Credentials = link(f.ddb, true), n.credentials()
	})
	return n
}

// ending is how a process ends.
type ending string

const (
	byStop ending = "a stop"
	byKill ending = "a kill"
	byExit ending = "its handler"
)

// end notes the begin of the stop, or the death.
func (n *node) end(by ending) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended == 0 {
		n.ended, n.by = n.f.now(), by
	}
}

func (n *node) freeze(length time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.thaw = time.Now().Add(length)
	n.frozen = append(n.frozen, window{at: n.f.now(), length: length})
}

// closeLimiter is what a process does after a stop.
func (n *node) closeLimiter() {
	if n.limiter != nil && n.alive() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = n.limiter.Close(ctx) // the counter may be away: the slots are free when their leases end
	}
}

// diedAt is when the process died, in times of the simulation.
func (n *node) diedAt() time.Duration {
	if n.alive() {
		return toTheEnd
	}
	return n.died.Sub(n.f.start)
}

// awake waits while the process is frozen, and reports whether it is alive then.
func (n *node) awake() bool {
	for {
		n.mu.Lock()
		d := time.Until(n.thaw)
		n.mu.Unlock()
		if d <= 0 || !n.sleep(d) {
			return n.alive()
		}
	}
}

// trip draws the times of a request and its answer.
func (n *node) trip() trip {
	if !n.f.plan.network {
		return trip{arrives: true}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	ms := func() time.Duration { return time.Duration(1+n.rng.IntN(15)) * time.Millisecond }
	t := trip{there: ms(), back: ms(), arrives: n.rng.IntN(2) == 0}
	lost := 1
	if n.f.faulty(lossy, n.index) != nil {
		lost = 30
	}
	t.lost = n.rng.IntN(100) < lost
	return t
}

// late draws how long the network keeps a request: one in ten for up to a minute, in a window of the plan. Its sender may have
// given up by the time when it arrives.
func (n *node) late() time.Duration {
	if n.f.faulty(latePackets, n.index) == nil {
		return 0
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.rng.IntN(10) > 0 {
		return 0
	}
	return time.Duration(n.rng.IntN(60_000)) * time.Millisecond
}

// link is what a request passes first: the freezes of its process, and the faults of the plan.
type link struct {
	node  *node
	store bool
	to    *connection
}

type slotKey struct{}

func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	n := l.node
	if !n.awake() {
		return nil, errDead
	}
	op := operation(r)
	r.Header.Set("Authorization", "test")
	calls := n.calls
	if l.store {
		calls = n.asks
	}
	n.mu.Lock()
	calls[int(n.f.now()/time.Minute)]++
	n.mu.Unlock()
	w := n.f.away(op, l.store, n.index)
	if w != nil && !n.hits(w, r) {
		w = nil
	}
	if w != nil && w.mode != loses && w.mode != swallows && w.mode != cuts {
		return w.refuse(r, l.store)
	}
	if d := n.late(); d > 0 && op != "ReceiveMessage" {
		return l.sendLate(r, d)
	}
	var got []*receipt
	resp, err := l.to.RoundTrip(r.WithContext(context.WithValue(r.Context(), slotKey{}, &got)))
	switch {
	case !n.awake():
		err = errDead
	case w != nil && w.mode == swallows:
		<-r.Context().Done()
		err = r.Context().Err()
	case w != nil && w.mode == loses:
		err = errReset
	case w != nil && err == nil:
		resp.Body = io.NopCloser(io.LimitReader(resp.Body, resp.ContentLength/2))
	}
	n.mu.Lock()
	for _, receipt := range got {
		receipt.lost = err != nil || w != nil
	}
	n.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if op == "GetQueueAttributes" && resp.StatusCode == http.StatusOK {
		n.believe(resp)
	}
	return resp, nil
}

// sendLate has a request arrive after d, whatever has become of its sender.
func (l *link) sendLate(r *http.Request, d time.Duration) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	late := r.Clone(context.WithoutCancel(r.Context()))
	late.Body = io.NopCloser(bytes.NewReader(body))
	type result struct {
		resp *http.Response
		err  error
	}
	done := make(chan result, 1)
	go func() {
		time.Sleep(d)
		resp, err := l.to.to.RoundTrip(late)
		done <- result{resp, err}
	}()
	select {
	case out := <-done:
		if !l.node.awake() {
			return nil, errDead
		}
		return out.resp, out.err
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-l.node.dead:
		return nil, errDead
	}
}

// hits says that a fault hits this call.
func (n *node) hits(w *window, r *http.Request) bool {
	if w.percent > 0 {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.rng.IntN(100) < w.percent
	}
	if w.group == "" {
		return true
	}
	body, _ := io.ReadAll(r.Body) // of a buffer: it cannot fail
	r.Body = io.NopCloser(bytes.NewReader(body))
	return bytes.Contains(body, []byte("#"+source+"|"+w.group))
}

func operation(r *http.Request) string {
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return op
}

// away is the fault that a call meets. Hosts send single messages to the dead-letter queue only.
func (f *fleet) away(op string, store bool, host int) *window {
	switch {
	case store:
		return f.faulty(storeAway, host)
	case op == "SendMessage" && f.faulty(dlqAway, host) != nil:
		return f.faulty(dlqAway, host)
	case op == "ReceiveMessage" && f.faulty(receivesAway, host) != nil:
		return f.faulty(receivesAway, host)
	}
	return f.faulty(queueAway, host)
}

// refuse is the answer of a service that is away.
func (w *window) refuse(r *http.Request, store bool) (*http.Response, error) {
	switch w.mode {
	case hangs:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case breaks:
		return answer(r, store, http.StatusInternalServerError, "InternalFailure", "InternalServerError"), nil
	case throttles:
		return answer(r, store, http.StatusBadRequest, "RequestThrottled", "ThrottlingException"), nil
	case forbids:
		return answer(r, store, http.StatusBadRequest, "AccessDenied", "AccessDeniedException"), nil
	case unlisted:
		return answer(r, store, http.StatusBadRequest, "SomethingNew", "SomethingNewException"), nil
	case outdated:
		return answer(r, store, http.StatusForbidden, "ExpiredTokenException", "ExpiredTokenException"), nil
	}
	return nil, errUnavailable
}

func answer(r *http.Request, store bool, status int, queueCode, storeCode string) *http.Response {
	code := "com.amazonaws.sqs#" + queueCode
	if store {
		code = "com.amazonaws.dynamodb.v20120810#" + storeCode
	}
	body := fmt.Sprintf(`{"__type":%q,"message":"a fault of the plan"}`, code)
	h := http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Requestid": {"r"}, "Date": {time.Now().UTC().Format(http.TimeFormat)}}
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}

// observer stands at SQS and notes what it hands out and what is given back to it.
type observer struct {
	node *node
	to   http.RoundTripper
}

func (o *observer) RoundTrip(r *http.Request) (*http.Response, error) {
	switch operation(r) {
	case "ReceiveMessage":
		f, begun := o.node.f, o.node.f.now()
		resp, err := o.to.RoundTrip(r)
		switch {
		case err != nil:
			f.mu.Lock()
			f.unheard = append(f.unheard, window{at: begun, length: longestPoll})
			f.mu.Unlock()
		case resp.StatusCode == http.StatusOK:
			o.received(r, resp)
		}
		return resp, err
	case "ChangeMessageVisibilityBatch":
		return o.changed(r)
	case "SendMessage": // of hosts, to the dead-letter queue only
		f := o.node.f
		f.mu.Lock()
		f.sends[f.now()] = append(f.sends[f.now()], o.node)
		f.mu.Unlock()
	}
	return o.to.RoundTrip(r)
}

// longestPoll is how long SQS may hand out messages to a receive.
const longestPoll = 20 * time.Second

func (o *observer) received(r *http.Request, resp *http.Response) {
	body, _ := io.ReadAll(resp.Body) // of a buffer: it cannot fail
	resp.Body = io.NopCloser(bytes.NewReader(body))
	var out struct {
		Messages []struct {
			MessageId, ReceiptHandle string
			Attributes               struct{ ApproximateReceiveCount, SentTimestamp string }
			MessageAttributes        map[string]struct{ StringValue string }
		}
	}
	n := o.node
	if err := json.Unmarshal(body, &out); err != nil {
		n.f.Errorf("ReceiveMessage answered %s: %v", body, err)
	}
	got, _ := r.Context().Value(slotKey{}).(*[]*receipt)
	for _, m := range out.Messages {
		count, _ := strconv.Atoi(m.Attributes.ApproximateReceiveCount)
		rc := n.f.note(n, m.MessageId, count)
		rc.sent, rc.event = n.f.sentAt(m.Attributes.SentTimestamp), m.MessageAttributes[sqsonce.AttrEventID].StringValue
		*got = append(*got, rc)
		n.mu.Lock()
		n.handles[m.ReceiptHandle] = rc
		n.mu.Unlock()
	}
}

// changed notes the messages that are given back: a visibility timeout that is not the one of an extension.
func (o *observer) changed(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var in struct {
		Entries []struct {
			ReceiptHandle     string
			VisibilityTimeout int
		}
	}
	n := o.node
	if err := json.Unmarshal(body, &in); err != nil {
		n.f.Errorf("ChangeMessageVisibilityBatch of %s: %v", body, err)
	}
	n.mu.Lock()
	for _, e := range in.Entries {
		rc := n.handles[e.ReceiptHandle]
		if rc == nil || rc.hidden < n.f.now() {
			continue // it changes nothing any more
		}
		rc.hidden = n.f.now() + time.Duration(e.VisibilityTimeout)*time.Second
		if rc.gaveBack == 0 && e.VisibilityTimeout != int(fleetVisibility/time.Second) {
			rc.gaveBack = n.f.now()
		}
	}
	n.mu.Unlock()
	return o.to.RoundTrip(r)
}

// fleetVisibility is the worker's default.
const fleetVisibility = 30 * time.Second
