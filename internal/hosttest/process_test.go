package hosttest

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// process is one process of a host. A goroutine cannot be killed, but after the kill no request of the process has an
// effect.
type process struct {
	w    *fixture
	dead chan struct{}
	died time.Time // set before dead is closed
	once sync.Once
	sqs  *sqs.Client
	ddb  *dynamodb.Client
}

var errDead = errors.New("the process is dead")

// network is between the processes and AWS.
type network struct {
	// trip draws the times of a request and of its response, whether a request still arrives when its process dies
	// meanwhile, and whether the response is lost. nil: no time, and nothing is lost.
	trip func() trip

	mu               sync.Mutex
	storeUnavailable bool // DynamoDB, for all processes but admin
	queueUnavailable bool // SQS, for all processes but admin
	dlqRefuses       bool // what hosts send. Never changed
	broken           *brokenStore
}

type trip struct {
	there, back time.Duration
	arrives     bool // also if the process dies meanwhile
	lost        bool // the response
}

var (
	errUnavailable = errors.New("connection refused")
	errReset       = errors.New("connection reset")
)

// storeUnavailableFor and queueUnavailableFor make a service unavailable for d from now on.
func (n *network) storeUnavailableFor(d time.Duration) { n.setFor(&n.storeUnavailable, d) }
func (n *network) queueUnavailableFor(d time.Duration) { n.setFor(&n.queueUnavailable, d) }

func (n *network) setFor(flag *bool, d time.Duration) {
	set := func(value bool) {
		n.mu.Lock()
		defer n.mu.Unlock()
		*flag = value
	}
	set(true)
	time.AfterFunc(d, func() { set(false) })
}

func (n *network) isUnavailable(store bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if store {
		return n.storeUnavailable
	}
	return n.queueUnavailable
}

func (w *fixture) newProcess() *process {
	p := &process{w: w, dead: make(chan struct{})}
	credentials := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
	})
	p.sqs = sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://sqs.local"), Credentials: credentials,
		HTTPClient: &http.Client{Transport: &connection{p: p, to: w.sqs}},
	})
	p.ddb = dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://dynamodb.local"), Credentials: credentials,
		HTTPClient: &http.Client{Transport: &connection{p: p, to: w.ddb, store: true}},
	})
	return p
}

// kill ends the process. The checker does it, because it must know which handlers were running.
func (p *process) kill() { p.once.Do(func() { p.w.checker.kill(p) }) }

func (p *process) alive() bool {
	select {
	case <-p.dead:
		return false
	default:
		return true
	}
}

// sleep waits for d, or until the process dies, and reports whether it is alive then.
func (p *process) sleep(d time.Duration) bool {
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-p.dead:
		}
	}
	return p.alive()
}

// connection is a connection of a process to a service.
type connection struct {
	p     *process
	to    http.RoundTripper
	store bool
	trip  func() trip // nil: the network's
}

func (c *connection) RoundTrip(r *http.Request) (*http.Response, error) {
	if !c.p.alive() {
		return nil, errDead
	}
	if c.p != c.p.w.admin && c.p.w.net.isUnavailable(c.store) {
		return nil, errUnavailable
	}
	if b := c.p.w.net.broken; b != nil && c.store {
		if err := b.trip(r); err != nil {
			return nil, err
		}
	}
	if c.p.w.net.dlqRefuses && operation(r) == "SendMessage" {
		return answer(r, false, http.StatusForbidden, "AccessDenied", ""), nil
	}
	t := trip{arrives: true}
	switch {
	case c.trip != nil:
		t = c.trip()
	case c.p.w.net.trip != nil:
		t = c.p.w.net.trip()
	}
	if !c.p.sleep(t.there) && !t.arrives {
		return nil, errDead
	}
	resp, err := c.to.RoundTrip(r)
	switch {
	case err != nil:
		return nil, err
	case !c.p.sleep(t.back):
		return nil, errDead // the effect has happened, and the process does not know it
	case t.lost:
		return nil, errReset
	}
	return resp, nil
}
