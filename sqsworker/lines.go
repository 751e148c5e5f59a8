package sqsworker

import "sync"

// lines are the places of postponed messages in Options.MaxHeld. A line is the messages that wait for the same thing: for
// package limit a rule, a key and a group, else their group. Each has an equal part. Middleware asks for a place on the
// handler's goroutine, before it answers.
type lines struct {
	mu      sync.Mutex
	maxHeld int
	space   amount         // what messages that are held for other reasons leave to all lines
	all     amount         // that is taken
	taken   map[string]int // by line
	sizes   []int          // how many lines have 0, 1, 2 … places
	longest int
	closed  bool // by the stop
}

const (
	partOfHeld  = 4 // each kind that may be given back keeps a quarter of MaxHeld, the most of a line
	leastOfLine = 2
)

// place is that of a delivery.
type place struct {
	line  string
	asked bool // by middleware
	taken bool
}

// limit sets what all lines may take, given what is held for other reasons.
func (ls *lines) limit(o *Options, others amount) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.maxHeld = o.MaxHeld
	ls.space = amount{max(o.MaxHeld-others.messages, o.MaxHeld/partOfHeld), max(o.MaxBytes/2-others.bytes, o.MaxBytes/2/partOfHeld)}
}

func (ls *lines) close() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.closed = true
}

// part is how many messages one of so many lines may hold.
func (ls *lines) part(lines int) int { return max(ls.maxHeld/max(lines, partOfHeld), leastOfLine) }

// hasRoom says whether another message of the line can be held, if need be instead of one of the longest line.
func (ls *lines) hasRoom(line string, size int64) bool {
	n, lines := ls.taken[line], len(ls.taken)
	if n == 0 {
		lines++
	}
	all := ls.all.plus(amount{1, size})
	return n < ls.part(lines) && (all.messages <= ls.space.messages && all.bytes <= ls.space.bytes || ls.longest > n+1)
}

// left is how many more messages the longest line can hold, and whether another line can hold one.
func (ls *lines) left() (n int, others bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	part, all := ls.part(len(ls.taken)), ls.space.messages-ls.all.messages
	if all <= 0 || ls.all.bytes >= ls.space.bytes {
		return 0, false
	}
	return max(0, min(part-ls.longest, all)), ls.all.messages < part*len(ls.taken)
}

// length is that of a message's line.
func (ls *lines) length(d *delivery) int {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.taken[d.place.line]
}

// enter takes a place for a message where its line has room, or where it may not be given back.
func (ls *lines) enter(d *delivery, p place) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.free(d)
	p.taken = !ls.closed && (d.keeps || ls.hasRoom(p.line, d.size))
	d.place = p
	if p.taken {
		ls.all = ls.all.plus(d.amount())
		ls.count(p.line, 1)
	}
	return p.taken
}

// leave gives a message's place to others.
func (ls *lines) leave(d *delivery) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.free(d)
	d.place = place{}
}

func (ls *lines) free(d *delivery) {
	if d.place.taken {
		d.place.taken = false
		ls.all = ls.all.minus(d.amount())
		ls.count(d.place.line, -1)
	}
}

// count adds to a line's places.
func (ls *lines) count(line string, by int) {
	before := ls.taken[line]
	n := before + by
	for len(ls.sizes) <= max(n, before) {
		ls.sizes = append(ls.sizes, 0)
	}
	ls.sizes[before]--
	ls.sizes[n]++
	if n == 0 {
		delete(ls.taken, line)
	} else {
		ls.taken[line] = n
	}
	if n > ls.longest || before == ls.longest && ls.sizes[before] == 0 {
		ls.longest = n
	}
}

// Room implements [settle.Holder].
func (d *delivery) Room(line string) (held, holds bool) {
	return d.lines.enter(d, place{line: line, asked: true}), true
}

// InDebt implements [settle.Holder].
func (d *delivery) InDebt() bool { return d.debt }
