package linear

import (
	"time"

	"github.com/anishathalye/porcupine"
)

// record is that of one key as its users may see it. The lease's end is nondeterministic: all that is certain is that
// nobody takes the record over before the end that its holder was promised.
type record struct {
	standing string // "none", "held", "released" or "done"
	owner    string
	fence    int64
	until    time.Time // held: as the holder knows it; zero where its acquire was never answered
	silent   bool      // held: its acquire was never answered, and fence is the one before
}

// Call is one call, or one packet that arrived when its sender had long gone on: a ghost.
type Call struct {
	// Kind is "acquire", "renew", "complete" or "release".
	Kind, Key, Owner string
	// Ghost: nobody hears of the answer, and it promises nothing.
	Ghost bool

	returned time.Time // its effect was not later
}

// Answer is what a call returned.
type Answer struct {
	// Outcome is "granted", "held", "done", "lost" or "unknown". A ghost's is "granted", "refused" or "unknown".
	Outcome string
	// Until is the end of a lease that was granted.
	Until time.Time
	// Fence is that of an acquire that was granted.
	Fence int64
}

// String says whose call it is and of what.
func (c Call) String() string {
	if c.Ghost {
		return "late " + c.Kind + " by " + c.Owner
	}
	return c.Kind + " by " + c.Owner
}

// model is of one key.
var model = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{record{standing: "none"}} },
	Step: func(state, input, output any) []any {
		var out []any
		for _, r := range state.(record).after(input.(Call), output.(Answer)) {
			out = append(out, r)
		}
		return out
	},
}).ToModel()

// after returns what the record may be after a call with this answer; nothing where the answer was impossible.
func (r record) after(c Call, a Answer) []record {
	mine := r.owner == c.Owner
	held, done := r.standing == "held", r.standing == "done"
	switch c.Kind {
	case "acquire":
		return r.afterAcquire(c, a)
	case "renew":
		switch {
		case a.Outcome == "granted" && mine && held:
			if !c.Ghost && a.Until.After(r.until) {
				r.until = a.Until
			}
			return []record{r}
		case a.Outcome == "unknown", a.Outcome == "lost" && !(mine && held), a.Outcome == "refused":
			return []record{r}
		}
	case "complete":
		completed := r
		completed.standing = "done"
		switch {
		case a.Outcome == "granted" && mine:
			return []record{completed}
		case a.Outcome == "unknown" && mine:
			return []record{r, completed}
		case a.Outcome == "unknown", (a.Outcome == "lost" || a.Outcome == "refused") && !mine:
			return []record{r}
		}
	case "release":
		released := r
		released.standing, released.until = "released", time.Time{}
		switch {
		case a.Outcome == "granted" && mine && !done: // twice, too
			return []record{released}
		case a.Outcome == "unknown" && mine && !done:
			return []record{r, released}
		case a.Outcome == "unknown", a.Outcome == "granted" && !c.Ghost, a.Outcome == "refused" && (!mine || done):
			return []record{r} // a caller is not told that there was nothing to release
		}
	}
	return nil
}

func (r record) afterAcquire(c Call, a Answer) []record {
	mine := r.owner == c.Owner
	free := r.standing == "none" || r.standing == "released" ||
		r.standing == "held" && !mine && !c.returned.Before(r.until) // over at some time of the call, as far as the holder knew
	granted := record{standing: "held", owner: c.Owner, fence: a.Fence, until: a.Until, silent: c.Ghost}
	if c.Ghost {
		granted.until = time.Time{}
	}
	switch a.Outcome {
	case "granted":
		if r.standing == "held" && mine && (a.Fence == r.fence || r.silent && a.Fence > r.fence) { // the same claim again
			if r.until.After(granted.until) {
				granted.until = r.until
			}
			return []record{granted}
		}
		if free && !mine && a.Fence > r.fence {
			return []record{granted}
		}
	case "held":
		if r.standing == "held" && !mine {
			return []record{r}
		}
	case "done":
		if r.standing == "done" {
			return []record{r}
		}
	case "refused": // a late packet, by whatever clause
		return []record{r}
	case "lost", "unknown":
		// Nothing; or granted, and then lost to another or released by the store itself: until then it is held by an owner
		// that was promised nothing.
		granted.fence, granted.until, granted.silent = r.fence, time.Time{}, true
		if free && !mine {
			return []record{r, granted}
		}
		return []record{r}
	}
	return nil
}
