package consoletest

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

var pictures = flag.String("pictures", "", "write a picture of each page, in both colour schemes and at 320 px, into this `folder`")

const width, height = 1200, 900

// widths are those of small and large telephones, tablets and screens. 320 px is also 1280 px at 400 %.
var widths = []int64{320, 380, 768, 1440}

// check checks a page as it is now: axe-core finds nothing in either colour scheme, and at each of widths nothing is beside the window,
// or to be scrolled to sideways. Only the figures of a plot may scroll for themselves.
func (b *tab) check(name string) {
	b.Helper()
	for _, scheme := range []string{"dark", "light"} {
		for _, v := range b.violations(scheme) {
			b.Errorf("%s, %s: %s", name, scheme, v)
		}
		b.picture(name + "-" + scheme)
	}
	for _, w := range widths {
		b.do(chromedp.EmulateViewport(w, height))
		if beside := eval[string](b, `[...document.querySelectorAll("body *")].filter(e => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 0.5 &&
			!e.closest("figure, .skip, thead")).slice(0, 5).map(e => e.outerHTML.slice(0, 200)).join("\n")`); beside != "" {
			b.Errorf("%s: beside a window of %d px: %s", name, w, beside)
		}
		if w < width/3 {
			b.picture(fmt.Sprintf("%s-%d", name, w))
		}
	}
	b.do(chromedp.EmulateViewport(width, height))
}

