package redisstore

import (
	"time"
)

// clockSlack is how far a request may come from the future of the server's clock. It is a constant of the acquire script
// too.
const clockSlack = 100 * time.Millisecond

// reading is the server's time according to its newest reply. A nil reading is empty.
type reading struct {
	server int64 // milliseconds
	at     moment
}

// now estimates the server's time in milliseconds: it is not ahead of a clock that runs evenly, since it is counted from
// when the reply had come, by the smaller of monotonic and wall time (section 5 of docs/protocol.md). Without a reading it is 0,
// which the server refuses, and its refusal tells the time.
func (r *reading) now(at moment) int64 {
	if r == nil {
		return 0
	}
	return r.server + min(at.monotonic-r.at.monotonic, at.wall-r.at.wall).Milliseconds()
}

// newer returns the reading of a reply, or r if that says a later time: the reply was long under way then. A server that says an
// earlier time than the request has another clock by now.
func (r *reading) newer(of reading, sent int64) *reading {
	if r == nil || of.server < sent || r.now(of.at) < of.server {
		return &of
	}
	return r
}

// moment is an instant of this process, on both of its clocks: one stands still while the machine is suspended, the other
// one can be set.
type moment struct{ monotonic, wall time.Duration }

var processStart = time.Now()

func look() moment {
	now := time.Now()
	return moment{monotonic: now.Sub(processStart), wall: time.Duration(now.UnixNano())}
}
