package consoletest

import (
	"encoding/json"
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// What a person does on a page: things are found by what is written on them.

// named is the expression of the button, link or summary whose text begins so.
func named(text string) string {
	quoted, _ := json.Marshal(text) // of a string
	return `[...document.querySelectorAll("main button, main a, summary, footer button, form button, nav a")]` +
		`.find(e => e.checkVisibility() && e.textContent.trim().replace(/\s+/g, " ").startsWith(` + string(quoted) + `))`
}

// click clicks what has the text, with the mouse.
func (b *tab) click(text string) chromedp.Action[chromedp.Void] {
	return chromedp.Click(chromedp.JSPath(named(text)), chromedp.NodeVisible)
}

// has says whether there is something to click with the text.
func (b *tab) has(text string) bool {
	b.Helper()
	return eval[bool](b, "!!("+named(text)+")")
}

// text is what the page shows.
func (b *tab) text() string {
	b.Helper()
	return eval[string](b, "document.body.innerText")
}

// shows says whether the page shows each of the texts, and fails the test where not.
func (b *tab) shows(texts ...string) {
	b.Helper()
	all := strings.Join(strings.Fields(b.text()), " ")
	for _, text := range texts {
		if !strings.Contains(all, text) {
			b.Errorf("the page does not show %q:\n%s", text, b.dump())
		}
	}
}

// action opens a page and returns the URL of the form whose button has the text.
func (w *world) action(b *tab, path, text string) string {
	w.Helper()
	w.visit(b, path)
	return eval[string](b, named(text)+".form.action")
}

// tabTo presses Tab until what has the text has the focus, which must be seen on the way.
func (b *tab) tabTo(text string) {
	b.Helper()
	b.tabUntil(text, `document.activeElement === `+named(text))
}

func (b *tab) tabUntil(what, reached string) {
	b.Helper()
	for range 200 {
		b.do(chromedp.KeyEvent(kb.Tab))
		if !eval[bool](b, `(e => { const s = getComputedStyle(e); return e === document.body || s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2 })(document.activeElement)`) {
			b.Errorf("the focus is not seen on %s", eval[string](b, "document.activeElement.outerHTML"))
		}
		if eval[bool](b, reached) {
			return
		}
	}
	b.Fatalf("200 times Tab do not reach %q\n%s", what, b.dump())
}
