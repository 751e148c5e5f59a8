package memsqs

import (
	"cmp"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

// failsEntry returns the failure that the call's rule gives entry i of a batch, or nil.
func (c *call) failsEntry(i int, id string) *batchError {
	if c.rule == nil || c.rule.Do != fault.FailEntries || !c.rule.Hits(i) {
		return nil
	}
	code := cmp.Or(c.rule.Code, "InternalError")
	return &batchError{ID: id, Code: code, SenderFault: !slices.Contains(serverFaults, code), Message: "injected fault"}
}

// spoil applies what the call's rule, or the queue's own unreliability, does to messages just received.
func (q *queue) spoil(got []*message, rule *fault.Rule, now time.Time) {
	for i, m := range got {
		hit := rule != nil && rule.Hits(i)
		switch {
		case hit && rule.Do == fault.ExpireEarly:
			q.hide(m, now)
		case hit && rule.Do == fault.Duplicate, !q.attrs.FIFO && q.server.chance(q.server.opts.Duplicates):
			q.copyOf(m, now)
		}
	}
}

// copyOf puts a second copy of m in its place in the queue, visible, as when a replica missed a receive: the copies are
// deleted each by its own receipt handles.
func (q *queue) copyOf(m *message, now time.Time) {
	c := *m
	c.receipt, c.hidden, c.visibleAt = 0, false, now
	c.readyAt, c.hiddenAt, c.ageAt, c.in, c.prev, c.next = 0, 0, 0, nil, nil, nil
	q.insert(&c, m, now)
}

func (s *Server) chance(p float64) bool { return p > 0 && s.rng.Float64() < p }

// injected is the error of a fault plan's code, which is a shape's name or its query code; nil for any other code.
func injected(code string) *awsjson.Error {
	if _, ok := shapes[code]; ok {
		return newError(code, "injected fault")
	}
	for name, s := range shapes {
		if s.query == code && code != "" {
			return newError(name, "injected fault")
		}
	}
	return nil
}
