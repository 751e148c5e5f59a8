// Package counter has what the counters of all stores share: the arithmetic of a key's schedule, slots as records, and
// the checks of arguments.
//
// A key has two instants on the store's clock. Its tat is the time of the next token plus the tolerance of a burst, and
// its line the next place in the line. Times are whole microseconds: a lag counts from the store's now, a step is
// rounded up.
package counter

import (
	"time"

	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	// Owner is the owner of a key's record, which reads as released.
	Owner = "limit"
	// Retention is how long a key's record is retained after its tat and its line.
	Retention = time.Hour

	// shortLine is how long a line may be before only those who have waited get tokens.
	shortLine = int64(time.Second / time.Microsecond)
	// most limits the times of a Take. Redis counts in float64, which has whole microseconds for 200 years.
	most = 366 * 24 * time.Hour
)

// RecordKey is the key of the record of a key or a slot.
func RecordKey(key string) string { return "limit/" + key }

// Ask is a [counting.Take] in microseconds.
type Ask struct {
	Key       string // of the record
	N         int
	Step      int64
	Tolerance int64 // how far before its tat a key's token is
	Within    int64 // one token up to here is granted
	Ahead     int64
	Floor     int64 // the tat's least lag: above 0 in a pause
	Waited    bool
}

// NewAsk checks a take. pkg is the store's package, for the errors.
func NewAsk(pkg string, t counting.Take) (Ask, error) {
	p := host.Problems{Package: pkg}
	p.Add(t.Key == "", "Take.Key", "is empty")
	p.Add(t.N < 1, "Take.N", "is %d, must be at least 1", t.N)
	p.Add(t.Burst < 1, "Take.Burst", "is %d, must be at least 1", t.Burst)
	p.Add(t.Step <= 0, "Take.Step", "is not positive")
	for field, d := range map[string]time.Duration{"Step": t.Step, "Ahead": t.Ahead, "Reach": t.Reach, "NotBefore": t.NotBefore} {
		p.Add(d < 0 || d > most, "Take."+field, "is negative or more than a year")
	}
	p.Add(t.Step > 0 && int64(t.Burst) > int64(most/t.Step), "Take.Burst", "takes more than a year")
	if err := p.Err(); err != nil {
		return Ask{}, err
	}
	a := Ask{Key: RecordKey(t.Key), N: t.N, Step: micros(t.Step), Ahead: micros(t.Ahead), Waited: t.Waited}
	a.Tolerance = int64(t.Burst-1) * a.Step
	a.Within = max(a.Ahead, micros(t.Reach))
	if t.NotBefore > 0 {
		a.Floor = micros(t.NotBefore) + a.Tolerance
	}
	return a, nil
}

// micros rounds up.
func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

// Span is how long n places of a line are.
func Span(pkg, key string, n int, step time.Duration) (int64, error) {
	p := host.Problems{Package: pkg}
	p.Add(key == "", "key", "is empty")
	p.Add(n < 1, "n", "is %d, must be at least 1", n)
	p.Add(step <= 0 || step > most || int64(n) > int64(most/max(step, 1)), "step", "is not positive, or the places take more than a year")
	return int64(n) * micros(step), p.Err()
}

// State is a key's schedule as a store has read it: the lags of its tat and its line. They are negative in the past.
type State struct{ Tat, Line int64 }

// Lag is that of the tat from which tokens are taken.
func (a Ask) Lag(s State) int64 { return max(s.Tat, a.Floor) }

// Grants is how many tokens are granted at a lag, behind a line.
func (a Ask) Grants(lag, line int64) int {
	switch first := lag - a.Tolerance; {
	case a.behind(line) || first > a.Within:
		return 0
	case first > a.Ahead:
		return 1
	default:
		return int(min(int64(a.N), (a.Ahead-first)/a.Step+1))
	}
}

func (a Ask) behind(line int64) bool { return !a.Waited && line > shortLine }

// Try is how many tokens the next statement takes of a key in a state that a statement has found, or that is only
// likely. Without a token it moves the tat for a pause. ok is false if the answer is known: there is no token.
func (a Ask) Try(s State, found bool) (n int, ok bool) {
	n = a.Grants(a.Lag(s), s.Line)
	switch {
	case n > 0:
		return n, true
	case !found && a.Floor == 0:
		return 1, true // the refusal says why there is none
	case !found:
		return 0, true
	default:
		return 0, s.Tat < a.Floor && a.Floor > 0
	}
}

// MostLag is the greatest lag at which n tokens are granted, or the tat is moved for a pause.
func (a Ask) MostLag(n int) int64 {
	switch n {
	case 0:
		return a.Floor
	case 1:
		return a.Within + a.Tolerance
	}
	return a.Ahead + a.Tolerance - int64(n-1)*a.Step
}

// MostLine is the greatest lag of the line at which tokens are granted. ok is false if the line doesn't matter.
func (a Ask) MostLine() (lag int64, ok bool) { return shortLine, !a.Waited }

// Granted is the answer to a take of n tokens at a lag. The lag counts from the call's return.
func (a Ask) Granted(n int, lag int64) counting.Grant {
	return counting.Grant{N: n, From: Duration(lag - a.Tolerance), Step: Duration(a.Step)}
}

// Refused is the answer to a take that gets no token.
func (a Ask) Refused(lag, line int64) counting.Grant {
	after := lag - a.Tolerance - a.Within
	if a.behind(line) {
		after = max(after, line-shortLine)
	}
	return counting.Grant{After: Duration(max(after, 1))}
}

// Take takes tokens of a key in memory. It returns the answer, and the new lag of the tat.
func (a Ask) Take(s State) (counting.Grant, int64) {
	lag := a.Lag(s)
	n := a.Grants(lag, s.Line)
	if n == 0 {
		return a.Refused(lag, s.Line), max(s.Tat, a.Floor)
	}
	return a.Granted(n, lag), lag + int64(n)*a.Step
}

// Duration is a time in microseconds.
func Duration(micros int64) time.Duration { return time.Duration(micros) * time.Microsecond }
