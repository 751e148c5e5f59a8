package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/limit"
)

// A search of a counter's conditions: two hosts take tokens, ask for places and pause a key, the network loses requests
// and answers, and delivers copies late. Each schedule is drawn from a seed and has a key of its own.

const (
	countedStep  = 10 * time.Second
	countedBurst = 3
	// countedLate is how much later than its time a counter may say that a token is.
	countedLate = 1100 * time.Millisecond
)

// counted is one schedule on a key.
type counted struct {
	b       *bed
	r       *rand.Rand
	broken  *breaker
	key     string
	hosts   [2]limit.Counter
	probe   *Store
	transit transit
	cancel  context.CancelFunc
	sent    []packet

	path      []string
	uses      []use
	pauses    time.Time // no token granted later is before this
	tat, line time.Time // after the last move
}

// RoundTrip is the network of both hosts.
func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	p, err := readPacket(r)
	if err != nil {
		return nil, err
	}
	p = c.broken.edit(p)
	c.sent = append(c.sent, p)
	if c.transit == heldBack {
		c.cancel()
		return nil, errHeldBack
	}
	resp, err := c.b.srv.RoundTrip(p.request(r.Context()))
	if c.transit == answerLost {
		c.cancel()
		return nil, errHeldBack
	}
	return resp, err
}

// stored is the key's schedule as the table has it, and as instants.
func (c *counted) stored() (tat, line time.Time) {
	found := must.Get(c.probe.getItem(c.b.Context(), c.key, func(*dynamodb.Options) {}))(c.b)
	is := must.Get(decodeSchedule(found))(c.b)
	return time.UnixMicro(is.tat), time.UnixMicro(is.line)
}

// move makes one move, and returns an error for a sentence of the contract that it breaks.
func (c *counted) move() error {
	tat, line := c.tat, c.line
	if err := c.draw(tat, line); err != nil {
		return err
	}
	if c.tat, c.line = c.stored(); c.tat.Before(tat) || c.line.Before(line) {
		return fmt.Errorf("the schedule goes back by %s, the line by %s", tat.Sub(c.tat), line.Sub(c.line))
	}
	return nil
}

func (c *counted) draw(tat, line time.Time) error {
	host := c.r.IntN(2)
	c.transit = []transit{arrives, arrives, arrives, heldBack, answerLost}[c.r.IntN(5)]
	ctx, cancel := context.WithCancel(c.b.Context())
	defer cancel()
	c.cancel = cancel
	switch kind := c.r.IntN(10); {
	case kind < 4:
		t := counting.Take{
			Key: c.key[len("limit/"):], N: 1 + c.r.IntN(3), Step: countedStep, Burst: countedBurst, Waited: c.r.IntN(3) == 0,
			Ahead: time.Duration(c.r.IntN(3)) * countedStep, Reach: time.Duration(c.r.IntN(2)) * 6 * countedStep,
		}
		if c.r.IntN(8) == 0 {
			t.NotBefore = time.Duration(1+c.r.IntN(3)) * countedStep
		}
		c.path = append(c.path, fmt.Sprintf("%c takes %+v (%d)", 'A'+host, t, c.transit))
		return c.take(ctx, host, t, line)
	case kind < 7:
		n := 1 + c.r.IntN(2)
		c.path = append(c.path, fmt.Sprintf("%c asks for %d places (%d)", 'A'+host, n, c.transit))
		return c.place(ctx, host, n, tat, line)
	case kind == 7 && len(c.sent) > 0:
		i := c.r.IntN(len(c.sent))
		c.path = append(c.path, fmt.Sprint("packet ", i, " arrives late"))
		c.sent[i].send(c.b.srv)
	default:
		d := time.Duration(c.r.IntN(30)) * time.Second
		c.path = append(c.path, d.String()+" pass")
		time.Sleep(d)
	}
	return nil
}

