package limittest

import (
	"sync"
	"time"
)

var lineCases = []testCase{
	{name: "line/each a step after the one before", run: func(x *exam) {
		x.line(3, 0, "of a new key")
		x.line(1, x.steps(3), "behind three")
		x.line(2, x.steps(4), "behind four")
		time.Sleep(x.half(1))
		x.line(1, x.steps(6)-x.half(1), "behind six, later")
	}},
	{name: "line/behind the tokens that are taken", run: func(x *exam) {
		x.gets(x.many(3), 4, 0, "of a new key")
		x.line(1, x.steps(4), "behind four tokens")
		x.none(x.many(9), x.steps(5)-time.Second, "behind the line")
		t := x.many(4)
		t.Waited = true
		x.gets(t, 1, x.steps(4), "of one that has waited")
	}},
	{name: "line/ends", run: func(x *exam) {
		x.line(2, 0, "of a new key")
		time.Sleep(x.half(2))
		x.line(1, 0, "behind none")
	}},
	{name: "line/takes no token", run: func(x *exam) {
		x.line(5, 0, "of a new key")
		x.line(1, x.steps(5), "behind five")
		t := x.many(0)
		t.Burst, t.Ahead, t.Waited = 4, 0, true
		x.gets(t, 4, -x.steps(3), "behind a line")
		x.line(1, x.steps(6), "behind six, after a take")
	}},
	{name: "line/no two have one place", run: func(x *exam) {
		const hosts = 16
		var wg sync.WaitGroup
		places, errs := make([]token, hosts), make([]error, hosts)
		start := make(chan struct{})
		for i := range hosts {
			c := x.process()
			wg.Go(func() {
				<-start
				sent := time.Now()
				var first time.Duration
				first, errs[i] = c.Line(x.ctx, key, 1, x.Step)
				places[i].at = x.took(sent).Add(first)
			})
		}
		close(start)
		wg.Wait()
		for _, err := range errs {
			if err != nil {
				x.fatalf("Line: got error %v, want a place", err)
			}
		}
		x.apart(places, x.Step)
	}},
	{name: "line/others wait for it", run: func(x *exam) {
		x.line(2, 0, "of a new key")
		g := x.none(x.one(), x.steps(2)-time.Second, "behind a line")
		t := x.one()
		t.Waited = true
		x.gets(t, 1, 0, "of one that has waited")
		time.Sleep(g.After + 2*x.Grace)
		x.gets(x.one(), 1, 0, "when the line is a second long")
	}},
	{name: "line/a short one keeps nobody", run: func(x *exam) {
		if _, err := x.Line(x.ctx, key, 1, time.Second/2); err != nil {
			x.fatalf("Line: got error %v, want a place", err)
		}
		x.gets(x.one(), 1, 0, "behind a line of half a second")
	}},
}
