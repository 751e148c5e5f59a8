package dynamostore

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"
)

// The record of one key as its users may see it. The lease's end is nondeterministic: all that is certain is that
// nobody takes the record over before the end that its holder was promised.
type linearRecord struct {
	standing string // "none", "held", "released" or "done"
	owner    string
	fence    int64
	until    time.Time // held: as the holder knows it; zero where its acquire was never answered
	silent   bool      // held: its acquire was never answered, and fence is the one before
}

// linearCall is one call, or one packet that arrived when its sender had long gone on.
type linearCall struct {
	kind, key, owner string
	ghost            bool
	returned         time.Time // its effect was not later
}

// linearAnswer is what a call returned. A ghost is granted or refused, and nobody hears of it: it promises nothing.
type linearAnswer struct {
	outcome string // "granted", "held", "done", "lost", "refused" or "unknown"
	until   time.Time
	fence   int64
}

var linearModel = porcupine.NondeterministicModel{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, op := range all {
			key := op.Input.(linearCall).key
			byKey[key] = append(byKey[key], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() []any { return []any{linearRecord{standing: "none"}} },
	Step: func(state, input, output any) []any {
		var out []any
		for _, r := range state.(linearRecord).after(input.(linearCall), output.(linearAnswer)) {
			out = append(out, r)
		}
		return out
	},
	DescribeOperation: func(input, output any) string {
		c, a := input.(linearCall), output.(linearAnswer)
		ghost := ""
		if c.ghost {
			ghost = "late "
		}
		return fmt.Sprintf("%s%s by %s: %s", ghost, c.kind, c.owner, a.outcome)
	},
}

// after returns what the record may be after a call with this answer; nothing where the answer was impossible.
func (r linearRecord) after(c linearCall, a linearAnswer) []linearRecord {
	mine := r.owner == c.owner
	held, done := r.standing == "held", r.standing == "done"
	switch c.kind {
	case "acquire":
		return r.afterAcquire(c, a)
	case "renew":
		switch {
		case a.outcome == "granted" && mine && held:
			if !c.ghost && a.until.After(r.until) {
				r.until = a.until
			}
			return []linearRecord{r}
		case a.outcome == "unknown", a.outcome == "lost" && !(mine && held), a.outcome == "refused":
			return []linearRecord{r}
		}
	case "complete":
		completed := r
		completed.standing = "done"
		switch {
		case a.outcome == "granted" && mine:
			return []linearRecord{completed}
		case a.outcome == "unknown" && mine:
			return []linearRecord{r, completed}
		case a.outcome == "unknown", (a.outcome == "lost" || a.outcome == "refused") && !mine:
			return []linearRecord{r}
		}
	case "release":
		released := r
		released.standing, released.until = "released", time.Time{}
		switch {
		case a.outcome == "granted" && mine && !done: // twice, too
			return []linearRecord{released}
		case a.outcome == "unknown" && mine && !done:
			return []linearRecord{r, released}
		case a.outcome == "unknown", a.outcome == "granted" && !c.ghost, a.outcome == "refused" && (!mine || done):
			return []linearRecord{r} // a caller is not told that there was nothing to release
		}
	}
	return nil
}

func (r linearRecord) afterAcquire(c linearCall, a linearAnswer) []linearRecord {
	mine := r.owner == c.owner
	free := r.standing == "none" || r.standing == "released" ||
		r.standing == "held" && !mine && !c.returned.Before(r.until) // over at some time of the call, as far as the holder knew
	granted := linearRecord{standing: "held", owner: c.owner, fence: a.fence, until: a.until, silent: c.ghost}
	if c.ghost {
		granted.until = time.Time{}
	}
	switch a.outcome {
	case "granted":
		if r.standing == "held" && mine && (a.fence == r.fence || r.silent && a.fence > r.fence) { // the same claim again
			if r.until.After(granted.until) {
				granted.until = r.until
			}
			return []linearRecord{granted}
		}
		if free && !mine && a.fence > r.fence {
			return []linearRecord{granted}
		}
	case "held":
		if r.standing == "held" && !mine {
			return []linearRecord{r}
		}
	case "done":
		if r.standing == "done" {
			return []linearRecord{r}
		}
	case "refused": // a late packet, by whatever clause
		return []linearRecord{r}
	case "lost", "unknown":
		// Nothing; or granted, and then lost to another or released by the store itself: until then it is held by an owner
		// that was promised nothing.
		granted.fence, granted.until, granted.silent = r.fence, time.Time{}, true
		if free && !mine {
			return []linearRecord{r, granted}
		}
		return []linearRecord{r}
	}
	return nil
}
