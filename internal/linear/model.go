package linear

import (
	"time"

	"github.com/anishathalye/porcupine"
)

// record is the record of one key as its owners can see it. The model is nondeterministic: it is only certain that no other
// owner takes the record over before the end of the lease that the owner has received.
type record struct {
	status     string // "none", "leased", "released" or "completed"
	owner      string
	fence      int64
	until      time.Time // leased: the end of the lease as the owner knows it; zero if the owner has no response to its acquire
	unanswered bool      // leased: the owner has no response to its acquire, and fence is that of the lease before
}

// Call is one call of a store's operation.
type Call struct {
	// Kind is "acquire", "renew", "complete" or "release".
	Kind, Key, Owner string
	// Delayed: the call is a copy of a request that arrived after its sender had returned. Nobody gets its result.
	Delayed bool

	returned time.Time // its effect is not later
}

// Result is what a call returned.
type Result struct {
	// Status is "granted", "in progress" (another owner has the lease), "completed", "lost" (the lease) or "unknown"; for a
	// delayed call "granted", "refused" or "unknown".
	Status string
	// Until is the end of a granted lease.
	Until time.Time
	// Fence is the fence of a granted lease.
	Fence int64
}

// String names the operation and the owner.
func (c Call) String() string {
	if c.Delayed {
		return "delayed " + c.Kind + " by " + c.Owner
	}
	return c.Kind + " by " + c.Owner
}

// model is the model of one key.
var model = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{record{status: "none"}} },
	Step: func(state, input, output any) []any {
		var out []any
		for _, r := range state.(record).after(input.(Call), output.(Result)) {
			out = append(out, r)
		}
		return out
	},
}).ToModel()

// after returns what the record may be after a call with this result; nothing if the result is impossible.
func (r record) after(c Call, a Result) []record {
	mine := r.owner == c.Owner
	leased, complete := r.status == "leased", r.status == "completed"
	switch c.Kind {
	case "acquire":
		return r.afterAcquire(c, a)
	case "renew":
		switch {
		case a.Status == "granted" && mine && leased:
			if !c.Delayed && a.Until.After(r.until) {
				r.until = a.Until
			}
			return []record{r}
		case a.Status == "unknown", a.Status == "lost" && !(mine && leased), a.Status == "refused":
			return []record{r}
		}
	case "complete":
		completed := r
		completed.status = "completed"
		switch {
		case a.Status == "granted" && mine:
			return []record{completed}
		case a.Status == "unknown" && mine:
			return []record{r, completed}
		case a.Status == "unknown", (a.Status == "lost" || a.Status == "refused") && !mine:
			return []record{r}
		}
	case "release":
		released := r
		released.status, released.until = "released", time.Time{}
		switch {
		case a.Status == "granted" && mine && !complete, // also a second time
			a.Status == "lost" && mine && !complete: // its answer was lost, and the retry found another owner
			return []record{released}
		case a.Status == "unknown" && mine && !complete:
			return []record{r, released}
		case a.Status == "granted" && mine && !c.Delayed, // completed by this owner
			a.Status == "unknown", a.Status == "lost" && !mine, a.Status == "refused" && (!mine || complete):
			return []record{r}
		}
	}
	return nil
}

func (r record) afterAcquire(c Call, a Result) []record {
	mine := r.owner == c.Owner
	free := r.status == "none" || r.status == "released" ||
		r.status == "leased" && !mine && !c.returned.Before(r.until) // the lease ended during the call or before it, as far as the owner knew
	granted := record{status: "leased", owner: c.Owner, fence: a.Fence, until: a.Until, unanswered: c.Delayed}
	if c.Delayed {
		granted.until = time.Time{}
	}
	switch a.Status {
	case "granted":
		if r.status == "leased" && mine && (a.Fence == r.fence || r.unanswered && a.Fence > r.fence) { // the same claim again
			if r.until.After(granted.until) {
				granted.until = r.until
			}
			return []record{granted}
		}
		if free && !mine && a.Fence > r.fence {
			return []record{granted}
		}
	case "in progress":
		if r.status == "leased" && !mine {
			return []record{r}
		}
	case "completed":
		if r.status == "completed" {
			return []record{r}
		}
	case "refused": // a delayed call; the store does not say why
		return []record{r}
	case "lost", "unknown":
		// Either nothing has changed, or the lease was granted, and then taken over or released by the store itself. Until then
		// its owner had no response.
		granted.fence, granted.until, granted.unanswered = r.fence, time.Time{}, true
		if free && !mine {
			return []record{r, granted}
		}
		return []record{r}
	}
	return nil
}
