package limit

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Rate is N starts in each Per, evenly spread, and up to Burst of them at once after a rest.
type Rate struct {
	// N is how many handlers start in each Per. "1,000 a day" is N: 1000, Per: 24 * time.Hour.
	// Default: any number. Limits: at most one each nanosecond.
	N int
	// Per is the time for N starts.
	// Default: 1 s. Limits: at most a year for each start.
	Per time.Duration
	// Burst is how many handlers may start at once after a time with fewer starts. In any time T at most T * N / Per + Burst
	// handlers start.
	// Default: as many as the rate gives in a second, at least 1. Limits: as many as the rate gives in a year.
	Burst int
}

// Plan is how many handlers a rule allows for one key. The zero Plan allows any number.
type Plan struct {
	// Concurrency is how many handlers of the key run at once.
	// Default: any number.
	Concurrency int
	// Rate is how often handlers of the key start.
	// Default: any number.
	Rate Rate
}

// String returns the plan in short, such as "3 at once, 100/1m", or "" for any number.
func (p Plan) String() string {
	var parts []string
	if p.Concurrency > 0 {
		parts = append(parts, fmt.Sprintf("%d at once", p.Concurrency))
	}
	if r := p.Rate; r.N > 0 {
		per := "s"
		if r.Per > 0 && r.Per != time.Second {
			per = zeroUnits.ReplaceAllString(r.Per.String(), "$1")
		}
		parts = append(parts, fmt.Sprintf("%d/%s", r.N, per))
	}
	return strings.Join(parts, ", ")
}

// zeroUnits are the zeros at the end of a duration: 1h0m0s is 1h.
var zeroUnits = regexp.MustCompile(`([hm])(0[ms])+$`)

// Rule limits the messages that have the same key. A plan that has both numbers holds both.
type Rule struct {
	// Name names the rule in logs, in Stats and in the Counter: rules of one name share their counts there, in all programs. Give
	// them the same plan: each start takes a step of its own program's rate from all of them.
	// Limits: 1 to 50 of A-Z a-z 0-9 . _ -
	Name string
	// Key returns the key that a message counts for. The rule leaves messages with the key "" alone. A panic fails its message.
	// Default: Message.Group. A message without a group is logged once.
	Key func(*sqsonce.Message) string
	// Plan is the plan of every key. Set either Plan or PlanOf.
	Plan Plan
	// PlanOf returns the plan of a key. It is called for each message, so a change holds from the next message on. It must be
	// quick and safe for concurrent use. A panic, or a plan that can't be used, fails the message.
	// Default: Plan.
	PlanOf func(key string) Plan
	// Cost is how many starts of the Rate a message counts for. A cost below 1 counts as 1. A cost above Burst waits for a full
	// burst, and uses up all of it.
	// Default: 1.
	Cost func(*sqsonce.Message) int
	// Counter counts for all processes of a fleet.
	// Default: each process counts for itself.
	Counter Counter
}

// All is a [Rule].Key that gives all messages one key, "*".
func All(*sqsonce.Message) string { return "*" }

const (
	// maxFill is the longest time in which a rate gives a burst: all sums of durations stay far from an overflow.
	maxFill = 366 * 24 * time.Hour
	maxName = 50 // with "limit/" and a slot's number it is a consumer's name of package dedup
)

// plan is a Plan with its defaults.
type plan struct {
	slots int           // 0: any number
	step  time.Duration // between two starts; 0: any rate
	burst int
}