func (c *counted) take(ctx context.Context, host int, t counting.Take, line time.Time) error {
	now := time.Now()
	g, err := c.hosts[host].Take(ctx, t)
	switch {
	case c.transit != arrives && err == nil && g.N > 0:
		return errors.New("tokens without an answer")
	case c.transit != arrives:
		return nil
	case err != nil:
		return err
	}
	tat, _ := c.stored()
	first := tat.Add(-time.Duration(g.N+countedBurst-1) * countedStep) // in truth
	if d := g.From - first.Sub(now); g.N > 0 && (d < 0 || d > countedLate) {
		return fmt.Errorf("the tokens' time is wrong by %s", d)
	}
	for i := range g.N {
		c.uses = append(c.uses, use{host, first.Add(time.Duration(i) * countedStep), now})
	}
	last := first.Add(time.Duration(g.N-1) * countedStep)
	if t.NotBefore > 0 && now.Add(t.NotBefore).After(c.pauses) {
		c.pauses = now.Add(t.NotBefore)
	}
	switch within := max(t.Ahead, t.Reach); {
	case g.N > 1 && last.Sub(now) > t.Ahead+countedLate, g.N == 1 && last.Sub(now) > within+countedLate:
		return fmt.Errorf("the last of %d tokens is %s ahead", g.N, last.Sub(now))
	case g.N > 0 && first.Before(c.pauses):
		return fmt.Errorf("a token %s before the end of a pause", c.pauses.Sub(first))
	case g.N > 0 && !t.Waited && line.Sub(now) > time.Second+countedLate:
		return fmt.Errorf("a token behind a line of %s", line.Sub(now))
	case g.N == 0 && (t.Waited || line.Sub(now) < time.Second) && first.Add(countedStep).Sub(now) < within-countedLate:
		return fmt.Errorf("none, and one is %s ahead", first.Add(countedStep).Sub(now))
	}
	return nil
}

func (c *counted) place(ctx context.Context, host, n int, tat, line time.Time) error {
	now := time.Now()
	first, err := c.hosts[host].Line(ctx, c.key[len("limit/"):], n, countedStep)
	if c.transit != arrives || err != nil {
		if c.transit == arrives {
			return err
		}
		return nil
	}
	_, end := c.stored()
	place := end.Add(-time.Duration(n) * countedStep)
	if place.Before(now) || place.Before(tat) || place.Before(line) {
		return fmt.Errorf("a place %s before now, %s before the tokens, %s before the end of the line", now.Sub(place), tat.Sub(place), line.Sub(place))
	}
	if d := first - place.Sub(now); d < 0 || d > countedLate {
		return fmt.Errorf("the place's time is wrong by %s", d)
	}
	return nil
}

// searchCounter plays schedules until one breaks the contract.
func searchCounter(t *testing.T, schedules int, broken *breaker) (err error) {
	if testing.Short() {
		t.Skip("make race is short: see searched")
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		for seed := range schedules {
			c := &counted{b: b, r: rand.New(rand.NewPCG(uint64(seed), 0)), broken: broken, key: fmt.Sprint("limit/search#", seed), probe: b.store()}
			for i, skew := range []time.Duration{-30 * time.Second, 30 * time.Second} {
				c.hosts[i] = NewCounter(must.Get(New(b.client(c), testTable, off(skew)))(t))
			}
			for range 16 {
				if err = c.move(); err != nil {
					err = fmt.Errorf("%w\nafter %q", err, c.path)
					return
				}
			}
			if err = tooMany(c.uses, countedStep, countedBurst); err != nil {
				err = fmt.Errorf("%w\nafter %q", err, c.path)
				return
			}
		}
	})
	return err
}

func TestCounterSchedules(t *testing.T) {
	t.Parallel()
	schedules := 400
	if soak {
		schedules = 10_000
	}
	if err := searchCounter(t, schedules, nil); err != nil {
		t.Error(err)
	}
}

// Every term of every condition is needed: without it some schedule breaks the contract.
func TestCounterSchedulesSeeBrokenConditions(t *testing.T) {
	t.Parallel()
	for _, b := range []breaker{
		{within: isBusy, clause: isBusy, instead: "(#tat <= :latest OR #tat < :floor)"},
		{within: isBusy, clause: isBusy, instead: "(#tat >= :floor OR #tat > :latest)"},
		{within: isIdle, clause: "#tat < :floor"},
		{within: isShortLine, clause: "#line <= :short"},
		{within: "#line >= :now AND", clause: "#line >= :now"},
		{within: "AND #line >= #tat", clause: "#line >= #tat"},
		{within: "#tat >= :now AND", clause: "#tat >= :now"},
		{within: "#line < #tat", clause: "#line < #tat"},
		{within: "OR #tat < :now)", clause: "#tat < :now"},
		{within: "OR #line < :now)", clause: "#line < :now"},
	} {
		t.Run(b.clause+b.instead, func(t *testing.T) {
			t.Parallel()
			b.kind = "UpdateItem"
			err := searchCounter(t, 1000, &b)
			if err == nil {
				t.Errorf("no schedule fails; %d conditions were broken", b.hits)
			}
			t.Log(err)
		})
	}
}
