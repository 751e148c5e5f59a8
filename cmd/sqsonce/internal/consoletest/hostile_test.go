package consoletest

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// inert checks that the page shows the hostile text as text: no element of it is there, and what turns text around is written out.
func (b *tab) inert(name string) {
	b.Helper()
	if n := eval[int](b, `document.querySelectorAll("main script, main img, main b").length`); n != 0 {
		b.Errorf("%s: %d elements are made of text", name, n)
	}
	// A field of a form has its value as it is: else it would be another key.
	if eval[bool](b, `/[\u202e\u0000-\u0008]/.test(document.documentElement.textContent)`) {
		b.Errorf("%s: a character that turns text around is on the page", name)
	}
}

// Whatever a message, its key, its group or its error says: it stays text.
func TestHostileText(t *testing.T) {
	w := newWorld(t)
	markup, _ := w.seedHostile()
	w.send(fifoDLQ, "<b>group<b>/1", hostile) // a group has no spaces and no U+202E
	w.console("--queue", queue, "--queue", fifo, "--write", "--worker", w.consume())
	w.send(queue, "customer-1/"+hostile, slow)
	b := w.open()
	w.look(b, queue)
	b.shows(hostileShown) // the reason
	b.inert("list")
	b.load(chromedp.Click(chromedp.JSPath(rowLink("<script>"))))
	b.shows(hostileShown)
	b.inert("class")
	w.visit(b, "/dlq/"+queue+"/"+markup)
	if strings.Contains(b.text(), "the body:") {
		t.Error("the body is shown before anybody has asked for it")
	}
	b.inert("message")
	b.do(b.click("Body"))
	b.until(`document.querySelector("pre.body").innerText.includes(%q)`, hostileShown)
	b.inert("body")
	for _, path := range []string{"/record?" + url.Values{"key": {w.key(hostile)}}.Encode(), "/record?" + url.Values{"key": {hostile}}.Encode(), "/dlq/" + queue + "/class/none?state=" + url.QueryEscape(hostile)} {
		b.allow("404")
		w.visit(b, path)
		b.shows(hostileShown)
		b.inert(path)
	}
	w.look(b, fifo)
	b.load(chromedp.Click(chromedp.JSPath(`document.querySelector("#classes tbody a")`)))
	b.load(chromedp.Click(chromedp.JSPath(`document.querySelector("#messages tbody a")`)))
	b.shows("<b>group<b>")
	b.inert("group")
	w.visit(b, "/workers")
	b.until(`document.querySelector("main").innerText.includes("sha256|")`) // the key of the running handler
	b.inert("workers")
	w.plan(b, "<script>", "redrive", "Redrive 1 message")
	b.shows(hostileShown)
	b.inert("plan")
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

// How long until the oldest dead letter is lost: as the metric says, and as long as what was looked at has. Nothing longer is
// promised: what comes after the look may have waited in the source.
func TestTimeUntilLoss(t *testing.T) {
	w := newWorld(t)
	w.seed()
	w.console("--queue", queue)
	b := w.open()
	b.hasten()
	w.visit(b, "/")
	b.until(`document.querySelector("main").innerText.includes("in 9d 14h at least")`) // 14 d, less 4 d in the source and 9 h, less a minute
	w.look(b, queue)
	b.shows("First lost in 13d 23h")
	w.visit(b, "/")
	b.shows("in 9d 14h at least")
}
