package consoletest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/testworld"
	"github.com/sqsonce/sqsonce/internal/must"
)

// inRow is the expression of the button that does op in the row that has the text.
func inRow(text, op string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("tbody tr")].find(r => r.textContent.includes(%q)).querySelector("button[value=%s]")`, text, op)
}

// redriveButton is on the plan for the released class.
var redriveButton = fmt.Sprintf("Redrive %d messages", releasedMessages)

// look opens a dead-letter queue and looks into it.
func (w *world) look(b *tab, queue string) {
	w.Helper()
	w.complete(b, func() {
		w.visit(b, "/dlq/"+queue)
		if status := b.load(b.click("Look")); status != http.StatusOK {
			w.Fatalf("status %d\n%s", status, b.dump())
		}
	}, func() bool {
		return strings.HasSuffix(queue, ".fifo") || strings.Contains(b.text(), "all that SQS shows and counts")
	})
}

// plan looks, and asks for the plan of an act on the class with the reason, until the plan's button is the one.
func (w *world) plan(b *tab, reason, op, button string) {
	w.Helper()
	w.complete(b, func() {
		w.look(b, queue)
		if status := b.load(chromedp.Click(chromedp.JSPath(inRow(reason, op)))); status != http.StatusOK {
			w.Fatalf("status %d\n%s", status, b.dump())
		}
	}, func() bool { return b.has(button) })
}

// complete does something again where it did not see every message: the answer to a receive can be lost on a busy machine, and then
// its messages are hidden for a minute. That is said on the page, and a person looks again too.
func (w *world) complete(b *tab, do func(), ok func() bool) {
	w.Helper()
	for range 3 {
		if do(); ok() {
			return
		}
		w.Logf("not every message was seen: %s", b.dump())
		for end := time.Now().Add(waiting); testworld.Hidden(w.stack, dlq) > 0 && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		}
	}
	w.Fatalf("it never sees every message\n%s", b.dump())
}

// redriven waits for the end of a redrive of the released class: each message was sent once, and its event is done.
func (w *world) redriven() {
	w.Helper()
	testworld.Eventually(w.T, "every event is completed", func() bool {
		done := 0
		for i := range releasedMessages {
			record := must.Get(w.store.Inspect(w.Context(), w.key(fmt.Sprintf("ord-%d", 1001+i))))(w)
			if record.Completed {
				done++
			}
		}
		return done == releasedMessages
	})
	testworld.Eventually(w.T, "their messages are gone", func() bool {
		return len(w.stack.MemSQS().Messages(dlq)) == completedMessages+crashedMessages+startedMessages && len(w.stack.MemSQS().Messages(queue)) == 0
	})
}

// Without a mouse: Tab and Enter from the first page to the end of a redrive, and what has the focus is seen.
func TestKeyboard(t *testing.T) {
	w := newWorld(t)
	w.seed()
	w.console("--queue", queue, "--worker", w.consume(), "--write")
	b := w.open()
	enter := func() {
		t.Helper()
		if status := b.load(chromedp.KeyEvent(kb.Enter)); status != http.StatusOK {
			t.Fatalf("status %d\n%s", status, b.dump())
		}
	}
	b.do(chromedp.KeyEvent(kb.Tab))
	if got := eval[string](b, "document.activeElement.textContent"); !strings.HasPrefix(got, "Skip") {
		t.Errorf("the first thing with the focus is %q", got)
	}
	b.tabTo(dlq)
	enter()
	b.tabTo("Look")
	enter()
	b.tabUntil("Redrive", `document.activeElement === `+inRow(classOfReleased, "redrive"))
	enter()
	b.tabTo(redriveButton)
	enter()
	w.redriven()
}

// Without its script the console is links and forms.
func TestScriptOff(t *testing.T) {
	w := newWorld(t)
	w.seed()
	w.console("--queue", queue, "--worker", w.consume(), "--write")
	b := newTab(t)
	must.Get(chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))(w)
	b.load(chromedp.Navigate(w.url))
	if eval[bool](b, `document.getElementById("pause").checkVisibility()`) {
		t.Error("there is a button that does nothing")
	}
	for _, path := range []string{"/", "/dlq/" + queue, "/record", "/workers", "/runs"} {
		if status := w.visit(b, path); status != http.StatusOK {
			t.Errorf("%s: status %d", path, status)
		}
	}
	w.visit(b, "/doctor")
	if status := b.load(b.click("Examine")); status != http.StatusOK {
		t.Errorf("doctor: status %d", status)
	}
	w.plan(b, classOfReleased, "redrive", redriveButton)
	b.load(b.click(redriveButton))
	w.redriven()
	testworld.Eventually(t, "the page says so when it is loaded again", func() bool {
		b.load(chromedp.Reload())
		return eval[bool](b, ended)
	}, b.dump)
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
	must.Get(chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: expression}))(b)
}

// refreshes waits until the page has refreshed itself n times. Of those that it has begun one may still be answered.
func (b *tab) refreshes(n int) {
	b.Helper()
	var since int
	b.asked(&since)
	seen := 0
	testworld.Eventually(b.T, "the page is refreshed", func() bool {
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
	info := must.Get(chromedp.Call(b.ctx, target.GetTargetInfo, target.GetTargetInfoParams{}))(w)
	must.Get(chromedp.CallBrowser(b.ctx, target.CreateTarget, target.CreateTargetParams{URL: "about:blank", BrowserContextID: info.TargetInfo.BrowserContextID}))(w)
	b.until(`document.visibilityState === "hidden"`)
	b.still("hidden")
	must.Get(chromedp.Call(b.ctx, page.BringToFront, chromedp.Void{}))(w)
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
