package limit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/internal/question"
)

// callTimeout is how long a call of a Counter may take: a token is good for so long.
const callTimeout = keep

var errLate = fmt.Errorf("limit: the counter answered after more than %s", fresh)

// outage is that of a rule's Counter, or of one of its keys.
type outage struct {
	since time.Time     // zero: it answers
	lost  time.Duration // how long all earlier ones lasted
	askAt time.Time
	said  bool // it is logged
}

// sayAgain is how often the outages of a rule, and those of its keys, are logged.
const sayAgain = time.Minute

func (o *outage) down() bool { return !o.since.IsZero() }

// unasked is how long an outage goes on without a call: then it is unknown whether the Counter is down.
const unasked = time.Hour

// lasted is how long all outages have lasted until now.
func (o *outage) lasted(now time.Time) time.Duration {
	if o.down() {
		return o.lost + sooner(now, o.askAt.Add(unasked)).Sub(o.since)
	}
	return o.lost
}

// lapse ends an outage without a call for so long: what the process knows of its keys grows old again.
func (o *outage) lapse(now time.Time) {
	if o.down() && now.Sub(o.askAt) > unasked {
		o.end(now)
	}
}

// end ends the outage, if there is one.
func (o *outage) end(now time.Time) { *o = outage{lost: o.lasted(now)} }

// leastWait and mostWait are between two calls in an outage. While some processes have their answers again the others go on at their
// shares, so together they may have more than the limit.
const leastWait, mostWait = time.Second, 2 * time.Second

// notBefore returns when the Counter may be asked that is not to be asked before at.
func (o *outage) notBefore(at time.Time) time.Time {
	if o.askAt.After(at) {
		return o.askAt
	}
	return at
}

// failed notes a call without an answer; asked: it began in the outage.
func (o *outage) failed(now time.Time, asked bool) {
	if o.down() && !asked {
		return
	}
	if !o.down() {
		o.since = now
	}
	o.askAt = now.Add(leastWait + rand.N(mostWait-leastWait))
}

// answered ends an outage of a rule, or of the key that attrs name.
func (o *outage) answered(now time.Time, r *rule, attrs ...any) {
	if o.said {
		r.l.o.Logger.Info("limit: counter answers again", append(attrs, "rule", r.Name, "lasted", now.Sub(o.since))...)
	}
	o.end(now)
}

// out returns the outage that decides about a key's messages: the rule's, or else the key's own, which may be none.
func (g *gate) out() *outage {
	if g.rule.outage.down() {
		return &g.rule.outage
	}
	return &g.outage
}

// keeps reports whether the process goes on with what it has of a key, because the Counter is down.
func (g *gate) keeps() bool {
	return g.out().down() && g.rule.l.o.OnCounterDown == OnCounterDownKeepShare
}

// stands reports whether no message of a key starts within a minute because the rule's Counter is down. Each message that its host receives
// meanwhile waits for nothing, and another process may have its answers.
func (l *Limiter) stands(g *gate) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	switch {
	case !g.rule.outage.down():
		return false
	case !g.keeps(), g.plan.slots > 0 && g.running == 0 && !g.hasSlot(now):
		return true
	}
	return g.plan.step > 0 && g.counted.next.Sub(now) > time.Minute
}

// call makes calls of the Counter on a goroutine, and hands their error to then under the Limiter's lock. While the Counter is down
// other keys wait for the answer. After an error the question tells whether the Counter is down for the other keys too.
func (g *gate) call(now time.Time, f, question func(context.Context) error, then func(now time.Time, err error)) {
	r := g.rule
	l := r.l
	out := g.out()
	down := out.down()
	if down {
		out.askAt = now.Add(callTimeout)
	}
	r.counts.calls++
	l.calls.Go(func() {
		err := l.ask(f)
		l.mu.Lock()
		defer l.mu.Unlock()
		sent, now := now, time.Now()
		failed := late(now.Sub(sent), err)
		switch {
		case l.closed:
		case failed != nil:
			g.out().failed(now, down)
		default:
			r.outage.answered(now, r)
			g.outage.answered(now, r, "key", g.key)
		}
		then(now, err)
		g.advance(now)
		g.answered()
		if failed != nil && !l.closed {
			g.judge(now, failed, question)
		}
	})
}

// ask makes calls of a Counter, without the lock.
func (l *Limiter) ask(f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(l.callCtx, callTimeout)
	defer cancel()
	return contain(func() error { return f(ctx) })
}

// late returns the error of a call whose answer came too late.
func late(took time.Duration, err error) error {
	if err == nil && took > fresh {
		return errLate
	}
	return err
}

// judge asks the question of a key's error, without the lock meanwhile. If it fails too, the Counter is down for the whole rule.
// If not, for the key alone. The answer holds for a second.
func (g *gate) judge(now time.Time, failed error, question func(context.Context) error) {
	r := g.rule
	l := r.l
	if r.asking {
		return // the answer to that question decides
	}
	if now.Sub(r.passed) >= leastWait {
		r.asking = true
		l.mu.Unlock()
		err := l.ask(question)
		l.mu.Lock()
		r.asking = false
		sent := now
		if now = time.Now(); l.closed {
			return
		}
		if late(now.Sub(sent), err) != nil {
			r.fails(now, g, failed)
			return
		}
		r.passed = now
		r.outage.answered(now, r)
	}
	if o := &g.outage; o.down() && !o.said && now.Sub(r.warnedKey) >= sayAgain {
		o.said, r.warnedKey = true, now
		l.o.Logger.Warn("limit: counter fails for one key: Options.OnCounterDown decides about its messages", "rule", r.Name, "key", g.key, "error", failed)
	}
}

// fails notes that the Counter is down, which an error of g and a question have shown.
func (r *rule) fails(now time.Time, g *gate, err error) {
	o := &r.outage
	if o.down() || !g.outage.down() { // the key has an answer meanwhile
		return
	}
	lost := o.lost
	*o = g.outage
	o.lost = lost
	for _, other := range r.gates { // g is one of them
		other.outage.end(o.since)
	}
	r.counts.outages++
	if o.said = now.Sub(r.warned) >= sayAgain; o.said {
		r.warned = now
		r.l.o.Logger.Warn("limit: counter does not answer: Options.OnCounterDown decides about the messages of its rule", "rule", r.Name, "error", err)
	}
}

// asksTokens is the question of takes and places: a take of a key that no message has. Protocol, section 17.
func (r *rule) asksTokens(ctx context.Context) error {
	_, err := r.Counter.Take(ctx, counting.Take{Key: r.Name + question.KeyPrefix + r.l.id, N: 1, Step: time.Microsecond, Burst: 1, Waited: true})
	return err
}

// asksSlots is the question of slots.
func (r *rule) asksSlots(ctx context.Context) error {
	slot, owner := r.Name+question.KeyPrefix+r.l.id+"#0", newOwner()
	if err := r.Counter.Acquire(ctx, slot, owner, lease); err != nil && !errors.Is(err, counting.ErrTaken) {
		return err
	}
	return r.Counter.Release(ctx, slot, owner)
}

// escape returns a key in a form that every store keeps, without '#': a slot's name has one more than its key's.
func escape(key string) string {
	escaped := escaper.Replace(key)
	if len(escaped) <= maxKey && utf8.ValidString(key) && !strings.Contains(key, "\x00") && !strings.HasPrefix(key, hashed) {
		return escaped
	}
	sum := sha256.Sum256([]byte(key))
	return hashed + hex.EncodeToString(sum[:])
}

var escaper = strings.NewReplacer("%", "%25", "#", "%23")

const (
	maxKey = 512
	hashed = "sha256:"
)