func (b *tab) picture(name string) {
	b.Helper()
	if *pictures != "" {
		must.Do(b, os.WriteFile(filepath.Join(*pictures, name+".png"), b.screenshot(), 0o644))
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
	png := must.Get(chromedp.Run(ctx, chromedp.CaptureScreenshot()))(b)
	b.do(chromedp.EmulateViewport(w, height))
	return png
}

// Every page, with a queue of each kind, and the errors that a person meets.
func TestPages(t *testing.T) {
	w := newWorld(t)
	w.seed()
	w.seedHostile()
	w.seedGroups()
	worker := w.consume()
	w.send(queue, "customer-1/"+hostile, slow)
	w.console("--queue", queue, "--queue", fifo, "--worker", worker, "--worker", "http://127.0.0.1:1", "--write")
	b := w.open()
	b.until(`document.querySelectorAll("svg").length > 0`)
	b.check("overview")

	w.visit(b, "/dlq/"+queue)
	b.check("dlq")
	w.look(b, queue)
	b.check("dlq-looked")
	b.firstClass()
	w.plan(b, classOfReleased, "redrive", redriveButton)
	b.check("plan")
	b.load(b.click(redriveButton))
	b.until(ended)
	b.check("run")
	w.visit(b, "/runs")
	b.check("runs")
	w.plan(b, "done: its message is a second copy", "delete", fmt.Sprintf("Delete %d messages", completedMessages))
	b.check("plan-delete")

	for name, reason := range map[string]string{"crashed": "its process crashed", "none": "no record under", "hostile": "<script>"} {
		w.visit(b, "/dlq/"+queue)
		b.load(chromedp.Click(chromedp.JSPath(rowLink(reason))))
		b.check(name)
		b.load(chromedp.Click(chromedp.JSPath(`document.querySelector("#messages tbody a")`)))
		b.check(name + "-message")
		b.do(b.click("Body"))
		b.check(name + "-body")
		if b.has("See the record as it is now") {
			b.load(b.click("See the record as it is now"))
			b.check(name + "-record")
		}
	}
	w.look(b, fifo)
	b.shows("Behind")
	b.check("dlq-fifo")

	w.visit(b, "/record")
	b.check("record-form")
	w.visit(b, "/record?"+url.Values{"key": {w.key("ord-1001")}}.Encode())
	b.check("record-completed")
	w.visit(b, "/record?"+url.Values{"key": {w.key(hostile)}}.Encode())
	b.load(b.click("Plan: record complete"))
	b.check("plan-record")
	w.visit(b, "/workers")
	b.until(`document.querySelector("main").innerText.includes("sha256|")`) // the key of the handler that runs
	b.shows("paused until")
	b.check("workers")
	w.visit(b, "/doctor")
	b.check("doctor")
	b.load(b.click("Examine " + queue))
	b.until(`document.querySelector("main").innerText.includes("Finding")`)
	b.check("doctor-examined")

	b.allow("404")
	b.allow("403")
	b.allow("409")
	for path, want := range map[string]int{"/none": http.StatusNotFound, "/dlq/" + queue + "/none": http.StatusNotFound, "/plan/none": http.StatusConflict} {
		if status := w.visit(b, path); status != want {
			t.Errorf("%s: status %d, want %d", path, status, want)
		}
		b.check("error" + strings.ReplaceAll(path, "/", "-"))
	}
	stranger := newTab(t)
	stranger.allow("403")
	if status := w.visit(stranger, "/"); status != http.StatusForbidden {
		t.Errorf("without a token: status %d", status)
	}
	// Without the stylesheet: its colours are the browser's, of which axe-core knows those of the light scheme only.
	for _, v := range stranger.violations("light") {
		t.Errorf("without a token: %s", v)
	}
	stranger.picture("error-token")
}

// firstClass checks that a person sees what to do about the first class at every width, in both colour schemes.
func (b *tab) firstClass() {
	b.Helper()
	for _, w := range widths {
		b.do(chromedp.EmulateViewport(w, height))
		for _, scheme := range []string{"light", "dark"} {
			b.scheme(scheme)
			if got := eval[string](b, `["[data-l=Reason]", "[data-l='What to do']", "button"].filter(part => {
				const e = document.querySelector("#classes tbody tr " + part), r = e && e.getBoundingClientRect(), s = getComputedStyle(e);
				return !r || r.left < 0 || r.right > innerWidth || r.bottom > innerHeight || !e.innerText.trim() || s.color === s.backgroundColor;
			}).join()`); got != "" {
				b.Errorf("at %d px, %s: not visible without scrolling: %s", w, scheme, got)
			}
		}
	}
	b.do(chromedp.EmulateViewport(width, height))
}

// ended says that the run of this page has ended.
const ended = `["done", "ended", "failed", "stopped"].some(w => document.querySelector("main dd .badge").textContent.includes(w))`

// rowLink is the expression of the link in the row that has the text.
func rowLink(text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("tbody tr")].find(r => r.textContent.includes(%q)).querySelector("a")`, text)
}

// scheme sets what the person prefers: light or dark.
func (b *tab) scheme(name string) {
	b.Helper()
	ctx, cancel := b.within()
	defer cancel()
	must.Get(chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	}))(b)
}

// violations returns what axe-core, with all of its rules, finds wrong on the page in a colour scheme.
func (b *tab) violations(scheme string) (found []string) {
	b.Helper()
	b.scheme(scheme)
	_, file := testserver.Browse(b.T)
	if !eval[bool](b, `"axe" in window`) {
		script := must.Get(os.ReadFile(file))(b)
		// DevTools run it: the page's Content-Security-Policy stays as it is.
		b.do(chromedp.Evaluate[chromedp.Void](string(script)))
	}
	type violation struct{ ID, Help, Node, Why string }
	for _, v := range eval[[]violation](b, `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.flatMap(v =>
		v.nodes.map(n => ({ID: v.id, Help: v.help, Node: n.html.slice(0, 200), Why: n.failureSummary}))))`) {
		found = append(found, fmt.Sprintf("%s: %s: %s: %s", v.ID, v.Help, v.Node, v.Why))
	}
	return found
}

// A body of 1 MiB, the longest that SQS takes, is shown on demand, and the page can still be used.
func TestLargeBody(t *testing.T) {
	w := newWorld(t)
	_, large := w.seedHostile()
	w.console("--queue", queue)
	b := w.open()
	w.look(b, queue)
	if status := w.visit(b, "/dlq/"+queue+"/"+large); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	if eval[bool](b, `document.querySelector("pre.body").checkVisibility()`) {
		t.Error("the body is shown before anybody has asked for it")
	}
	b.do(b.click("Body"))
	b.until(`document.querySelector("pre.body").checkVisibility()`)
	if got := eval[int](b, `document.querySelector("pre.body").textContent.length`); got < 1<<20-100 {
		t.Errorf("%d characters of the body", got)
	}
	if got := eval[int](b, `document.documentElement.scrollWidth - innerWidth`); got > 0 {
		t.Errorf("the page is %d px wider than its window", got)
	}
	if got := eval[int](b, `document.querySelector("pre.body").clientHeight - innerHeight`); got > 0 {
		t.Error("the body is higher than the window: what is below it is far away")
	}
	if status := b.load(b.click(dlq)); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
}

// A page of another server of this computer is of the same site: the browser sends the cookie with its forms, and they must not work.
// It does not give the cookie to that server.
func TestForeignPage(t *testing.T) {
	w := newWorld(t)
	w.seed()
	w.console("--queue", queue, "--write")
	b := w.open()
	action := w.action(b, "/dlq/"+queue, "Look")
	foreign := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if len(r.Cookies()) > 0 {
			t.Errorf("the browser gives the cookie to a server of another port: %v", r.Cookies())
		}
		rw.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(rw, `<!DOCTYPE html><title>x</title><link rel="icon" href="data:,"><form method="post" action="%s"><button>Win a prize</button></form>`, action)
	}))
	defer foreign.Close()
	b.allow("403")
	before := w.calls()
	b.load(chromedp.Navigate(foreign.URL))
	if status := b.load(b.click("Win a prize")); status != http.StatusForbidden {
		t.Errorf("status %d\n%s", status, b.dump())
	}
	if acts := w.acted(before); len(acts) > 0 {
		t.Errorf("calls: %v", acts)
	}
}
