package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// caseResult is what became of a case. Its status is test2json's; "": it did not end.
type caseResult struct {
	name, status, output string
	parent               bool // of other cases
}

// result is what a part has found.
type result struct {
	part     string
	skipped  string // why the part was not run
	problem  error  // why it did not run to its end
	cases    []*caseResult
	open     int            // tests that did not end, those with cases too
	requests map[string]int // by service
	output   string         // of no case
}

func (r *result) with(status ...string) (some []*caseResult) {
	for _, c := range r.cases {
		if slices.Contains(status, c.status) {
			some = append(some, c)
		}
	}
	return some
}

// failed returns the cases that failed or did not end.
func (r *result) failed() []*caseResult { return r.with("fail", "") }

func (r *result) String() string {
	if r.skipped != "" {
		return r.part + ": SKIPPED: " + r.skipped
	}
	s := fmt.Sprintf("%s: %d cases as expected, %d differ, %d not run", r.part, len(r.with("pass")), len(r.failed()), len(r.with("skip")))
	if r.problem != nil {
		s += "; did not run to its end: " + r.problem.Error()
	}
	return s
}

// report is the report of a run. It does not name the account.
type report struct {
	region, account string
	endpoints       []string // not AWS's
	begun           time.Time
	interrupted     bool
	parts           []*result
}

func (r *report) add(p *result) { r.parts = append(r.parts, p) }

// problem returns an error unless each part was run to its end, and each case did as expected.
func (r *report) problem() error {
	differ, broken := 0, 0
	for _, p := range r.parts {
		differ += len(p.failed())
		if p.problem != nil {
			broken++
		}
	}
	if differ+broken == 0 {
		return nil
	}
	return fmt.Errorf("%d cases differ, and %d parts did not run to their end: see the report", differ, broken)
}

// markdown is the report as text for an issue.
func (r *report) markdown() string {
	var b strings.Builder
	b.WriteString("# Where AWS differs from the services in memory\n\n")
	fmt.Fprintf(&b, "Run on %s in %s.\n", r.begun.UTC().Format(time.DateOnly), r.region)
	if len(r.endpoints) > 0 {
		fmt.Fprintf(&b, "**This was not AWS:** %s.\n", strings.Join(r.endpoints, ", "))
	}
	if r.interrupted {
		b.WriteString("**It was interrupted.**\n")
	}
	b.WriteString("\n| part | as expected | differ | not run | requests |\n|---|---|---|---|---|\n")
	for _, p := range r.parts {
		var requests []string
		for _, service := range slices.Sorted(maps.Keys(p.requests)) {
			requests = append(requests, fmt.Sprint(service, " ", p.requests[service]))
		}
		if p.skipped != "" {
			fmt.Fprintf(&b, "| %s | - | - | **skipped** | |\n", p.part)
			continue
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %s |\n", p.part, len(p.with("pass")), len(p.failed()), len(p.with("skip")), strings.Join(requests, ", "))
	}
	for _, p := range r.parts {
		p.details(&b)
	}
	return strings.ReplaceAll(b.String(), r.account, "111122223333")
}

func (r *result) details(b *strings.Builder) {
	if r.skipped != "" {
		fmt.Fprintf(b, "\n## %s\n\nSkipped: %s\n", r.part, r.skipped)
		return
	}
	fmt.Fprintf(b, "\n## %s\n", r.part)
	if r.problem != nil {
		fmt.Fprintf(b, "\nDid not run to its end:\n\n%s", fenced(r.problem.Error()))
	}
	for _, c := range r.failed() {
		text := c.output
		if c.status == "" {
			text += "did not end"
		}
		fmt.Fprintf(b, "\n### %s\n\n%s", c.name, fenced(text))
	}
	skips := map[string][]string{} // names by reason
	for _, c := range r.with("skip") {
		_, reason, _ := strings.Cut(strings.TrimSpace(c.output), ": ")
		skips[reason] = append(skips[reason], c.name)
	}
	for _, reason := range slices.Sorted(maps.Keys(skips)) {
		fmt.Fprintf(b, "\nNot run, since: %s\n\n- %s\n", reason, strings.Join(skips[reason], "\n- "))
	}
}

// fenced returns text as a block of code.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimRight(text, "\n") + "\n" + fence + "\n"
}
