package consoletest

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// hidden returns how many messages of a queue are hidden.
func (w *world) hidden(queue string) (n int) {
	for _, m := range w.stack.MemSQS().Messages(queue) {
		if m.InFlight {
			n++
		}
	}
	return n
}

// hasten makes a timer of the page's script run fifty times as fast: 5 s are 100 ms.
func (b *tab) hasten() {
	b.Helper()
	b.script(`for (const name of ["setInterval", "setTimeout"]) {
		const slow = window[name];
		window[name] = (f, after, ...args) => slow(f, after / 50, ...args);
	}`)
}

// script has an expression run in each page of the tab before the page's own scripts.
func (b *tab) script(expression string) {
	b.Helper()
	_, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: expression})
	b.must(err)
}

// refreshes waits until the page has refreshed itself n times. Of those that it has begun one may still be answered.
func (b *tab) refreshes(n int) {
	b.Helper()
	var since int
	b.asked(&since)
	seen := 0
	eventually(b.T, "the page is refreshed", func() bool {
		for _, r := range b.asked(&since) {
			if strings.Contains(r.url, "/fragment/") {
				seen++
			}
		}
		return seen >= n
	}, b.dump)
}

// still checks that the page does not refresh itself while ten refreshes would be due. The time is the page's own, so that a busy
// machine delays both.
func (b *tab) still(why string) {
	b.Helper()
	var since int
	pass := func(refreshes int) {
		eval[bool](b, `new Promise(r => setTimeout(r, %d * 5000)).then(() => true)`, refreshes)
	} // hastened
	pass(2) // what was under way
	b.asked(&since)
	pass(10)
	for _, r := range b.asked(&since) {
		b.Errorf("%s, and the page asks for %s", why, r.url)
	}
}

// The button stops refreshes, and resumes them; so does a tab that nobody sees.
func TestPause(t *testing.T) {
	w := newWorld(t)
	w.console("--queue", queue)
	b := w.open()
	b.hasten()
	w.visit(b, "/")
	b.refreshes(3)
	b.do(b.click("Pause"))
	b.still("paused")
	b.shows("Paused")
	b.do(b.click("Resume"))
	b.refreshes(3)

	// Another tab of the window comes to the front.
	info, err := chromedp.Call(b.ctx, target.GetTargetInfo, target.GetTargetInfoParams{})
	w.must(err)
	_, err = chromedp.CallBrowser(b.ctx, target.CreateTarget, target.CreateTargetParams{URL: "about:blank", BrowserContextID: info.TargetInfo.BrowserContextID})
	w.must(err)
	b.until(`document.visibilityState === "hidden"`)
	b.still("hidden")
	_, err = chromedp.Call(b.ctx, page.BringToFront, chromedp.Void{})
	w.must(err)
	b.until(`document.visibilityState === "visible"`)
	b.refreshes(3)
}

// A console that has ended, or was started anew, says so on the page that is still open.
func TestConsoleEnds(t *testing.T) {
	w := newWorld(t)
	w.console("--queue", queue)
	b := w.open()
	b.hasten()
	w.visit(b, "/")
	b.refreshes(1)
	b.allow("net::ERR")
	w.stop()
	b.until(`document.getElementById("status").textContent.includes("ended")`)
	b.shows("The page is as of")
}
