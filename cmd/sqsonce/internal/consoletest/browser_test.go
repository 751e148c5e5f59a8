package consoletest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/cli"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/testworld"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// asCommand makes the test's binary the command sqsonce.
const asCommand = "SQSONCE_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		cli.Main()
	}
	code := m.Run()
	if browser.ctx != nil {
		if err := chromedp.Cancel(browser.ctx); err != nil { // also removes its folder
			fmt.Fprintln(os.Stderr, "closing the browser:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// browser is what all tests share; each has a context of its own in it, with its own cookies.
var browser struct {
	once sync.Once
	ctx  context.Context // nil: it was not started
	err  error
}

// waiting is the limit of each wait for a condition, on a machine that does other work beside.
const waiting = 2 * time.Minute

func chromium(t *testing.T) context.Context {
	t.Helper()
	program, _ := testserver.Browse(t)
	browser.once.Do(func() {
		options := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(width, height),
			chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("lang", "en-GB"),
			chromedp.ProxyServer("http://127.0.0.1:9"), // nobody listens there; 127.0.0.1 itself needs no proxy
			chromedp.WSURLReadTimeout(waiting), chromedp.Env("TZ=UTC"))
		allocator, _ := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, _ := chromedp.NewContext(allocator) // Cancel of TestMain ends it
		if browser.err = chromedp.Do(ctx); browser.err == nil {
			browser.ctx = ctx
		}
	})
	if browser.err != nil {
		t.Fatalf("Chromium does not start: %v", browser.err)
	}
	return browser.ctx
}

// tab is a page in a browser context of its own. At its end it fails the test for what a page must never do: ask another server,
// violate its own Content-Security-Policy, fail in a script, open a dialog.
type tab struct {
	*testing.T
	ctx context.Context

	mu       sync.Mutex
	requests []request
	problems []string
	allowed  []string // parts of problems that the test expects
}

// request is what a page asked for.
type request struct{ method, url string }

func newTab(t *testing.T) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(chromium(t), chromedp.WithNewBrowserContext())
	b := &tab{T: t, ctx: ctx}
	t.Cleanup(func() {
		cancel()
		for _, p := range b.found() {
			t.Error(p)
		}
	})
	must.Do(b, chromedp.Listen(ctx, b.hear))
	b.do(chromedp.EmulateViewport(width, height))
	return b
}

// hear notes an event.
func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	problem := func(format string, args ...any) { b.problems = append(b.problems, fmt.Sprintf(format, args...)) }
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, request{e.Request.Method, e.Request.URL})
		if !strings.HasPrefix(e.Request.URL, "http://127.0.0.1:") && !strings.HasPrefix(e.Request.URL, "http://localhost:") {
			problem("a page asked for %s", e.Request.URL)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			problem("the browser says at %s: %s", e.Entry.URL, e.Entry.Text)
		}
	case *runtime.EventConsoleAPICalled:
		var args []string
		for _, arg := range e.Args {
			args = append(args, string(arg.Value)+arg.Description)
		}
		problem("a script wrote to the console: %s %q", e.Type, args)
	case *runtime.EventExceptionThrown:
		problem("a script failed: %v", (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
	case *page.EventJavascriptDialogOpening:
		problem("a dialog says %q", e.Message)
		go func() { // not here: the answer comes by the way that hear blocks
			_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true}) // the tab has ended
		}()
	}
}

// found returns the problems that were not allowed.
func (b *tab) found() (problems []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.problems {
		if !slices.ContainsFunc(b.allowed, func(part string) bool { return strings.Contains(p, part) }) {
			problems = append(problems, p)
		}
	}
	return problems
}

// allow is for a problem that the test brings about, by a part of its text.
func (b *tab) allow(part string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = append(b.allowed, part)
}

// asked returns what the page has asked for since the call before with the same since, which it advances.
func (b *tab) asked(since *int) []request {
	b.mu.Lock()
	defer b.mu.Unlock()
	from := *since
	*since = len(b.requests)
	return slices.Clone(b.requests[from:])
}

// within is a context of one step.
func (b *tab) within() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(b.ctx, waiting, fmt.Errorf("not within %v", waiting))
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := b.within()
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.Fatalf("%v\n%s", err, b.dump())
	}
}

// dump is the text of the page, for the message of a failure.
func (b *tab) dump() string {
	ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText.slice(0, 4000)`))
	if err != nil {
		return err.Error()
	}
	return text
}

// load does steps that lead to another page, and returns its status.
func (b *tab) load(steps ...chromedp.Action[chromedp.Void]) int {
	b.Helper()
	ctx, cancel := b.within()
	defer cancel()
	response, err := chromedp.RunResponse(ctx, steps...)
	if err != nil {
		b.Fatalf("%v\n%s", err, b.dump())
	}
	return int(response.Status)
}

// eval returns the value of an expression. DevTools evaluate it also where the page's own scripts are off.
func eval[T any](b *tab, expression string, args ...any) T {
	b.Helper()
	ctx, cancel := b.within()
	defer cancel()
	if len(args) > 0 {
		expression = fmt.Sprintf(expression, args...)
	}
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%s: %v\n%s", expression, err, b.dump())
	}
	return v
}

// until waits until an expression is true. It is asked from here: timers of a page may be off, with its scripts.
func (b *tab) until(expression string, args ...any) {
	b.Helper()
	if len(args) > 0 {
		expression = fmt.Sprintf(expression, args...)
	}
	testworld.Eventually(b.T, expression, func() bool {
		ctx, cancel := context.WithTimeout(b.ctx, waiting)
		defer cancel()
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		return err == nil && ok // an error: the page is going, and the next is not there
	}, b.dump)
}

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
