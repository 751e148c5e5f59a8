package sqsworker

import (
	"container/heap"
	"time"
)

// schedule is what the loop does later: one heap of alarms and, in the loop, one timer for the first of them.
type schedule struct{ alarms alarmHeap }

type alarm struct {
	at    time.Time
	ring  func()
	index int // in the heap; -1: rung or cancelled
}

func (s *schedule) add(at time.Time, ring func()) *alarm {
	a := &alarm{at: at, ring: ring}
	heap.Push(&s.alarms, a)
	return a
}

// cancel of an alarm that has rung, or of nil, does nothing.
func (s *schedule) cancel(a *alarm) {
	if a != nil && a.index >= 0 {
		heap.Remove(&s.alarms, a.index)
	}
}

// next returns when the first alarm rings.
func (s *schedule) next() (at time.Time, ok bool) {
	if len(s.alarms) == 0 {
		return time.Time{}, false
	}
	return s.alarms[0].at, true
}

// run rings what is due. An alarm set meanwhile for now or earlier rings too.
func (s *schedule) run(now time.Time) {
	for len(s.alarms) > 0 && !s.alarms[0].at.After(now) {
		heap.Pop(&s.alarms).(*alarm).ring()
	}
}

type alarmHeap []*alarm

func (h alarmHeap) Len() int           { return len(h) }
func (h alarmHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *alarmHeap) Push(x any) {
	a := x.(*alarm)
	a.index = len(*h)
	*h = append(*h, a)
}
func (h *alarmHeap) Pop() any {
	old := *h
	a := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	a.index = -1
	return a
}
