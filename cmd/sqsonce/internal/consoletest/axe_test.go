package consoletest

import (
	"fmt"
	"os"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/sqsonce/sqsonce/internal/testserver"
)

// scheme sets what the person prefers: light or dark.
func (b *tab) scheme(name string) {
	b.Helper()
	ctx, cancel := b.within()
	defer cancel()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	})
	b.must(err)
}

// violations returns what axe-core, with all of its rules, finds wrong on the page in a colour scheme.
func (b *tab) violations(scheme string) (found []string) {
	b.Helper()
	b.scheme(scheme)
	_, file := testserver.Browse(b.T)
	if !eval[bool](b, `"axe" in window`) {
		script, err := os.ReadFile(file)
		b.must(err)
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
