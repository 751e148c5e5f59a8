package limittest

import (
	"fmt"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/limit"
)

var takeCases = []testCase{
	{name: "take/up to N tokens, a step apart", run: func(x *exam) {
		t := x.many(10)
		t.N = 3
		x.gets(t, 3, 0, "of a new key")
		x.gets(t, 3, x.steps(3), "of a key with three tokens taken")
	}},
	{name: "take/a burst at once", run: func(x *exam) {
		t := x.many(0)
		t.Burst, t.Ahead = 7, 0
		x.gets(t, 7, -x.steps(6), "of a new key")
		t.N = 1
		x.none(t, x.Step, "after a burst")
	}},
	{name: "take/a rest gives back a burst", run: func(x *exam) {
		t := x.many(0)
		t.Burst, t.Ahead = 4, 0
		x.gets(t, 4, -x.steps(3), "of a new key")
		time.Sleep(x.half(2))
		x.gets(t, 2, -x.half(1), "after two steps and a half")
		time.Sleep(x.half(6))
		x.gets(t, 4, -x.steps(3), "after a long rest")
	}},
	{name: "take/what is within Ahead", run: func(x *exam) {
		x.gets(x.many(3), 4, 0, "up to three steps ahead")
		x.none(x.many(0), x.half(3), "with nothing left within Ahead")
		x.gets(x.many(5), 2, x.steps(4), "further ahead")
	}},
	{name: "take/one within Reach", run: func(x *exam) {
		x.gets(x.many(2), 3, 0, "of a new key")
		t := x.many(0)
		t.Reach = x.half(4)
		x.gets(t, 1, x.steps(3), "within Reach alone")
		x.gets(t, 1, x.steps(4), "within Reach alone, again")
		x.none(t, x.Step/2, "beyond Reach")
	}},
	{name: "take/asks again when it is told", run: func(x *exam) {
		x.gets(x.many(2), 3, 0, "of a new key")
		g := x.none(x.one(), x.steps(3), "ahead of the schedule")
		time.Sleep(g.After + x.Grace)
		x.gets(x.one(), 1, 0, "when it was told to ask again")
	}},
	{name: "take/no two are granted one token", run: func(x *exam) {
		const hosts = 16
		var wg sync.WaitGroup
		var mu sync.Mutex
		var all []token
		var failed error
		start := make(chan struct{})
		for range hosts {
			c := x.process()
			wg.Go(func() {
				<-start
				t := x.many(200)
				t.N = 3
				_, tokens, err := x.try(c, t)
				mu.Lock()
				defer mu.Unlock()
				if all = append(all, tokens...); err != nil {
					failed = err
				}
			})
		}
		close(start)
		wg.Wait()
		if failed != nil || len(all) != 3*hosts {
			x.fatalf("%d hosts: got %d tokens and error %v, want 3 for each", hosts, len(all), failed)
		}
		x.apart(all, x.Step)
		if d := all[len(all)-1].at.Sub(all[0].at); d > x.steps(3*hosts-1)+x.grace() {
			x.fatalf("the tokens of %d hosts: the last one is %s after the first one, want one in each step", hosts, d)
		}
	}},
	{name: "take/the rate of a fleet", run: func(x *exam) {
		step, d := x.Step/20, x.steps(5)
		ask := func(n int, c limit.Counter) ([]token, time.Duration, error) {
			t := counting.Take{Key: key, N: 1 + n, Step: step, Burst: 5, Ahead: 4 * step, Reach: x.Step}
			g, tokens, err := x.try(c, t)
			return tokens, max(g.From+time.Duration(g.N)*step-time.Duration(n)*step, g.After, step/10), err
		}
		all := x.fleet(4, d, ask)
		x.bounded(all, step, 5)
		n, part := int(d/step), 9
		if x.RealTime {
			part = 6 // a machine that stalls loses tokens
		}
		if len(all) < n*part/10 {
			x.fatalf("%d tokens in %d steps, want nearly all", len(all), n)
		}
	}},
	{name: "take/a lost answer wastes only its tokens", run: func(x *exam) {
		t := x.many(10)
		t.N, t.Burst = 2, 2
		for i := range 3 {
			x.take(x.Counter, t) // nobody gets the answer
			x.gets(t, 2, x.steps(4*i+1), fmt.Sprint("after lost answer ", i))
		}
	}},
	{name: "take/keys have schedules of their own", run: func(x *exam) {
		x.gets(x.many(3), 4, 0, "of a new key")
		t := x.many(3)
		t.Key += "2"
		x.gets(t, 4, 0, "of another key")
		x.gets(x.many(7), 4, x.steps(4), "of the first key again")
		x.line(2, x.steps(8), "of the first key")
		t.Ahead = x.half(7)
		x.gets(t, 4, x.steps(4), "of the other key again")
		if first, err := x.Line(x.ctx, t.Key, 1, x.Step); err != nil {
			x.fatalf("Line: got error %v, want a place", err)
		} else {
			x.near("the first place of the other key", first, x.steps(8))
		}
	}},
	{name: "take/two plans of one key", run: func(x *exam) {
		step := x.Step / 20
		all := x.fleet(4, x.steps(5), func(n int, c limit.Counter) ([]token, time.Duration, error) {
			t := counting.Take{Key: key, N: 2, Step: step, Burst: 1}
			if n%2 == 0 {
				t.Step, t.Burst = 4*step, 5
			}
			_, tokens, err := x.try(c, t)
			return tokens, step / 2, err
		})
		x.bounded(all, step, 6) // of the more generous plan, and a token that has begun
	}},
	{name: "take/a step below a microsecond", run: func(x *exam) {
		t := counting.Take{Key: key, N: 1000, Step: 1, Burst: 1000}
		if g, _ := x.take(x.Counter, t); g.N != 1000 || g.Step != time.Microsecond {
			x.fatalf("Take with a step of 1 ns: got %+v, want 1000 tokens a microsecond apart", g)
		}
	}},
}

