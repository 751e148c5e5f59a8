package consoletest

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

var pictures = flag.String("pictures", "", "write a picture of each page, in both colour schemes and at 320 px, into this `folder`")

const width, height, narrow = 1200, 900, 320

// check checks a page as it is now: axe-core finds nothing in either colour scheme, and at 320 px, which is 1280 px at 400 %, nothing
// is beside the window. A table may scroll for itself.
func (b *tab) check(name string) {
	b.Helper()
	for _, scheme := range []string{"dark", "light"} {
		for _, v := range b.violations(scheme) {
			b.Errorf("%s, %s: %s", name, scheme, v)
		}
		b.picture(name + "-" + scheme)
	}
	b.do(chromedp.EmulateViewport(narrow, height))
	if got := eval[int](b, "document.documentElement.scrollWidth"); got > narrow {
		b.Errorf("%s is %d px wide in a window of %d: %s", name, got, narrow, eval[string](b, `[...document.querySelectorAll("body *")]
			.filter(e => e.getBoundingClientRect().right > %d && !e.closest(".scroll, pre")).slice(0, 5).map(e => e.outerHTML.slice(0, 200)).join("\n")`, narrow))
	}
	b.picture(name + "-narrow")
	b.do(chromedp.EmulateViewport(width, height))
}

func (b *tab) picture(name string) {
	b.Helper()
	if *pictures != "" {
		b.must(os.WriteFile(filepath.Join(*pictures, name+".png"), b.screenshot(), 0o644))
	}
}

// screenshot is a picture of the whole page.
func (b *tab) screenshot() []byte {
	b.Helper()
	ctx, cancel := b.within()
	defer cancel()
	w := eval[int64](b, "innerWidth")
	// A window as high as the page: the footer is at its end, and not in the middle.
	b.do(chromedp.EmulateViewport(w, eval[int64](b, "document.documentElement.scrollHeight")))
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	b.must(err)
	b.do(chromedp.EmulateViewport(w, height))
	return png
}

func TestPages(t *testing.T) {
	w := newWorld(t)
	w.seed()
	w.seedGroups()
	worker := w.consume()
	w.console("--queue", queue, "--queue", fifo, "--worker", worker, "--write")
	b := w.open()
	b.until(`document.querySelectorAll("svg").length > 0`)
	b.check("overview")
	b.allow("404")
	if status := w.visit(b, "/none"); status != http.StatusNotFound {
		t.Errorf("status %d", status)
	}
	b.check("not-found")
}