// resolve adds the problems of a plan to ps.
func (p Plan) resolve(ps *host.Problems, field string) plan {
	r := p.Rate
	ps.Add(p.Concurrency < 0, field+".Concurrency", "is %d, must be 0 (any number) or more", p.Concurrency)
	ps.Add(r.N < 0, field+".Rate.N", "is %d, must be 0 (any number) or more", r.N)
	ps.Add(r.Per < 0, field+".Rate.Per", "is %s, must be positive", r.Per)
	ps.Add(r.Burst < 0, field+".Rate.Burst", "is %d, must be 1 or more", r.Burst)
	ps.Add(r.N == 0 && (r.Per != 0 || r.Burst != 0), field+".Rate.N", "is 0, must be set together with Per and Burst")
	out := plan{slots: max(p.Concurrency, 0)}
	if r.N <= 0 || r.Per < 0 || r.Burst < 0 {
		return out
	}
	per := cmp.Or(r.Per, time.Second)
	if int64(r.N) > int64(per) {
		ps.Add(true, field+".Rate.N", "is %d in %s, must be at most one each nanosecond", r.N, per)
		return out
	}
	out.step = (per-1)/time.Duration(r.N) + 1 // rounded up: never more than N
	out.burst = cmp.Or(r.Burst, max(1, int(time.Second/out.step)))
	most := int64(maxFill / out.step)
	ps.Add(most == 0, field+".Rate.Per", "is %s for %d, must be at most a year for each start", per, r.N)
	ps.Add(most > 0 && int64(out.burst) > most, field+".Rate.Burst", "is %d, must be at most %d, as many as the rate gives in a year", out.burst, most)
	return out
}

// use is one rule's part in one delivery.
type use struct {
	rule *rule
	key  string
	plan plan
	seq  uint64 // of PlanOf's calls: a plan that was asked for earlier does not replace a later one
	cost int
}

// use returns the use of a key, whose plan the user may decide.
func (r *rule) use(key string) (use, error) {
	u := use{rule: r, key: key, plan: r.fixed, cost: 1}
	if r.PlanOf == nil {
		return u, nil
	}
	u.seq = r.asked.Add(1) // before the call, which may take long
	ps := host.Problems{Package: "limit"}
	u.plan = r.PlanOf(key).resolve(&ps, "PlanOf of rule "+r.Name)
	return u, ps.Err()
}

// uses calls the user's functions of all rules.
func (l *Limiter) uses(ctx context.Context, m *sqsonce.Message) ([]use, error) {
	var uses []use
	for _, r := range l.rules {
		key := m.Group
		if r.Key != nil {
			key = r.Key(m)
		}
		if key == "" {
			if r.Key == nil {
				if r.noGroup.Add(1) == 1 {
					l.o.Logger.WarnContext(ctx, "limit: message without a MessageGroupId: its rule does not limit it", "rule", r.Name, "queue", m.QueueARN, "message_id", m.ID)
				}
			}
			continue
		}
		u, err := r.use(key)
		if err != nil {
			return nil, err
		}
		if r.Cost != nil {
			u.cost = max(1, r.Cost(m))
		}
		uses = append(uses, u)
	}
	return uses, nil
}

// checkRules adds the problems of the rules.
func checkRules(ps *host.Problems, rules []Rule) (resolved []*rule) {
	names := map[string]bool{}
	ps.Add(len(rules) == 0, "rules", "is empty")
	for i, r := range rules {
		field := fmt.Sprintf("rules[%d]", i)
		ps.Add(!validName(r.Name), field+".Name", "is %q, must be 1 to %d of A-Z a-z 0-9 . _ -", r.Name, maxName)
		ps.Add(names[r.Name], field+".Name", "is %q, as that of another rule", r.Name)
		names[r.Name] = true
		ps.Add(r.PlanOf != nil && r.Plan != (Plan{}), field+".PlanOf", "is set, and so is Plan")
		ps.Add(r.PlanOf == nil && r.Plan == (Plan{}), field+".Plan", "is not set, nor is PlanOf")
		ps.Add(r.Counter != nil && host.IsNil(r.Counter), field+".Counter", "is a nil pointer")
		resolved = append(resolved, newRule(r, r.Plan.resolve(ps, field+".Plan")))
	}
	return resolved
}

func validName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= maxName
}
