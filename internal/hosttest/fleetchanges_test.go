package hosttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce/internal/must"
)

// This file has what changes around the hosts of a fleet while they run: the redrive policy, the dead-letter queue, the credentials, and
// processes that a handler ends.

// queueState is the queue from a time on, until the next one.
type queueState struct {
	at       time.Duration
	receives int  // maxReceiveCount; 0: there is no redrive policy
	noDLQ    bool // the dead-letter queue is deleted, with its messages
}

func (s queueState) String() string {
	return fmt.Sprintf("from %s on maxReceiveCount %d, dead-letter queue %t\n", s.at, s.receives, !s.noDLQ)
}

// queueAt is the state of the queue at a time.
func (p *fleetPlan) queueAt(at time.Duration) queueState {
	s := queueState{receives: p.receives}
	for _, next := range p.changes {
		if next.at <= at {
			s = next
		}
	}
	return s
}

// movesAfter is after how many receives SQS moves a message at a time; 0: it does not.
func (p *fleetPlan) movesAfter(at time.Duration) int {
	if s := p.queueAt(at); !s.noDLQ {
		return s.receives
	}
	return 0
}

// fewest and most are the least and the greatest maxReceiveCount.
func (p *fleetPlan) fewest() int {
	n := p.receives
	for _, s := range p.changes {
		if s.receives > 0 {
			n = min(n, s.receives)
		}
	}
	return n
}

func (p *fleetPlan) most() int {
	n := p.receives
	for _, s := range p.changes {
		n = max(n, s.receives)
	}
	return n
}

// drawChanges draws changes of the redrive policy and of the dead-letter queue for one of three plans. At calm there are both.
func (p *fleetPlan) drawChanges(r *rand.Rand) {
	if r.IntN(3) > 0 {
		return
	}
	s := queueState{receives: p.receives}
	// An instant of its own: nothing arrives in a dead-letter queue while an operator looks at it and deletes it.
	for at := seconds(r, 120) + 137; ; {
		length := 61*time.Second + seconds(r, 240) // SQS takes the name of a deleted queue again after a minute
		if s.at = at + length; s.at >= p.calm {
			return
		}
		switch r.IntN(3) {
		case 0:
			s.at, s.receives = at, []int{3, 5, 10}[r.IntN(3)]
		case 1:
			p.changes = append(p.changes, queueState{at: at})
		default:
			p.changes = append(p.changes, queueState{at: at, receives: s.receives, noDLQ: true})
		}
		p.changes = append(p.changes, s)
		at += length + seconds(r, 120)
	}
}

// drawRetention draws a retention of minutes for one of six plans.
func (p *fleetPlan) drawRetention(r *rand.Rand) {
	if r.IntN(6) == 0 {
		p.retention = time.Duration(10+r.IntN(20)) * time.Minute
	}
}

// drawCredentials draws times without credentials for one of three plans: after the start of a process, or for a while, or those that it
// has are expired.
func (p *fleetPlan) drawCredentials(r *rand.Rand) {
	if r.IntN(3) > 0 {
		return
	}
	for range 1 + r.IntN(3) {
		w := window{mode: unsigned, at: seconds(r, int(p.calm/time.Second)), length: seconds(r, 120), host: r.IntN(4) - 1}
		switch r.IntN(3) {
		case 0:
			w.host, w.length = r.IntN(len(p.workers)), seconds(r, 50)
			lives := p.workers[w.host].lives
			w.at = lives[r.IntN(len(lives)-1)].from // the last one begins after calm
		case 1:
			w.mode = outdated
		}
		w.length = min(w.length, p.calm-w.at)
		for _, w.kind = range []faultKind{storeAway, queueAway} {
			p.faults = append(p.faults, w)
		}
	}
}

// drawExits draws messages that end their process, for one of four plans.
func (p *fleetPlan) drawExits(r *rand.Rand) {
	if r.IntN(4) > 0 {
		return
	}
	for range 1 + r.IntN(2) {
		if e := &p.events[r.IntN(len(p.events))]; e.fails == 0 && !e.reject {
			e.how, e.fails = withExit, []int{1, 2, always}[r.IntN(3)]
		}
	}
}

// exits is how many processes the plan's messages may end.
func (p *fleetPlan) exits() (n int) {
	for i := range p.events {
		if e := &p.events[i]; e.how == withExit {
			n += min(e.fails, p.most()) * (1 + len(e.copies))
		}
	}
	return n
}

