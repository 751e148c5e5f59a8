package main

import (
	"fmt"
	"os"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// bars shows how many events of each queue are booked: as bars on a terminal, else as a line whenever a tenth is done.
type bars struct {
	in       *input
	progress *mpb.Progress // nil when not a terminal
	bar      [2]*mpb.Bar
	tenth    [2]int
	start    time.Time
}

func newBars(in *input) *bars {
	b := &bars{in: in, tenth: [2]int{-1, -1}, start: time.Now()}
	if info, err := os.Stdout.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return b
	}
	b.progress = mpb.New(mpb.WithWidth(64))
	for i, h := range in.halves {
		b.bar[i] = b.progress.AddBar(int64(len(h.events)),
			mpb.PrependDecorators(decor.Name(fmt.Sprintf("%-18s", h.queue))),
			mpb.AppendDecorators(decor.CountersNoUnit("%d / %d booked")))
	}
	return b
}

func (b *bars) show(booked map[string]int) {
	for i, h := range b.in.halves {
		n := b.in.count(h, booked)
		if b.progress != nil {
			b.bar[i].SetCurrent(int64(n))
			continue
		}
		if tenth := n * 10 / len(h.events); tenth > b.tenth[i] {
			b.tenth[i] = tenth
			b.say("%-18s %4d / %d booked", h.queue, n, len(h.events))
		}
	}
}

func (b *bars) say(format string, args ...any) {
	line := fmt.Sprintf("%5.1fs  ", time.Since(b.start).Seconds()) + fmt.Sprintf(format, args...) + "\n"
	if b.progress != nil {
		_, _ = b.progress.Write([]byte(line)) // only to be looked at
		return
	}
	fmt.Print(line)
}

func (b *bars) stop() {
	if b.progress == nil {
		return
	}
	for _, bar := range b.bar {
		bar.Abort(false) // a full bar is done already; the others must not keep Wait
	}
	b.progress.Wait()
}
