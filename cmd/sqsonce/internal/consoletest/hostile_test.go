package consoletest

import (
	"net/http"
	"testing"
)

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
