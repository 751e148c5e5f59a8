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

// process is one process of a host. What it sends reaches AWS for as long as it lives: a goroutine cannot be killed, but
// from the kill on nothing that the process does has an effect.
type process struct {
	w    *world
	dead chan struct{}
	once sync.Once
	sqs  *sqs.Client
	ddb  *dynamodb.Client
}

var errDead = errors.New("the process is dead")

// network is what lies between a process and AWS.
type network struct {
	// trip returns how long a request takes to the service and its answer takes back, and whether a request that is on
	// its way when its process dies still arrives, or its answer gets lost. nil: no time at all, and nothing is lost.
	trip func() trip

	mu       sync.Mutex
	storeOut bool // DynamoDB cannot be reached
	queueOut bool // nor SQS, by the handler's processes
}

type trip struct {
	there, back time.Duration
	arrives     bool // though the process died meanwhile
	lost        bool // the answer
}

var (
	errUnreachable = errors.New("connection refused")
	errLost        = errors.New("connection reset")
)

// storeOutFor and queueOutFor make a service unreachable for d from now on.
func (n *network) storeOutFor(d time.Duration) { n.outFor(&n.storeOut, d) }
func (n *network) queueOutFor(d time.Duration) { n.outFor(&n.queueOut, d) }

func (n *network) outFor(flag *bool, d time.Duration) {
	set := func(out bool) {
		n.mu.Lock()
		defer n.mu.Unlock()
		*flag = out
	}
	set(true)
	time.AfterFunc(d, func() { set(false) })
}

func (n *network) isOut(store bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if store {
		return n.storeOut
	}
	return n.queueOut
}

func (w *world) newProcess() *process {
	p := &process{w: w, dead: make(chan struct{})}
	credentials := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
	})
	p.sqs = sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://sqs.local"), Credentials: credentials,
		HTTPClient: &http.Client{Transport: &line{p: p, to: w.sqs}},
	})
	p.ddb = dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://dynamodb.local"), Credentials: credentials,
		HTTPClient: &http.Client{Transport: &line{p: p, to: w.ddb, store: true}},
	})
	return p
}

// kill ends the process, in one step for the witness, which must know what ran.
func (p *process) kill() { p.once.Do(func() { p.w.witness.kill(p) }) }

func (p *process) alive() bool {
	select {
	case <-p.dead:
		return false
	default:
		return true
	}
}

// travel lets d pass and reports whether the process is alive then.
func (p *process) travel(d time.Duration) bool {
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

// line is a connection of a process to a service.
type line struct {
	p     *process
	to    http.RoundTripper
	store bool
}

func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	if !l.p.alive() {
		return nil, errDead
	}
	if l.p != l.p.w.admin && l.p.w.net.isOut(l.store) {
		return nil, errUnreachable
	}
	t := trip{arrives: true}
	if l.p.w.net.trip != nil {
		t = l.p.w.net.trip()
	}
	if !l.p.travel(t.there) && !t.arrives {
		return nil, errDead
	}
	resp, err := l.to.RoundTrip(r)
	switch {
	case err != nil:
		return nil, err
	case !l.p.travel(t.back):
		return nil, errDead // the effect has happened, and nobody is left to learn it
	case t.lost:
		return nil, errLost
	}
	return resp, nil
}
