package memsqs

import (
	"cmp"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
	"github.com/sqsonce/sqsonce/localstack/internal/injector"
)

// serverFaults are the codes that AWS reports with SenderFault false.
var serverFaults = []string{"InternalError", "InternalFailure", "InternalServerError", "ServiceUnavailable"}

// injectedFailure returns the failure of batch entry i that the fault plan injects, or nil.
func (c *call) injectedFailure(i int, id string) *batchError {
	if c.rule == nil || c.rule.Do != fault.FailEntries || !injector.Hits(c.rule, i) {
		return nil
	}
	code := cmp.Or(c.rule.Code, "InternalError")
	return &batchError{ID: id, Code: code, SenderFault: !slices.Contains(serverFaults, code), Message: "injected fault"}
}

// injectReceiveFaults applies the rule of the call, and Options.Duplicates, to the messages that it received.
func (q *queue) injectReceiveFaults(got []*message, rule *fault.Rule, now time.Time) {
	for i, m := range got {
		hit := rule != nil && injector.Hits(rule, i)
		switch {
		case hit && rule.Do == fault.ExpireEarly:
			q.hide(m, now, now)
		case hit && rule.Do == fault.Duplicate, !q.attrs.FIFO && q.server.chance(q.server.opts.Duplicates):
			q.duplicate(m, now)
		}
	}
}

// duplicate adds a visible copy of m to the queue, in front of m, as when a replica of AWS missed the receive. Each copy
// is deleted by its own receipt handles.
func (q *queue) duplicate(m *message, now time.Time) {
	c := *m
	c.receipt, c.hidden, c.visibleAt = 0, false, now
	c.readyIndex, c.hiddenIndex, c.ageIndex, c.in, c.prev, c.next, c.counted = 0, 0, 0, nil, nil, nil, false
	q.insert(&c, m, now)
}

func (s *Server) chance(probability float64) bool {
	return probability > 0 && s.rng.Float64() < probability
}

// injected returns the error for a code of a fault plan: the name of a shape or its query code. For another code it
// returns nil.
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
