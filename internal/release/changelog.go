package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	changelogFile = "CHANGELOG.md"
	unreleased    = "Unreleased"
)

// releaseChangelog returns the changelog with a section for version, which the lines under Unreleased become.
func releaseChangelog(text, version string, day time.Time) (string, error) {
	hasVersion, hasUnreleased := hasEntries(section(text, version)), hasEntries(section(text, unreleased))
	switch {
	case hasVersion && hasUnreleased:
		return "", fmt.Errorf("%s has a section %s and lines under Unreleased too: move them into the section", changelogFile, version)
	case hasVersion:
		return text, nil
	case hasUnreleased:
		heading := "## " + unreleased + "\n"
		return strings.Replace(text, heading, fmt.Sprintf("%s\n## %s - %s\n", heading, version, day.Format(time.DateOnly)), 1), nil
	}
	return "", fmt.Errorf("%s says nothing about %s: write its lines under \"## Unreleased\"", changelogFile, version)
}

// section returns what is below the heading "## title", which may go on after a space, up to the next such heading.
func section(text, title string) string {
	heading := regexp.MustCompile(`(?m)^## ` + regexp.QuoteMeta(title) + `(?: .*)?$`).FindStringIndex(text)
	if heading == nil {
		return ""
	}
	body, _, _ := strings.Cut(text[heading[1]:], "\n## ")
	return body
}

func hasEntries(section string) bool { return strings.Contains(section, "\n- ") }

// announced reports whether a line under Changed or Removed of a section names the change: the identifier in a code span, and
// the package unless it is the main module's root.
func (c apiChange) announced(section string) bool {
	identifier := wholeWord(c.identifier)
	for part := range strings.SplitSeq(section, "\n### ") {
		if heading, _, _ := strings.Cut(part, "\n"); heading != "Changed" && heading != "Removed" {
			continue
		}
		for line := range strings.Lines(part) {
			inCode := slices.ContainsFunc(codeSpan.FindAllString(line, -1), identifier.MatchString)
			if inCode && (c.pkg == "" || wholeWord(c.pkg).MatchString(line)) {
				return true
			}
		}
	}
	return false
}

var codeSpan = regexp.MustCompile("`[^`]+`")

func wholeWord(word string) *regexp.Regexp {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(word) + `\b`)
}
