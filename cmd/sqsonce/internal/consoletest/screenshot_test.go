package consoletest

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/testworld"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
)

var update = flag.Bool("update", false, "write the screenshots of the documentation, in two minutes")

// screenshots are the pictures of docs/operating.md, by the name of their file. Each steps to its page, in a tab of a console that has
// just been looked into.
var screenshots = []struct {
	name string
	open func(w *world, b *tab)
}{
	{"console-overview", func(w *world, b *tab) {
		w.visit(b, "/?queue="+queue)
		testworld.Eventually(w.T, "the plots have something to show", func() bool {
			return eval[int](b, `document.querySelector("figure").querySelectorAll("tbody tr").length`) >= 2 // it has a row for each minute
		}, b.dump)
	}},
	{"console-classes", func(w *world, b *tab) { w.visit(b, "/dlq/"+queue) }},
	{"console-plan", func(w *world, b *tab) {
		w.plan(b, hourClass, "redrive", fmt.Sprintf("Redrive %d messages", hourMessages))
	}},
}

const (
	images      = "../../../../docs/images"
	mostPicture = 150 << 10 // bytes
)

// The screenshots are those of today's pages' names, and of the size of a page. Whether they look like the pages is for a person, who
// runs this with -update.
func TestScreenshots(t *testing.T) {
	if *update {
		writeScreenshots(t)
	}
	files := must.Get(filepath.Glob(filepath.Join(images, "console-*")))(t)
	var want []string
	for _, s := range screenshots {
		want = append(want, filepath.Join(images, s.name+".png"))
	}
	if slices.Sort(want); !slices.Equal(files, want) {
		t.Errorf("there are %v, want %v", files, want)
	}
	for _, file := range files {
		content := must.Get(os.ReadFile(file))(t)
		config, err := png.DecodeConfig(bytes.NewReader(content))
		if err != nil || config.Width != width || config.Height < 200 || len(content) > mostPicture {
			t.Errorf("%s: %d x %d, %d bytes, error %v; want %d wide, and %d bytes at most", file, config.Width, config.Height, len(content), err, width, mostPicture)
		}
	}
}

func writeScreenshots(t *testing.T) {
	w := newWorld(t)
	w.seedHour()
	w.console("--queue", queue, "--worker", w.consume(), "--write")
	ctx, cancel := context.WithCancel(t.Context())
	sent := make(chan struct{})
	go func() { // so that there is something to plot
		defer close(sent)
		for i := 0; ctx.Err() == nil; i++ {
			w.send(queue, fmt.Sprintf("ord-%d", 5000+i), `{"order":5000}`)
			time.Sleep(time.Duration(200+i%7*50) * time.Millisecond)
		}
	}()
	defer func() { cancel(); <-sent }()
	b := w.open()
	b.scheme("light")
	w.look(b, queue)
	for _, s := range screenshots {
		s.open(w, b)
		b.timeless()
		must.Do(w, os.WriteFile(filepath.Join(images, s.name+".png"), small(t, b.screenshot()), 0o644))
		for _, scheme := range []string{"dark", "light"} { // for a person, with -pictures
			b.scheme(scheme)
			for _, w := range []int64{380, 1440} {
				b.do(chromedp.EmulateViewport(w, height))
				b.picture(fmt.Sprintf("%s-%s-%d", s.name, scheme, w))
			}
		}
		b.do(chromedp.EmulateViewport(width, height))
	}
}

// What the first hour of docs/operating.md has in the dead-letter queue.
const (
	hourClass    = "calling the external system about ord-*/placed: sqsonce: rejected: the external system does not know article TEA-ASS-*"
	hourMessages = 400
)

func (w *world) seedHour() {
	w.Helper()
	const crashed = "ord-10001/placed"
	w.put(crashed, dedup.StateCrashed, "")
	w.send(dlq, crashed, `{"id":"ord-10001/placed"}`)
	for i := range hourMessages {
		event := fmt.Sprintf("ord-%d/placed", 20001+i)
		w.put(event, dedup.StateReleased, fmt.Sprintf("calling the external system about %s: sqsonce: rejected: the external system does not know article TEA-ASS-100", event))
		w.send(dlq, event, fmt.Sprintf(`{"id":%q}`, event))
	}
}

// timeless moves the times of a page to those of one day, so that a picture changes with its page.
func (b *tab) timeless() {
	b.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](`(() => {
		const now = new Date(), today = now.toISOString().slice(0, 10), moved = Date.UTC(2026, 5, 1, 14, 2, 10) - now;
		const move = (day, time) => new Date(Date.parse(day + "T" + time + "Z") + moved).toISOString();
		const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		while (texts.nextNode()) {
			const t = texts.currentNode;
			t.data = t.data.replace(/\b(20\d\d-\d\d-\d\d )?(\d\d:\d\d:\d\d)\b/g, (_, day, time) => {
				const at = move(day ? day.trim() : today, time);
				return (day ? at.slice(0, 10) + " " : "") + at.slice(11, 19);
			}).replace(/\b\d+s ago\b/g, "2m ago");
		}
	})()`))
}

// small writes a picture with the 256 colours that it has most of, as a page of text needs no others.
func small(t *testing.T, picture []byte) []byte {
	t.Helper()
	from := must.Get(png.Decode(bytes.NewReader(picture)))(t)
	bounds, n := from.Bounds(), map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(from.At(x, y)).(color.RGBA) }
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			n[at(x, y)]++
		}
	}
	most := slices.SortedFunc(maps.Keys(n), func(a, b color.RGBA) int {
		return cmp.Or(n[b]-n[a], strings.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	var palette color.Palette
	for _, c := range most[:min(len(most), 256)] {
		palette = append(palette, c)
	}
	to := image.NewPaletted(bounds, palette)
	draw.Draw(to, bounds, from, bounds.Min, draw.Src)
	var out bytes.Buffer
	must.Do(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to))
	return out.Bytes()
}