// operate changes the queue as the plan says.
func (f *fleet) operate() {
	ctx, was := context.Background(), queueState{receives: f.plan.receives}
	for _, s := range f.plan.changes {
		if !f.at(s.at) {
			return
		}
		if s.noDLQ && !was.noDLQ {
			f.deleted = append(f.deleted, f.sqs.Messages(f.dlq)...)
			must.Get(f.admin.sqs.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &f.dlq}))(f)
		}
		if was.noDLQ && !s.noDLQ {
			f.createDLQ()
		}
		if s.receives != was.receives {
			must.Get(f.admin.sqs.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{
				QueueUrl: &f.url, Attributes: map[string]string{"RedrivePolicy": f.policy(s.receives)},
			}))(f)
		}
		was = s
		f.count(queueChanges, 1)
	}
}

// belief is what SQS has answered a process about the redrive policy of its queue.
type belief struct {
	at       time.Duration
	receives int // maxReceiveCount; 0: there is none
}

func (n *node) believe(resp *http.Response) {
	var out struct {
		Attributes struct{ QueueArn, RedrivePolicy, VisibilityTimeout string }
	}
	var policy struct {
		MaxReceiveCount int `json:"maxReceiveCount"`
	}
	body, _ := io.ReadAll(resp.Body) // of a buffer: it cannot fail
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if err := json.Unmarshal(body, &out); err != nil || out.Attributes.QueueArn == n.f.named(dlqARN) || out.Attributes.VisibilityTimeout == "" {
		return // an answer that breaks off, or about the other queue, or to a question of 17.15e
	}
	if text := out.Attributes.RedrivePolicy; text != "" {
		if err := json.Unmarshal([]byte(text), &policy); err != nil {
			n.f.Errorf("redrive policy %s: %v", text, err)
		}
	}
	n.mu.Lock()
	n.beliefs = append(n.beliefs, belief{n.f.now(), policy.MaxReceiveCount})
	n.mu.Unlock()
}

// believed returns each maxReceiveCount that a process may have gone by from a time on until another. A worker that has read none for 30 s
// guesses three receives, and a function none.
func (n *node) believed(from, to time.Duration) []int {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := []int{0}
	switch {
	case n.index == notAWorker:
	case len(n.beliefs) > 0 && n.beliefs[0].at < n.born+30*time.Second:
		all[0] = n.beliefs[0].receives
	default:
		all[0] = 3
	}
	for _, b := range n.beliefs {
		switch {
		case b.at <= from:
			all = []int{b.receives}
		case b.at <= to:
			all = append(all, b.receives)
		}
	}
	return all
}

// credentials are those of a node.
func (n *node) credentials() aws.CredentialsProvider {
	if !slices.ContainsFunc(n.f.plan.faults, func(w window) bool { return w.mode == unsigned }) {
		return aws.AnonymousCredentials{} // the SDK does not sign, which is a fifth of the cost of a call
	}
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		if n.unsignedSince(n.f.now()) {
			n.f.count(unsignedCalls, 1)
			return aws.Credentials{}, errSTS
		}
		return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
	})
}

// errSTS has a code that would end a worker if SQS answered it.
var errSTS = &smithy.OperationError{
	ServiceID: "STS", OperationName: "AssumeRoleWithWebIdentity", Err: &smithy.GenericAPIError{Code: "AccessDenied", Fault: smithy.FaultClient},
}

// unsignedSince says that a node has had no credentials from a time on until now.
func (n *node) unsignedSince(since time.Duration) bool {
	for {
		i := slices.IndexFunc(n.f.plan.faults, func(w window) bool { return w.mode == unsigned && w.has(since, n.index) })
		if i < 0 {
			return false
		}
		if since = n.f.plan.faults[i].end(); since > n.f.now() {
			return true
		}
	}
}

// mayEnd says that the worker of a node may end by itself: it could send nothing for 30 s. Protocol 15.5a.
func (n *node) mayEnd() bool {
	return len(n.calls) == 0 && n.f.now() >= n.born+30*time.Second && n.unsignedSince(n.born)
}

// exit ends the process of a node in the middle of a handler.
func (n *node) exit() {
	if n.awake() {
		n.f.count(processExits, 1)
		n.end(byExit)
		n.kill()
	}
}
