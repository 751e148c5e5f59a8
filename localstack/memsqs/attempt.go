package memsqs

import "time"

// attempt is a receive that carried a ReceiveRequestAttemptId: what it handed out, and in which state.
type attempt struct{ items []attempted }

type attempted struct {
	m                *message
	receipt, changes uint64
}

func (q *queue) remember(r *request, got []*message, now time.Time) {
	if r.attempt == "" || len(got) == 0 {
		return
	}
	var a attempt
	for _, m := range got {
		a.items = append(a.items, attempted{m, m.receipt, m.changes})
	}
	q.attempts.put(r.attempt, a, now)
}

// replay returns the messages of an earlier receive with the same ReceiveRequestAttemptId, with the same receipt handles
// and a fresh visibility timeout: a client that lost the reply asks again. It returns nil, and the call is an ordinary
// receive, after five minutes, or once any of the messages was deleted, changed its visibility or became visible.
func (q *queue) replay(r *request, now time.Time) []*message {
	a, ok := q.attempts.get(r.attempt)
	if !ok {
		return nil
	}
	var out []*message
	for _, it := range a.items {
		m := it.m
		if q.messages[m.serial] != m || m.receipt != it.receipt || m.changes != it.changes || !m.inFlight() {
			q.attempts.drop(r.attempt)
			return nil
		}
		out = append(out, m)
	}
	for _, m := range out {
		// The time in flight counts from the first receive, which the reset must not extend beyond 12 h.
		until := now.Add(r.visibility)
		if limit := m.receivedAt.Add(maxVisibility * time.Second); until.After(limit) {
			until = limit
		}
		q.hide(m, until)
	}
	return out
}
