package limit

import (
	"slices"
	"time"
)

// span is tokens of a counter. Token i has the time first + i x step, and is good from then, but not from before it was asked for.
type span struct {
	first time.Time
	step  time.Duration
	n     int
	asked time.Time
}

// good returns from when on token i is good.
func (s span) good(i int) time.Time {
	if at := s.first.Add(time.Duration(i) * s.step); at.After(s.asked) {
		return at
	}
	return s.asked
}

// goodBy returns how many tokens were good by then.
func (s span) goodBy(t time.Time) int {
	switch since := t.Sub(s.first); {
	case s.asked.After(t) || since < 0:
		return 0
	case s.step == 0:
		return s.n
	default:
		return min(s.n, int(since/s.step)+1)
	}
}

// stock is the tokens that a process has of a key, in the order of their times.
type stock struct {
	spans []span
	n     int
}

func (s *stock) add(more span) {
	s.spans = append(s.spans, more)
	s.n += more.n
}

// putBack adds tokens with such times that were good from then on, before all others.
func (s *stock) putBack(times, good time.Time, n int) {
	s.spans = slices.Insert(s.spans, 0, span{first: times, n: n, asked: good})
	s.n += n
}

// at returns when the first cost tokens are good; false: there are fewer.
func (s *stock) at(cost int) (time.Time, bool) {
	var at time.Time
	for _, sp := range s.spans {
		n := min(cost, sp.n)
		if good := sp.good(n - 1); good.After(at) {
			at = good
		}
		if cost -= n; cost == 0 {
			return at, true
		}
	}
	return time.Time{}, false
}

// drop removes the first n tokens, at least one, and returns the mean of their times.
func (s *stock) drop(n int) (times time.Time) {
	s.n -= n
	base, all, sum := s.spans[0].first, float64(n), 0.
	for n > 0 {
		first := &s.spans[0]
		some := min(n, first.n)
		mean := float64(first.first.Sub(base)) + float64(some-1)*float64(first.step)/2
		sum += mean * float64(some) / all
		first.first = first.first.Add(time.Duration(some) * first.step)
		if first.n -= some; first.n == 0 {
			s.spans = slices.Delete(s.spans, 0, 1)
		}
		n -= some
	}
	return base.Add(time.Duration(sum))
}

// lapse drops the tokens that began to be good at that time or earlier, and returns how many, and the mean of their times. For a
// ticket of more than one token, the first ones of its tokens do not lapse before its last one.
func (s *stock) lapse(then time.Time, cost int) (times time.Time, n int) {
	for _, sp := range s.spans {
		n += sp.goodBy(then)
	}
	if n = max(0, n-cost+1); n > 0 {
		times = s.drop(n)
	}
	return times, n
}
