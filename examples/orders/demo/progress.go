package main

import (
	"fmt"
	"os"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress shows how many events of each queue are booked: as bars on a terminal, else as a line for each tenth.
type progress struct {
	in    *input
	mpb   *mpb.Progress // nil: standard output is not a terminal
	bars  [2]*mpb.Bar
	tenth [2]int // the last one that was printed
	start time.Time
}

func newProgress(in *input) *progress {
	p := &progress{in: in, tenth: [2]int{-1, -1}, start: time.Now()}
	if info, err := os.Stdout.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return p
	}
	p.mpb = mpb.New(mpb.WithWidth(64))
	for i, l := range in.loads {
		p.bars[i] = p.mpb.AddBar(int64(len(l.events)),
			mpb.PrependDecorators(decor.Name(fmt.Sprintf("%-18s", l.queue))),
			mpb.AppendDecorators(decor.CountersNoUnit("%d / %d booked")))
	}
	return p
}

// show takes the number of bookings of each event.
func (p *progress) show(booked map[string]int) {
	for i, l := range p.in.loads {
		n := l.count(booked)
		if p.mpb != nil {
			p.bars[i].SetCurrent(int64(n))
			continue
		}
		if tenth := n * 10 / len(l.events); tenth > p.tenth[i] {
			p.tenth[i] = tenth
			p.print("%-18s %4d / %d booked", l.queue, n, len(l.events))
		}
	}
}

// print prints a line with the time, above the bars.
func (p *progress) print(format string, args ...any) {
	line := fmt.Sprintf("%5.1fs  ", time.Since(p.start).Seconds()) + fmt.Sprintf(format, args...) + "\n"
	if p.mpb != nil {
		_, _ = p.mpb.Write([]byte(line)) // progress is for people only: its errors change nothing
		return
	}
	fmt.Print(line)
}

func (p *progress) stop() {
	if p.mpb == nil {
		return
	}
	for _, bar := range p.bars {
		bar.Abort(false) // Wait would wait for a bar that is not full
	}
	p.mpb.Wait()
}