var pauseCases = []testCase{
	{name: "pause/moves the tokens", run: func(x *exam) {
		t := x.many(0)
		t.Burst, t.Ahead, t.NotBefore = 3, 0, x.steps(5)
		x.none(t, x.steps(5), "with a pause")
		t.NotBefore = 0
		x.none(t, x.steps(5), "in a pause")
		time.Sleep(x.steps(5) + x.Grace)
		x.gets(t, 1, -x.Grace, "after a pause")
	}},
	{name: "pause/never back", run: func(x *exam) {
		t := x.many(0)
		t.Ahead, t.NotBefore = 0, x.steps(5)
		x.none(t, x.steps(5), "with a pause")
		t.NotBefore = x.steps(2)
		x.none(t, x.steps(5), "with a shorter pause")
		t.NotBefore = x.steps(8)
		x.none(t, x.steps(8), "with a longer pause")
	}},
	{name: "pause/of a key with tokens taken", run: func(x *exam) {
		x.gets(x.many(3), 4, 0, "of a new key")
		t := x.one()
		t.NotBefore = x.steps(2)
		x.none(t, x.steps(4), "with a pause that ends before the next token")
		t.NotBefore = x.steps(6)
		x.none(t, x.steps(6), "with a pause that ends after it")
	}},
	{name: "pause/grants what is within Reach", run: func(x *exam) {
		t := x.one()
		t.NotBefore, t.Reach = x.steps(2), x.steps(3)
		x.gets(t, 1, x.steps(2), "with a pause within Reach")
		t.NotBefore = 0
		x.gets(t, 1, x.steps(3), "after that")
	}},
	{name: "pause/ends a burst", run: func(x *exam) {
		t := x.many(0)
		t.Burst, t.Ahead, t.NotBefore = 3, 1, 1
		x.gets(t, 1, 0, "with a pause that ends at once")
		t.Ahead, t.NotBefore = 0, 0
		x.none(t, x.Step, "after that")
	}},
	{name: "pause/behind a line", run: func(x *exam) {
		x.line(10, 0, "of a new key")
		t := x.one()
		t.NotBefore = x.steps(3)
		x.none(t, x.steps(10)-time.Second, "with a pause behind a line")
		t.NotBefore, t.Waited = 0, true
		x.none(t, x.steps(3), "in the pause")
	}},
}
